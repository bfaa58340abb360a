//! Phases of a recorded run that a new run can keep (docs/changed.md).

use std::collections::BTreeMap;

use cliq_protocol::PhaseName;
use cliq_workflow::ValidatedWorkflow;

use crate::events::{DecisionKind, KeptPhase, KeptStatus, RunEvent};
use crate::journal::Journal;
use crate::phase_status::PhaseStatus;
use crate::view::RunView;

impl Journal {
    /// Returns the main phases of the run that are complete or were skipped, by name, for a new run of `workflow` to keep. A gate that would
    /// not pass with its recorded answer is not among them.
    #[must_use]
    pub fn keepable(&self, workflow: &ValidatedWorkflow) -> BTreeMap<PhaseName, KeptPhase> {
        let view = RunView::of(self);
        let Some(run_id) = self.run_id() else { return BTreeMap::new() };
        let ended = view.phases.iter().filter(|phase| phase.name.item().is_none());
        let ended = ended.filter_map(|phase| {
            let status = match phase.status {
                PhaseStatus::Completed => KeptStatus::Completed,
                PhaseStatus::Skipped => KeptStatus::Skipped,
                PhaseStatus::Pending
                | PhaseStatus::Running
                | PhaseStatus::Waiting
                | PhaseStatus::Failed
                | PhaseStatus::Escalated
                | PhaseStatus::Stopped => return None,
            };
            let kept = KeptPhase::new(phase.name.clone(), phase.kind, run_id.clone(), status);
            Some((phase.name.clone(), kept))
        });
        let mut ended: BTreeMap<PhaseName, KeptPhase> = ended.collect();
        for record in &self.records {
            if let RunEvent::RunStarted { kept, .. } = &record.event {
                for kept in kept {
                    let Some(ended) = ended.get_mut(&kept.phase) else { continue };
                    // What worked again in this run is of this run; its items or its last verdict may still be of the earlier one.
                    let run_id = if view.is_kept(&kept.phase) { &kept.run_id } else { &ended.run_id };
                    *ended = KeptPhase { run_id: run_id.clone(), status: ended.status, ..kept.clone() };
                }
            } else {
                add_details(&mut ended, &record.event);
            }
        }
        add_caveats(&mut ended, &view);
        ended.retain(|_, kept| {
            let is_main = |kept: &crate::engine::Kept| !workflow.phase(kept.phase).support;
            kept.as_input(workflow).is_some_and(|kept| is_main(&kept) && kept.fits(workflow))
        });
        ended
    }
}

/// Adds what keeps phases from being plain successes, from their rows and those of their items. It stays with a phase that is kept.
fn add_caveats(ended: &mut BTreeMap<PhaseName, KeptPhase>, view: &RunView) {
    for kept in ended.values_mut() {
        // Of an earlier run, which the view has too if the phase has not worked since.
        if !kept.kind.is_gate() {
            kept.results.clear();
        }
        kept.losses.clear();
        kept.contradicted = None;
    }
    for row in view.phases.iter().filter(|row| row.status == PhaseStatus::Completed) {
        let kept = match row.name.item() {
            None => ended.get_mut(&row.name),
            Some(_) => PhaseName::parse(row.name.whole()).ok().and_then(|whole| ended.get_mut(&whole)),
        };
        let Some(kept) = kept else { continue };
        if !kept.kind.is_gate() {
            kept.results.extend(row.commands.iter().filter(|result| !result.pass).cloned());
        }
        kept.losses.extend(row.losses.iter().cloned());
        if kept.contradicted.is_none() {
            kept.contradicted.clone_from(&row.contradicted);
        }
    }
}

/// Adds what an event says of the outcome of a phase.
#[deny(clippy::wildcard_enum_match_arm)]
fn add_details(ended: &mut BTreeMap<PhaseName, KeptPhase>, event: &RunEvent) {
    let Some(name) = event.phase() else { return };
    if let RunEvent::ItemFailed { reason, .. } = event
        && let Some(item) = name.item()
        && let Ok(whole) = PhaseName::parse(name.whole())
    {
        if let Some(kept) = ended.get_mut(&whole) {
            kept.set_failure(item, Some(reason.clone()));
        }
        return;
    }
    if let RunEvent::PhaseCompleted { phase } = event
        && let Some(item) = phase.item()
        && let Ok(whole) = PhaseName::parse(phase.whole())
    {
        // A gate sent the work back after the item had failed.
        if let Some(kept) = ended.get_mut(&whole) {
            kept.set_failure(item, None);
        }
        return;
    }
    let Some(kept) = ended.get_mut(name) else { return };
    match event {
        RunEvent::PhaseDecided { decision: DecisionKind::Items, items, skipped, .. } => {
            kept.items.clone_from(items);
            kept.skipped.clone_from(skipped);
            kept.failed.clear();
        }
        RunEvent::CommandsFinished { results, .. } if kept.kind.is_gate() => kept.results.clone_from(results),
        RunEvent::AgentCompleted { result, .. } if kept.kind.is_gate() => kept.answer.clone_from(result),
        RunEvent::RunStarted { .. }
        | RunEvent::RunInterrupted
        | RunEvent::RunResumed { .. }
        | RunEvent::PhaseStarted { .. }
        | RunEvent::AgentStarted { .. }
        | RunEvent::CommandStarted { .. }
        | RunEvent::CommandFinished { .. }
        | RunEvent::CommandsFinished { .. }
        | RunEvent::Progress { .. }
        | RunEvent::UsageReported { .. }
        | RunEvent::ReviewWaits { .. }
        | RunEvent::ReviewIdle { .. }
        | RunEvent::PhaseSandboxed { .. }
        | RunEvent::AccessRefused { .. }
        | RunEvent::RunIdle { .. }
        | RunEvent::RunParked { .. }
        | RunEvent::SteeringReceived { .. }
        | RunEvent::SteeringDelivered { .. }
        | RunEvent::NotifyRequested { .. }
        | RunEvent::AgentCompleted { .. }
        | RunEvent::WorkFailed { .. }
        | RunEvent::PhaseDecided { .. }
        | RunEvent::PhaseSkipped { .. }
        | RunEvent::ItemsStarted { .. }
        | RunEvent::ItemFailed { .. }
        | RunEvent::RetryScheduled { .. }
        | RunEvent::MergeConflict { .. }
        | RunEvent::ItemsMerged { .. }
        | RunEvent::RetryDelayed { .. }
        | RunEvent::RetryDue { .. }
        | RunEvent::Verdict { .. }
        | RunEvent::VerdictRejected { .. }
        | RunEvent::PhaseCompleted { .. }
        | RunEvent::PhaseEscalated { .. }
        | RunEvent::PhaseReset { .. }
        | RunEvent::PhaseStopped { .. }
        | RunEvent::Draining { .. }
        | RunEvent::WorkspaceChanged { .. }
        | RunEvent::Warning { .. }
        | RunEvent::CompletionContradicted { .. }
        | RunEvent::CancelRequested { .. }
        | RunEvent::OrchestratorFailed { .. }
        | RunEvent::RunFinished { .. } => {}
    }
}
