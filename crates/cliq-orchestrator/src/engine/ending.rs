//! The end of a run: completed, escalated, failed or cancelled.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use cliq_fs::PipelineStatus;
use cliq_gate::GateState;
use cliq_workflow::PhaseId;

use super::machine::Pipeline;
use super::record::{End, PhaseState};
use super::{Effect, Report};

impl Pipeline {
    /// Whether agents are being ended (as opposed to: nothing new starts).
    pub(super) fn is_stopping(&self) -> bool {
        let ends = |end: &End| matches!(end.status, PipelineStatus::Cancelled | PipelineStatus::Failed);
        self.interrupted || self.end.as_ref().is_some_and(ends)
    }

    pub(super) fn is_ending(&self) -> bool {
        self.interrupted || self.end.is_some()
    }

    /// A person is needed: nothing new starts, and what runs may finish.
    pub(super) fn escalate(&mut self, phase: PhaseId, reason: &str, out: &mut Vec<Effect>) {
        self.phases.set_state(phase, PhaseState::Escalated(reason.to_owned()));
        out.push(Effect::Report(Report::PhaseEscalated { phase, reason: reason.to_owned() }));
        if let Some(item) = phase.item() {
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
                if !self.interrupted && self.waits_for_people(id) && self.ledger.end(id) {
                    let reason =
                        "the run ends; its review stays open, and `cliq run --resume` goes on with it"
                            .to_owned();
                    out.push(Effect::EndAgent { phase: id, reason, limited: None });
                }
            }
        }
    }

    /// Whether the agent of a human gate waits for a decision.
    pub(super) fn waits_for_person(&self, phase: PhaseId) -> bool {
        let gate = self.gate(phase);
        self.is_working(phase)
            && gate.is_some_and(|gate| gate.spec().human && *gate.state() == GateState::Judging)
    }

    pub(super) fn stop(&mut self, status: PipelineStatus, reason: Option<String>, out: &mut Vec<Effect>) {
        if self.is_stopping() {
            return;
        }
        self.end = Some(End { status, reason, phase: None });
        out.push(Effect::StopAll);
    }

    /// The agent of a phase was ended because the run stops.
    pub(super) fn stopped(&mut self, phase: PhaseId, out: &mut Vec<Effect>) {
        self.phases.set_state(phase, PhaseState::Stopped);
        out.push(Effect::Report(Report::PhaseStopped { phase }));
        if phase.item().is_some() && *self.state(phase.whole()) == PhaseState::Items {
            self.stopped(phase.whole(), out);
        }
    }

    pub(super) fn finish_if_over(&mut self, out: &mut Vec<Effect>) {
        let counts = self.phases.counts();
        if counts.working > 0 || self.interrupted || self.parked || !self.started && self.end.is_none() {
            return;
        }
        if counts.delayed > 0 && self.end.is_none() {
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
}
