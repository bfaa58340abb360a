//! Loop of the daemon: claims signals, steps plans, and starts and ends agents as the plans require.
//!
//! Stateless between iterations: agents to run come from the plans, signals from the queue. So the daemon can be killed at any
//! moment, and the next one continues.

mod job_outcome;
mod jobs;
mod projects;
mod reaper;
mod remote_agents;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, SignalWatch};
use cliq_model::StoreError;
use cliq_orchestrator::RunPlan;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::layout::assignment_file;
use crate::model::Config;
use crate::role::Role;
use crate::service::Plans;
use jobs::{EndedJob, Key, Running};
use reaper::Reaper;

/// The polling interval. Changes that cannot be watched (a network file system) are seen this late.
const TICK: Duration = Duration::from_secs(1);

/// The name under which the daemon claims signals.
const WORKER: &str = "daemon";

/// Knows how agents run in a project. The daemon knows neither settings nor agents.
pub trait PlanAgents: Send + Sync {
    /// Returns the configuration of a project's plans.
    ///
    /// # Errors
    /// Reason why the settings cannot be read.
    fn config(&self, project: &Utf8Path) -> Result<Config, String>;

    /// Returns the run of an agent: a team of one phase, named after the role, in the named directory.
    ///
    /// # Errors
    /// Reason why it cannot be run, for people.
    fn prepare(&self, assignment: &Assignment) -> Result<AgentRun, String>;

    /// Returns a companion of an agent's run by the daemon itself, if there is one.
    fn companion(&self, plan: &RunPlan) -> Option<Box<dyn RunCompanion>> {
        let _ = plan;
        None
    }

    /// Projects whose inboxes are read although no plan or signal of theirs is stored.
    fn projects(&self) -> Vec<Utf8PathBuf> {
        Vec::new()
    }

    /// Whether an environment variable is set.
    fn has_env(&self, name: &str) -> bool;
}

/// Companion of a run, such as its export.
pub trait RunCompanion: Send {
    /// Begins once the run has begun.
    fn begin(&mut self);

    /// Ends with the run. May wait for a moment.
    fn end(self: Box<Self>);
}

/// Run of a plan's agent.
#[non_exhaustive]
pub enum AgentRun {
    /// By the daemon itself.
    Here(Box<RunPlan>),
    /// In a container or a cluster (docs/docker.md, docs/kubernetes.md): by this command. Its standard input begins with the assignment ([`Assignment::receive`]); where that ends, it
    /// ends too, and leaves the run alone. It ends when the run has ended, and cancels the run where the status file in the job's directory asks for that.
    Elsewhere(Box<std::process::Command>),
}

/// The assignment of an agent of a plan: its role, its directory, its environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Assignment {
    /// The project.
    pub project: Utf8PathBuf,
    /// The plan.
    pub plan: String,
    /// The role.
    pub role: Role,
    /// The job's own directory, laid out as a `.cliq`, with the requirement in it.
    pub dir: Utf8PathBuf,
    /// Working directory.
    pub workspace: Utf8PathBuf,
    /// Variables that the agent finds in its environment.
    pub env: std::collections::BTreeMap<String, String>,
}

/// The most bytes of an assignment.
const ASSIGNMENT_LIMIT: u64 = 1 << 20;

impl Assignment {
    /// Reads the assignment that the daemon left in a job's directory. The agents of the plan can write it: it is for who works beside them.
    ///
    /// # Errors
    /// There is none, or it cannot be read; why.
    pub fn read(job_dir: &Utf8Path) -> Result<Self, String> {
        let path = assignment_file(job_dir);
        let bytes = cliq_fs::read_limited(&path, ASSIGNMENT_LIMIT).map_err(|error| error.to_string())?;
        serde_json::from_slice(&bytes).map_err(|error| format!("{path}: {error}"))
    }

    /// Reads the line with the assignment that the daemon gives an [`AgentRun::Elsewhere`] on standard input.
    ///
    /// # Errors
    /// Returns the reason if the input is not an assignment.
    pub fn receive(input: impl BufRead) -> Result<Self, String> {
        let mut line = Vec::new();
        let read = input.take(ASSIGNMENT_LIMIT).read_until(b'\n', &mut line);
        read.map_err(|error| error.to_string())?;
        serde_json::from_slice(&line).map_err(|error| format!("standard input: {error}"))
    }

    /// The line.
    fn encode(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Whether the agent came to its end, of which the journal in its directory tells. Then it is not run again.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let dir = CliqDir::at(&self.dir, &self.workspace);
        dir.is_ok_and(|dir| job_outcome::finished(&dir, self.role.as_str()).is_some())
    }
}

/// Something that the daemon did.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum DaemonEvent {
    /// Files came in.
    BridgeReport {
        /// Number of signals.
        signals: usize,
        /// Rejected files with the reason for each.
        refused: Vec<(String, String)>,
    },
    /// A signal was processed, or was refused.
    Signal {
        /// The plan.
        plan: String,
        /// The signal, by number and type.
        signal: (i64, String),
        /// Result of the processing.
        result: Result<String, String>,
    },
    /// An agent was started.
    Started {
        /// The plan.
        plan: String,
        /// Purpose of the agent.
        what: String,
    },
    /// An agent ended.
    Ended {
        /// The plan.
        plan: String,
        /// Purpose of the agent.
        what: String,
        /// Outcome, if it deserves a message.
        why: Option<String>,
    },
    /// An agent ended without a marker that is known: a warning the first time, then an error.
    UnknownOutput {
        /// The plan.
        plan: String,
        /// Purpose of the agent.
        what: String,
        /// Number of such outputs in a row.
        strike: u64,
    },
    /// Signals were claimed for too long, or by a daemon that died, and are pending again.
    Reset(Vec<i64>),
    /// Something did not work. It is tried again.
    Failed(String),
}

