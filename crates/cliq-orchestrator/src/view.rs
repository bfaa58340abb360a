//! A run as people look at it: folded from its events, live or from the journal.

mod item_title;
mod phase;

use std::collections::HashMap;

use cliq_fs::PipelineStatus;
use cliq_protocol::{
    ChangedLines, CommandResult, Limited, PhaseKind, PhaseName, RunId, Sandbox, Timestamp, Verdict,
    WaitingReview, WireTime,
};
use cliq_workflow::ValidatedWorkflow;
use serde::Serialize;
use serde_json::Value;

use crate::events::{KeptPhase, KeptStatus, Record, RunEvent};
use crate::journal::Journal;
use crate::phase_status::PhaseStatus;
use crate::steering::{Delivery, SteeringLedger};
use crate::usage::UsageSummary;
use item_title::item_title;

/// A phase of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PhaseView {
    /// Name of the phase.
    pub name: PhaseName,
    /// Title of an item: its text, or its `title`, `name`, `path`, `file` or `id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Type of the phase.
    #[serde(rename = "type")]
    pub kind: PhaseKind,
    /// Whether it idles until a gate routes to it.
    pub support: bool,
    /// State of the phase.
    pub status: PhaseStatus,
    /// Number of activations, or of evaluations for a gate.
    pub iterations: u32,
    /// Working time in milliseconds, without the current activation.
    pub duration_ms: i64,
    /// Since when it is at work, in milliseconds since 1970.
    pub running_since_ms: Option<i64>,
    /// The last it said, or why it escalated.
    pub message: Option<String>,
    /// The last verdict of a gate.
    pub verdict: Option<Verdict>,
    /// Commands that failed although the gate passed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// The last results of its commands.
    pub commands: Vec<CommandResult>,
    /// The last of what its agent printed, where it failed.
    pub output_tail: Option<String>,
    /// The log of the agent that failed, relative to `.cliq/`.
    pub log_file: Option<String>,
    /// Limit that ended its last activation before the work was done. Its handoff is partial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited: Option<Limited>,
    /// Failure of its agent after it had reported that it was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contradicted: Option<String>,
    /// Parts of the work of its items that their merge left apart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<String>,
    /// The usage of its agents; `None` if none was reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageSummary>,
    /// Sandbox of its agent and commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// The review that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<WaitingReview>,
    /// Run in which it worked, if this run keeps it from there (docs/changed.md).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_from: Option<RunId>,
    /// Whether it worked when the orchestrator died.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The usage of its earlier activations.
    #[serde(skip)]
    settled_usage: UsageSummary,
}

/// Cause of the wait of a parked run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WaitView {
    /// Ids of the reviews.
    pub on: Vec<String>,
    /// Time at which the run wakes without an answer.
    pub until: WireTime,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunView {
    /// The run, once it began.
    pub run_id: Option<RunId>,
    /// The team's name.
    pub team: String,
    /// Title of the run, if it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Number of main phases, if the run has recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_count: Option<u32>,
    /// End of the run: `COMPLETED`, `ESCALATED`, `FAILED`, `CANCELLED`. `None` while it is active.
    pub status: Option<String>,
    /// Reason why it did not complete.
    pub reason: Option<String>,
    /// The phase that this is about.
    pub phase: Option<PhaseName>,
    /// Cause of the wait while the run is parked (docs/decisions/0033-waiting-is-a-state.md).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitView>,
    /// Time of the start, in milliseconds since 1970.
    pub started_ms: Option<i64>,
    /// Time of the end.
    pub ended_ms: Option<i64>,
    /// Changes to the workspace so far; `None` if there are no checkpoints, or no activation has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangedLines>,
    /// Phases in the order of the file.
    pub phases: Vec<PhaseView>,
    /// Steering messages (docs/steering.md).
    #[serde(skip_serializing_if = "SteeringLedger::is_empty")]
    pub steering: SteeringLedger,
    /// Index of each phase.
    #[serde(skip)]
    places: HashMap<PhaseName, usize>,
}

impl RunView {
    /// A run that has not begun.
    #[must_use]
    pub fn new(workflow: &ValidatedWorkflow) -> Self {
        let phases = workflow
            .phases()
            .map(|(_, phase)| PhaseView::new(phase.name.clone(), phase.kind, phase.support))
            .collect();
        let places = workflow.phases().enumerate().map(|(n, (_, phase))| (phase.name.clone(), n)).collect();
        Self { team: workflow.name.to_string(), phases, places, ..Self::empty() }
    }

