//! Updates of commands.

use cliq_a2a::UpdateDraft;
use cliq_protocol::{CommandResult, PhaseName};
use serde_json::json;

pub(super) fn started(name: &str, phase: &PhaseName) -> UpdateDraft {
    let data = json!({"type": "cliq:command_started", "command": name, "phase": phase});
    UpdateDraft::working(format!("Command started: {name}"), data)
}

/// Translates the end of a command. One whose condition is false was skipped: it neither passed nor failed.
pub(super) fn completed(result: &CommandResult, phase: &PhaseName) -> UpdateDraft {
    let CommandResult { name, pass, duration_ms, exit_code, .. } = result;
    let is_skipped = is_skipped(result);
    let mut data = json!({"type": "cliq:command_completed", "command": name, "pass": pass, "phase": phase,
        "duration_ms": duration_ms, "exit_code": exit_code});
    if is_skipped {
        data["skipped"] = true.into();
    }
    let word = match (is_skipped, pass) {
        (true, _) => "skipped",
        (false, true) => "passed",
        (false, false) => "failed",
    };
    UpdateDraft::working(format!("Command {word}: {name}"), data)
}

fn is_skipped(result: &CommandResult) -> bool {
    result.skipped == Some(true)
}

/// All commands of an activation.
pub(super) struct Summary<'a> {
    pub(super) phase: &'a PhaseName,
    pub(super) results: &'a [CommandResult],
    pub(super) iteration: u32,
    /// Number of evaluations of a gate.
    pub(super) max_iterations: Option<u32>,
    /// Whether the journal has the start and the end of each command.
    pub(super) is_reported: bool,
}

impl Summary<'_> {
    /// Translates the results. Journals that do not record each command get the updates of the commands here.
    pub(super) fn drafts(&self) -> Vec<UpdateDraft> {
        let Self { phase, results, iteration, max_iterations, is_reported } = *self;
        let mut drafts = Vec::new();
        for result in results.iter().filter(|_| !is_reported) {
            if !is_skipped(result) {
                drafts.push(started(&result.name, phase));
            }
            drafts.push(completed(result, phase));
        }
        let skipped = results.iter().filter(|result| is_skipped(result)).count();
        let passed = results.iter().filter(|result| result.pass && !is_skipped(result)).count();
        let verdict = match max_iterations {
            _ if passed + skipped == results.len() => "PASS",
            Some(limit) if iteration < limit => "CONTINUE",
            _ => "ESCALATE",
        };
        let total = results.len();
        let mut data = json!({"type": "cliq:commands_summary", "phase": phase, "passed": passed, "total": total, "verdict": verdict});
        let mut text = format!("Commands of {phase}: {passed} of {total} passed");
        if skipped > 0 {
            data["skipped"] = skipped.into();
            text = format!("{text}, {skipped} skipped");
        }
        drafts.push(UpdateDraft::working(text, data));
        drafts
    }
}
