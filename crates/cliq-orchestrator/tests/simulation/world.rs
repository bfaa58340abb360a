//! The world around the machine: agents and commands that take virtual time and have luck, a driver that obeys, and
//! kills, cancellations and resumptions of the run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cliq_gate::GateState;
use cliq_orchestrator::{
    Amount, DecidedItem, Decision, DecisionKind, Effect, Input, Journal, Limits, MergeOutcome, PhaseState,
    PhaseWait, Pipeline, PipelineStatus, Record, RecordedBudgets, Report, RunEvent, SkipReason,
    ValidatedWorkflow,
};
use cliq_protocol::{Budget, CommandResult, HistoryEntry, PhaseKind, Timestamp, Usage};
use cliq_workflow::{FailureCause, PhaseId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;

/// Course of one run.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    /// Decides every delay and every piece of luck.
    seed: u64,
    /// Failure rate in percent.
    failures: u64,
    max_parallel: Option<usize>,
    interruptions: Vec<Interruption>,
    /// Whether equal questions get equal answers, and nothing fails.
    steady: bool,
    /// The tokens that the run may use at first. Each resumption doubles it. Without it, agents report nothing.
    budget: Option<u64>,
}

/// The most tokens of one reply.
const REPLY: u64 = 100;

/// After so many returns, the run is interrupted; then it is resumed.
#[derive(Debug, Clone)]
pub(crate) struct Interruption {
    after: u16,
    how: Course,
    from: Option<Index>,
}

/// Kind of an activity that takes time.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Activity {
    /// An agent or commands work.
    Work,
    /// Expressions are evaluated. Whether the condition holds is ignored.
    Decision { ignores_when: bool },
    /// Worktrees are merged. An item whose conflict was resolved.
    Merge { resolved: Option<u32> },
    /// The next attempt waits for its time.
    Delay,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Course {
    /// SIGKILL: nothing that was under way is heard of again.
    Kill,
    Cancel,
    DiskFull,
}

pub(crate) fn schedule() -> impl Strategy<Value = Schedule> {
    let how = prop_oneof![4 => Just(Course::Kill), 1 => Just(Course::Cancel), 1 => Just(Course::DiskFull)];
    let interruption = (0u16..30, how, prop::option::weighted(0.15, any::<Index>()))
        .prop_map(|(after, how, from)| Interruption { after, how, from });
    let parallel = prop_oneof![2 => Just(None), 1 => (1usize..5).prop_map(Some)];
    (any::<u64>(), prop_oneof![Just(0), Just(1), Just(10)], parallel, vec(interruption, 0..5)).prop_map(
        |(seed, failures, max_parallel, interruptions)| Schedule {
            seed,
            failures,
            max_parallel,
            interruptions,
            steady: false,
            budget: None,
        },
    )
}

/// A schedule with a budget.
pub(crate) fn tight_schedule() -> impl Strategy<Value = Schedule> {
    (schedule(), 1u64..2000).prop_map(|(schedule, budget)| Schedule { budget: Some(budget), ..schedule })
}

impl Schedule {
    /// Whether nothing interrupts the run.
    pub(crate) fn is_uninterrupted(&self) -> bool {
        self.interruptions.is_empty()
    }

    pub(crate) fn calm(seed: u64, max_parallel: Option<usize>) -> Self {
        Self { seed, failures: 0, max_parallel, interruptions: Vec::new(), steady: true, budget: None }
    }

    /// The same with agents that do not change their mind, and nothing that interrupts.
    pub(crate) fn steady(&self) -> Self {
        Self { steady: true, interruptions: Vec::new(), ..self.clone() }
    }

    /// As [`Schedule::steady`], but killed at the same moments and resumed where it stood.
    pub(crate) fn steady_but_killed(&self) -> Self {
        let killed = |i: &Interruption| Interruption { how: Course::Kill, from: None, ..i.clone() };
        Self { interruptions: self.interruptions.iter().map(killed).collect(), ..self.steady() }
    }
}

