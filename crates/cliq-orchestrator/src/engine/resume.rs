//! Going on after a crash, a cancellation or an escalation, and running a phase again with all that depends on it
//! (SPEC section 7).

use std::collections::BTreeSet;
use std::sync::Arc;

use cliq_workflow::PhaseId;

use super::Effect;
use super::budget::Limits;
use super::machine::{PhaseState, Pipeline, Task};

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
}
