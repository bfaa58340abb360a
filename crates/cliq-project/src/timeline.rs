//! The timeline of a run, from its journal: what happened in which order, why it ended, which files say more.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::PipelineStatus;
use cliq_orchestrator::internals::SteeringLedger;
use cliq_orchestrator::{
    DecisionKind, Journal, PhaseStatus, PhaseView, Record, RunEvent, RunView, UsageSummary,
};
use cliq_protocol::{CommandEnd, CommandResult, ConversationRecord, Outcome, PhaseKind, Timestamp, WireTime};
use serde::Serialize;

use crate::history::RecordedRun;

/// Maximum size of the record of a conversation, in bytes.
const MAX_CONVERSATION: u64 = 4 << 20;

/// The timeline of a run: the document of `cliq explain --json`.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Timeline {
    /// The run's id.
    pub run_id: String,
    /// Name of the team.
    pub team: String,
    /// Title of the run, if it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `COMPLETED`, `ESCALATED`, `FAILED`, `CANCELLED`, `INTERRUPTED`, `RUNNING` or `WAITING`.
    pub status: String,
    /// Reason why it did not complete.
    pub reason: Option<String>,
    /// The phase that the reason is about.
    pub phase: Option<String>,
    /// Duration in milliseconds.
    pub elapsed_ms: i64,
    /// Steps, oldest first.
    pub steps: Vec<Step>,
    /// The last output where it went wrong.
    pub outputs: Vec<OutputTail>,
    /// Phases that were active when it ended.
    pub unfinished: Vec<String>,
    /// Files that say more.
    pub files: Vec<RelatedFile>,
    /// The usage of language models; `None` if none was reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageSummary>,
    /// Steering messages with their deliveries, oldest first.
    #[serde(skip_serializing_if = "SteeringLedger::is_empty")]
    pub steering: SteeringLedger,
    /// Suggestions for the next step.
    pub next: Vec<String>,
}

/// Something that happened.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// Milliseconds since the run began.
    pub at_ms: i64,
    /// Time, in UTC.
    pub ts: WireTime,
    /// Significance for the outcome.
    #[serde(rename = "weight")]
    pub significance: Significance,
    /// Description in a sentence.
    pub text: String,
}

/// Significance of a step for the outcome of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Significance {
    /// Step of every run.
    Usual,
    /// A success.
    Good,
    /// Worth noticing.
    Notable,
    /// A failure.
    Bad,
}

/// The end of an output.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct OutputTail {
    /// Source of the output.
    pub of: String,
    /// Trailing bytes of the output.
    pub tail: String,
    /// The file with all of it.
    pub file: Option<Utf8PathBuf>,
}

/// A file that says more about the outcome.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct RelatedFile {
    /// Path of the file.
    pub path: Utf8PathBuf,
    /// Content of the file.
    pub about: String,
}

impl RecordedRun {
    /// The timeline of the run, as of `now`.
    #[must_use]
    pub fn timeline(&self, now: Timestamp) -> Timeline {
        let (journal, place) = (&self.journal, &self.place);
        let mut view = RunView::empty();
        let mut steps = Vec::new();
        for record in &journal.records {
            view.apply(record);
            let conversation = conversation(record, &view, place);
            steps.extend(step(record, &view).map(|step| match conversation {
                Some(conversation) => Step { text: format!("{}; {conversation}", step.text), ..step },
                None => step,
            }));
        }
        let status = match (&view.status, self.running) {
            (Some(status), _) => status.clone(),
            (None, true) => "RUNNING".to_owned(),
            (None, false) if view.waiting.is_some() => "WAITING".to_owned(),
            (None, false) => "INTERRUPTED".to_owned(),
        };
        let is_unfinished = |phase: &&PhaseView| {
            matches!(phase.status, PhaseStatus::Running | PhaseStatus::Waiting | PhaseStatus::Stopped)
        };
        let unfinished: Vec<&PhaseView> = view.phases.iter().filter(is_unfinished).collect();
        let reason = view.reason.clone().or_else(|| end_reason(&status, journal));
        let focus = view.phase.as_ref().and_then(|name| view.find(name));
        let focus = focus
            .or_else(|| unfinished.first().copied().filter(|_| status != "COMPLETED" && status != "RUNNING"));
        let last = journal.records.last().and_then(|record| record.ts.time());
        let end = if self.running { now } else { last.unwrap_or(now) };
        Timeline {
            run_id: view.run_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            team: view.team.clone(),
            title: view.title.clone(),
            reason,
            phase: focus.map(|phase| phase.name.to_string()),
            elapsed_ms: view.elapsed_ms(end),
            outputs: focus.map(|phase| outputs(phase, place)).unwrap_or_default(),
            unfinished: unfinished.iter().map(|phase| phase.name.to_string()).collect(),
            files: focus.map(|phase| related_files(phase, place)).unwrap_or_default(),
            usage: view.usage(),
            next: next_steps(&status, focus),
            steering: view.steering.clone(),
            status,
            steps,
        }
    }
}

