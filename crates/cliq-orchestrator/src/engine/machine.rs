//! The machine: which phase may start, which is done, when the run is over.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use cliq_fs::PipelineStatus;
use cliq_gate::{Gate, GateEvent, GateSpec, GateState};
use cliq_protocol::{Budget, CommandResult, PhaseKind};
use cliq_workflow::{FailureCause, PhaseId, ValidatedWorkflow};
use serde_json::Value;

use super::budget::{ExceededBudget, Ledger, Limits};
use super::items::Items;
use super::{Amount, Effect, Input, PhaseWait, Report, SkipReason};

/// State of a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PhaseState {
    /// The phase waits for its dependencies or, for a support phase, for a gate's route.
    Waiting,
    /// The phase may start and waits for its turn.
    Queued,
    /// The agent or the commands are running.
    Working,
    /// The expressions of the phase are being evaluated.
    Deciding,
    /// The items of the phase are in progress.
    Items,
    /// The worktrees of its items are being merged.
    Merging,
    /// An attempt failed, and the next one waits for its time.
    Delayed,
    /// A gate whose work went back: it waits for the phase it routed to.
    Routed(PhaseId),
    /// The phase is complete.
    Completed,
    /// The phase was skipped.
    Skipped,
    /// An item failed, and the phase goes on without it.
    Failed(String),
    /// A person is needed.
    Escalated(String),
    /// The phase was ended because the run stops.
    Stopped,
}

/// A pipeline in some state. See the module for what it promises.
#[derive(Debug, Clone)]
pub struct Pipeline {
    pub(super) workflow: Arc<ValidatedWorkflow>,
    pub(super) phases: Vec<PhaseRecord>,
    started: bool,
    max_parallel: usize,
    pub(super) working: usize,
    /// Phases of these that have waited: they do not count against `max_parallel` until they end.
    pub(super) exempt: usize,
    /// Phases and items whose next attempt waits for its time.
    pub(super) delayed: usize,
    /// Main phases that are not done. A phase that runs again after a route stays done as far as this goes.
    missing: usize,
    pub(super) queue: VecDeque<Task>,
    end: Option<End>,
    finished: bool,
    /// Whether its orchestrator died and it is not resumed yet.
    interrupted: bool,
    /// Whether the run was parked and is not resumed yet.
    pub(super) parked: bool,
    /// Usage against budgets.
    ledger: Ledger,
}

/// State of a phase in the machine.
#[derive(Debug, Clone)]
pub(super) struct PhaseRecord {
    pub(super) state: PhaseState,
    pub(super) activations: u32,
    /// First of the interrupted activations that the present one continues.
    continues: Option<u32>,
    /// Verdicts of a gate, and how often it was forgotten. It only grows, so that each evaluation has a number of its own.
    pub(super) evaluations: u32,
    /// Dependencies that are not done.
    blockers: usize,
    /// Whether it has ever been done.
    pub(super) ever_done: bool,
    /// Whether it was skipped when it was first done. A gate may route to it later: what depends on it does not depend on when.
    was_skipped: bool,
    /// The gate that it works for.
    pub(super) routed_by: Option<PhaseId>,
    /// Gates that routed to it while it worked for another.
    pub(super) waiting_gates: VecDeque<PhaseId>,
    pub(super) gate: Option<Gate>,
    /// Cause of its wait, while its agent waits.
    pub(super) wait: Option<PhaseWait>,
    /// Whether its agent has waited in this activation.
    pub(super) is_exempt: bool,
    /// Whether its expressions were evaluated.
    pub(super) is_decided: bool,
    /// Items, once the list is known.
    pub(super) items: Option<Box<Items>>,
    /// Activations of the items of lists that were forgotten, by index.
    pub(super) retired: Vec<u32>,
    /// The item whose worktree conflicted last.
    pub(super) conflict: Option<u32>,
    /// Attempts that failed since the phase started.
    pub(super) failed_attempts: u32,
    /// Time of the next attempt, in milliseconds since 1970.
    pub(super) due_ms: Option<i64>,
}

