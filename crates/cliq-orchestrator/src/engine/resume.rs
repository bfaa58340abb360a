//! Going on after a crash, a cancellation or an escalation, and running a phase again with all that depends on it
//! (docs/decisions/0007-resume.md).

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use cliq_gate::Gate;
use cliq_workflow::PhaseId;

use super::budget::Limits;
use super::machine::Pipeline;
use super::record::{Activity, PhaseState, Task};
use super::{Effect, Report, SkipReason};

impl Pipeline {
    /// Resumes the run: completed phases stay complete; active, escalated and stopped ones start again. With `from`, that phase and
    /// all phases that depend on it are reset.
    pub(super) fn resume(
        &mut self,
        from: Option<PhaseId>,
        max_parallel: Option<usize>,
        limits: Limits,
        out: &mut Vec<Effect>,
    ) {
        let was_parked = self.is_parked();
        self.begin_again(max_parallel, limits);
        if let Some(from) = from {
            self.forget(from, out);
        }
        let workflow = Arc::clone(&self.workflow);
        for (id, _) in workflow.phases() {
            if self.resume_items(id, was_parked) {
                continue;
            }
            let task = match self.state(id) {
                PhaseState::Working(Activity::Waits(_)) if was_parked => Some(Task::Wake(id)),
                PhaseState::Working(_)
                | PhaseState::Deciding
                | PhaseState::Escalated(_)
                | PhaseState::Stopped => Some(Task::Resume(id)),
                PhaseState::Waiting
                | PhaseState::Queued
                | PhaseState::Items
                | PhaseState::Merging
                | PhaseState::Delayed { .. }
                | PhaseState::Routed(_)
                | PhaseState::Completed
                | PhaseState::Skipped
                | PhaseState::Failed(_) => None,
            };
            let keeps_attempts = matches!(
                self.state(id),
                PhaseState::Working(_) | PhaseState::Delayed { .. } | PhaseState::Queued
            );
            if let Some(unit) = self.phases.unit_mut(id).filter(|_| !keeps_attempts) {
                unit.failed_attempts = 0;
            }
            task.into_iter().for_each(|task| self.enqueue(task));
        }
        // A gate may have routed when nothing started any more: its target has not heard of it yet.
        for (gate, _) in workflow.phases() {
            let PhaseState::Routed(target) = *self.state(gate) else { continue };
            let record = self.phases.phase_mut(target);
            if record.routed_by == Some(gate) || record.waiting_gates.contains(&gate) {
                continue;
            }
            if record.routed_by.is_some()
                || matches!(
                    record.state(),
                    PhaseState::Queued | PhaseState::Items | PhaseState::Merging | PhaseState::Delayed { .. }
                )
            {
                record.waiting_gates.push_back(gate);
            } else {
                record.routed_by = Some(gate);
                self.enqueue(Task::Start(target));
            }
        }
    }

    fn forget(&mut self, from: PhaseId, out: &mut Vec<Effect>) {
        let workflow = Arc::clone(&self.workflow);
        let mut forgotten = BTreeSet::new();
        let mut pending = vec![from];
        while let Some(id) = pending.pop() {
            if forgotten.insert(id) {
                pending.extend(&workflow.phase(id).dependents);
                // A phase that works for a forgotten gate is forgotten too.
                let works_for_it = |(other, _): &(PhaseId, _)| self.routed_by(*other) == Some(id);
                pending.extend(workflow.phases().filter(works_for_it).map(|(other, _)| other));
            }
        }
        for &id in &forgotten {
            self.reset(id, out);
        }
        for record in self.phases.iter_mut() {
            record.waiting_gates.retain(|gate| !forgotten.contains(gate));
        }
        self.count_anew(&forgotten, out);
    }

    /// The run is resumed: nothing is under way.
    pub(super) fn begin_again(&mut self, max_parallel: Option<usize>, limits: Limits) {
        self.ledger.set_limits(limits);
        self.started = true;
        self.finished = false;
        self.interrupted = false;
        self.parked = false;
        self.end = None;
        self.max_parallel = max_parallel.unwrap_or(usize::MAX).max(1);
    }

    /// A phase is as if it had never run, save for how often it was activated.
    pub(super) fn reset(&mut self, phase: PhaseId, out: &mut Vec<Effect>) {
        // A phase that was kept or skipped is done without an activation. One with a list has none of its own: its items have.
        let record = self.phases.phase(phase);
        if self.activations(phase) > 0 || record.done.is_some() || record.items().is_some() {
            out.push(Effect::Report(Report::PhaseReset { phase }));
        }
        self.phases.set_state(phase, PhaseState::Waiting);
        self.phases.forget_items(phase);
        if let Some(unit) = self.phases.unit_mut(phase) {
            unit.continues = None;
            unit.completed = None;
            unit.failed_attempts = 0;
        }
        let record = self.phases.phase_mut(phase);
        record.done = None;
        record.routed_by = None;
        record.waiting_gates.clear();
        record.is_decided = false;
        if let Some(gate) = &mut record.gate {
            gate.machine = Gate::new(gate.machine.spec().clone());
            gate.evaluations += 1;
        }
        self.queue.retain(|task| task.phase().whole() != phase);
    }

    /// Counts what is missing, after phases were reset, and queues those of them that may start.
    pub(super) fn count_anew(&mut self, reset: &BTreeSet<PhaseId>, out: &mut Vec<Effect>) {
        let workflow = Arc::clone(&self.workflow);
        self.missing =
            workflow.phases().filter(|(id, p)| !p.support && self.phases.phase(*id).done.is_none()).count();
        for &id in reset.iter().filter(|id| !workflow.phase(**id).support) {
            let blockers = workflow
                .phase(id)
                .depends_on
                .iter()
                .filter(|d| self.phases.phase(**d).done.is_none())
                .count();
            self.phases.phase_mut(id).blockers = blockers;
        }
        for &id in reset.iter().filter(|id| !workflow.phase(**id).support) {
            let record = self.phases.phase(id);
            if record.blockers == 0 && *record.state() == PhaseState::Waiting {
                let mut skipped = VecDeque::from_iter((!self.may_start(id)).then_some(id));
                while let Some(phase) = skipped.pop_front() {
                    skipped.extend(self.skip(phase, SkipReason::Dependencies, out));
                }
            }
        }
    }
}
