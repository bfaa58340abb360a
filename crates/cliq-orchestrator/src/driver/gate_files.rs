//! Files of a gate: `gate_context.md`, and its verdict in the channels of the phases it concerns.

use std::fmt::Write;

use camino::Utf8PathBuf;
use cliq_fs::{CliqDir, FsError, is_half_written, read_handoff, write_atomic, write_handoff};
use cliq_gate::Gate;
use cliq_protocol::{Body, CommandResult, Envelope, GateData, Outcome, PhaseName, SteeringMessage};
use cliq_workflow::{PhaseId, ValidatedWorkflow};

/// Writes what the gate's agent is shown, for people and agents that read markdown. Where a team has several gates,
/// each has a file of its own, and `gate_context.md` shows the newest.
pub(super) fn write_context(
    dir: &CliqDir,
    workflow: &ValidatedWorkflow,
    id: PhaseId,
    gate: &Gate,
    steering: &[SteeringMessage],
) -> Result<Utf8PathBuf, FsError> {
    let name = &workflow.phase(id).name;
    let text = render_context(name, gate, steering);
    write_atomic(&dir.gate_context(), text.as_bytes())?;
    if workflow.phases().filter(|(_, phase)| phase.kind.is_gate()).count() == 1 {
        return Ok(dir.gate_context());
    }
    let own = dir.messages().join(format!("{name}.gate_context.md"));
    write_atomic(&own, text.as_bytes())?;
    Ok(own)
}

fn render_context(name: &PhaseName, gate: &Gate, steering: &[SteeringMessage]) -> String {
    let mut out = format!(
        "# Gate {name}: evaluation {} of {}\n\n## Check results\n\n",
        gate.iteration(),
        gate.spec().max_iterations
    );
    if gate.checks().is_empty() {
        out.push_str("The gate has no commands.\n");
    }
    for check in gate.checks() {
        let mark = match (check.was_skipped(), check.pass) {
            (true, _) => "skipped",
            (_, true) => "pass",
            (_, false) => "FAIL",
        };
        let _ = write!(out, "- {mark}: {}", check.label());
        if let Some(code) = check.exit_code.filter(|_| !check.pass) {
            let _ = write!(out, " (exit status {code})");
        }
        out.push('\n');
        for line in check.output_tail.as_deref().filter(|_| !check.pass).unwrap_or_default().lines() {
            let _ = writeln!(out, "      {line}");
        }
    }
    out.push_str("\n## History\n\n");
    if gate.history().is_empty() {
        out.push_str("This is the first evaluation.\n");
    }
    for entry in gate.history() {
        let failed: Vec<String> = entry.checks.iter().filter(|c| !c.pass).map(CommandResult::label).collect();
        let _ = write!(out, "{}. {}", entry.iteration, entry.verdict.sentence());
        if !failed.is_empty() {
            let _ = write!(out, " (failed: {})", failed.join(", "));
        }
        out.push('\n');
    }
    out.push_str("\n## Route targets\n\n");
    for target in &gate.spec().route_targets {
        let _ = writeln!(out, "- {target}");
    }
    if gate.spec().route_targets.is_empty() {
        out.push_str("This gate cannot route.\n");
    }
    if !steering.is_empty() {
        out.push_str("\n## Steering messages\n\nAdditions to the task, no verdicts.\n");
    }
    for SteeringMessage { from, ts, text, phase, .. } in steering {
        let to = phase.as_ref().map(|phase| format!(" to {phase}")).unwrap_or_default();
        let _ = write!(out, "\n- {from} at {ts}{to}:\n\n");
        for line in text.lines() {
            let _ = writeln!(out, "      {line}");
        }
    }
    out
}

/// Sees to it that the verdict lies in a channel: writes it where the gate's agent has not (docs/protocol.md).
pub(super) fn deliver(
    dir: &CliqDir,
    gate: &PhaseName,
    agent: &str,
    to: &PhaseName,
    data: &GateData,
    limit: u64,
) -> Result<(), FsError> {
    let channel = dir.channel(gate, to);
    let envelope = Envelope::gate(gate.clone(), agent, data.clone());
    // A text alone is a handoff of its own, unless it is the half of this one.
    if is_half_written(&channel, &envelope, limit)? {
        return write_handoff(&channel, &envelope);
    }
    let written_by_agent = match read_handoff(&channel, gate, limit) {
        // What a limit cut short is no verdict.
        Ok(Some(Envelope { limited: Some(_), .. })) => false,
        Ok(Some(Envelope { body: Body::Gate(found), .. })) => {
            found.iteration == data.iteration && found.verdict.outcome == data.verdict.outcome
        }
        // On PASS a gate may hand over something of its own to those behind it.
        Ok(Some(_)) => data.verdict.outcome == Outcome::Pass,
        Ok(None) | Err(_) => false,
    };
    if written_by_agent {
        return Ok(());
    }
    write_handoff(&channel, &envelope)
}

#[cfg(test)]
mod tests {
    use cliq_protocol::{Object, Verdict};

    use super::*;

    #[test]
    fn a_verdict_that_was_half_delivered_is_delivered() {
        let place = tempfile::tempdir().unwrap();
        let workspace = camino::Utf8Path::from_path(place.path()).unwrap();
        let dir = CliqDir::create(workspace).unwrap();
        let (gate, to) = (PhaseName::parse("g").unwrap(), PhaseName::parse("end").unwrap());
        let verdict = Verdict::pass("fine");
        let data =
            GateData { verdict, checks: Vec::new(), iteration: 1, max_iterations: 3, extra: Object::new() };
        let channel = dir.channel(&gate, &to);
        let again = || deliver(&dir, &gate, "judge", &to, &data, 1 << 20).unwrap();
        again();
        // The orchestrator died between the text and the file for programs.
        std::fs::remove_file(channel.join("handoff.json")).unwrap();
        again();
        assert!(channel.join("handoff.json").exists());
        // A text of the gate's agent is its own handoff.
        std::fs::remove_file(channel.join("handoff.json")).unwrap();
        std::fs::write(channel.join("handoff.md"), "Look at the second page.").unwrap();
        again();
        assert!(!channel.join("handoff.json").exists());
    }
}