impl PhaseRecord {
    /// Record of a phase or an item that has not begun.
    pub(super) fn new(blockers: usize, gate: Option<Gate>) -> Self {
        Self {
            state: PhaseState::Waiting,
            activations: 0,
            continues: None,
            evaluations: 0,
            blockers,
            ever_done: false,
            was_skipped: false,
            routed_by: None,
            waiting_gates: VecDeque::new(),
            gate,
            wait: None,
            is_exempt: false,
            is_decided: false,
            items: None,
            retired: Vec::new(),
            conflict: None,
            failed_attempts: 0,
            due_ms: None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Task {
    /// Start a phase, or start it again for `routed_by`.
    Start(PhaseId),
    /// A gate evaluates again after the phase that it routed to.
    Reevaluate(PhaseId),
    /// Start anew what an earlier stretch of the run did not finish.
    Resume(PhaseId),
    /// Start the next attempt.
    Retry(PhaseId),
    /// Ask the agent of a human gate or of a team phase again, in the same activation: the run was parked while it waited.
    Wake(PhaseId),
}

impl Task {
    pub(super) fn phase(self) -> PhaseId {
        let (Self::Start(phase)
        | Self::Reevaluate(phase)
        | Self::Resume(phase)
        | Self::Retry(phase)
        | Self::Wake(phase)) = self;
        phase
    }
}

#[derive(Debug, Clone)]
struct End {
    status: PipelineStatus,
    reason: Option<String>,
    phase: Option<PhaseId>,
}

impl Pipeline {
    /// A pipeline that has not begun.
    #[must_use]
    pub fn new(workflow: Arc<ValidatedWorkflow>) -> Self {
        let phases = workflow
            .phases()
            .map(|(_, phase)| {
                let gate = phase.kind.is_gate().then(|| {
                    let targets = phase.route_targets.iter().map(|&t| workflow.phase(t).name.clone());
                    let required = phase.commands.iter().filter(|command| command.required);
                    Gate::new(GateSpec {
                        max_iterations: phase.max_iterations,
                        route_targets: targets.collect(),
                        human: phase.kind == PhaseKind::Hug,
                        required: required.map(|command| command.name.clone()).collect(),
                    })
                });
                PhaseRecord::new(phase.depends_on.len(), gate)
            })
            .collect();
        let missing = workflow.phases().filter(|(_, p)| !p.support).count();
        let ledger = Ledger::new(&workflow);
        Self {
            workflow,
            phases,
            started: false,
            max_parallel: usize::MAX,
            working: 0,
            exempt: 0,
            delayed: 0,
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

    /// Record of a phase or an item; `None` if there is no such item.
    pub(super) fn cell(&self, id: PhaseId) -> Option<&PhaseRecord> {
        let whole = self.phases.get(id.index())?;
        match id.item() {
            None => Some(whole),
            Some(item) => whole.items.as_ref()?.cells.get(item as usize),
        }
    }

    /// As [`Pipeline::cell`]. An item that does not exist is an error of the caller, which has checked its state.
    pub(super) fn cell_mut(&mut self, id: PhaseId) -> &mut PhaseRecord {
        let whole = &mut self.phases[id.index()];
        let has_item =
            |item: u32| whole.items.as_ref().is_some_and(|items| (item as usize) < items.cells.len());
        match id.item().filter(|item| has_item(*item)) {
            Some(item) if whole.items.is_some() => {
                // The item exists, as was just checked.
                &mut whole.items.as_mut().expect("items").cells[item as usize]
            }
            _ => whole,
        }
    }

    /// State of a phase or an item.
    #[must_use]
    pub fn state(&self, phase: PhaseId) -> &PhaseState {
        self.cell(phase).map_or(&PhaseState::Waiting, |cell| &cell.state)
    }

    /// Number of activations of a phase.
    #[must_use]
    pub fn activations(&self, phase: PhaseId) -> u32 {
        self.cell(phase).map_or(0, |cell| cell.activations)
    }

    /// The gate machine of a gate.
    #[must_use]
    pub fn gate(&self, phase: PhaseId) -> Option<&Gate> {
        self.phases[phase.index()].gate.as_ref()
    }

    /// Number of a gate's evaluation, 1-based. Numbers are unique in the run, also after the gate was forgotten. An evaluation that
    /// is interrupted and resumed keeps its number.
    #[must_use]
    pub fn evaluation(&self, phase: PhaseId) -> u32 {
        self.phases[phase.index()].evaluations + 1
    }

    /// The gate that a phase works for.
    #[must_use]
    pub fn routed_by(&self, phase: PhaseId) -> Option<PhaseId> {
        self.phases[phase.index()].routed_by
    }

    /// Whether the run is over.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Phases that ever completed.
    pub fn completed(&self) -> impl Iterator<Item = PhaseId> + '_ {
        self.workflow.phases().filter(|(id, _)| self.phases[id.index()].ever_done).map(|(id, _)| id)
    }

    /// Takes what happened and says what to do, in order. An input that does not fit the state has no effect.
    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut out = Vec::new();
        if (self.finished || self.parked) && !matches!(input, Input::Resume { .. }) {
            return out;
        }
        match input {
            Input::Resume { from, max_parallel, limits } => self.resume(from, max_parallel, limits, &mut out),
            Input::Start { max_parallel, limits } if !self.started => {
                self.started = true;
                self.ledger.set_limits(limits);
                self.max_parallel = max_parallel.unwrap_or(usize::MAX).max(1);
                let workflow = Arc::clone(&self.workflow);
                for (id, phase) in workflow.phases().filter(|(_, p)| !p.support && p.depends_on.is_empty()) {
                    debug_assert!(phase.depends_on.is_empty());
                    self.enqueue(Task::Start(id));
                }
            }
            Input::Start { .. } => {}
            Input::Interrupt => self.interrupted = self.started,
            Input::PhaseWaits { phase, wait } if self.cell(phase).is_some() => self.phase_waits(phase, wait),
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
            Input::RetryDelayed { phase, due_ms } if *self.state(phase) == PhaseState::Delayed => {
                self.cell_mut(phase).due_ms = Some(due_ms);
            }
            Input::RetryDue { phase } if *self.state(phase) == PhaseState::Delayed => self.retry_due(phase),
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
        self.cell(phase).is_some_and(|cell| cell.state == PhaseState::Working)
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
        let (ending, reason) = match self.ledger.exceeded(phase) {
            None => return,
            Some(ExceededBudget::Phase(reason)) => {
                let of_phase = |id: &PhaseId| id.whole() == phase.whole();
                (self.running().into_iter().filter(of_phase).collect(), reason)
            }
            // Agents beside it would use more: they end too, so that no more than this one report is over.
            Some(ExceededBudget::Run(reason)) => (self.running(), reason),
        };
        for id in ending {
            let judges = self.gate(id).is_none_or(|gate| *gate.state() == GateState::Judging);
            let ends = judges && self.ledger.uses_model(id) && !(is_final && id == phase);
            if ends && self.ledger.end(id) {
                out.push(Effect::EndAgent { phase: id, reason: reason.clone() });
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
        let routed_by = self.phases[phase.index()].routed_by;
        match self.ledger.refusal(phase) {
            None => {
                // A new agent does not wait yet.
                self.cell_mut(phase).wait = None;
                self.ledger.begin(phase);
                let continues = self.cell_mut(phase).continues;
                out.push(Effect::RunAgent { phase, iteration, routed_by, rejected, continues });
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
        if self.phases[phase.index()].gate.is_some() {
            self.gate_event(phase, GateEvent::AgentFailed(reason.to_owned()), out);
        } else if self.retries(phase, reason, cause, out) || self.goes_on_without(phase, reason, out) {
            return;
        }
        self.escalate(phase, reason, out);
    }

    /// Whether agents are being ended (as opposed to: nothing new starts).
    pub(super) fn is_stopping(&self) -> bool {
        let ends = |end: &End| matches!(end.status, PipelineStatus::Cancelled | PipelineStatus::Failed);
        self.interrupted || self.end.as_ref().is_some_and(ends)
    }

    pub(super) fn is_ending(&self) -> bool {
        self.interrupted || self.end.is_some()
    }

    pub(super) fn enqueue(&mut self, task: Task) {
        self.cell_mut(task.phase()).state = PhaseState::Queued;
        self.queue.push_back(task);
    }

    /// A phase works no more, for now.
    pub(super) fn rest(&mut self, phase: PhaseId) {
        debug_assert!(self.is_working(phase));
        self.working -= 1;
        let cell = self.cell_mut(phase);
        cell.state = PhaseState::Waiting;
        cell.wait = None;
        let was_exempt = std::mem::take(&mut cell.is_exempt);
        self.exempt -= usize::from(was_exempt);
    }

    fn start_what_may(&mut self, out: &mut Vec<Effect>) {
        while !self.is_ending() && self.busy() < self.max_parallel {
            let Some(task) = self.queue.pop_front() else { return };
            self.working += 1;
            match task {
                Task::Start(phase) => {
                    self.cell_mut(phase).failed_attempts = 0;
                    let event = self.gate_start(phase);
                    self.start(phase, event, out);
                }
                Task::Resume(phase) => self.start(phase, GateEvent::Resume, out),
                Task::Retry(phase) => self.start(phase, GateEvent::Restart, out),
                Task::Wake(phase) => self.wake(phase, out),
                Task::Reevaluate(phase) if self.phases[phase.index()].gate.is_none() => {
                    self.merge(phase, out)
                }
                Task::Reevaluate(gate) => {
                    self.phases[gate.index()].state = PhaseState::Working;
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
        if phase.item().is_none() && self.starts_otherwise(phase, out) {
            return;
        }
        self.cell_mut(phase).state = PhaseState::Working;
        let kind = self.workflow.phase(phase).kind;
        // A gate runs its commands first, and then asks whether its agent may start.
        if !kind.is_gate()
            && kind != PhaseKind::Exec
            && let Some(reason) = self.ledger.refusal(phase)
        {
            self.rest(phase);
            return self.escalate(phase, &reason, out);
        }
        let routed_by = self.phases[phase.index()].routed_by;
        let cell = self.cell_mut(phase);
        cell.continues = match gate_event {
            GateEvent::Resume if !kind.is_gate() && cell.activations > 0 => {
                cell.continues.or(Some(cell.activations))
            }
            _ => None,
        };
        cell.activations += 1;
        let iteration = cell.activations;
        match kind {
            PhaseKind::Gate | PhaseKind::Hug => self.gate_event(phase, gate_event, out),
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
        let cell = self.cell_mut(phase);
        cell.state = PhaseState::Working;
        let iteration = cell.activations;
        if cell.gate.is_some() {
            self.gate_event(phase, GateEvent::Wake, out);
        } else {
            self.run_agent(phase, iteration, None, out);
        }
    }

    fn commands_finished(&mut self, phase: PhaseId, results: Vec<CommandResult>, out: &mut Vec<Effect>) {
        if self.phases[phase.index()].gate.is_some() {
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
        let how = result.exit_code.map(|code| format!(" with exit status {code}")).unwrap_or_default();
        let is_late = result.extra.get("timed_out").is_some_and(|late| *late == Value::Bool(true));
        let cause = if is_late { FailureCause::Timeout } else { FailureCause::Exit };
        Some((format!("command `{}` failed{how}", result.label()), cause))
    }

    fn agent_completed(&mut self, phase: PhaseId, result: Option<Value>, out: &mut Vec<Effect>) {
        if self.phases[phase.index()].gate.is_some() {
            return self.gate_event(phase, GateEvent::AgentAnswered(result), out);
        }
        self.rest(phase);
        self.complete(phase, out);
    }

    /// A phase is done: its dependents come nearer, and the gate that sent the work back goes on.
    pub(super) fn complete(&mut self, phase: PhaseId, out: &mut Vec<Effect>) {
        out.push(Effect::Report(Report::PhaseCompleted { phase }));
        self.cell_mut(phase).state = PhaseState::Completed;
        if phase.item().is_some() {
            self.cell_mut(phase).ever_done = true;
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
        let cell = &mut self.phases[phase.index()];
        if is_support {
            // Each route to a support phase asks its condition again.
            cell.is_decided = false;
        }
        let mut skipped = VecDeque::new();
        if !std::mem::replace(&mut cell.ever_done, true) && !is_support {
            cell.was_skipped = cell.state == PhaseState::Skipped;
            self.missing -= 1;
            for &after in &workflow.phase(phase).dependents {
                self.phases[after.index()].blockers -= 1;
                if self.phases[after.index()].blockers == 0 && !self.may_start(after) {
                    skipped.push_back(after);
                }
            }
        }
        skipped
    }

    /// Queues a phase whose dependencies are done. Returns `false` if it is to be skipped, as all of them were.
    pub(super) fn may_start(&mut self, phase: PhaseId) -> bool {
        let spec = self.workflow.phase(phase);
        let skipped = |before: &PhaseId| self.phases[before.index()].was_skipped;
        if spec.when.is_none() && !spec.depends_on.is_empty() && spec.depends_on.iter().all(skipped) {
            return false;
        }
        self.enqueue(Task::Start(phase));
        true
    }

    /// A person is needed: nothing new starts, and what runs may finish.
    pub(super) fn escalate(&mut self, phase: PhaseId, reason: &str, out: &mut Vec<Effect>) {
        self.cell_mut(phase).state = PhaseState::Escalated(reason.to_owned());
        out.push(Effect::Report(Report::PhaseEscalated { phase, reason: reason.to_owned() }));
        if let Some(item) = phase.item() {
            self.item_rests(phase.whole());
            return self.escalate(phase.whole(), &format!("item {item}: {reason}"), out);
        }
        if self.end.is_none() {
            let name = &self.workflow.phase(phase).name;
            let reason = Some(format!("phase `{name}`: {reason}"));
            self.end = Some(End { status: PipelineStatus::Escalated, reason, phase: Some(phase) });
            let running = self.running();
            if !running.is_empty() {
                out.push(Effect::Report(Report::Draining { running: running.clone() }));
            }
            // People may take days, and a review waits for them without the run.
            for id in running {
                if !self.interrupted && self.waits_for_person(id) && self.ledger.end(id) {
                    let reason =
                        "the run ends; its review stays open, and `cliq run --resume` goes on with it"
                            .to_owned();
                    out.push(Effect::EndAgent { phase: id, reason });
                }
            }
        }
    }

    /// Whether the agent of a human gate waits for a decision.
    pub(super) fn waits_for_person(&self, phase: PhaseId) -> bool {
        let gate = self.phases[phase.index()].gate.as_ref();
        self.is_working(phase)
            && gate.is_some_and(|gate| gate.spec().human && *gate.state() == GateState::Judging)
    }

    fn stop(&mut self, status: PipelineStatus, reason: Option<String>, out: &mut Vec<Effect>) {
        if self.is_stopping() {
            return;
        }
        self.end = Some(End { status, reason, phase: None });
        out.push(Effect::StopAll);
    }

    /// The agent of a phase was ended because the run stops.
    pub(super) fn stopped(&mut self, phase: PhaseId, out: &mut Vec<Effect>) {
        self.cell_mut(phase).state = PhaseState::Stopped;
        out.push(Effect::Report(Report::PhaseStopped { phase }));
        if phase.item().is_some() {
            self.item_rests(phase.whole());
            if self.phases[phase.index()].state == PhaseState::Items {
                self.stopped(phase.whole(), out);
            }
        }
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
        if self.phases[phase.index()].activations > 0 {
            out.push(Effect::Report(Report::PhaseReset { phase }));
        }
        let gate = self.phases[phase.index()].gate.as_ref().map(|gate| Gate::new(gate.spec().clone()));
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

    fn running(&self) -> Vec<PhaseId> {
        self.working().collect()
    }

    /// Phases and items that work, in the order of the file.
    pub fn working(&self) -> impl Iterator<Item = PhaseId> {
        self.units().filter(|(_, cell)| cell.state == PhaseState::Working).map(|(id, _)| id)
    }

    /// Every phase and every item with its record.
    pub(super) fn units(&self) -> impl Iterator<Item = (PhaseId, &PhaseRecord)> {
        self.workflow.phases().flat_map(|(id, _)| {
            let cell = &self.phases[id.index()];
            let items = cell.items.iter().flat_map(|items| items.cells.iter().zip(0u32..));
            std::iter::once((id, cell)).chain(items.map(move |(cell, item)| (id.with_item(item), cell)))
        })
    }

    fn finish_if_over(&mut self, out: &mut Vec<Effect>) {
        if self.working > 0 || self.interrupted || self.parked || !self.started && self.end.is_none() {
            return;
        }
        if self.delayed > 0 && self.end.is_none() {
            return;
        }
        let end = match self.end.take() {
            Some(end) => end,
            None if self.missing == 0 && self.queue.is_empty() => {
                End { status: PipelineStatus::Completed, reason: None, phase: None }
            }
            // Nothing runs, nothing can start, something is missing: a validated workflow never gets here, and a run
            // that hung would be worse than one that says so.
            None => End {
                status: PipelineStatus::Failed,
                reason: Some(
                    "no phase can start, though the run is not complete; please report this".to_owned(),
                ),
                phase: None,
            },
        };
        self.finished = true;
        out.push(Effect::Finish { status: end.status, reason: end.reason, phase: end.phase });
    }

    /// Checks the invariants of the state; for tests.
    ///
    /// # Panics Panics if an invariant does not hold.
    pub fn assert_invariants(&self) {
        let count =
            |holds: &dyn Fn(&PhaseRecord) -> bool| self.units().filter(|(_, cell)| holds(cell)).count();
        let works = |c: &PhaseRecord| {
            matches!(c.state, PhaseState::Working | PhaseState::Deciding | PhaseState::Merging)
        };
        assert_eq!(count(&works), self.working);
        assert_eq!(count(&|c| c.is_exempt), self.exempt);
        assert_eq!(count(&|c| c.state == PhaseState::Delayed), self.delayed);
        assert_eq!(count(&|c| c.wait.is_some() && !c.is_exempt), 0);
        assert!(self.busy() <= self.max_parallel);
        for (_, cell) in self.units() {
            cell.items.iter().for_each(|items| items.assert_invariants());
        }
        let queued: HashSet<PhaseId> = self.queue.iter().map(|task| task.phase()).collect();
        assert_eq!(queued.len(), self.queue.len(), "a phase is queued once");
        for (id, cell) in self.units() {
            let phase = self.workflow.phase(id);
            assert_eq!(queued.contains(&id), cell.state == PhaseState::Queued, "{}", phase.name);
            if !matches!(cell.state, PhaseState::Waiting) {
                assert!(phase.depends_on.iter().all(|d| self.phases[d.index()].ever_done), "{}", phase.name);
            }
            if let Some(gate) = &cell.gate {
                assert!(gate.iteration() <= phase.max_iterations);
            }
        }
    }
}
