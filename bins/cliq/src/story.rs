//! A run as a story, from its journal alone: what happened in which order, why it ended, and what to look at.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::PipelineStatus;
use cliq_orchestrator::{Journal, PhaseStatus, PhaseView, Record, RunEvent, RunView};
use cliq_protocol::{CommandResult, Outcome, PhaseKind};
use serde::Serialize;

/// A run, told.
#[derive(Debug, Serialize)]
pub(crate) struct Story {
    pub(crate) run_id: String,
    pub(crate) team: String,
    /// `COMPLETED`, `ESCALATED`, `FAILED`, `CANCELLED`, `INTERRUPTED` or `RUNNING`.
    pub(crate) status: String,
    /// Why it did not complete.
    pub(crate) reason: Option<String>,
    /// The phase that this is about.
    pub(crate) phase: Option<String>,
    pub(crate) elapsed_ms: i64,
    pub(crate) steps: Vec<Step>,
    /// The last that was printed where it went wrong.
    pub(crate) outputs: Vec<Output>,
    /// Phases that were at work when it ended.
    pub(crate) unfinished: Vec<String>,
    pub(crate) files: Vec<Clue>,
    /// What to do about it.
    pub(crate) next: Vec<String>,
}

/// Something that happened.
#[derive(Debug, Serialize)]
pub(crate) struct Step {
    /// Since the run began.
    pub(crate) at_ms: i64,
    pub(crate) ts: String,
    pub(crate) weight: Weight,
    pub(crate) text: String,
}

/// How much it says about the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Weight {
    Usual,
    Good,
    Notable,
    Bad,
}

/// The end of an output.
#[derive(Debug, Serialize)]
pub(crate) struct Output {
    pub(crate) of: String,
    pub(crate) tail: String,
    pub(crate) file: Option<Utf8PathBuf>,
}

/// A file worth looking at.
#[derive(Debug, Serialize)]
pub(crate) struct Clue {
    pub(crate) path: Utf8PathBuf,
    pub(crate) about: String,
}

/// Tells a run. `place` is where its files are: `.cliq` or one of `.cliq/history`. `running` says whether it goes on.
pub(crate) fn tell(journal: &Journal, place: &Utf8Path, running: bool, now_ms: i64) -> Story {
    let mut view = RunView::empty();
    let mut steps = Vec::new();
    for record in &journal.records {
        view.apply(record);
        steps.extend(step(record, &view));
    }
    let status = match (&view.status, running) {
        (Some(status), _) => status.clone(),
        (None, true) => "RUNNING".to_owned(),
        (None, false) => "INTERRUPTED".to_owned(),
    };
    let unfinished: Vec<&PhaseView> = view
        .phases
        .iter()
        .filter(|phase| {
            matches!(phase.status, PhaseStatus::Running | PhaseStatus::Waiting | PhaseStatus::Stopped)
        })
        .collect();
    let reason = view.reason.clone().or_else(|| why_ended(&status, journal));
    let focus = view.phase.as_ref().and_then(|name| view.find(name));
    let focus = focus
        .or_else(|| unfinished.first().copied().filter(|_| status != "COMPLETED" && status != "RUNNING"));
    let last = journal.records.last().and_then(|record| record.ts.unix_millis());
    let end = if running { now_ms } else { last.unwrap_or(now_ms) };
    Story {
        run_id: view.run_id.clone().unwrap_or_default(),
        team: view.team.clone(),
        reason,
        phase: focus.map(|phase| phase.name.to_string()),
        elapsed_ms: view.elapsed_ms(end),
        outputs: focus.map(|phase| outputs(phase, place)).unwrap_or_default(),
        unfinished: unfinished.iter().map(|phase| phase.name.to_string()).collect(),
        files: focus.map(|phase| clues(phase, place)).unwrap_or_default(),
        next: next(&status, focus),
        status,
        steps,
    }
}

