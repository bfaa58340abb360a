//! Performs what the machine asks for: starts agents and commands, delivers verdicts, reports.

use std::sync::Arc;
use std::time::Duration;

use cliq_fs::{FsError, clear_signal, write_routed};
use cliq_protocol::PhaseKind;
use cliq_workflow::{Phase, PhaseId};
use tokio::sync::watch;

use super::agent::{AgentRun, EndRequest};
use super::message::Activation;
use super::shared::Wakers;
use super::{Driver, commands, gate_files, message};
use crate::engine::{Effect, Report};
use crate::events::RunEvent;
use crate::plan::Timing;
use crate::watch::DirectoryWatch;

/// Default deadline for the team of a team phase.
const TEAM_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Deadline for the agent of a human gate. `review.timeout` is at most ten years.
const REVIEW_LIMIT: Duration = Duration::from_secs(3651 * 24 * 3600);

/// The failure of a phase that did not start.
fn work_failed(phase: &Phase, reason: String) -> RunEvent {
    let (output_tail, log_file, cause, limited) = (None, None, None, None);
    RunEvent::WorkFailed { phase: phase.name.clone(), reason, output_tail, log_file, cause, limited }
}

/// Starts the watch of signal files; gives the reason where that is not possible.
fn watch_signals(dir: &cliq_fs::CliqDir, wakers: &Wakers) -> std::io::Result<DirectoryWatch> {
    let wakers = wakers.clone();
    let watch = DirectoryWatch::new(move |file| wakers.wake(file))?;
    watch.add(&dir.signals())?;
    Ok(watch)
}

/// Request of the machine for an activation. Fields as in `Effect::RunAgent`.
struct AgentRequest {
    phase: PhaseId,
    iteration: u32,
    routed_by: Option<PhaseId>,
    rejected: Option<String>,
    continues: Option<u32>,
    previous: Option<u32>,
}

/// Reason why an agent was not started.
enum NotStarted {
    /// The work of the phase fails.
    Failed(String),
    /// The run cannot go on: its files cannot be written.
    NotRecorded(FsError),
}

impl NotStarted {
    /// Failure of the phase with the text of an error.
    fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<FsError> for NotStarted {
    fn from(error: FsError) -> Self {
        Self::NotRecorded(error)
    }
}

/// Returns the time limit of a phase's agent.
fn agent_limit(phase: &Phase, timing: &Timing) -> Duration {
    match phase.kind {
        // The review has a deadline of its own, which ends it with a verdict.
        PhaseKind::HumanGate => REVIEW_LIMIT,
        // Its own phases have limits of their own.
        PhaseKind::Team => phase.timeout.unwrap_or(TEAM_TIMEOUT),
        PhaseKind::Gate => phase.timeout.unwrap_or(timing.gate_agent_timeout),
        PhaseKind::Standard | PhaseKind::Exec | PhaseKind::Pull | PhaseKind::Push => {
            phase.timeout.unwrap_or(timing.phase_timeout)
        }
    }
}

/// Returns the time between TERM and KILL for a phase's agent. A team ends its own processes first.
fn kill_grace(phase: &Phase, timing: &Timing) -> Duration {
    if phase.kind == PhaseKind::Team { timing.kill_grace * 3 } else { timing.kill_grace }
}

impl Driver {
    /// Performs an effect of the machine.
    pub(super) fn perform(&mut self, effect: Effect) -> Result<(), FsError> {
        tracing::trace!(?effect, "effect");
        match effect {
            Effect::RunAgent { phase, iteration, routed_by, rejected, continues, previous } => {
                let request = AgentRequest { phase, iteration, routed_by, rejected, continues, previous };
                self.run_agent(&request)?;
            }
            Effect::Decide { phase, ignores_when } => self.decide(phase, ignores_when),
            Effect::Delay { phase, delay_ms } => self.delay(phase, delay_ms),
            Effect::Merge { phase, resolved } => self.merge(phase, resolved),
            Effect::DeliverConflict { phase, to, item, files } => {
                self.deliver_conflict(phase, to, item, &files)?
            }
            Effect::RunCommands { phase, iteration, routed_by } => {
                self.prepare_item(phase, routed_by)?;
                let shared = Arc::clone(&self.shared);
                self.start(phase, commands::run(shared, phase, iteration, routed_by));
            }
            Effect::DeliverVerdict { gate, to, data } => {
                let workflow = Arc::clone(&self.shared.plan.workflow);
                let limit = self.shared.plan.max_file_bytes;
                let agent = self.shared.plan.agent_of(workflow.phase(gate)).unwrap_or("gate").to_owned();
                for to in to {
                    let (dir, name) = (self.shared.dir(), &workflow.phase(gate).name);
                    gate_files::deliver(dir, name, &agent, &workflow.phase(to).name, &data, limit)?;
                }
            }
            Effect::Report(report) => self.report(report)?,
            Effect::EndAgent { phase, reason, limited } => {
                if let Some(end) = self.ends.get(&phase) {
                    // An agent that has ended by itself in the meantime has no receiver any more.
                    let _ = end.send(Some(EndRequest { reason, limited }));
                }
            }
            Effect::StopAll => self.shared.stop.cancel(),
            Effect::Finish { status, reason, phase } => {
                let phase = phase.map(|id| self.shared.workflow().phase(id).name.clone());
                self.announce_end(status, reason.as_deref(), phase.as_ref());
                self.last_word = Some(RunEvent::RunFinished { status, reason, phase });
                self.over = true;
            }
        }
        Ok(())
    }