pub(crate) struct World {
    pub(crate) pipeline: Pipeline,
    pub(crate) inputs: Vec<Input>,
    pub(crate) finished: Option<PipelineStatus>,
    /// Number of completions of each phase.
    pub(crate) completions: BTreeMap<PhaseId, u32>,
    schedule: Schedule,
    /// Activities in progress, by the time of their end.
    running: BTreeMap<(u64, PhaseId), Activity>,
    /// Number of activations.
    pub(crate) starts: u64,
    /// Phases that were ever skipped.
    skipped: BTreeSet<PhaseId>,
    now: u64,
    drawn: u64,
    stopping: bool,
    /// Started and not yet back.
    at_work: BTreeSet<PhaseId>,
    /// Completed and not to run again, save for a gate.
    done: BTreeSet<PhaseId>,
    ever_done: BTreeSet<PhaseId>,
    /// The limit in force, and the tokens that were reported and counted.
    limit: Option<u64>,
    used: u64,
    /// Told to end.
    ended: BTreeSet<PhaseId>,
    /// Their agents have said that they wait for a person.
    waiting: BTreeSet<PhaseId>,
    /// Number of times that the run was parked.
    pub(crate) parkings: u32,
}

impl World {
    /// A whole run, with every interruption and what comes after it.
    pub(crate) fn run(workflow: &Arc<ValidatedWorkflow>, schedule: &Schedule) -> Self {
        let mut world = Self {
            pipeline: Pipeline::new(Arc::clone(workflow)),
            inputs: Vec::new(),
            finished: None,
            completions: BTreeMap::new(),
            schedule: schedule.clone(),
            running: BTreeMap::new(),
            starts: 0,
            skipped: BTreeSet::new(),
            now: 0,
            drawn: 0,
            stopping: false,
            at_work: BTreeSet::new(),
            done: BTreeSet::new(),
            ever_done: BTreeSet::new(),
            limit: schedule.budget,
            used: 0,
            ended: BTreeSet::new(),
            waiting: BTreeSet::new(),
            parkings: 0,
        };
        world.step(Input::Start { max_parallel: schedule.max_parallel, limits: world.limits() });
        let main: Vec<PhaseId> = workflow.phases().filter(|(_, p)| !p.support).map(|(id, _)| id).collect();
        for interruption in &schedule.interruptions {
            for _ in 0..interruption.after {
                if world.finished.is_none() {
                    world.something_returns();
                }
            }
            if world.finished.is_none() {
                match interruption.how {
                    Course::Kill => world.die(),
                    Course::Cancel => world.step(Input::Cancel),
                    Course::DiskFull => world.step(Input::Fail { reason: "no space".to_owned() }),
                }
            }
            let from = interruption.from.as_ref().map(|index| *index.get(&main));
            if world.finished != Some(PipelineStatus::Completed) || from.is_some() {
                world.resume(from);
            }
        }
        while world.finished.is_none() {
            world.something_returns();
            assert!(world.inputs.len() < 200_000, "the run does not end");
        }
        world
    }

    pub(crate) fn histories(&self) -> Vec<Vec<HistoryEntry>> {
        let gates = self.pipeline.workflow().phases().filter_map(|(id, _)| self.pipeline.gate(id));
        gates.map(|gate| gate.history().to_vec()).collect()
    }

    fn limits(&self) -> Limits {
        // As in a run: what uses a model is recorded only where there is a budget.
        if self.limit.is_none() {
            return Limits::default();
        }
        let models = self.pipeline.workflow().phases().filter(|(_, phase)| phase.kind != PhaseKind::Exec);
        Limits {
            run: Budget { tokens: self.limit, usd: None },
            models: models.map(|(id, _)| id).collect(),
            ..Limits::default()
        }
    }

    /// The agent of a phase reports the usage of a few replies, one after the other.
    fn report_usage(&mut self, phase: PhaseId) {
        let Some(limit) = self.limit else { return };
        let judging = self.pipeline.gate(phase).is_none_or(|gate| *gate.state() == GateState::Judging);
        if !judging || self.pipeline.workflow().phase(phase).kind == PhaseKind::Exec {
            return;
        }
        let (mut so_far, replies) = (0, 1 + self.draw() % 4);
        for n in 1..=replies {
            if !self.pipeline.takes_usage(phase) {
                return;
            }
            let reply = self.draw() % REPLY + 1;
            so_far += reply;
            self.used += reply;
            let usage = Amount { tokens: so_far, ..Amount::default() };
            self.step(Input::UsageReported { phase, usage, is_final: n == replies });
            // Without an interruption nothing counts once the limit is exceeded.
            assert!(self.used <= limit + REPLY, "{} tokens of {limit}", self.used);
        }
    }

