//! Gates within the pipeline: from a gate's effect to the pipeline's, and the queues of gates that route to the same
//! phase.

use cliq_gate::{Gate, GateEffect, GateEvent};
use cliq_protocol::{CommandResult, GateData, Object, Outcome, PhaseName};
use cliq_workflow::PhaseId;

use super::machine::Pipeline;
use super::record::{PhaseState, Task};
use super::{Effect, Report};

impl Pipeline {
    /// Feeds an event to an active gate, and applies its effects.
    pub(super) fn gate_event(&mut self, phase: PhaseId, event: GateEvent, out: &mut Vec<Effect>) {
        let Some(record) = self.phases.phase_mut(phase).gate.as_mut() else { return };
        let gate = &mut record.machine;
        let decided = gate.history().len();
        let effect = gate.step(event);
        let iteration = gate.iteration();
        let verdict = gate.history().get(decided).map(|entry| entry.verdict.clone());
        if let Some(verdict) = verdict {
            record.evaluations += 1;
            let passes = verdict.outcome == Outcome::Pass;
            let failing =
                self.gate(phase).map_or(&[][..], Gate::checks).iter().filter(|check| passes && !check.pass);
            let failing = failing.map(CommandResult::label).collect();
            out.push(Effect::Report(Report::Verdict { gate: phase, iteration, verdict, failing }));
        }
        match effect {
            GateEffect::Nothing => {}
            GateEffect::RunCommands { iteration } => {
                let routed_by = self.routed_by(phase);
                out.push(Effect::Report(Report::PhaseStarted { phase, iteration, routed_by }));
                out.push(Effect::RunCommands { phase, iteration, routed_by });
            }
            // The commands were still under way when the run began to end: the agent is not started any more.
            GateEffect::AskAgent { .. } if self.is_ending() => {
                self.rest(phase);
                self.stopped(phase, out);
            }
            GateEffect::AskAgent { iteration, rejected } => {
                if let Some(reason) = rejected.clone() {
                    out.push(Effect::Report(Report::VerdictRejected { gate: phase, iteration, reason }));
                }
                self.run_agent(phase, iteration, rejected, out);
            }
            GateEffect::Pass => {
                self.rest(phase);
                self.deliver(phase, self.workflow.phase(phase).dependents.clone(), out);
                self.complete(phase, out);
            }
            GateEffect::Route { target } => {
                self.rest(phase);
                self.route(phase, &target, out);
            }
            // The escalation of a failed agent is reported where the failure is handled.
            GateEffect::Escalate { reason } => {
                if self.is_working(phase) {
                    self.rest(phase);
                    self.escalate(phase, &reason, out);
                }
            }
        }
    }

    fn route(&mut self, gate: PhaseId, target: &PhaseName, out: &mut Vec<Effect>) {
        let Some(target) = self.workflow.find(target.as_str()) else { return };
        if self.waits_for(target, gate) {
            let reason =
                format!("cannot route to `{}`, which waits for this gate", self.workflow.phase(target).name);
            return self.escalate(gate, &reason, out);
        }
        self.deliver(gate, vec![target], out);
        self.send_back(gate, target, out);
    }

    /// Lets another phase work for a gate, or for a phase whose merge conflicts.
    pub(super) fn send_back(&mut self, gate: PhaseId, target: PhaseId, out: &mut Vec<Effect>) {
        if self.waits_for(target, gate) {
            let reason =
                format!("cannot route to `{}`, which waits for this phase", self.workflow.phase(target).name);
            return self.escalate(gate, &reason, out);
        }
        self.phases.set_state(gate, PhaseState::Routed(target));
        // The target will not start any more; that it escalated, say, must not be forgotten for a place in the queue.
        if self.is_ending() {
            return;
        }
        let record = self.phases.phase_mut(target);
        match record.state() {
            PhaseState::Queued
            | PhaseState::Deciding
            | PhaseState::Working(_)
            | PhaseState::Items
            | PhaseState::Merging
            | PhaseState::Delayed { .. }
            | PhaseState::Routed(_) => record.waiting_gates.push_back(gate),
            PhaseState::Waiting
            | PhaseState::Completed
            | PhaseState::Skipped
            | PhaseState::Failed(_)
            | PhaseState::Escalated(_)
            | PhaseState::Stopped => {
                record.routed_by = Some(gate);
                self.enqueue(Task::Start(target));
            }
        }
    }

    /// Whether `phase` cannot go on before `gate` does.
    fn waits_for(&self, phase: PhaseId, gate: PhaseId) -> bool {
        let mut at = phase;
        for _ in 0..=self.phases.len() {
            if at == gate {
                return true;
            }
            match self.state(at.whole()) {
                PhaseState::Routed(next) => at = *next,
                _ => return false,
            }
        }
        false
    }

    fn deliver(&self, gate: PhaseId, to: Vec<PhaseId>, out: &mut Vec<Effect>) {
        let Some(machine) = self.gate(gate) else { return };
        let Some(entry) = machine.history().last() else { return };
        if to.is_empty() {
            return;
        }
        let data = GateData {
            verdict: entry.verdict.clone(),
            checks: machine.checks().to_vec(),
            iteration: machine.iteration(),
            max_iterations: machine.spec().max_iterations,
            extra: Object::new(),
        };
        out.push(Effect::DeliverVerdict { gate, to, data: Box::new(data) });
    }

    /// The phase is done: the gate that it worked for goes on, then the next gate that waits for it has its turn.
    pub(super) fn release_gate(&mut self, phase: PhaseId) {
        if let Some(gate) = self.phases.phase_mut(phase).routed_by.take() {
            self.enqueue(Task::Reevaluate(gate));
        }
        let record = self.phases.phase_mut(phase);
        if let Some(next) = record.waiting_gates.pop_front() {
            record.routed_by = Some(next);
            self.enqueue(Task::Start(phase));
        }
    }
}