/// A duration for people: `0.4s`, `12s`, `3m07s`, `2h05m`.
#[must_use]
pub fn duration(millis: i64) -> String {
    let millis = millis.max(0);
    let seconds = millis / 1000;
    match seconds {
        0..=9 => format!("{}.{}s", seconds, millis % 1000 / 100),
        10..=59 => format!("{seconds}s"),
        60..=3599 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Returns how an activation stands to the conversation of an earlier one, if it has one.
fn conversation(record: &Record, view: &RunView, place: &Utf8Path) -> Option<String> {
    let RunEvent::PhaseStarted { phase, kind, iteration, .. } = &record.event else { return None };
    if kind.is_gate() {
        return None;
    }
    let path = place.join("conversations").join(format!("{phase}.{iteration}.json"));
    let bytes = cliq_fs::read_if_exists(&path, MAX_CONVERSATION).ok().flatten()?;
    let found: ConversationRecord = serde_json::from_slice(&bytes).ok()?;
    if Some(&found.run_id) != view.run_id.as_ref() {
        return None;
    }
    match (found.continued_from, found.notice) {
        (_, Some(reason)) => Some(format!("conversation: new, {reason}")),
        (Some(activation), None) => Some(format!("conversation: continued from activation {activation}")),
        (None, None) => None,
    }
}

#[deny(clippy::wildcard_enum_match_arm)]
fn step(record: &Record, view: &RunView) -> Option<Step> {
    let (significance, text) = match &record.event {
        // What follows says it.
        RunEvent::AgentStarted { .. }
        | RunEvent::AgentCompleted { .. }
        | RunEvent::UsageReported { .. }
        | RunEvent::NotifyRequested { .. } => return None,
        RunEvent::CommandsFinished { results, .. } if results.iter().all(|result| result.pass) => {
            return None;
        }
        RunEvent::CommandsFinished { phase, results, .. } => {
            let failed: Vec<String> = results.iter().filter(|r| !r.pass).map(CommandResult::label).collect();
            let text = format!(
                "{phase}: {} of {} commands failed: {}",
                failed.len(),
                results.len(),
                failed.join(", ")
            );
            (Significance::Notable, text)
        }
        RunEvent::RunStarted { inputs, kept, .. } => {
            let inputs: Vec<String> = inputs.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let inputs =
                if inputs.is_empty() { String::new() } else { format!(" with {}", inputs.join(", ")) };
            let kept: Vec<&str> = kept.iter().map(|kept| kept.phase.as_str()).collect();
            let kept = if kept.is_empty() {
                String::new()
            } else {
                format!("; kept from the last run: {}", kept.join(", "))
            };
            (Significance::Usual, format!("the run began{inputs}{kept}"))
        }
        RunEvent::PhaseCompleted { phase } => {
            let view = view.find(phase);
            let took = duration(view.map_or(0, |phase| phase.duration_ms));
            let usage = view.and_then(|phase| phase.usage.as_ref());
            let estimated = |usage: &UsageSummary| if usage.estimated { " estimated" } else { "" };
            let usage = usage
                .map(|usage| format!(", {}{} tokens", usage.tokens(), estimated(usage)))
                .unwrap_or_default();
            (Significance::Good, format!("{} (worked {took}{usage})", record.event.describe()))
        }
        RunEvent::Verdict { verdict, failing, .. }
            if verdict.outcome == Outcome::Pass && failing.is_empty() =>
        {
            (Significance::Good, record.event.describe())
        }
        RunEvent::PhaseDecided {
            phase,
            decision: DecisionKind::Skip | DecisionKind::Run,
            expressions,
            values,
            ..
        } => {
            let when = expressions.get("when").map(String::as_str).unwrap_or_default();
            let read = values.iter().map(|(name, value)| format!("{name} = {}", shortened(value)));
            let read = read.collect::<Vec<_>>().join(", ");
            let read = if read.is_empty() { read } else { format!(", with {read}") };
            (Significance::Usual, format!("{phase}: decided by `{when}`{read}"))
        }
        RunEvent::RetryDelayed { .. } => return None,
        RunEvent::RetryScheduled { .. } | RunEvent::ItemFailed { .. } => {
            (Significance::Notable, record.event.describe())
        }
        RunEvent::PhaseEscalated { .. }
        | RunEvent::WorkFailed { .. }
        | RunEvent::OrchestratorFailed { .. }
        | RunEvent::RunInterrupted => (Significance::Bad, record.event.describe()),
        RunEvent::Verdict { .. }
        | RunEvent::VerdictRejected { .. }
        | RunEvent::WorkspaceChanged { .. }
        | RunEvent::Warning { .. }
        | RunEvent::CompletionContradicted { .. }
        | RunEvent::CancelRequested { .. }
        | RunEvent::Draining { .. }
        | RunEvent::SteeringReceived { .. }
        | RunEvent::PhaseStopped { .. } => (Significance::Notable, record.event.describe()),
        RunEvent::RunFinished { status, .. } => {
            let significance =
                if *status == PipelineStatus::Completed { Significance::Good } else { Significance::Bad };
            (significance, format!("the run ended: {status}"))
        }
        RunEvent::RunResumed { .. }
        | RunEvent::PhaseStarted { .. }
        | RunEvent::CommandStarted { .. }
        | RunEvent::CommandFinished { .. }
        | RunEvent::Progress { .. }
        | RunEvent::ReviewWaits { .. }
        | RunEvent::ReviewIdle { .. }
        | RunEvent::PhaseSandboxed { .. }
        | RunEvent::AccessRefused { .. }
        | RunEvent::RunIdle { .. }
        | RunEvent::RunParked { .. }
        | RunEvent::SteeringDelivered { .. }
        | RunEvent::PhaseDecided { .. }
        | RunEvent::PhaseSkipped { .. }
        | RunEvent::ItemsStarted { .. }
        | RunEvent::MergeConflict { .. }
        | RunEvent::ItemsMerged { .. }
        | RunEvent::RetryDue { .. }
        | RunEvent::PhaseReset { .. } => (Significance::Usual, record.event.describe()),
        _ => (Significance::Usual, record.event.describe()),
    };
    let at_ms = record.ts.time().map_or(0, Timestamp::unix_millis) - view.started_ms.unwrap_or(0);
    Some(Step { at_ms: at_ms.max(0), ts: record.ts.clone(), significance, text })
}

fn shortened(value: &serde_json::Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 120 {
        text
    } else {
        format!("{}…", text.chars().take(120).collect::<String>())
    }
}

/// Reason why a run ended that has no reason of its own.
fn end_reason(status: &str, journal: &Journal) -> Option<String> {
    let events = journal.records.iter().rev().map(|record| &record.event);
    match status {
        "CANCELLED" => events
            .filter_map(|event| match event {
                RunEvent::CancelRequested { by } => Some(format!("it was cancelled by {by}")),
                _ => None,
            })
            .next(),
        "INTERRUPTED" => events
            .filter_map(|event| match event {
                RunEvent::RunStarted { pid, .. } | RunEvent::RunResumed { pid, .. } => Some(format!(
                    "its orchestrator (process {pid}) ended without a word: it was killed, or the machine went down"
                )),
                _ => None,
            })
            .next(),
        _ => None,
    }
}

fn outputs(phase: &PhaseView, place: &Utf8Path) -> Vec<OutputTail> {
    let at = |file: &Option<String>| file.as_ref().map(|file| place.join(file));
    let commands = phase.commands.iter().filter(|command| !command.pass).map(|command| OutputTail {
        of: format!("command `{}`, which {}", command.label(), how(command.end())),
        tail: command.output_tail.clone().unwrap_or_default(),
        file: at(&command.log_file),
    });
    let agent = phase.output_tail.as_ref().map(|tail| OutputTail {
        of: format!("the agent of `{}`", phase.name),
        tail: tail.clone(),
        file: at(&phase.log_file),
    });
    commands.chain(agent).collect()
}

/// Describes the end of a command that did not pass.
fn how(end: CommandEnd) -> String {
    match end {
        CommandEnd::Failed(code) => format!("ended with exit status {code}"),
        CommandEnd::Killed(signal) => format!("was ended by signal {signal}"),
        CommandEnd::TimedOut(_) => "did not end in time".to_owned(),
        CommandEnd::NotStarted(_) => "could not be started".to_owned(),
        CommandEnd::Passed | CommandEnd::Skipped | CommandEnd::Unclear => "failed".to_owned(),
    }
}

/// The files about a phase: its message, what it was handed, what it printed, what it reported.
fn related_files(phase: &PhaseView, place: &Utf8Path) -> Vec<RelatedFile> {
    let name = phase.name.as_str();
    let mut files = Vec::new();
    let mut add = |path: Utf8PathBuf, about: &str| {
        if path.exists() {
            files.push(RelatedFile { path, about: about.to_owned() });
        }
    };
    for log in listed(&place.join("logs"), |file| file.starts_with(&format!("{name}."))) {
        add(log, "what it printed");
    }
    for channel in listed(&place.join("channels"), |channel| channel.ends_with(&format!("--{name}"))) {
        add(channel.join("handoff.md"), "what it was handed");
        add(channel.join("handoff.json"), "the same, for programs");
    }
    if phase.kind.is_gate() {
        add(place.join("gate_context.md"), "what the gate was shown");
    }
    add(place.join("messages").join(format!("{name}.{}.json", phase.iterations)), "what its agent was sent");
    add(place.join("signals").join(format!("{name}.jsonl")), "what its agent reported");
    add(place.join("signals").join(format!("{name}_command_results.json")), "what its commands said");
    if phase.kind == PhaseKind::Team {
        add(place.join("teams").join(name).join("orchestrator.log"), "the run of its team");
    }
    add(place.join("orchestrator.log"), "the whole run, line by line");
    files
}

fn listed(dir: &Utf8Path, wanted: impl Fn(&str) -> bool) -> Vec<Utf8PathBuf> {
    let entries = dir.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<_> =
        entries.filter(|entry| wanted(entry.file_name())).map(camino::Utf8DirEntry::into_path).collect();
    found.sort();
    found
}

fn next_steps(status: &str, focus: Option<&PhaseView>) -> Vec<String> {
    let resume = "`cliq run --resume` goes on where it stopped; what completed is not run again";
    let anew = "`cliq run -f` runs all phases again";
    match status {
        "COMPLETED" | "RUNNING" => Vec::new(),
        "WAITING" => vec!["answer the review, then `cliq run --resume` goes on".to_owned()],
        "INTERRUPTED" | "CANCELLED" => vec![resume.to_owned(), anew.to_owned()],
        _ => {
            let mend = focus.map_or_else(
                || "mend the cause".to_owned(),
                |phase| format!("mend what keeps `{}` from its work", phase.name),
            );
            vec![mend, resume.to_owned(), anew.to_owned()]
        }
    }
}
