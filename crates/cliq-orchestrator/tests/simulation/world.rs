//! The world around the machine: agents and commands that take virtual time and have luck, and a driver that obeys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cliq_gate::GateState;
use cliq_orchestrator::internals::{
    Amount, DecidedItem, Decision, Effect, Input, Kept, KeptOutcome, Limits, MergeOutcome, PhaseState,
    Pipeline, Report,
};
use cliq_orchestrator::{PipelineStatus, SkipReason, ValidatedWorkflow};
use cliq_protocol::{Budget, CommandResult, HistoryEntry, PhaseKind};
use cliq_workflow::{FailureCause, PhaseId};
use serde_json::json;

use super::schedule::{Course, Schedule};

/// The most tokens of one reply.
const REPLY: u64 = 100;

/// Kind of an activity that takes time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Activity {
    /// An agent or commands work.
    Work,
    /// Expressions are evaluated. Whether the condition holds is ignored.
    Decision { ignores_when: bool },
    /// Worktrees are merged. An item whose conflict was resolved.
    Merge { resolved: Option<u32> },
    /// The next attempt waits for its time.
    Delay,
}

pub(crate) struct World {
    pub(crate) pipeline: Pipeline,
    pub(crate) inputs: Vec<Input>,
    pub(crate) finished: Option<PipelineStatus>,
    /// Number of completions of each phase.
    pub(crate) completions: BTreeMap<PhaseId, u32>,
    pub(crate) schedule: Schedule,
    /// Activities in progress, by the time of their end.
    pub(crate) running: BTreeMap<(u64, PhaseId), Activity>,
    /// Number of activations.
    pub(crate) starts: u64,
    /// Phases that were ever skipped.
    pub(crate) skipped: BTreeSet<PhaseId>,
    pub(crate) now: u64,
    pub(crate) drawn: u64,
    pub(crate) stopping: bool,
    /// Started and not yet back.
    pub(crate) at_work: BTreeSet<PhaseId>,
    /// Completed and not to run again, save for a gate.
    pub(crate) done: BTreeSet<PhaseId>,
    pub(crate) ever_done: BTreeSet<PhaseId>,
    /// The limit in force, and the tokens that were reported and counted.
    pub(crate) limit: Option<u64>,
    pub(crate) used: u64,
    /// Told to end.
    pub(crate) ended: BTreeSet<PhaseId>,
    /// Their agents have said that they wait for a person.
    pub(crate) waiting: BTreeSet<PhaseId>,
    /// Number of times that the run was parked.
    pub(crate) parkings: u32,
}

impl World {
    /// A whole run, with every interruption and what comes after it.
    pub(crate) fn run(workflow: &Arc<ValidatedWorkflow>, schedule: &Schedule) -> Self {
        Self::run_with(workflow, schedule, Vec::new())
    }

    /// As [`World::run`], with phases that are kept from an earlier run.
    pub(crate) fn run_with(workflow: &Arc<ValidatedWorkflow>, schedule: &Schedule, kept: Vec<Kept>) -> Self {
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
        for kept in &kept {
            world.ever_done.insert(kept.phase);
            world.done.insert(kept.phase);
            if kept.outcome == KeptOutcome::Skipped {
                world.skipped.insert(kept.phase);
            }
        }
        world.step(Input::Start { max_parallel: schedule.max_parallel, limits: world.limits(), kept });
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

    /// Outcome of each main phase that is done and does not depend on one of `changed`: as a later run keeps it.
    pub(crate) fn keepable(&self, changed: &[PhaseId]) -> Vec<Kept> {
        let workflow = self.pipeline.workflow();
        let mut kept = Vec::new();
        let mut runs: BTreeSet<PhaseId> = changed.iter().copied().collect();
        let mut pending = changed.to_vec();
        for (id, _) in workflow.phases() {
            if !matches!(self.pipeline.state(id), PhaseState::Completed | PhaseState::Skipped) {
                pending.push(id);
                runs.insert(id);
            }
        }
        while let Some(id) = pending.pop() {
            let dependents = workflow.phase(id).dependents.iter();
            pending.extend(dependents.filter(|id| runs.insert(**id)));
        }
        for (id, phase) in workflow.phases().filter(|(id, phase)| !phase.support && !runs.contains(id)) {
            let outcome = match (self.pipeline.state(id), self.pipeline.gate(id)) {
                (PhaseState::Skipped, _) => KeptOutcome::Skipped,
                (_, Some(gate)) => KeptOutcome::Passed {
                    results: gate.checks().to_vec(),
                    answer: Some(json!({"verdict": "PASS"})),
                },
                _ if phase.for_each.is_some() => {
                    let values = self.pipeline.item_values(id).unwrap_or_default();
                    let count = u32::try_from(values.len()).expect("few items");
                    let state = |item: u32| self.pipeline.state(id.with_item(item));
                    let is_skipped = |item: &u32| *state(*item) == PhaseState::Skipped;
                    let failure = |item: u32| match state(item) {
                        PhaseState::Failed(reason) => Some((item, reason.clone())),
                        _ => None,
                    };
                    KeptOutcome::Items {
                        values,
                        skipped: (0..count).filter(is_skipped).collect(),
                        failed: (0..count).filter_map(failure).collect(),
                    }
                }
                _ => KeptOutcome::Completed,
            };
            kept.push(Kept { phase: id, outcome });
        }
        kept
    }

    pub(crate) fn histories(&self) -> Vec<Vec<HistoryEntry>> {
        let gates = self.pipeline.workflow().phases().filter_map(|(id, _)| self.pipeline.gate(id));
        gates.map(|gate| gate.history().to_vec()).collect()
    }

    pub(crate) fn limits(&self) -> Limits {
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
    pub(crate) fn report_usage(&mut self, phase: PhaseId) {
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

    pub(crate) fn step(&mut self, input: Input) {
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
                        && matches!(workflow.phase(phase).kind, PhaseKind::HumanGate | PhaseKind::Team)
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
    pub(crate) fn wait_for_attempts(&mut self) {
        let delayed: Vec<(PhaseId, Option<i64>)> = self.pipeline.delayed().collect();
        for (phase, due_ms) in delayed {
            let due = u64::try_from(due_ms.unwrap_or(0)).unwrap_or(0).max(self.now);
            self.running.insert((due, phase), Activity::Delay);
        }
    }

    /// Resets what may run again: the phase, its dependents, and the phases to which a gate among those had routed.
    pub(crate) fn forget(&mut self, from: PhaseId) {
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
    pub(crate) fn draw(&mut self) -> u64 {
        self.drawn += 1;
        mix(self.schedule.seed ^ self.drawn.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// The first of what is under way comes back.
    pub(crate) fn something_returns(&mut self) {
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
    pub(crate) fn merge(&mut self, phase: PhaseId, resolved: Option<u32>) -> MergeOutcome {
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
            Some(item) => MergeOutcome::Conflict { item, files: vec!["a".to_owned()], notes: Vec::new() },
            None => MergeOutcome::Done,
        }
    }

    /// Result of the expressions of a phase.
    pub(crate) fn decision(&mut self, phase: PhaseId, ignores_when: bool) -> Decision {
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

    pub(crate) fn outcome(&mut self, phase: PhaseId) -> Input {
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
