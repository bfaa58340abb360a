//! The machine: which phase may start, and which is done.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use cliq_fs::PipelineStatus;
use cliq_gate::{Gate, GateEvent, GateSpec, GateState};
use cliq_protocol::{Budget, CommandEnd, CommandResult, PhaseKind};
use cliq_workflow::{FailureCause, Phase, PhaseId, ValidatedWorkflow};
use serde_json::Value;

use super::budget::{ExceededBudget, Ledger, Scope};
use super::phases::{Done, PhaseRecord, Phases, Unit};
use super::record::{End, PhaseState, Task};
use super::{Amount, Effect, Input, Report, SkipReason};

/// A pipeline in some state. See the module for what it promises.
#[derive(Debug, Clone)]
pub struct Pipeline {
    pub(super) workflow: Arc<ValidatedWorkflow>,
    pub(super) phases: Phases,
    pub(super) started: bool,
    pub(super) max_parallel: usize,
    /// Main phases that are not done. A phase that runs again after a route stays done as far as this goes.
    pub(super) missing: usize,
    pub(super) queue: VecDeque<Task>,
    pub(super) end: Option<End>,
    pub(super) finished: bool,
    /// Whether its orchestrator died and it is not resumed yet.
    pub(super) interrupted: bool,
    /// Whether the run was parked and is not resumed yet.
    pub(super) parked: bool,
    /// Usage against budgets.
    pub(super) ledger: Ledger,
}

/// Whether two runs of the same workflow, shared and not copied, are in the same state.
impl PartialEq for Pipeline {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            workflow,
            phases,
            started,
            max_parallel,
            missing,
            queue,
            end,
            finished,
            interrupted,
            parked,
            ledger,
        } = self;
        Arc::ptr_eq(workflow, &other.workflow)
            && *started == other.started
            && *max_parallel == other.max_parallel
            && *missing == other.missing
            && *finished == other.finished
            && *interrupted == other.interrupted
            && *parked == other.parked
            && *end == other.end
            && *queue == other.queue
            && *ledger == other.ledger
            && *phases == other.phases
    }
}

/// Returns the specification of a gate.
pub(super) fn gate_spec(workflow: &ValidatedWorkflow, gate: &Phase) -> GateSpec {
    let targets = gate.route_targets.iter().map(|&target| workflow.phase(target).name.clone());
    let required = gate.commands.iter().filter(|command| command.required);
    GateSpec {
        max_iterations: gate.max_iterations,
        route_targets: targets.collect(),
        human: gate.kind == PhaseKind::HumanGate,
        required: required.map(|command| command.name.clone()).collect(),
    }
}

impl Pipeline {
    /// A pipeline that has not begun.
    #[must_use]
    pub fn new(workflow: Arc<ValidatedWorkflow>) -> Self {
        let phases = workflow
            .phases()
            .map(|(_, phase)| {
                let gate = phase.kind.is_gate().then(|| Gate::new(gate_spec(&workflow, phase)));
                PhaseRecord::new(phase.depends_on.len(), gate)
            })
            .collect();
        let missing = workflow.phases().filter(|(_, p)| !p.support).count();
        let ledger = Ledger::new(&workflow);
        Self {
            workflow,
            phases: Phases::new(phases),
            started: false,
            max_parallel: usize::MAX,
            missing,
            queue: VecDeque::new(),
            end: None,
            finished: false,
            interrupted: false,
            parked: false,
            ledger,
        }
    }

    /// The workflow.
    #[must_use]
    pub fn workflow(&self) -> &Arc<ValidatedWorkflow> {
        &self.workflow
    }

    /// State of a phase or an item.
    #[must_use]
    pub fn state(&self, phase: PhaseId) -> &PhaseState {
        self.phases.state(phase)
    }

    /// Number of activations of a phase.
    #[must_use]
    pub fn activations(&self, phase: PhaseId) -> u32 {
        self.phases.unit(phase).map_or(0, |unit| unit.activations)
    }

    /// The gate machine of a gate.
    #[must_use]
    pub fn gate(&self, phase: PhaseId) -> Option<&Gate> {
        self.phases.phase(phase).gate.as_ref().map(|gate| &gate.machine)
    }

