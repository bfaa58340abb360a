//! Events as lines for people.

use cliq_protocol::{CommandEnd, CommandResult, PhaseName};

use super::{DecisionKind, RunEvent};

impl RunEvent {
    /// The event as a line for people, without time and colour.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::RunStarted { run_id, team, title, agent_models, kept, .. } => {
                let with = agent_models
                    .iter()
                    .flat_map(|(agent, models)| models.iter().map(move |model| format!("{model} ({agent})")));
                let with = with.collect::<Vec<_>>().join(", ");
                let with = if with.is_empty() { with } else { format!(" with {with}") };
                let names: Vec<&str> = kept.iter().map(|kept| kept.phase.as_str()).collect();
                let kept = names.join(", ");
                let kept = if kept.is_empty() { kept } else { format!("; kept from the last run: {kept}") };
                let title = title.as_ref().map(|title| format!(": {title}")).unwrap_or_default();
                format!("run {run_id} of {team} started{with}{title}{kept}")
            }
            Self::RunParked { on, until } if on.is_empty() => format!("run parked until {until}"),
            Self::RunParked { on, until } => {
                format!("run parked until {until}, or until an answer to {}", on.join(", "))
            }
            Self::RunIdle { on, until: Some(until) } if on.is_empty() => format!("idle until {until}"),
            Self::RunIdle { on, until: Some(until) } => {
                format!("idle until an answer to {}, or {until}", on.join(", "))
            }
            Self::RunIdle { until: None, .. } => "works again".to_owned(),
            Self::PhaseSandboxed { phase, sandbox, mechanism } => {
                format!("{phase}: sandbox {sandbox} by {mechanism}")
            }
            Self::AccessRefused { phase, access } => format!("{phase} was refused: {access}"),
            Self::RunInterrupted => "the orchestrator had died; the run was not over".to_owned(),
            Self::RunResumed { from: None, .. } => "run taken up again".to_owned(),
            Self::RunResumed { from: Some(phase), .. } => format!("run taken up again from {phase}"),
            Self::PhaseStarted { phase, kind, iteration, routed_by } => {
                let again = match (routed_by, kind.is_gate(), iteration) {
                    (Some(gate), false, _) => format!(", sent back by {gate}"),
                    (_, true, n) => format!(", evaluation {n}"),
                    _ => String::new(),
                };
                format!("{phase}: started ({kind}{again})")
            }
            Self::AgentStarted { phase, agent, .. } => format!("{phase}: agent {agent} runs"),
            Self::CommandStarted { phase, command } => format!("{phase}: command `{command}` runs"),
            Self::CommandFinished { phase, result } => format!("{phase}: command {}", outcome(result)),
            Self::CommandsFinished { phase, results, .. } => {
                let skipped = results.iter().filter(|r| r.was_skipped()).count();
                let passed = results.iter().filter(|r| r.pass && !r.was_skipped()).count();
                let note = if skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
                format!("{phase}: {passed} of {} commands passed{note}", results.len())
            }
            Self::Progress { phase, message } => format!("{phase}: {message}"),
            Self::ReviewWaits { phase, review, .. } if review.reviewers.is_empty() => match &review.answer {
                Some(answer) => format!("{phase}: {answer}"),
                None => format!("{phase}: review {} is over", review.id),
            },
            Self::ReviewWaits { phase, review, .. } if review.asks.is_some() => {
                let (asks, who) = (review.asks.as_deref().unwrap_or_default(), review.reviewers.join(", "));
                format!(
                    "{phase}: {asks} (waits for {who}, until {}; `cliq review show {}`)",
                    review.until, review.id
                )
            }
            Self::ReviewWaits { phase, review, .. } => {
                let (who, until) = (review.reviewers.join(", "), &review.until);
                format!(
                    "{phase}: waits for a review by {who}, until {until} (`cliq review show {}`)",
                    review.id
                )
            }
            Self::ReviewIdle { phase, due: Some(due), .. } => {
                format!("{phase}: idle until an answer, or {due}")
            }
            Self::ReviewIdle { phase, due: None, .. } => {
                format!("{phase}: the agent works again")
            }
            Self::UsageReported { phase, usage, .. } => {
                let cost = usage.cost_usd.map(|cost| format!(", {cost:.4} USD")).unwrap_or_default();
                let estimated = if usage.estimated { ", estimated" } else { "" };
                format!(
                    "{phase}: {} tokens in, {} out so far{cost}{estimated}",
                    usage.tokens_in, usage.tokens_out
                )
            }
            Self::SteeringReceived { from, text, phase, .. } => {
                let to = phase.as_ref().map(|phase| format!(" to {phase}")).unwrap_or_default();
                format!("steering message from {from}{to}: {text}")
            }
            Self::SteeringDelivered { id, phase, .. } => format!("{phase}: received steering message {id}"),
            Self::NotifyRequested { phase: Some(phase), agent, about } => {
                format!("{phase}: tells {agent} of {about}")
            }
            Self::NotifyRequested { phase: None, agent, about } => format!("tells {agent} of {about}"),
            Self::AgentCompleted { phase, .. } => format!("{phase}: agent is done"),
            Self::WorkFailed { phase, reason, .. } => format!("{phase}: {reason}"),
            Self::PhaseDecided { phase, decision, items, reason, .. } => match (decision, reason) {
                (DecisionKind::Run, _) => format!("{phase}: its condition is true"),
                (DecisionKind::Skip, _) => format!("{phase}: its condition is false"),
                (DecisionKind::Items, _) => format!("{phase}: {}", count(items.len(), "item")),
                (DecisionKind::Failed, reason) => {
                    format!("{phase}: {}", reason.as_deref().unwrap_or_default())
                }
            },
            Self::PhaseSkipped { phase, reason, .. } => format!("{phase}: skipped: {}", reason.describe()),
            Self::ItemsStarted { phase, items, starting } if items == starting => {
                format!("{phase}: started with {}", count(*items as usize, "item"))
            }
            Self::ItemsStarted { phase, items, starting } => {
                format!("{phase}: started with {starting} of {}", count(*items as usize, "item"))
            }
            Self::ItemFailed { phase, reason } => format!("{phase}: failed, and the phase goes on: {reason}"),
            Self::MergeConflict { phase, item, files, notes } => {
                let shown = if notes.is_empty() { files } else { notes };
                format!("{phase}: item {item} conflicts with those merged before it: {}", shown.join(", "))
            }
            Self::ItemsMerged { phase, reason: Some(reason), .. } => format!("{phase}: {reason}"),
            Self::ItemsMerged { phase, conflict: Some(item), .. } => {
                format!("{phase}: merged up to item {item}")
            }
            Self::ItemsMerged { phase, notes, .. } if !notes.is_empty() => {
                format!(
                    "{phase}: the worktrees of its items are merged, with parts left apart: {}",
                    notes.join("; ")
                )
            }
            Self::ItemsMerged { phase, .. } => format!("{phase}: the worktrees of its items are merged"),
            Self::RetryScheduled { phase, attempt, attempts, delay_ms, reason } => {
                let when = match delay_ms {
                    0 => "now".to_owned(),
                    ms if *ms < 1000 => format!("in {ms} ms"),
                    ms => format!("in {} s", ms / 1000),
                };
                format!("{phase}: attempt {attempt} of {attempts} {when}: {reason}")
            }
            Self::RetryDelayed { phase, until } => format!("{phase}: waits until {until}"),
            Self::RetryDue { phase } => format!("{phase}: the next attempt is due"),
            Self::Verdict { gate, iteration, max_iterations, verdict, failing } => {
                let failing = match failing.as_slice() {
                    [] => String::new(),
                    failing => format!(", although these fail: {}", failing.join(", ")),
                };
                format!(
                    "{gate}: {}{failing} (evaluation {iteration} of {max_iterations})",
                    verdict.sentence()
                )
            }
            Self::VerdictRejected { gate, reason, .. } => {
                format!("{gate}: no valid verdict, asked again: {reason}")
            }
            Self::PhaseCompleted { phase } => format!("{phase}: completed"),
            Self::PhaseEscalated { phase, reason } => format!("{phase}: escalated: {reason}"),
            Self::PhaseReset { phase } => format!("{phase}: is to be done again"),
            Self::PhaseStopped { phase } => format!("{phase}: stopped"),
            Self::Draining { running } => {
                let names = running.iter().map(PhaseName::as_str).collect::<Vec<_>>().join(", ");
                format!("nothing new starts; waiting for {names}")
            }
            Self::WorkspaceChanged { phase, changed } => {
                format!("{phase}: the run has changed {changed}")
            }
            Self::Warning { phase: Some(phase), message } => format!("{phase}: warning: {message}"),
            Self::CompletionContradicted { phase, reason } => format!("{phase}: {reason}"),
            Self::Warning { phase: None, message } => format!("warning: {message}"),
            Self::CancelRequested { by } => format!("cancelled by {by}"),
            Self::OrchestratorFailed { reason } => format!("cannot go on: {reason}"),
            Self::RunFinished { status, reason, .. } => match reason {
                Some(reason) => format!("run {status}: {reason}"),
                None => format!("run {status}"),
            },
        }
    }
}

/// `1 item`, `2 items`.
fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// `name` passed, was skipped, or failed and how.
fn outcome(result: &CommandResult) -> String {
    let name = result.label();
    match result.end() {
        CommandEnd::Skipped => format!("`{name}` skipped"),
        CommandEnd::Passed => format!("`{name}` passed"),
        CommandEnd::Failed(code) => format!("`{name}` failed with exit status {code}"),
        CommandEnd::Killed(signal) => format!("`{name}` was ended by signal {signal}"),
        CommandEnd::TimedOut(_) => format!("`{name}` did not end in time"),
        CommandEnd::NotStarted(_) => format!("`{name}` could not be started"),
        CommandEnd::Unclear => format!("`{name}` failed"),
    }
}
