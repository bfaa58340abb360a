//! One activation of an agent: start it, follow its signal channel, see it out.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_fs::{FsError, write_atomic};
use cliq_protocol::{
    AgentMessage, ChannelBody, Dispatch, Limited, PEOPLE_VARIABLE, PhaseName, Usage, WaitingReview,
};
use cliq_workflow::FailureCause;
use tokio::sync::watch;
use tokio::time::Instant;

use super::channel::{Follower, Odd, Terminal};
use super::commands::show;
use super::deadline::{Deadline, NOTICE, TimeoutDecision};
use super::shared::{Message, Shared};
use crate::events::RunEvent;
use crate::launcher::{Job, Running};
use crate::process::{NO_TERMINAL, lacks_terminal};

/// Request to end an agent.
#[derive(Debug, Clone, Default)]
pub(super) struct EndRequest {
    /// Reason of the failure of its phase.
    pub(super) reason: String,
    /// Limit that is exceeded, if that is the reason.
    pub(super) limited: Option<Limited>,
}

/// Failure of an activation.
pub(super) struct Failure {
    reason: String,
    cause: Option<FailureCause>,
    /// Limit that ended the work, if one did.
    limited: Option<Limited>,
}

impl Failure {
    fn of(cause: FailureCause, reason: String) -> Self {
        Self { reason, cause: Some(cause), limited: None }
    }
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self { reason, cause: None, limited: None }
    }
}

/// Maximum number of changed files in a message.
const MAX_CHANGED_FILES: usize = 200;
/// Factor of the polling interval of a signal file that is watched.
const WATCHED_POLL: u32 = 10;

/// An agent to be run and followed.
pub(super) struct AgentRun {
    pub(super) shared: Arc<Shared>,
    pub(super) phase: PhaseName,
    pub(super) agent: String,
    pub(super) iteration: u32,
    /// First of the interrupted activations that this one continues.
    pub(super) continues: Option<u32>,
    pub(super) limit: Duration,
    /// Ends it.
    pub(super) end: watch::Receiver<Option<EndRequest>>,
    /// Grace period after a request to end.
    pub(super) kill_grace: Duration,
    pub(super) message: AgentMessage,
    pub(super) message_file: Utf8PathBuf,
    pub(super) log: Utf8PathBuf,
    /// Whether changes of its signal file are noticed without polling.
    pub(super) is_watched: bool,
}

impl AgentRun {
    /// Runs the agent and sends the outcome of the phase to the dispatcher, as soon as it is certain. Returns once nothing
    /// of the agent is left.
    pub(super) async fn run(mut self) {
        let signal_file = self.message.dispatch.signal_file().clone();
        let waker = self.shared.wakers.register(&signal_file);
        // An agent that waited for people when the run was parked goes on with the same activation.
        let is_woken = self.shared.dir().transcript(&self.phase, self.iteration).exists();
        if !is_woken {
            self.shared.checkpoint(&self.phase, self.iteration, false).await;
        }
        self.add_changed_files().await;
        let started = match self
            .shared
            .prepare_worktree(&self.phase, self.continues.or(is_woken.then_some(self.iteration)))
            .await
        {
            Ok(()) => self.start(&signal_file).await,
            Err(reason) => Err(RunEvent::WorkFailed {
                phase: self.phase.clone(),
                reason,
                output_tail: None,
                log_file: None,
                cause: None,
                limited: None,
            }),
        };
        let mut process = match started {
            Ok(process) => process,
            Err(event) => {
                self.shared.wakers.forget(&signal_file);
                return self.shared.send(event);
            }
        };
        self.shared.send(RunEvent::AgentStarted {
            phase: self.phase.clone(),
            iteration: self.iteration,
            agent: self.agent.clone(),
            pid: process.pid(),
        });
        self.report_steering();
        let mut follower = Follower::new(&signal_file);
        let outcome = self.follow(&mut follower, process.as_mut(), &waker).await;
        self.shared.wakers.forget(&signal_file);
        let timing = self.shared.plan.timing;
        match outcome {
            Ok(result) => {
                self.shared.checkpoint(&self.phase, self.iteration, true).await;
                self.finish(Ok(result));
                // It has said its last; it gets a moment to leave by itself.
                tokio::select! {
                    exit = tokio::time::timeout(timing.exit_grace, process.wait()) => match exit {
                        Err(_) => self.shared.warn(&self.phase, format!(
                            "agent {} did not exit within {} of its terminal message and was ended", self.agent, show(timing.exit_grace))),
                        Ok(Ok(exit)) if !exit.success() => self.contradicted(&format!("ended with {exit}")),
                        Ok(_) => {}
                    },
                    () = self.shared.stop.cancelled() => {}
                }
                process.end(self.kill_grace).await;
                // Messages after the terminal one have no effect. They become warnings.
                let _ = follower.read(|_| (), |odd| self.report_odd(odd));
            }
            Err(failure) => {
                process.end(self.kill_grace).await;
                let tail = process.output_tail().await;
                let tail = process.has_output().then_some(tail);
                if failure.cause == Some(FailureCause::Exit) && tail.as_deref().is_some_and(lacks_terminal) {
                    self.shared.warn(&self.phase, format!("agent {} {NO_TERMINAL}", self.agent));
                }
                self.shared.checkpoint(&self.phase, self.iteration, true).await;
                self.finish(Err((failure, tail)));
            }
        }
        if !process.left_nothing() {
            self.end_orphans().await;
        }
    }