    /// Number of a gate's evaluation, 1-based. Numbers are unique in the run, also after the gate was forgotten. An evaluation that
    /// is interrupted and resumed keeps its number.
    #[must_use]
    pub fn evaluation(&self, phase: PhaseId) -> u32 {
        self.phases.phase(phase).gate.as_ref().map_or(0, |gate| gate.evaluations) + 1
    }

    /// The gate that a phase works for.
    #[must_use]
    pub fn routed_by(&self, phase: PhaseId) -> Option<PhaseId> {
        self.phases.phase(phase).routed_by
    }

    /// Whether the run is over.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Phases that ever completed.
    pub fn completed(&self) -> impl Iterator<Item = PhaseId> + '_ {
        self.workflow.phases().filter(|(id, _)| self.phases.phase(*id).done.is_some()).map(|(id, _)| id)
    }

    /// Takes what happened and says what to do, in order. An input that does not fit the state has no effect.
    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut out = Vec::new();
        if (self.finished || self.parked) && !matches!(input, Input::Resume { .. }) {
            return out;
        }
        match input {
            Input::Resume { from, max_parallel, limits } => self.resume(from, max_parallel, limits, &mut out),
            Input::Start { max_parallel, limits, kept } if !self.started => {
                self.started = true;
                self.ledger.set_limits(limits);
                self.max_parallel = max_parallel.unwrap_or(usize::MAX).max(1);
                if kept.is_empty() {
                    let workflow = Arc::clone(&self.workflow);
                    for (id, _) in workflow.phases().filter(|(_, p)| !p.support && p.depends_on.is_empty()) {
                        self.enqueue(Task::Start(id));
                    }
                } else {
                    self.start_with(kept, &mut out);
                }
            }
            Input::Start { .. } => {}
            Input::Interrupt => self.interrupted = self.started,
            Input::PhaseWaits { phase, wait } if self.phases.unit(phase).is_some() => {
                self.phase_waits(phase, wait)
            }
            Input::PhaseWaits { .. } => {}
            Input::Park => self.parked = self.waits().is_some(),
            Input::Cancel => self.stop(PipelineStatus::Cancelled, None, &mut out),
            Input::Fail { reason } => self.stop(PipelineStatus::Failed, Some(reason), &mut out),
            Input::CommandsFinished { phase, results } if self.is_working(phase) => {
                self.commands_finished(phase, results, &mut out);
            }
            Input::AgentCompleted { phase, result } if self.is_working(phase) => {
                self.agent_completed(phase, result, &mut out);
            }
            Input::WorkFailed { phase, reason, cause } if self.is_working(phase) => {
                self.rest(phase);
                if self.is_stopping() {
                    self.stopped(phase, &mut out);
                } else {
                    self.work_failed(phase, &reason, cause, &mut out);
                }
            }
            Input::Decided { phase, decision } if *self.state(phase) == PhaseState::Deciding => {
                self.decided(phase, decision, &mut out);
            }
            Input::RetryDelayed { phase, due_ms } if self.state(phase).is_delayed() => {
                self.phases.set_state(phase, PhaseState::Delayed { due_ms: Some(due_ms) });
            }
            Input::RetryDue { phase } if self.state(phase).is_delayed() => self.enqueue(Task::Retry(phase)),
            Input::Merged { phase, outcome } if *self.state(phase) == PhaseState::Merging => {
                self.merged(phase, outcome, &mut out);
            }
            Input::Merged { .. }
            | Input::Decided { .. }
            | Input::RetryDelayed { .. }
            | Input::RetryDue { .. } => {}
            Input::UsageReported { phase, usage, is_final } if self.takes_usage(phase) => {
                self.usage_reported(phase, usage, is_final, &mut out);
            }
            Input::CommandsFinished { .. }
            | Input::AgentCompleted { .. }
            | Input::WorkFailed { .. }
            | Input::UsageReported { .. } => {}
        }
        self.start_what_may(&mut out);
        self.finish_if_over(&mut out);
        out
    }

    pub(super) fn is_working(&self, phase: PhaseId) -> bool {
        self.state(phase).is_working()
    }

    /// Whether usage of a phase counts: its agent works, and was not asked to end.
    #[must_use]
    pub fn takes_usage(&self, phase: PhaseId) -> bool {
        self.is_working(phase) && !self.ledger.is_ending(phase)
    }

    /// Returns the remaining budget of a phase, by its own budget and the run's.
    #[must_use]
    pub fn remaining_budget(&self, phase: PhaseId) -> Budget {
        self.ledger.remaining(phase)
    }

    /// Ends agents whose budget is exceeded. An agent that reports with its terminal message has ended by itself.
    fn usage_reported(&mut self, phase: PhaseId, usage: Amount, is_final: bool, out: &mut Vec<Effect>) {
        self.ledger.report(phase, usage);
        let Some(ExceededBudget { scope, reason, limited }) = self.ledger.exceeded(phase) else { return };
        let ending: Vec<PhaseId> = match scope {
            Scope::Phase => {
                let of_phase = |id: &PhaseId| id.whole() == phase.whole();
                self.running().into_iter().filter(of_phase).collect()
            }
            // Agents beside it would use more: they end too, so that no more than this one report is over.
            Scope::Run => self.running(),
        };
        for id in ending {
            let judges = self.gate(id).is_none_or(|gate| *gate.state() == GateState::Judging);
            let ends = judges && self.ledger.uses_model(id) && !(is_final && id == phase);
            if ends && self.ledger.end(id) {
                let (reason, limited) = (reason.clone(), Some(limited.clone()));
                out.push(Effect::EndAgent { phase: id, reason, limited });
            }
        }
    }

    /// Starts the agent of a phase that works, unless a budget is spent: then a person is needed.
    pub(super) fn run_agent(
        &mut self,
        phase: PhaseId,
        iteration: u32,
        rejected: Option<String>,
        out: &mut Vec<Effect>,
    ) {
        let routed_by = self.routed_by(phase);
        match self.ledger.refusal(phase) {
            None => {
                // A new agent does not wait yet.
                self.ends_wait(phase);
                self.ledger.begin(phase);
                let unit = self.phases.unit(phase);
                let continues = unit.and_then(|unit| unit.continues);
                let previous = unit.and_then(|unit| unit.completed);
                out.push(Effect::RunAgent { phase, iteration, routed_by, rejected, continues, previous });
            }
            Some(reason) => {
                self.rest(phase);
                self.work_failed(phase, &reason, None, out);
            }
        }
    }

    /// The work of a phase failed: it is tried again, or a person is needed.
    fn work_failed(
        &mut self,
        phase: PhaseId,
        reason: &str,
        cause: Option<FailureCause>,
        out: &mut Vec<Effect>,
    ) {
        if self.gate(phase).is_some() {
            self.gate_event(phase, GateEvent::AgentFailed(reason.to_owned()), out);
        } else if self.retries(phase, reason, cause, out) || self.goes_on_without(phase, reason, out) {
            return;
        }
        self.escalate(phase, reason, out);
    }

    pub(super) fn enqueue(&mut self, task: Task) {
        if self.phases.set_state(task.phase(), PhaseState::Queued) {
            self.queue.push_back(task);
        }
    }

    /// A phase works no more, for now.
    pub(super) fn rest(&mut self, phase: PhaseId) {
        debug_assert!(self.is_working(phase));
        self.phases.set_state(phase, PhaseState::Waiting);
    }

    fn start_what_may(&mut self, out: &mut Vec<Effect>) {
        while !self.is_ending() && self.busy() < self.max_parallel {
            let Some(task) = self.queue.pop_front() else { return };
            match task {
                Task::Start(phase) => {
                    if let Some(unit) = self.phases.unit_mut(phase) {
                        unit.failed_attempts = 0;
                    }
                    let event = self.gate_start(phase);
                    self.start(phase, event, out);
                }
                Task::Resume(phase) => self.start(phase, GateEvent::Resume, out),
                Task::Retry(phase) => self.start(phase, GateEvent::Restart, out),
                Task::Wake(phase) => self.wake(phase, out),
                Task::Reevaluate(phase) if self.gate(phase).is_none() => self.merge(phase, out),
                Task::Reevaluate(gate) => {
                    self.phases.set_state(gate, PhaseState::BUSY);
                    self.gate_event(gate, GateEvent::TargetFinished, out);
                }
            }
        }
    }

    /// Returns the event with which a gate starts: one that was skipped has not begun yet.
    pub(super) fn gate_start(&self, phase: PhaseId) -> GateEvent {
        let has_begun = self.gate(phase).is_some_and(|gate| *gate.state() != GateState::Waiting);
        if has_begun { GateEvent::Restart } else { GateEvent::Start }
    }

    /// Starts a phase; `gate_event` passes it to the gate.
    pub(super) fn start(&mut self, phase: PhaseId, gate_event: GateEvent, out: &mut Vec<Effect>) {
        if phase.item().is_none() && self.start_conditional(phase, out) {
            return;
        }
        self.phases.set_state(phase, PhaseState::BUSY);
        let kind = self.workflow.phase(phase).kind;
        // A gate runs its commands first, and then asks whether its agent may start.
        if !kind.is_gate()
            && kind != PhaseKind::Exec
            && let Some(reason) = self.ledger.refusal(phase)
        {
            self.rest(phase);
            return self.escalate(phase, &reason, out);
        }
        let routed_by = self.routed_by(phase);
        let Some(unit) = self.phases.unit_mut(phase) else { return };
        unit.continues = match gate_event {
            GateEvent::Resume if !kind.is_gate() && unit.activations > 0 => {
                unit.continues.or(Some(unit.activations))
            }
            _ => None,
        };
        unit.activations += 1;
        let iteration = unit.activations;
        match kind {
            PhaseKind::Gate | PhaseKind::HumanGate => self.gate_event(phase, gate_event, out),
            PhaseKind::Exec => {
                out.push(Effect::Report(Report::PhaseStarted { phase, iteration, routed_by }));
                out.push(Effect::RunCommands { phase, iteration, routed_by });
            }
            PhaseKind::Standard | PhaseKind::Pull | PhaseKind::Push | PhaseKind::Team => {
                out.push(Effect::Report(Report::PhaseStarted { phase, iteration, routed_by }));
                self.run_agent(phase, iteration, None, out);
            }
        }
    }

    /// Asks the agent of a phase again that waited when the run was parked.
    fn wake(&mut self, phase: PhaseId, out: &mut Vec<Effect>) {
        self.phases.set_state(phase, PhaseState::BUSY);
        let iteration = self.activations(phase);
        if self.gate(phase).is_some() {
            self.gate_event(phase, GateEvent::Wake, out);
        } else {
            self.run_agent(phase, iteration, None, out);
        }
    }

    fn commands_finished(&mut self, phase: PhaseId, results: Vec<CommandResult>, out: &mut Vec<Effect>) {
        if self.gate(phase).is_some() {
            return self.gate_event(phase, GateEvent::CommandsFinished(results), out);
        }
        self.rest(phase);
        match self.fatal_failure(phase, &results) {
            None => self.complete(phase, out),
            Some(_) if self.is_stopping() => self.stopped(phase, out),
            Some((reason, cause)) => self.work_failed(phase, &reason, Some(cause), out),
        }
    }

    /// Returns the failure that ends an exec phase: of a command without `escalate_on_fail: false`.
    fn fatal_failure(&self, phase: PhaseId, results: &[CommandResult]) -> Option<(String, FailureCause)> {
        let commands = &self.workflow.phase(phase).commands;
        let fatal = |result: &&CommandResult| {
            !result.pass && commands.iter().find(|c| c.name == result.name).is_none_or(|c| c.escalate_on_fail)
        };
        let result = results.iter().find(fatal)?;
        let end = result.end();
        let cause = match end {
            CommandEnd::TimedOut(_) => FailureCause::Timeout,
            CommandEnd::Passed
            | CommandEnd::Skipped
            | CommandEnd::Failed(_)
            | CommandEnd::Killed(_)
            | CommandEnd::NotStarted(_)
            | CommandEnd::Unclear => FailureCause::Exit,
        };
        Some((end.sentence(&result.label()), cause))
    }

    fn agent_completed(&mut self, phase: PhaseId, result: Option<Value>, out: &mut Vec<Effect>) {
        if self.gate(phase).is_some() {
            return self.gate_event(phase, GateEvent::AgentAnswered(result), out);
        }
        self.rest(phase);
        self.complete(phase, out);
    }

    /// A phase is done: its dependents come nearer, and the gate that sent the work back goes on.
    pub(super) fn complete(&mut self, phase: PhaseId, out: &mut Vec<Effect>) {
        out.push(Effect::Report(Report::PhaseCompleted { phase }));
        self.phases.set_state(phase, PhaseState::Completed);
        if let Some(unit) = self.phases.unit_mut(phase).filter(|unit| unit.activations > 0) {
            unit.completed = Some(unit.activations);
        }
        if phase.item().is_some() {
            return self.item_ended(phase, out);
        }
        let mut settled = self.settle(phase);
        while let Some(phase) = settled.pop_front() {
            settled.extend(self.skip(phase, SkipReason::Dependencies, out));
        }
        self.release_gate(phase);
    }

    /// A phase is complete or skipped: its dependents come nearer. Returns those that are skipped with it.
    pub(super) fn settle(&mut self, phase: PhaseId) -> VecDeque<PhaseId> {
        let workflow = Arc::clone(&self.workflow);
        let is_support = workflow.phase(phase).support;
        let record = self.phases.phase_mut(phase);
        if is_support {
            // Each route to a support phase asks its condition again.
            record.is_decided = false;
        }
        let mut skipped = VecDeque::new();
        if record.done.is_some() {
            return skipped;
        }
        let is_skipped = *record.state() == PhaseState::Skipped && !is_support;
        record.done = Some(if is_skipped { Done::Skipped } else { Done::Completed });
        if !is_support {
            self.missing -= 1;
            for &after in &workflow.phase(phase).dependents {
                let record = self.phases.phase_mut(after);
                record.blockers -= 1;
                if record.blockers == 0 && !self.may_start(after) {
                    skipped.push_back(after);
                }
            }
        }
        skipped
    }

    /// Queues a phase whose dependencies are done. Returns `false` if it is to be skipped, as all of them were.
    pub(super) fn may_start(&mut self, phase: PhaseId) -> bool {
        let spec = self.workflow.phase(phase);
        let skipped = |before: &PhaseId| self.phases.phase(*before).done == Some(Done::Skipped);
        if spec.when.is_none() && !spec.depends_on.is_empty() && spec.depends_on.iter().all(skipped) {
            return false;
        }
        self.enqueue(Task::Start(phase));
        true
    }

    pub(super) fn running(&self) -> Vec<PhaseId> {
        self.working().collect()
    }

    /// Phases and items that work, in the order of the file.
    pub fn working(&self) -> impl Iterator<Item = PhaseId> {
        self.units().filter(|(_, unit)| unit.state().is_working()).map(|(id, _)| id)
    }

    /// Every phase and every item.
    pub(super) fn units(&self) -> impl Iterator<Item = (PhaseId, &Unit)> {
        self.phases.units(&self.workflow)
    }

    /// Checks the invariants of the state, and compares every count with a recount; for tests.
    ///
    /// # Panics
    /// Panics if an invariant does not hold.
    pub fn assert_invariants(&self) {
        self.phases.assert_counts();
        assert!(self.busy() <= self.max_parallel);
        let is_done = |id: &PhaseId| self.phases.phase(*id).done.is_some();
        let missing = self.workflow.phases().filter(|(id, phase)| !phase.support && !is_done(id)).count();
        assert_eq!(missing, self.missing, "main phases that are not done");
        let queued: HashSet<PhaseId> = self.queue.iter().map(|task| task.phase()).collect();
        assert_eq!(queued.len(), self.queue.len(), "a phase is queued once");
        for (id, unit) in self.units() {
            let phase = self.workflow.phase(id);
            assert_eq!(queued.contains(&id), *unit.state() == PhaseState::Queued, "{}", phase.name);
            if *unit.state() != PhaseState::Waiting {
                assert!(phase.depends_on.iter().all(is_done), "{}", phase.name);
            }
        }
        for (id, phase) in self.workflow.phases() {
            let record = self.phases.phase(id);
            let blockers = phase.depends_on.iter().filter(|id| !is_done(id)).count();
            assert_eq!(blockers, record.blockers, "dependencies of {} that are not done", phase.name);
            if let Some(gate) = self.gate(id) {
                assert!(gate.iteration() <= phase.max_iterations);
            }
        }
    }
}