impl fmt::Display for DaemonEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BridgeReport { signals, refused } => {
                write!(f, "{signals} signals came as files")?;
                refused.iter().try_for_each(|(file, why)| write!(f, "; {file} was refused: {why}"))
            }
            Self::Signal { plan, signal: (id, kind), result } => match result {
                Ok(result) => write!(f, "{plan}: signal {id} {kind}: {result}"),
                Err(why) => write!(f, "{plan}: signal {id} {kind} failed: {why}"),
            },
            Self::Started { plan, what } => write!(f, "{plan}: {what} started"),
            Self::Ended { plan, what, why: None } => write!(f, "{plan}: {what} ended"),
            Self::Ended { plan, what, why: Some(why) } => write!(f, "{plan}: {what} ended: {why}"),
            Self::UnknownOutput { plan, what, strike: 1 } => {
                write!(f, "warning: {plan}: {what} ended without a known marker")
            }
            Self::UnknownOutput { plan, what, strike } => {
                write!(f, "error: {plan}: {what} ended without a known marker, {strike} times in a row")
            }
            Self::Reset(ids) => {
                let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
                write!(f, "abandoned signals are pending again: {}", ids.join(", "))
            }
            Self::Failed(what) => f.write_str(what),
        }
    }
}

/// The daemon.
pub struct Daemon {
    plans: Plans,
    agents: Arc<dyn PlanAgents>,
    report: Box<dyn Fn(DaemonEvent) + Send + Sync>,
    running: HashMap<Key, Running>,
    ended: Vec<EndedJob>,
    ends: (mpsc::UnboundedSender<EndedJob>, mpsc::UnboundedReceiver<EndedJob>),
    wake: Arc<Notify>,
    watches: HashMap<Utf8PathBuf, SignalWatch>,
    /// Errors that were reported and persist, and those of this tick.
    errors: (HashSet<String>, HashSet<String>),
}

impl Daemon {
    /// A daemon for the plans in a store, which must be the only one. It reports its actions to `report`.
    pub fn new(
        plans: Plans,
        agents: Arc<dyn PlanAgents>,
        report: impl Fn(DaemonEvent) + Send + Sync + 'static,
    ) -> Self {
        Self {
            plans,
            agents,
            report: Box::new(report),
            running: HashMap::new(),
            ended: Vec::new(),
            ends: mpsc::unbounded_channel(),
            wake: Arc::new(Notify::new()),
            watches: HashMap::new(),
            errors: (HashSet::new(), HashSet::new()),
        }
    }

    /// Works until `stop` is cancelled. Then all agents are ended; the next daemon starts them anew. Changes of the
    /// files in `watch` wake it.
    ///
    /// # Errors
    /// The store cannot be used at all.
    pub async fn run(mut self, watch: &Utf8Path, stop: CancellationToken) -> Result<(), StoreError> {
        // Before anything else: whether there is a store to work with.
        let projects = self.plans.store().projects().await?;
        let left = self.plans.store().reset_claims(WORKER).await?;
        if !left.is_empty() {
            self.report_event(DaemonEvent::Reset(left));
        }
        self.watch(watch);
        for project in projects {
            self.recover(Utf8Path::new(&project)).await?;
        }
        let mut reaper = Reaper::default();
        while !stop.is_cancelled() {
            match reaper.run(self.plans.store()).await {
                Ok(ids) if ids.is_empty() => {}
                Ok(ids) => self.report_event(DaemonEvent::Reset(ids)),
                Err(error) => self.report_error(error.to_string()),
            }
            if let Err(error) = self.tick().await {
                self.report_error(error.to_string());
            }
            self.errors.0 = std::mem::take(&mut self.errors.1);
            tokio::select! {
                () = self.wake.notified() => {}
                Some(ended) = self.ends.1.recv() => self.ended.push(ended),
                () = tokio::time::sleep(TICK) => {}
                () = stop.cancelled() => {}
            }
            while let Ok(ended) = self.ends.1.try_recv() {
                self.ended.push(ended);
            }
        }
        self.stop_all().await;
        Ok(())
    }

    fn report_event(&self, event: DaemonEvent) {
        (self.report)(event);
    }

    /// An error of an action that is retried every second is reported once, until the action succeeds.
    fn report_error(&mut self, what: String) {
        if self.errors.1.insert(what.clone()) && !self.errors.0.contains(&what) {
            self.report_event(DaemonEvent::Failed(what));
        }
    }

    fn watch(&mut self, dir: &Utf8Path) {
        if self.watches.contains_key(dir) || !dir.is_dir() {
            return;
        }
        let wake = Arc::clone(&self.wake);
        // Without it the tick has to do.
        if let Ok(watch) = SignalWatch::new(dir, move |_| wake.notify_one()) {
            self.watches.insert(dir.to_owned(), watch);
        }
    }
}