    fn report(&mut self, report: Report) -> Result<(), FsError> {
        // Recovery assumes that a signal channel belongs to the last start in the journal, so it is cleared first.
        if let Report::PhaseStarted { phase, .. } | Report::VerdictRejected { gate: phase, .. } = &report {
            clear_signal(self.shared.dir(), &self.shared.workflow().name_of(*phase))?;
        }
        match &report {
            Report::PhaseSkipped { phase, .. } => self.clear_handoffs(*phase)?,
            Report::PhaseReset { phase } => self.forget_worktrees(*phase),
            _ => {}
        }
        let reported = match &report {
            Report::PhaseStarted { phase, routed_by: Some(_), .. } => {
                let phase = self.shared.workflow().name_of(*phase);
                write_routed(self.shared.dir(), &phase)?;
                None
            }
            // Items report as a phase.
            Report::PhaseCompleted { phase } if phase.item().is_none() => Some((*phase, "on_complete")),
            Report::PhaseEscalated { phase, .. } if phase.item().is_none() => Some((*phase, "on_escalate")),
            _ => None,
        };
        let announced = match &report {
            Report::PhaseStarted { phase, .. } if phase.item().is_none() => Some((*phase, "on_phase_start")),
            Report::ItemsStarted { phase, .. } => Some((*phase, "on_phase_start")),
            Report::PhaseCompleted { phase } if phase.item().is_none() => Some((*phase, "on_phase_complete")),
            _ => None,
        };
        self.publish(RunEvent::from_report(report, &Arc::clone(&self.shared.plan.workflow)));
        if let Some((phase, event)) = reported {
            self.notify_of(phase, event);
        }
        if let Some((phase, event)) = announced {
            self.announce_phase(phase, event);
        }
        Ok(())
    }

    fn run_agent(&mut self, request: &AgentRequest) -> Result<(), FsError> {
        let id = request.phase;
        self.prepare_item(id, request.routed_by)?;
        match self.prepare_agent(request) {
            Ok(run) => self.start(id, run.run()),
            Err(NotStarted::Failed(reason)) => {
                self.shared.send(work_failed(&self.shared.phase_of(id), reason));
            }
            Err(NotStarted::NotRecorded(error)) => return Err(error),
        }
        Ok(())
    }

