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

impl Driver {
    /// Performs an effect of the machine.
    pub(super) fn perform(&mut self, effect: Effect) -> Result<(), FsError> {
        tracing::trace!(?effect, "effect");
        match effect {
            Effect::RunAgent { phase, iteration, routed_by, rejected, continues } => {
                self.run_agent(phase, iteration, routed_by, rejected, continues)?;
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

    fn run_agent(
        &mut self,
        id: PhaseId,
        iteration: u32,
        routed_by: Option<PhaseId>,
        rejected: Option<String>,
        continues: Option<u32>,
    ) -> Result<(), FsError> {
        self.prepare_item(id, routed_by)?;
        let shared = Arc::clone(&self.shared);
        let phase = &*shared.phase_of(id);
        if let Some(reason) = message::unresolved_input(&shared, phase) {
            shared.send(work_failed(phase, reason));
            return Ok(());
        }
        let role_file = match message::role_file(&shared, phase) {
            Ok(role_file) => role_file,
            // Another agent has left something else under its name.
            Err(error) => {
                shared.send(work_failed(phase, error.to_string()));
                return Ok(());
            }
        };
        let agent = shared.plan.agent_of(phase).unwrap_or_default().to_owned();
        let budget = self.pipeline.remaining_budget(id);
        let gate = match self.pipeline.gate(id) {
            Some(gate) => {
                let messages = self.view.steering.for_activation(&phase.name, true);
                let context =
                    gate_files::write_context(shared.dir(), shared.workflow(), id, gate, &messages)?;
                let review = match message::review(&shared, phase) {
                    Ok(review) => review.map(|review| (review, self.pipeline.evaluation(id))),
                    Err(reason) => {
                        shared.send(work_failed(phase, reason));
                        return Ok(());
                    }
                };
                Some(message::gate_dispatch(gate, context, rejected, review))
            }
            None => None,
        };
        if self.watch.is_none() {
            match watch_signals(shared.dir(), &shared.wakers) {
                Ok(watch) => self.watch = Some(watch),
                Err(why) => {
                    let message = format!("signal files cannot be watched and are polled instead: {why}");
                    shared.send(RunEvent::Warning { phase: None, message });
                }
            }
        }
        let (steering, steering_file) = match self.start_listening(id, iteration) {
            Ok(listener) => listener,
            // Another agent has left something else under its name.
            Err(error) => {
                shared.send(work_failed(phase, error.to_string()));
                return Ok(());
            }
        };
        let timing = shared.plan.timing;
        let usual = match phase.kind {
            // Its own phases have limits of their own.
            PhaseKind::Team => TEAM_TIMEOUT,
            // The review has a deadline of its own, which ends it with a verdict.
            PhaseKind::HumanGate => REVIEW_LIMIT,
            _ if gate.is_some() => timing.gate_agent_timeout,
            _ => timing.phase_timeout,
        };
        // A team ends its own processes first.
        let kill_grace =
            if phase.kind == PhaseKind::Team { timing.kill_grace * 3 } else { timing.kill_grace };
        let agent_name = agent.clone();
        let rules = match self.rule_conditions(id) {
            Ok(rules) => rules,
            Err(reason) => {
                shared.send(work_failed(phase, reason));
                return Ok(());
            }
        };
        let activation = Activation {
            phase: id,
            rules,
            attempt: self.pipeline.attempt(id),
            skipped: self.skipped_sources(id),
            iteration,
            routed_by,
            continues,
            transcript: if gate.is_some() { self.pipeline.evaluation(id) } else { iteration },
            agent: agent_name,
            role_file,
            gate,
            budget,
            steering,
            steering_file,
        };
        let (end, told_to_end) = watch::channel(None);
        self.ends.insert(id, end);
        let run = AgentRun {
            end: told_to_end,
            message: message::build(&shared, &activation)?,
            message_file: shared.dir().messages().join(format!("{}.{iteration}.json", phase.name)),
            log: shared.dir().phase_log(&phase.name, iteration),
            phase: phase.name.clone(),
            limit: if phase.kind == PhaseKind::HumanGate { usual } else { phase.timeout.unwrap_or(usual) },
            agent,
            iteration,
            continues,
            kill_grace,
            is_watched: self.watch.is_some(),
            shared: Arc::clone(&shared),
        };
        self.start(id, run.run());
        Ok(())
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