    /// Reports a message without an effect.
    fn report_odd(&self, odd: Odd) {
        match odd {
            Odd::NoEffect(message) => self.shared.warn(&self.phase, message),
            Odd::ErrorAfterComplete(error) => self.contradicted(&format!("reported: {error}")),
        }
    }

    /// Reports that the agent failed after it had completed its phase.
    fn contradicted(&self, how: &str) {
        let reason = format!("agent {} completed and then {how}", self.agent);
        self.shared.send(RunEvent::CompletionContradicted { phase: self.phase.clone(), reason });
    }

    /// Adds the files that the previous activation changed to the message.
    async fn add_changed_files(&mut self) {
        let Dispatch::Phase(dispatch) = &mut self.message.dispatch else { return };
        let Some(previous) = &mut dispatch.phase.previous else { return };
        let Some(mut files) = self.shared.changed_files(&self.phase, previous.activation).await else {
            return;
        };
        previous.more_files = files.len().saturating_sub(MAX_CHANGED_FILES) as u64;
        files.truncate(MAX_CHANGED_FILES);
        previous.changed_files = Some(files);
    }

    /// Starts the agent. Returns the event that reports a failure. Signals of an earlier activation were cleared when this one was
    /// recorded.
    async fn start(&self, signal_file: &camino::Utf8Path) -> Result<Box<dyn Running>, RunEvent> {
        // Not the agent's fault: the orchestrator cannot write its own files.
        let broken = |error: FsError| {
            self.shared.send(RunEvent::OrchestratorFailed { reason: error.to_string() });
            self.shared.stopped(&self.phase)
        };
        write_atomic(&self.message_file, &self.message.encode()).map_err(broken)?;
        let failed = |reason: String| RunEvent::WorkFailed {
            phase: self.phase.clone(),
            reason,
            output_tail: None,
            log_file: None,
            cause: None,
            limited: None,
        };
        let Some(command) = self.shared.plan.agents.get(&self.agent) else {
            return Err(failed(format!("there is no agent `{}`", self.agent)));
        };
        let mut env = self.shared.environment(self.phase.as_str());
        env.insert("CLIQ_SIGNAL_FILE".to_owned(), signal_file.to_string());
        self.shared.put_trace(&mut env, |trace| trace.next_agent_span(&self.phase));
        if let Some(people) = self.shared.plan.people().filter(|_| command.uses_model) {
            env.insert(PEOPLE_VARIABLE.to_owned(), people);
        }
        let job = Job {
            title: self.phase.to_string(),
            program: command.program.to_string(),
            args: command.args.clone(),
            env,
            dir: self.shared.workspace_of(self.phase.as_str()),
            stdin: Some(self.message_file.clone()),
            log: self.log.clone(),
        };
        let phase = self.shared.workflow().find(self.phase.as_str());
        let phase = phase.map(|id| self.shared.phase_of(id));
        let has_pane = phase.as_ref().is_none_or(|phase| phase.kind.has_pane());
        let job = match phase {
            Some(phase) => self.shared.confine(job, &phase, Some(command)).map_err(failed)?,
            None => job,
        };
        tracing::debug!(phase = %self.phase, agent = self.agent, program = job.program, "agent starts");
        let launched = match has_pane {
            true => self.shared.launch(&job).await,
            false => self.shared.launch_without_pane(&job).await,
        };
        launched.map_err(|error| self.not_started(&error.to_string()))
    }