    /// Prepares the files and the dispatch message of an activation.
    fn prepare_agent(&mut self, request: &AgentRequest) -> Result<AgentRun, NotStarted> {
        let AgentRequest { phase: id, iteration, routed_by, continues, previous, .. } = *request;
        let shared = Arc::clone(&self.shared);
        let phase = &*shared.phase_of(id);
        if let Some(reason) = message::unresolved_input(&shared, phase) {
            return Err(NotStarted::Failed(reason));
        }
        // Another agent has left something else under its name.
        let role_file = message::role_file(&shared, phase).map_err(NotStarted::failed)?;
        let agent = shared.plan.agent_of(phase).unwrap_or_default().to_owned();
        let budget = self.pipeline.remaining_budget(id);
        let gate = match self.pipeline.gate(id) {
            Some(gate) => {
                let messages = self.view.steering.for_activation(&phase.name, true);
                let context =
                    gate_files::write_context(shared.dir(), shared.workflow(), id, gate, &messages)?;
                let review = message::review(&shared, phase).map_err(NotStarted::Failed)?;
                let review = review.map(|review| (review, self.pipeline.evaluation(id)));
                Some(message::gate_dispatch(gate, context, request.rejected.clone(), review))
            }
            None => None,
        };
        self.watch_signals();
        // Another agent has left something else under its name.
        let (steering, steering_file) = self.start_listening(id, iteration).map_err(NotStarted::failed)?;
        let rules = self.rule_conditions(id).map_err(NotStarted::Failed)?;
        let activation = Activation {
            phase: id,
            rules,
            attempt: self.pipeline.attempt(id),
            skipped: self.skipped_sources(id),
            iteration,
            routed_by,
            continues,
            previous: previous.filter(|_| gate.is_none()),
            transcript: if gate.is_some() { self.pipeline.evaluation(id) } else { iteration },
            agent: agent.clone(),
            role_file,
            gate,
            budget,
            steering,
            steering_file,
        };
        let (end, told_to_end) = watch::channel(None);
        self.ends.insert(id, end);
        Ok(AgentRun {
            end: told_to_end,
            message: message::build(&shared, &activation)?,
            message_file: shared.dir().messages().join(format!("{}.{iteration}.json", phase.name)),
            log: shared.dir().phase_log(&phase.name, iteration),
            phase: phase.name.clone(),
            limit: agent_limit(phase, &shared.plan.timing),
            agent,
            iteration,
            continues,
            kill_grace: kill_grace(phase, &shared.plan.timing),
            is_watched: self.watch.is_some(),
            shared: Arc::clone(&shared),
        })
    }

    /// Starts the watch of signal files with the first agent. Signals are polled if that is not possible.
    fn watch_signals(&mut self) {
        if self.watch.is_some() {
            return;
        }
        match watch_signals(self.shared.dir(), &self.shared.wakers) {
            Ok(watch) => self.watch = Some(watch),
            Err(why) => {
                let message = format!("signal files cannot be watched and are polled instead: {why}");
                self.shared.send(RunEvent::Warning { phase: None, message });
            }
        }
    }

    /// Starts an activation once nothing is left of the one before: a phase never runs twice at the same time.
    fn start(&mut self, phase: PhaseId, work: impl Future<Output = ()> + Send + 'static) {
        let before = self.activations.remove(&phase);
        let handle = self.tasks.spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            work.await;
        });
        let name = self.shared.workflow().name_of(phase);
        let (shared, inner) = (Arc::clone(&self.shared), handle);
        // A bug in a task must end its phase, not hang the run.
        let guard = self.tasks.spawn(async move {
            if inner.await.is_err() {
                let reason = "an internal error ended the phase; please report it".to_owned();
                let (output_tail, log_file, cause, limited) = (None, None, None, None);
                let phase = name;
                shared.send(RunEvent::WorkFailed { phase, reason, output_tail, log_file, cause, limited });
            }
        });
        self.activations.insert(phase, guard);
    }
}
