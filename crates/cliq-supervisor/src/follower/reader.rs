//! Reading a run's journal and agent output into the store.

use std::sync::Arc;

use cliq_fs::CliqDir;
use cliq_model::{Caveat, NewRunEvent};
use cliq_orchestrator::{JournalFollower, JournalUpdate, PhaseStatus, Record, RunEvent, RunView};
use cliq_protocol::{PhaseName, Timestamp};

use super::state::Follower;
use crate::journal::{
    apply, ended_work, is_of, record_progress, status_document, stored, stored_with_details, totals,
};
use crate::output::Activation;
use crate::workspace;

/// Event of a run that is not stored yet.
pub(super) struct PendingEvent {
    /// Record number in the journal, 1-based. `None` for an event that is not in the journal.
    line: Option<u64>,
    /// Journal event with its timestamp, if it may change the run's state.
    step: Option<(RunEvent, Timestamp)>,
    event: NewRunEvent,
}

impl Follower<'_> {
    /// Returns the events of journal and agent output that are not stored yet.
    pub(super) fn read(&mut self) -> Vec<PendingEvent> {
        let update = match self.journal.read() {
            Ok(update) => update,
            Err(error) => {
                tracing::warn!(run = %self.run.id, %error, "cannot read the journal; retrying");
                return Vec::new();
            }
        };
        let records = match update {
            JournalUpdate::More(records) => records,
            JournalUpdate::Afresh(records) => {
                self.seen = 0;
                self.view = Arc::new(RunView::empty());
                self.is_same_run = None;
                records
            }
            _ => Vec::new(),
        };
        // A journal starts with the id of its run. A new one is empty.
        if self.is_same_run.is_none() && !records.is_empty() {
            self.is_same_run = Some(is_of(&records, &self.run));
        }
        if self.is_same_run != Some(true) {
            // A later run of the project has archived it.
            if !self.is_archived && self.archived.exists() {
                self.journal = JournalFollower::new(&self.archived);
                self.is_archived = true;
                return self.read();
            }
            return Vec::new();
        }
        let (mut pending, has_new) = (Vec::new(), !records.is_empty());
        for record in records {
            Arc::make_mut(&mut self.view).apply(&record);
            self.seen += 1;
            let is_new = self.seen > self.run.journal_lines;
            if is_new {
                self.read_output(ended_work(&record.event), true, &mut pending);
            }
            let event = if self.is_delegated() { self.detailed_event(&record) } else { stored(&record) };
            if is_new {
                let step = Some((record.event, record.ts.time().unwrap_or_else(cliq_fs::now)));
                pending.push(PendingEvent { line: Some(self.seen), step, event });
            }
        }
        let at_work = self.view.phases.iter().filter(|phase| phase.status == PhaseStatus::Running);
        let at_work: Vec<PhaseName> = at_work.map(|phase| phase.name.clone()).collect();
        at_work.iter().for_each(|phase| self.read_output(Some(phase), false, &mut pending));
        if has_new {
            self.shared.hub.set_view(&self.run.id, Arc::clone(&self.view));
        }
        pending
    }

    /// Stores events with the state that follows from them. Returns `false` if the supervisor stops before.
    pub(super) async fn store(&mut self, pending: &[PendingEvent]) -> bool {
        let (shared, verdicts) = (Arc::clone(self.shared), std::mem::take(&mut self.verdicts));
        let host = &shared.options.host;
        let stored = self
            .commit(|change, view| {
                let mut effects = Vec::new();
                for pending in pending {
                    // Another replica may have stored a part of them.
                    if pending.line.is_some_and(|line| line <= change.run.journal_lines) {
                        continue;
                    }
                    change.run.journal_lines = pending.line.unwrap_or(change.run.journal_lines);
                    change.push(pending.event.clone());
                    if let Some((event, ts)) = &pending.step {
                        effects.extend(apply(&mut change.run, event, *ts));
                    }
                }
                change.run.totals = totals(view);
                record_progress(&mut change.run, view);
                if change.run.life.state.is_final() {
                    // Computed again after a conflict: the other writer may have given the reason of a cancellation.
                    change.run.view = status_document(host, &change.run, view);
                    change.run.caveats = Caveat::of_document(&change.run.view);
                    let finished = shared.options.delegated_finished(&change.run, view, &verdicts);
                    finished.into_iter().for_each(|finished| change.push(finished));
                }
                effects
            })
            .await;
        self.verdicts = verdicts;
        if stored && self.run.life.state.is_final() {
            self.leave_workspace();
        }
        stored
    }

    /// Translates a journal record for those who delegated the run.
    fn detailed_event(&mut self, record: &Record) -> NewRunEvent {
        let event = cliq_project::internals::task_event(record, &self.view);
        if matches!(record.event, RunEvent::Verdict { .. }) {
            self.verdicts.push(event.clone());
        }
        stored_with_details(record, &event)
    }

    /// Adds new output of a phase's agent.
    fn read_output(&mut self, phase: Option<&PhaseName>, is_over: bool, pending: &mut Vec<PendingEvent>) {
        let (Some(outputs), Some(name)) = (&mut self.outputs, phase) else { return };
        let Ok(dir) = CliqDir::open(&self.run.workspace) else { return };
        let Some(phase) = self.view.phases.iter().find(|phase| phase.name == *name) else { return };
        let input_required = self.view.phases.iter().any(|phase| phase.review.is_some());
        let activation = Activation { number: phase.iterations, is_over, input_required };
        let events = outputs.read(&dir, name, activation);
        pending.extend(events.into_iter().map(|event| PendingEvent { line: None, step: None, event }));
    }

    /// Removes the workspace of a run that has ended, if it goes with the run.
    pub(super) fn leave_workspace(&self) {
        if workspace::is_temporary(&self.run)
            && let Err(error) = workspace::remove(&self.run.workspace)
        {
            tracing::warn!(run = %self.run.id, %error, "cannot remove the workspace of a delegated run");
        }
    }
}