    /// Returns the event of an agent that could not be started. It is a failure like that of one that ended at once.
    fn not_started(&self, reason: &str) -> RunEvent {
        RunEvent::WorkFailed {
            phase: self.phase.clone(),
            reason: format!("agent {} could not be started: {reason}", self.agent),
            output_tail: None,
            log_file: None,
            limited: None,
            cause: Some(FailureCause::Exit),
        }
    }

    /// Waits for the terminal message, the end of the process, the end of its time or the end of the run.
    async fn follow(
        &self,
        follower: &mut Follower,
        process: &mut dyn Running,
        waker: &tokio::sync::Notify,
    ) -> Result<Option<serde_json::Value>, Failure> {
        let mut deadline = Deadline::new(Instant::now() + self.limit);
        // With a watch, polling only guards against an event that the system lost.
        let rarely = if self.is_watched { WATCHED_POLL } else { 1 };
        let mut poll = tokio::time::interval(self.shared.plan.timing.poll_interval * rarely);
        let mut end = self.end.clone();
        loop {
            let mut is_due = false;
            let asked_since = follower.asks_since;
            let mut exit = tokio::select! {
                () = waker.notified() => None,
                _ = poll.tick() => None,
                exit = process.wait() => Some(exit),
                () = tokio::time::sleep_until(deadline.due()) => {
                    is_due = true;
                    None
                }
                () = self.shared.stop.cancelled() => return Err("stopped".to_owned().into()),
                Ok(request) = end.wait_for(Option::is_some) => {
                    let EndRequest { reason, limited } = request.clone().unwrap_or_default();
                    return Err(Failure { limited, ..Failure::from(reason) });
                }
            };
            if let Some(since) = asked_since {
                // People take the time that they need: only the time in which the agent can work counts.
                let now = Instant::now();
                deadline.extend(now.saturating_duration_since(since));
                follower.asks_since = Some(now);
                is_due &= deadline.due() <= now;
            }
            if is_due {
                exit = tokio::time::timeout(NOTICE, process.wait()).await.ok();
                match deadline.expired(Instant::now(), exit.is_some()) {
                    TimeoutDecision::Ended | TimeoutDecision::Wait => {}
                    TimeoutDecision::TimedOut => {
                        // Its last words may have come just now.
                        let late = || format!("it did not finish within {}", show(self.limit));
                        let Some(outcome) = self.read(follower)? else {
                            return Err(Failure::of(FailureCause::Timeout, late()));
                        };
                        return outcome;
                    }
                }
            }
            if let Some(outcome) = self.read(follower)? {
                return outcome;
            }
            if let Some(exit) = exit {
                let how =
                    exit.map_or_else(|error| format!("how is unknown: {error}"), |exit| exit.to_string());
                let reason = match process.start_error() {
                    Some(error) => format!("agent {} could not be started: {error}", self.agent),
                    None => format!("agent {} ended without a terminal message ({how})", self.agent),
                };
                return Err(Failure::of(FailureCause::Exit, reason));
            }
        }
    }