    fn step(&mut self, input: Input) {
        self.inputs.push(input.clone());
        let workflow = Arc::clone(self.pipeline.workflow());
        let (mut asked, mut delayed) = (Vec::new(), Vec::new());
        for effect in self.pipeline.step(input) {
            assert!(self.finished.is_none(), "{effect:?} after the end");
            match effect {
                Effect::RunAgent { phase, routed_by, .. } | Effect::RunCommands { phase, routed_by, .. } => {
                    self.ended.remove(&phase);
                    self.waiting.remove(&phase);
                    if matches!(effect, Effect::RunAgent { .. })
                        && matches!(workflow.phase(phase).kind, PhaseKind::Hug | PhaseKind::Team)
                    {
                        asked.push(phase);
                    }
                    if matches!(effect, Effect::RunAgent { .. }) {
                        assert!(self.limit.is_none_or(|limit| self.used < limit), "an agent starts");
                    }
                    let ready = workflow.phase(phase).depends_on.iter().all(|d| self.ever_done.contains(d));
                    assert!(ready, "{phase:?} starts before what it depends on is done");
                    let again = self.done.remove(&phase);
                    assert!(!again || routed_by.is_some(), "{phase:?} was complete and runs again");
                    assert!(!self.stopping, "something starts while the run is stopped");
                    assert!(self.at_work.insert(phase), "{phase:?} runs twice at once");
                    let delay = self.draw() % 1000;
                    self.running.insert((self.now + delay, phase), Activity::Work);
                }
                Effect::Decide { phase, ignores_when } => {
                    assert!(!self.stopping, "expressions are evaluated while the run is stopped");
                    let ready = workflow.phase(phase).depends_on.iter().all(|d| self.ever_done.contains(d));
                    assert!(ready, "{phase:?} is decided before what it depends on is done");
                    let delay = self.draw() % 10;
                    self.running.insert((self.now + delay, phase), Activity::Decision { ignores_when });
                }
                Effect::Merge { phase, resolved } => {
                    assert!(!self.stopping, "worktrees are merged while the run is stopped");
                    let delay = self.draw() % 100;
                    self.running.insert((self.now + delay, phase), Activity::Merge { resolved });
                }
                Effect::DeliverConflict { .. } => {}
                Effect::Delay { phase, delay_ms } => {
                    let due = self.now + delay_ms;
                    self.running.insert((due, phase), Activity::Delay);
                    delayed.push((phase, due));
                }
                Effect::EndAgent { phase, .. } => {
                    assert!(self.at_work.contains(&phase) && self.ended.insert(phase));
                }
                Effect::StopAll => self.stopping = true,
                Effect::Finish { status, .. } => {
                    assert!(self.at_work.is_empty(), "the run ends while something runs");
                    self.finished = Some(status);
                }
                Effect::DeliverVerdict { to, .. } => assert!(!to.is_empty()),
                Effect::Report(Report::PhaseCompleted { phase }) => {
                    *self.completions.entry(phase).or_default() += 1;
                    self.done.insert(phase);
                    self.ever_done.insert(phase);
                }
                Effect::Report(Report::PhaseSkipped { phase, reason }) => {
                    if reason == SkipReason::Dependencies {
                        let spec = workflow.phase(phase);
                        assert!(
                            spec.when.is_none() && spec.depends_on.iter().all(|id| self.skipped.contains(id))
                        );
                    }
                    self.skipped.insert(phase);
                    self.done.insert(phase);
                    self.ever_done.insert(phase);
                }
                Effect::Report(Report::ItemFailed { phase, .. }) => drop(self.done.insert(phase)),
                Effect::Report(Report::PhaseStarted { .. }) => self.starts += 1,
                Effect::Report(_) => {}
            }
        }
        // Looking at all of a big team after each step would be most of the work.
        let phases = self.pipeline.workflow().phases().len();
        if phases < 40 || phases < 1000 && self.inputs.len().is_multiple_of(16) {
            self.pipeline.assert_invariants();
        }
        for (phase, due) in delayed {
            let due_ms = i64::try_from(due).expect("a time");
            self.step(Input::RetryDelayed { phase, due_ms });
        }
        for phase in asked {
            self.wait_for_person(phase);
        }
    }