fn step(record: &Record, view: &RunView) -> Option<Step> {
    let (weight, text) = match &record.event {
        // What follows says it.
        RunEvent::AgentStarted { .. }
        | RunEvent::AgentCompleted { .. }
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
            (Weight::Notable, text)
        }
        RunEvent::RunStarted { inputs, .. } => {
            let inputs: Vec<String> = inputs.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let inputs =
                if inputs.is_empty() { String::new() } else { format!(" with {}", inputs.join(", ")) };
            (Weight::Usual, format!("the run began{inputs}"))
        }
        RunEvent::PhaseCompleted { phase } => {
            let took = view.find(phase).map_or(0, |phase| phase.duration_ms);
            (Weight::Good, format!("{} (worked {})", record.event.describe(), crate::ui::duration(took)))
        }
        RunEvent::Verdict { verdict, .. } if verdict.outcome == Outcome::Pass => {
            (Weight::Good, record.event.describe())
        }
        RunEvent::PhaseEscalated { .. }
        | RunEvent::WorkFailed { .. }
        | RunEvent::OrchestratorFailed { .. }
        | RunEvent::RunInterrupted => (Weight::Bad, record.event.describe()),
        RunEvent::Verdict { .. }
        | RunEvent::VerdictRejected { .. }
        | RunEvent::Warning { .. }
        | RunEvent::CancelRequested { .. }
        | RunEvent::Draining { .. }
        | RunEvent::PhaseStopped { .. } => (Weight::Notable, record.event.describe()),
        RunEvent::RunFinished { status, .. } => {
            let weight = if *status == PipelineStatus::Completed { Weight::Good } else { Weight::Bad };
            (weight, format!("the run ended: {status}"))
        }
        _ => (Weight::Usual, record.event.describe()),
    };
    let at_ms = record.ts.unix_millis().unwrap_or(0) - view.started_ms.unwrap_or(0);
    Some(Step { at_ms: at_ms.max(0), ts: record.ts.as_str().to_owned(), weight, text })
}

/// Why a run ended that has no reason of its own.
fn why_ended(status: &str, journal: &Journal) -> Option<String> {
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

fn outputs(phase: &PhaseView, place: &Utf8Path) -> Vec<Output> {
    let at = |file: &Option<String>| file.as_ref().map(|file| place.join(file));
    let commands = phase.commands.iter().filter(|command| !command.pass).map(|command| Output {
        of: match command.exit_code {
            Some(code) => format!("command `{}`, which ended with exit status {code}", command.label()),
            None => format!("command `{}`, which failed", command.label()),
        },
        tail: command.output_tail.clone().unwrap_or_default(),
        file: at(&command.log_file),
    });
    let agent = phase.output_tail.as_ref().map(|tail| Output {
        of: format!("the agent of `{}`", phase.name),
        tail: tail.clone(),
        file: at(&phase.log_file),
    });
    commands.chain(agent).collect()
}

/// What there is about a phase: what it was asked, what it was handed, what it printed, what it said.
fn clues(phase: &PhaseView, place: &Utf8Path) -> Vec<Clue> {
    let name = phase.name.as_str();
    let mut clues = Vec::new();
    let mut add = |path: Utf8PathBuf, about: &str| {
        if path.exists() {
            clues.push(Clue { path, about: about.to_owned() });
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
    clues
}

fn listed(dir: &Utf8Path, wanted: impl Fn(&str) -> bool) -> Vec<Utf8PathBuf> {
    let entries = dir.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<_> =
        entries.filter(|entry| wanted(entry.file_name())).map(camino::Utf8DirEntry::into_path).collect();
    found.sort();
    found
}

fn next(status: &str, focus: Option<&PhaseView>) -> Vec<String> {
    let resume = "`cliq run --resume` goes on where it stopped; what completed is not run again";
    let anew = "`cliq run -f` runs all phases again";
    match status {
        "COMPLETED" | "RUNNING" => Vec::new(),
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