    /// Reads new signals of the channel. Returns the outcome once it is known.
    fn read(
        &self,
        follower: &mut Follower,
    ) -> Result<Option<Result<Option<serde_json::Value>, Failure>>, String> {
        let mut reviews = Vec::new();
        let terminal = follower.read(
            |body| match body {
                ChannelBody::Progress { message, usage, review } => {
                    if let Some(review) = review {
                        // It says what the message says.
                        return reviews.push(*review);
                    }
                    if let Some(usage) = usage {
                        self.report(*usage, false);
                    } else if message.is_none() {
                        self.progress(String::new());
                    }
                    if let Some(message) = message {
                        self.progress(message);
                    }
                }
                ChannelBody::Notify(request) => {
                    let _ = self.shared.messages.send(Message::Notify(self.phase.clone(), request));
                }
                ChannelBody::Ok | ChannelBody::Complete { .. } | ChannelBody::Error { .. } => {}
            },
            |odd| self.report_odd(odd),
        )?;
        reviews.into_iter().for_each(|review| self.review_waits(follower, review));
        let Some(terminal) = terminal else { return Ok(None) };
        match terminal.usage() {
            Ok(Some(usage)) => self.report(usage, true),
            Ok(None) => {}
            Err(error) => {
                self.shared.warn(
                    &self.phase,
                    format!("the usage that agent {} reports is wrong: {error}", self.agent),
                );
            }
        }
        Ok(Some(match terminal {
            Terminal::Complete(result) => Ok(result),
            Terminal::Error(error, _, limited) => {
                let reason = format!("agent {} reports: {error}", self.agent);
                Err(Failure { limited, ..Failure::of(FailureCause::Error, reason) })
            }
        }))
    }

    /// Reports a review to people if it is another than before, and to the machine if the time changes up to which the agent waits.
    fn review_waits(&self, follower: &mut Follower, mut review: WaitingReview) {
        let (due, others) = (review.due.take(), std::mem::take(&mut review.others));
        let (phase, id) = (self.phase.clone(), review.id.clone());
        follower.asks_since = match review.asks.is_some() && !review.reviewers.is_empty() {
            true => Some(follower.asks_since.unwrap_or_else(Instant::now)),
            false => None,
        };
        if follower.review.as_ref() != Some(&review) {
            follower.review = Some(review.clone());
            let iteration = self.iteration;
            self.shared.send(RunEvent::ReviewWaits { phase: phase.clone(), iteration, review });
        }
        let idle = due.clone().map(|due| (due, others.clone()));
        if follower.idle != idle {
            follower.idle = idle;
            self.shared.send(RunEvent::ReviewIdle { phase, review: id, others, due });
        }
    }

    /// Reports that the agent received the steering messages of its dispatch message.
    fn report_steering(&self) {
        let Dispatch::Phase(dispatch) = &self.message.dispatch else { return };
        for message in dispatch.steering.iter().filter(|message| message.is_for(&self.phase)) {
            let (phase, activation) = (self.phase.clone(), self.iteration);
            self.shared.send(RunEvent::SteeringDelivered { id: message.id.clone(), phase, activation });
        }
    }

    fn progress(&self, message: String) {
        self.shared.send(RunEvent::Progress { phase: self.phase.clone(), message });
    }

    fn report(&self, usage: Usage, is_final: bool) {
        let _ = self.shared.messages.send(Message::Usage(self.phase.clone(), Box::new(usage), is_final));
    }

    fn finish(&self, outcome: Result<Option<serde_json::Value>, (Failure, Option<String>)>) {
        let phase = self.phase.clone();
        self.shared.send(match outcome {
            Ok(result) => RunEvent::AgentCompleted { phase, result },
            Err((Failure { reason, cause, limited }, output_tail)) => {
                let log_file =
                    output_tail.as_ref().map(|_| self.shared.dir().relative(&self.log).to_string());
                // A limit is not retried: the next attempt would meet it too.
                let cause = cause.filter(|_| limited.is_none());
                RunEvent::WorkFailed { phase, reason, output_tail, log_file, cause, limited }
            }
        });
    }

    /// Ends processes of the phase that left its process group.
    async fn end_orphans(&self) {
        if let n @ 1.. = self.shared.end_orphans(Some(&self.phase)).await {
            self.shared.warn(&self.phase, format!("{n} processes that it left behind were ended"));
        }
    }
}