    /// Waits again for the attempts that an earlier orchestrator waited for.
    fn wait_for_attempts(&mut self) {
        let delayed: Vec<(PhaseId, Option<i64>)> = self.pipeline.delayed().collect();
        for (phase, due_ms) in delayed {
            let due = u64::try_from(due_ms.unwrap_or(0)).unwrap_or(0).max(self.now);
            self.running.insert((due, phase), Activity::Delay);
        }
    }

    /// The agent of a human gate or of a team phase says that it waits, or does not come to it; or says that it has something to do again.
    fn wait_for_person(&mut self, phase: PhaseId) {
        for says_so in [true, false, true].into_iter().take(usize::try_from(self.draw() % 4).unwrap_or(0)) {
            let due_ms = i64::try_from(self.now + self.draw() % 5000).unwrap_or(0);
            let several = self.pipeline.workflow().phase(phase).kind == PhaseKind::Team
                && self.draw().is_multiple_of(2);
            let reviews = (0..=u8::from(several)).map(|n| format!("r{}-{n}", phase.index())).collect();
            let wait = says_so.then_some(PhaseWait { reviews, due_ms });
            self.step(Input::PhaseWaits { phase, wait });
            if says_so {
                self.waiting.insert(phase)
            } else {
                self.waiting.remove(&phase)
            };
        }
    }

    /// A run waits if all that works waits for people, and not otherwise. It may then be parked.
    fn park_if_waiting(&mut self) {
        let works = self.at_work.iter().any(|phase| !self.waiting.contains(phase));
        let delayed: Vec<PhaseId> = self.pipeline.delayed().map(|(id, _)| id).collect();
        let is_short = |id: &PhaseId| {
            self.pipeline.workflow().phase(*id).retry.as_ref().is_some_and(|retry| retry.delay.as_secs() < 60)
        };
        let is_brief =
            |activity: &Activity| matches!(activity, Activity::Decision { .. } | Activity::Merge { .. });
        let decides = self.running.values().any(is_brief);
        let waits_briefly = decides || delayed.iter().any(is_short);
        let waits_at_all = !self.at_work.is_empty() || !delayed.is_empty();
        let idle = self.finished.is_none() && waits_at_all && !works && !waits_briefly;
        let wait = self.pipeline.waits();
        assert!(wait.is_none() || idle, "{wait:?} {:?} {:?}", self.at_work, self.waiting);
        if idle && wait.is_none() && self.ended.is_empty() && !self.stopping {
            let is_escalated = |(id, _)| matches!(self.pipeline.state(id), PhaseState::Escalated(_));
            let drains = self.pipeline.workflow().phases().any(is_escalated);
            assert!(drains, "a run sleeps that could be parked: {:?}", self.at_work);
        }
        let Some(wait) = wait else { return };
        assert!(self.at_work.iter().all(|phase| wait.reviews.contains(&format!("r{}-0", phase.index()))));
        if self.draw().is_multiple_of(2) {
            return;
        }
        self.parkings += 1;
        let parked = self.at_work.clone();
        self.step(Input::Park);
        assert!(self.pipeline.is_parked() && self.pipeline.waits().is_none());
        self.rebuild();
        let limits = self.limits();
        let before = self.inputs.len();
        self.wait_for_attempts();
        self.step(Input::Resume { from: None, max_parallel: self.schedule.max_parallel, limits });
        assert!(self.inputs[before..].iter().all(|input| !matches!(input, Input::CommandsFinished { .. })));
        let checking =
            |id: &PhaseId| self.pipeline.gate(*id).is_some_and(|gate| *gate.state() == GateState::Checking);
        assert!(!parked.iter().any(checking), "the commands of a gate do not run again");
    }

    /// Everything that was under way is gone. The pipeline is what was recorded.
    fn rebuild(&mut self) {
        let mut rebuilt = Pipeline::new(Arc::clone(self.pipeline.workflow()));
        self.inputs.iter().cloned().for_each(|input| drop(rebuilt.step(input)));
        assert_eq!(format!("{rebuilt:?}"), format!("{:?}", self.pipeline));
        self.pipeline = rebuilt;
        self.running.clear();
        self.at_work.clear();
        self.waiting.clear();
        self.finished = None;
        self.stopping = false;
    }

