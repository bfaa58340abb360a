//! Going on after a crash, a cancellation or an escalation, and running a phase again with all that depends on it
//! (docs/decisions/0007-resume.md).

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use cliq_gate::Gate;
use cliq_workflow::PhaseId;

use super::budget::Limits;
use super::machine::Pipeline;
use super::record::{PhaseState, Task};
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
            let interrupted = matches!(
                self.state(id),
                PhaseState::Working | PhaseState::Deciding | PhaseState::Escalated(_) | PhaseState::Stopped
            );
            if !matches!(self.state(id), PhaseState::Working | PhaseState::Delayed | PhaseState::Queued) {
                self.phases[id.index()].failed_attempts = 0;
            }
            let cell = &mut self.phases[id.index()];
            let waited = cell.wait.take().is_some();
            cell.is_exempt = false;
            if interrupted {
                self.enqueue(if was_parked && waited { Task::Wake(id) } else { Task::Resume(id) });
            }
        }
        // A gate may have routed when nothing started any more: its target has not heard of it yet.
        for (gate, _) in workflow.phases() {
            let PhaseState::Routed(target) = *self.state(gate) else { continue };
            let cell = &mut self.phases[target.index()];
            if cell.routed_by == Some(gate) || cell.waiting_gates.contains(&gate) {
                continue;
            }
            if cell.routed_by.is_some()
                || matches!(
                    cell.state,
                    PhaseState::Queued | PhaseState::Items | PhaseState::Merging | PhaseState::Delayed
                )
            {
                cell.waiting_gates.push_back(gate);
            } else {
                cell.routed_by = Some(gate);
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
        for cell in &mut self.phases {
            cell.waiting_gates.retain(|gate| !forgotten.contains(gate));
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
        self.working = 0;
        self.exempt = 0;
        self.max_parallel = max_parallel.unwrap_or(usize::MAX).max(1);
    }

    /// A phase is as if it had never run, save for how often it was activated.
    pub(super) fn reset(&mut self, phase: PhaseId, out: &mut Vec<Effect>) {
        let cell = &self.phases[phase.index()];
        // A phase that was kept or skipped is done without an activation.
        if cell.activations > 0 || cell.ever_done {
            out.push(Effect::Report(Report::PhaseReset { phase }));
        }
        let gate =
            self.phases[phase.index()].gate.as_ref().map(|gate| Box::new(Gate::new(gate.spec().clone())));
        self.delayed -= usize::from(*self.state(phase) == PhaseState::Delayed);
        let cell = &mut self.phases[phase.index()];
        cell.state = PhaseState::Waiting;
        cell.evaluations += 1;
        cell.ever_done = false;
        cell.was_skipped = false;
        cell.routed_by = None;
        cell.waiting_gates.clear();
        cell.gate = gate;
        cell.wait = None;
        cell.continues = None;
        cell.is_exempt = false;
        cell.is_decided = false;
        cell.conflict = None;
        cell.failed_attempts = 0;
        cell.due_ms = None;
        self.forget_items(phase);
        self.queue.retain(|task| task.phase().whole() != phase);
    }

    /// Counts what is missing, after phases were reset, and queues those of them that may start.
    pub(super) fn count_anew(&mut self, reset: &BTreeSet<PhaseId>, out: &mut Vec<Effect>) {
        let workflow = Arc::clone(&self.workflow);
        self.missing =
            workflow.phases().filter(|(id, p)| !p.support && !self.phases[id.index()].ever_done).count();
        for &id in reset.iter().filter(|id| !workflow.phase(**id).support) {
            let blockers =
                workflow.phase(id).depends_on.iter().filter(|d| !self.phases[d.index()].ever_done).count();
            self.phases[id.index()].blockers = blockers;
        }
        for &id in reset.iter().filter(|id| !workflow.phase(**id).support) {
            if self.phases[id.index()].blockers == 0 && self.phases[id.index()].state == PhaseState::Waiting {
                let mut skipped = VecDeque::from_iter((!self.may_start(id)).then_some(id));
                while let Some(phase) = skipped.pop_front() {
                    skipped.extend(self.skip(phase, SkipReason::Dependencies, out));
                }
            }
        }
    }
}
