//! Parkings, deaths of the orchestrator, and resumptions.

use std::sync::Arc;

use cliq_gate::GateState;
use cliq_orchestrator::internals::{Input, PhaseState, PhaseWait, Pipeline};
use cliq_protocol::PhaseKind;
use cliq_workflow::PhaseId;

use super::world::{Activity, World};

impl World {
    /// The agent of a human gate or of a team phase says that it waits, or does not come to it; or says that it has something to do again.
    pub(crate) fn wait_for_person(&mut self, phase: PhaseId) {
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
    pub(crate) fn park_if_waiting(&mut self) {
        let wait = self.pipeline.waits();
        if self.at_work.iter().any(|phase| !self.waiting.contains(phase)) {
            assert_eq!(wait, None, "{:?} {:?}", self.at_work, self.waiting);
            return;
        }
        let delayed: Vec<PhaseId> = self.pipeline.delayed().map(|(id, _)| id).collect();
        let is_short = |id: &PhaseId| {
            self.pipeline.workflow().phase(*id).retry.as_ref().is_some_and(|retry| retry.delay.as_secs() < 60)
        };
        let is_brief =
            |activity: &Activity| matches!(activity, Activity::Decision { .. } | Activity::Merge { .. });
        let decides = self.running.values().any(is_brief);
        let waits_briefly = decides || delayed.iter().any(is_short);
        let waits_at_all = !self.at_work.is_empty() || !delayed.is_empty();
        let idle = self.finished.is_none() && waits_at_all && !waits_briefly;
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
    pub(crate) fn rebuild(&mut self) {
        let mut rebuilt = Pipeline::new(Arc::clone(self.pipeline.workflow()));
        self.inputs.iter().cloned().for_each(|input| drop(rebuilt.step(input)));
        assert_eq!(rebuilt, self.pipeline);
        self.pipeline = rebuilt;
        self.running.clear();
        self.at_work.clear();
        self.waiting.clear();
        self.finished = None;
        self.stopping = false;
    }

    /// The orchestrator dies. Some of what was under way completes unheard, which is found out afterwards.
    pub(crate) fn die(&mut self) {
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
    pub(crate) fn resume(&mut self, from: Option<PhaseId>) {
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
}