    /// The orchestrator dies. Some of what was under way completes unheard, which is found out afterwards.
    fn die(&mut self) {
        self.step(Input::Interrupt);
        self.waiting.clear();
        for phase in std::mem::take(&mut self.at_work) {
            if self.draw().is_multiple_of(3) {
                let input = self.outcome(phase);
                let judging =
                    self.pipeline.gate(phase).is_none_or(|gate| *gate.state() == GateState::Judging);
                if judging && !matches!(input, Input::WorkFailed { .. }) {
                    self.step(input);
                }
            }
        }
    }

    /// The orchestrator died, or the run has ended: it is rebuilt from what was recorded and goes on.
    fn resume(&mut self, from: Option<PhaseId>) {
        self.rebuild();
        if let Some(from) = from {
            self.forget(from);
        }
        self.limit = self.limit.map(|limit| limit * 2);
        self.ended.clear();
        let limits = self.limits();
        self.step(Input::Resume { from, max_parallel: self.schedule.max_parallel, limits });
        self.wait_for_attempts();
    }

    /// Resets what may run again: the phase, its dependents, and the phases to which a gate among those had routed.
    fn forget(&mut self, from: PhaseId) {
        let workflow = Arc::clone(self.pipeline.workflow());
        let (mut pending, mut seen) = (vec![from], BTreeSet::new());
        while let Some(id) = pending.pop() {
            if seen.insert(id) {
                self.done.retain(|done| done.whole() != id);
                self.ever_done.remove(&id);
                pending.extend(&workflow.phase(id).dependents);
                let for_it = workflow.phases().map(|(other, _)| other);
                pending.extend(for_it.filter(|other| self.pipeline.routed_by(*other) == Some(id)));
            }
        }
    }