    /// A run of which nothing is known: it learns its team and phases from its events.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            run_id: None,
            team: String::new(),
            title: None,
            phase_count: None,
            status: None,
            reason: None,
            phase: None,
            waiting: None,
            started_ms: None,
            ended_ms: None,
            changed: None,
            phases: Vec::new(),
            steering: SteeringLedger::default(),
            places: HashMap::new(),
        }
    }

    /// The run of a journal.
    #[must_use]
    pub fn of(journal: &Journal) -> Self {
        let mut view = Self::empty();
        journal.records.iter().for_each(|record| view.apply(record));
        view
    }

    /// A phase.
    #[must_use]
    pub fn find(&self, name: &PhaseName) -> Option<&PhaseView> {
        self.phases.get(*self.places.get(name)?)
    }

    /// End of the run, or `None` while it is active.
    #[must_use]
    pub fn pipeline_status(&self) -> Option<PipelineStatus> {
        self.status.as_deref().and_then(PipelineStatus::parse)
    }

    /// Returns the number of main phases that are done: complete, skipped or given up.
    #[must_use]
    pub fn done_count(&self) -> u32 {
        let is_done = |phase: &&PhaseView| {
            matches!(phase.status, PhaseStatus::Completed | PhaseStatus::Skipped)
                && !phase.support
                && phase.name.item().is_none()
        };
        // A view that is made of events alone does not know which phases are support phases: those of a completed run are all done.
        let done = u32::try_from(self.phases.iter().filter(is_done).count()).unwrap_or(u32::MAX);
        match self.phase_count {
            Some(all) if self.completed() => all,
            Some(all) => done.min(all),
            None => done,
        }
    }

    /// Marks the run as interrupted: its orchestrator ended without an end of the run. Clocks stop at `last`, the time of its last
    /// record. Does nothing if the run has ended or is parked.
    pub fn interrupt(&mut self, last: Option<Timestamp>) {
        if self.status.is_some() || self.waiting.is_some() {
            return;
        }
        let last_ms = last.map(Timestamp::unix_millis);
        self.ended_ms = self.ended_ms.or(last_ms);
        for phase in &mut self.phases {
            if matches!(phase.status, PhaseStatus::Running | PhaseStatus::Waiting) {
                phase.status = PhaseStatus::Stopped;
                phase.interrupted = true;
            }
            phase.rest(last_ms);
        }
    }

    /// Returns the duration of the run in milliseconds, up to `now` if it is active.
    #[must_use]
    pub fn elapsed_ms(&self, now: Timestamp) -> i64 {
        self.started_ms.map_or(0, |started| self.ended_ms.unwrap_or_else(|| now.unix_millis()) - started)
    }

    /// The usage of all phases; `None` if none was reported.
    #[must_use]
    pub fn usage(&self) -> Option<UsageSummary> {
        let mut phases = self.phases.iter().filter_map(|phase| phase.usage.as_ref());
        let mut sum = phases.next()?.clone();
        phases.for_each(|usage| sum.merge(usage));
        Some(sum)
    }

    /// Adds rows for the items of a phase after its own.
    fn add_items(&mut self, phase: &PhaseName, values: &[Value], skipped: &[u32]) {
        let items = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let Some(&place) = self.places.get(phase) else { return };
        let (kind, support) = (self.phases[place].kind, self.phases[place].support);
        let known =
            self.phases[place + 1..].iter().take_while(|row| row.name.whole() == phase.as_str()).count();
        let rows = (u32::try_from(known).unwrap_or(u32::MAX)..items).map(|item| phase.with_item(item));
        let rows: Vec<PhaseView> = rows.map(|name| PhaseView::new(name, kind, support)).collect();
        if !rows.is_empty() {
            let at = place + 1 + known;
            self.phases.splice(at..at, rows);
            self.places = self.phases.iter().enumerate().map(|(n, row)| (row.name.clone(), n)).collect();
        }
        let all = self.phases[place + 1..].iter_mut().take_while(|row| row.name.whole() == phase.as_str());
        for (row, item) in all.zip(0u32..) {
            // Items beyond the new list are of an earlier one.
            let runs = item < items && !skipped.contains(&item);
            row.status = if runs { PhaseStatus::Pending } else { PhaseStatus::Skipped };
            row.kept_from = None;
            row.title = usize::try_from(item).ok().and_then(|item| item_title(values.get(item)?));
        }
    }

    /// Whether a phase is kept from an earlier run, and has not worked in this one.
    #[must_use]
    pub fn is_kept(&self, phase: &PhaseName) -> bool {
        self.find(phase).is_some_and(|phase| phase.kept_from.is_some())
    }

    fn keep(&mut self, kept: &KeptPhase) {
        self.add_phase(&kept.phase, kept.kind);
        self.add_items(&kept.phase, &kept.items, &kept.skipped);
        let status = match kept.status {
            KeptStatus::Completed => PhaseStatus::Completed,
            KeptStatus::Skipped => PhaseStatus::Skipped,
        };
        let rows = self.phases.iter_mut().filter(|row| row.name.whole() == kept.phase.as_str());
        for row in rows {
            row.kept_from = Some(kept.run_id.clone());
            row.message = Some(format!("kept from run {}", kept.run_id));
            match row.name.item() {
                Some(item) if kept.failure(item).is_some() => {
                    row.status = PhaseStatus::Failed;
                    row.message = kept.failure(item).map(str::to_owned);
                }
                Some(item) if kept.skipped.contains(&item) => row.status = PhaseStatus::Skipped,
                _ => row.status = status,
            }
            if kept.kind.is_gate() {
                let verdict = kept.answer.as_ref().and_then(|answer| answer.get("verdict"));
                row.verdict = verdict.and_then(|verdict| Verdict::from_value(verdict.clone()).ok());
                let failing = kept.results.iter().filter(|result| !result.pass);
                row.failing = failing.map(|result| result.name.clone()).collect();
            }
            // Not of the items: the caveats are those of the phase.
            if row.name.item().is_none() {
                row.commands.clone_from(&kept.results);
                row.contradicted.clone_from(&kept.contradicted);
                row.losses.clone_from(&kept.losses);
            }
        }
    }

    /// Adds a row for a phase that is not known yet.
    fn add_phase(&mut self, name: &PhaseName, kind: PhaseKind) {
        if self.find(name).is_none() {
            self.places.insert(name.clone(), self.phases.len());
            self.phases.push(PhaseView::new(name.clone(), kind, false));
        }
    }

    /// Takes the next event.
    pub fn apply(&mut self, record: &Record) {
        // Only some events need it, and a time takes longer to parse than the rest.
        let now = || record.ts.time().map(Timestamp::unix_millis);
        match &record.event {
            RunEvent::RunStarted { run_id, team, title, phase_count, kept, .. } => {
                self.title.clone_from(title);
                self.phase_count = *phase_count;
                self.run_id = Some(run_id.clone());
                self.team.clone_from(team);
                self.started_ms = now();
                kept.iter().for_each(|kept| self.keep(kept));
            }
            // The time in between counts for no phase. What was under way starts anew.
            RunEvent::RunResumed { .. } => {
                self.status = None;
                self.reason = None;
                self.phase = None;
                self.ended_ms = None;
                let was_parked = self.waiting.take().is_some();
                let now = now();
                for phase in &mut self.phases {
                    phase.running_since_ms = None;
                    // Its agent is asked again, in the same activation.
                    if was_parked && phase.review.is_some() {
                        phase.running_since_ms = now;
                        continue;
                    }
                    phase.review = None;
                    phase.limited = None;
                    match phase.status {
                        PhaseStatus::Running | PhaseStatus::Escalated | PhaseStatus::Stopped => {
                            phase.status = PhaseStatus::Pending;
                        }
                        PhaseStatus::Completed
                        | PhaseStatus::Skipped
                        | PhaseStatus::Failed
                        | PhaseStatus::Pending
                        | PhaseStatus::Waiting => {}
                    }
                }
            }
            RunEvent::RunParked { on, until } => {
                self.waiting = Some(WaitView { on: on.clone(), until: until.clone() });
                let now = now();
                for phase in &mut self.phases {
                    phase.pause(now);
                }
            }
            RunEvent::RunFinished { status, reason, phase } => {
                self.status = Some(status.as_str().to_owned());
                self.reason.clone_from(reason);
                self.phase.clone_from(phase);
                self.ended_ms = now();
                self.waiting = None;
                for phase in &mut self.phases {
                    phase.rest(self.ended_ms);
                }
            }
            RunEvent::SteeringReceived { .. } => {
                record.steering().into_iter().for_each(|message| self.steering.receive(message));
            }
            RunEvent::SteeringDelivered { id, phase, activation } => {
                self.steering.deliver(Delivery { id, phase, activation: *activation }, &record.ts);
            }
            RunEvent::WorkspaceChanged { changed, .. } => self.changed = Some(*changed),
            event => {
                let Some(name) = event.phase() else { return };
                if let RunEvent::PhaseStarted { kind, .. }
                | RunEvent::PhaseDecided { kind, .. }
                | RunEvent::PhaseSkipped { kind, .. } = event
                {
                    self.add_phase(name, *kind);
                }
                if let RunEvent::PhaseDecided { items, skipped, .. } = event {
                    self.add_items(name, items, skipped);
                }
                if let Some(phase) = self.places.get(name).and_then(|&place| self.phases.get_mut(place)) {
                    phase.apply(event, &now);
                }
            }
        }
    }
}