    /// The next number of this schedule. Not random enough for anything but this (splitmix64).
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        mix(self.schedule.seed ^ self.drawn.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// The first of what is under way comes back.
    fn something_returns(&mut self) {
        self.park_if_waiting();
        // A budget may be spent: the run ends as it wakes.
        if self.finished.is_some() {
            return;
        }
        let states = || format!("{:?}", self.pipeline);
        let Some((&(at, phase), &activity)) = self.running.first_key_value() else {
            panic!("nothing runs and nothing ends: {}", states())
        };
        self.running.remove(&(at, phase));
        self.now = at.max(self.now);
        match activity {
            Activity::Work => {}
            Activity::Merge { resolved } => {
                let outcome = self.merge(phase, resolved);
                return self.step(Input::Merged { phase, outcome });
            }
            Activity::Delay => return self.step(Input::RetryDue { phase }),
            Activity::Decision { ignores_when } => {
                let decision = self.decision(phase, ignores_when);
                return self.step(Input::Decided { phase, decision });
            }
        }
        self.report_usage(phase);
        self.at_work.remove(&phase);
        self.waiting.remove(&phase);
        let input = if self.ended.contains(&phase) {
            Input::WorkFailed { phase, reason: "ended".to_owned(), cause: None }
        } else {
            self.outcome(phase)
        };
        self.step(input);
    }

    /// Result of a merge: each item conflicts once at most.
    fn merge(&mut self, phase: PhaseId, resolved: Option<u32>) -> MergeOutcome {
        let drawn = self.draw();
        if !self.schedule.steady && drawn % 100 < self.schedule.failures {
            return MergeOutcome::Failed("git is missing".to_owned());
        }
        let from = resolved.map_or(0, |item| item + 1);
        let items = from..self.pipeline.item_count(phase).unwrap_or(0);
        let seed = self.schedule.seed ^ (phase.index() as u64) << 24;
        let conflicts = |item: &u32| mix(seed ^ u64::from(*item)).is_multiple_of(4);
        // Without a phase that resolves conflicts, a steady run would end.
        let can = self
            .pipeline
            .workflow()
            .phase(phase)
            .for_each
            .as_ref()
            .is_some_and(|list| list.on_conflict.is_some());
        match items.into_iter().find(conflicts).filter(|_| can || !self.schedule.steady) {
            Some(item) => MergeOutcome::Conflict { item, files: vec!["a".to_owned()] },
            None => MergeOutcome::Done,
        }
    }

    /// Result of the expressions of a phase.
    fn decision(&mut self, phase: PhaseId, ignores_when: bool) -> Decision {
        let workflow = Arc::clone(self.pipeline.workflow());
        let (spec, drawn) = (workflow.phase(phase), self.draw());
        let steady = self.schedule.steady;
        let luck = if steady { mix(self.schedule.seed ^ 77 ^ (phase.index() as u64) << 32) } else { drawn };
        if !steady && luck % 100 < self.schedule.failures {
            return Decision::Failed("no such key".to_owned());
        }
        if spec.when.is_some() && !ignores_when && (luck >> 8).is_multiple_of(3) {
            return Decision::Skip;
        }
        let Some(list) = &spec.for_each else { return Decision::Run };
        let items = (luck >> 16) % (u64::from(list.max_items) + 1);
        let item = |n: u64| DecidedItem { value: json!(n), runs: !(luck >> (20 + n)).is_multiple_of(4) };
        Decision::Items((0..items).map(item).collect())
    }

    fn outcome(&mut self, phase: PhaseId) -> Input {
        let workflow = Arc::clone(self.pipeline.workflow());
        let spec = workflow.phase(phase);
        let drawn = self.draw();
        let gate = self.pipeline.gate(phase);
        let judging = gate.is_some_and(|gate| *gate.state() == GateState::Judging);
        let decided = gate.map_or(0, |gate| gate.history().len() as u64);
        let last = gate.is_some_and(|gate| gate.iteration() >= spec.max_iterations);
        let steady = self.schedule.steady;
        // Steady luck depends on what is asked and not on when.
        let item = phase.item().map_or(0, |item| u64::from(item) + 1) << 12;
        let asked = (phase.index() as u64 + 1) << 20 | item | decided;
        let luck = if steady { mix(self.schedule.seed ^ asked) } else { drawn };
        let failures = if steady { 0 } else { self.schedule.failures };
        if luck % 100 < failures || self.stopping && !luck.is_multiple_of(3) {
            let causes =
                [None, Some(FailureCause::Exit), Some(FailureCause::Timeout), Some(FailureCause::Error)];
            let cause = causes[usize::try_from((luck >> 8) % 4).unwrap_or(0)];
            return Input::WorkFailed { phase, reason: "bad luck".to_owned(), cause };
        }
        if !judging && (spec.kind == PhaseKind::Exec || gate.is_some()) {
            let fails = failures > 0 && (luck >> 8) % 40 == 0;
            return Input::CommandsFinished { phase, results: vec![CommandResult::new("c", !fails)] };
        }
        if !judging {
            return Input::AgentCompleted { phase, result: None };
        }
        let targets = &spec.route_targets;
        let route = |n: u64| {
            let target = &workflow.phase(targets[usize::try_from(n).unwrap_or(0) % targets.len()]).name;
            // A phase that was skipped works on all items for the first gate that routes to it: which gate that is, is a
            // matter of who came first.
            if n.is_multiple_of(3) && !steady {
                return json!({"verdict": {"outcome": "ROUTE", "target": target.as_str(), "items": [0, 2, 99]}});
            }
            json!({"verdict": format!("ROUTE:{target}")})
        };
        let verdict = match (luck >> 16) % 20 {
            // Support gates that send work to one another may meet in a circle, and which of them then escalates is a
            // matter of who came first: nothing that a steady run could repeat.
            0..7 if !(targets.is_empty() || steady && (last || spec.support)) => route(luck >> 32),
            7 if !steady => json!({"verdict": "ROUTE:nobody"}),
            8 if !steady && failures > 0 => json!({"verdict": "ESCALATE"}),
            9 if !steady => json!({}),
            _ => json!({"verdict": "PASS"}),
        };
        Input::AgentCompleted { phase, result: Some(verdict) }
    }
}

fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn recorded(limits: &Limits, workflow: &ValidatedWorkflow) -> RecordedBudgets {
    if limits.run.is_unlimited() {
        return RecordedBudgets::default();
    }
    let models = limits.models.iter().map(|id| workflow.phase(*id).name.clone()).collect();
    RecordedBudgets { run: limits.run, models, ..RecordedBudgets::default() }
}

/// The inputs as the driver journals them, through the bytes of a file.
pub(crate) fn journal_of(inputs: &[Input], workflow: &ValidatedWorkflow) -> Journal {
    let name = |id: PhaseId| workflow.name_of(id);
    let dir = tempfile::tempdir().expect("a directory");
    let path = camino::Utf8Path::from_path(dir.path()).expect("utf-8").join("journal.jsonl");
    let mut bytes = Vec::new();
    for input in inputs {
        let event = match input.clone() {
            Input::Start { max_parallel, limits } => RunEvent::RunStarted {
                version: 1,
                run_id: "r".into(),
                team: "t".into(),
                cliq_version: "0".into(),
                pid: 1,
                max_parallel,
                inputs: Default::default(),
                shape: String::new(),
                budgets: recorded(&limits, workflow),
                agent_models: Default::default(),
            },
            Input::UsageReported { phase, usage, is_final } => RunEvent::UsageReported {
                phase: name(phase),
                usage: Usage { tokens_in: usage.tokens, cost_usd: Some(usage.usd), ..Usage::default() },
                is_final,
            },
            Input::CommandsFinished { phase, results } => {
                RunEvent::CommandsFinished { phase: name(phase), iteration: 1, results, max_iterations: None }
            }
            Input::AgentCompleted { phase, result } => {
                RunEvent::AgentCompleted { phase: name(phase), result }
            }
            Input::WorkFailed { phase, reason, cause } => {
                RunEvent::WorkFailed { phase: name(phase), reason, output_tail: None, log_file: None, cause }
            }
            Input::Decided { phase, decision } => {
                let (decision, items, reason) = match decision {
                    Decision::Run => (DecisionKind::Run, Vec::new(), None),
                    Decision::Skip => (DecisionKind::Skip, Vec::new(), None),
                    Decision::Items(items) => (DecisionKind::Items, items, None),
                    Decision::Failed(reason) => (DecisionKind::Failed, Vec::new(), Some(reason)),
                };
                let skipped = (0u32..).zip(&items).filter(|(_, item)| !item.runs).map(|(n, _)| n).collect();
                let items = items.into_iter().map(|item| item.value).collect();
                let (expressions, values) = (Default::default(), Default::default());
                RunEvent::PhaseDecided {
                    kind: workflow.phase(phase).kind,
                    phase: name(phase),
                    decision,
                    items,
                    skipped,
                    reason,
                    expressions,
                    values,
                }
            }
            Input::Merged { phase, outcome } => {
                let (conflict, files, reason) = match outcome {
                    MergeOutcome::Done => (None, Vec::new(), None),
                    MergeOutcome::Conflict { item, files } => (Some(item), files, None),
                    MergeOutcome::Failed(reason) => (None, Vec::new(), Some(reason)),
                };
                RunEvent::ItemsMerged { phase: name(phase), conflict, files, reason }
            }
            Input::RetryDelayed { phase, due_ms } => {
                RunEvent::RetryDelayed { phase: name(phase), until: Timestamp::from_unix_millis(due_ms) }
            }
            Input::RetryDue { phase } => RunEvent::RetryDue { phase: name(phase) },
            Input::Resume { from, max_parallel, limits } => RunEvent::RunResumed {
                cliq_version: "0".into(),
                pid: 2,
                max_parallel,
                from: from.map(name),
                budgets: recorded(&limits, workflow),
            },
            Input::PhaseWaits { phase, wait } => {
                let (reviews, due) =
                    wait.map(|wait| (wait.reviews, Timestamp::from_unix_millis(wait.due_ms))).unzip();
                let mut reviews = reviews.unwrap_or_default().into_iter();
                let review = reviews.next().unwrap_or_default();
                RunEvent::ReviewIdle { phase: name(phase), review, others: reviews.collect(), due }
            }
            Input::Park => RunEvent::RunParked { on: Vec::new(), until: Timestamp::from_unix_millis(0) },
            Input::Interrupt => RunEvent::RunInterrupted,
            Input::Cancel => RunEvent::CancelRequested { by: "test".into() },
            Input::Fail { reason } => RunEvent::OrchestratorFailed { reason },
        };
        bytes.extend(Record { ts: Timestamp::from_unix_millis(0), event }.encode());
    }
    bytes.extend(b"{\"event\":\"torn");
    std::fs::write(&path, bytes).expect("written");
    let journal = Journal::read(&path).expect("readable").expect("there");
    assert!(journal.torn);
    journal
}
