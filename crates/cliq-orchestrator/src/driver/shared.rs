//! State that the dispatcher and its tasks share.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, DEFAULT_FILE_LIMIT, FILE_LIMIT_VARIABLE, read_handoff};
use cliq_protocol::{ChangedLines, PhaseName, RunId, SpanId, TRACE_VARIABLE, Timestamp, TraceId, Usage};
use cliq_workflow::{Phase, PhaseId, ResolveError, ValidatedWorkflow, Values};
use rustix::process::Pid;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::agents::AgentCommand;
use crate::blocking::spawn_blocking;
use crate::checkpoints::CheckpointOf;
use crate::confinement::{OnRefusal, PhaseProcess};
use crate::events::RunEvent;
use crate::launcher::{Job, LaunchError, Running};
use crate::orphans::{Mark, ORCHESTRATOR, RUN_PATH, end_marked, marked};
use crate::plan::RunPlan;
use crate::trace::RunTrace;
use crate::watchdog::{SharedWatchdog, Watchdog, WatchdogOrder, WatchdogState, WatchedProcess};

/// A message from a task to the dispatcher.
pub(super) enum Message {
    /// Something happened.
    Event(RunEvent),
    /// An agent reports the usage of its activation so far, and whether with its terminal message.
    Usage(PhaseName, Box<Usage>, bool),
    /// An agent asks for a notification.
    Notify(PhaseName, cliq_protocol::NotifyRequest),
}

/// Facts of the run, and the way back to the dispatcher.
pub(super) struct Shared {
    pub(super) plan: RunPlan,
    pub(super) run_id: RunId,
    /// Name of this orchestrator among those that worked on the run.
    pub(super) orchestrator: String,
    pub(super) watchdog: SharedWatchdog,
    pub(super) inputs: BTreeMap<String, String>,
    pub(super) messages: mpsc::UnboundedSender<Message>,
    /// Ends every agent and command.
    pub(super) stop: CancellationToken,
    /// Ends the wait for further attempts: the run is over.
    pub(super) over: CancellationToken,
    /// Ends deliveries, which may outlast the phases that asked for them.
    pub(super) no_more_deliveries: CancellationToken,
    pub(super) wakers: Wakers,
    /// Whether a checkpoint could not be taken.
    pub(super) lacks_checkpoints: AtomicBool,
    /// Changes to the workspace that were reported last; `None` in a resumed run, until it reports some.
    pub(super) changed: Mutex<Option<ChangedLines>>,
    /// Trace of the run, and whether it is recorded; `None` without one.
    pub(super) trace: Option<(Mutex<RunTrace>, bool)>,
    /// Items of phases whose list is known.
    pub(super) items: Mutex<HashMap<PhaseId, Arc<Vec<Value>>>>,
}

impl Shared {
    /// A phase, or an item of a phase under the name of the item: its files and channels are named so.
    pub(super) fn phase_of(&self, id: PhaseId) -> Cow<'_, Phase> {
        let phase = self.workflow().phase(id);
        if id.item().is_none() {
            return Cow::Borrowed(phase);
        }
        let mut item = phase.clone();
        item.name = self.workflow().name_of(id);
        Cow::Owned(item)
    }

    /// Items of a phase, once its list is known.
    pub(super) fn items_of(&self, phase: PhaseId) -> Option<Arc<Vec<Value>>> {
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        items.get(&phase.whole()).cloned()
    }

    /// Remembers the items of a phase.
    pub(super) fn remember_items(&self, phase: PhaseId, values: Vec<Value>) {
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        items.insert(phase.whole(), Arc::new(values));
    }

    /// Names of the sources of a phase's handoffs: its own, or those of its items.
    pub(super) fn sources_of(&self, phase: PhaseId) -> Vec<PhaseName> {
        let name = &self.workflow().phase(phase).name;
        match (self.workflow().phase(phase).for_each.is_some(), self.items_of(phase)) {
            (true, Some(items)) => (0u32..).zip(items.iter()).map(|(item, _)| name.with_item(item)).collect(),
            _ => vec![name.clone()],
        }
    }

    pub(super) fn dir(&self) -> &CliqDir {
        &self.plan.dir
    }

    pub(super) fn workflow(&self) -> &ValidatedWorkflow {
        &self.plan.workflow
    }

    pub(super) fn send(&self, event: RunEvent) {
        // The dispatcher outlives its tasks. After its end the message is not needed.
        let _ = self.messages.send(Message::Event(event));
    }

    pub(super) fn warn(&self, phase: &PhaseName, message: impl Into<String>) {
        self.send(RunEvent::Warning { phase: Some(phase.clone()), message: message.into() });
    }

    /// The work of a phase came to nothing because the run stops.
    pub(super) fn stopped(&self, phase: &PhaseName) -> RunEvent {
        let (phase, reason) = (phase.clone(), "stopped".to_owned());
        let (output_tail, log_file, cause, limited) = (None, None, None, None);
        RunEvent::WorkFailed { phase, reason, output_tail, log_file, cause, limited }
    }

    /// Returns the environment of agents and commands (docs/protocol.md).
    pub(super) fn environment(&self, phase: &str) -> BTreeMap<String, String> {
        let dir = self.dir();
        let signal_file = dir.signals().join(format!("{phase}.jsonl"));
        let mut env = self.plan.env.clone();
        env.extend([
            ("CLIQ_PHASE".to_owned(), phase.to_string()),
            ("CLIQ_DIR".to_owned(), dir.root().to_string()),
            ("CLIQ_WORKSPACE".to_owned(), self.workspace_of(phase).to_string()),
            ("CLIQ_SIGNAL_FILE".to_owned(), signal_file.to_string()),
            ("CLIQ_RUN_ID".to_owned(), self.run_id.to_string()),
            (RUN_PATH.to_owned(), self.run_path(phase)),
            (ORCHESTRATOR.to_owned(), self.orchestrator.clone()),
        ]);
        if self.plan.max_file_bytes != DEFAULT_FILE_LIMIT {
            env.insert(FILE_LIMIT_VARIABLE.to_owned(), self.plan.max_file_bytes.to_string());
        }
        self.put_trace(&mut env, RunTrace::run_span);
        env
    }

    /// Adds the context of a span to the environment of a process, if the run is part of a trace.
    pub(super) fn put_trace(
        &self,
        env: &mut BTreeMap<String, String>,
        span: impl FnOnce(&RunTrace) -> SpanId,
    ) {
        let Some((trace, is_sampled)) = &self.trace else { return };
        let trace = trace.lock().unwrap_or_else(PoisonError::into_inner);
        let context = trace.context(span(&trace), *is_sampled);
        env.insert(TRACE_VARIABLE.to_owned(), context.to_string());
    }

    /// Trace of the run.
    pub(super) fn trace_id(&self) -> Option<TraceId> {
        let (trace, _) = self.trace.as_ref()?;
        Some(trace.lock().unwrap_or_else(PoisonError::into_inner).id())
    }

    /// Counts what an event means for the trace.
    pub(super) fn trace(&self, event: &RunEvent) {
        if let Some((trace, _)) = &self.trace {
            trace.lock().unwrap_or_else(PoisonError::into_inner).observe(event);
        }
    }

    /// Takes a checkpoint of the workspace before or after an activation that may write to it. A failure is reported once in a run.
    pub(super) async fn checkpoint(&self, phase: &PhaseName, activation: u32, is_end: bool) {
        let Some(checkpoints) = self.plan.checkpoints.as_ref().filter(|_| self.plan.parent.is_none()) else {
            return;
        };
        let kind = self.workflow().find(phase.as_str()).map(|id| self.workflow().phase(id).kind);
        // What an item changes in its worktree reaches the workspace with the merge.
        if self.worktree_of(phase.as_str()).is_some() || !kind.is_some_and(crate::checkpoints::may_write) {
            return;
        }
        let of = CheckpointOf { run_id: self.run_id.clone(), phase: phase.clone(), activation, is_end };
        let checkpoints = Arc::clone(checkpoints);
        let taken = spawn_blocking(move || checkpoints.take(&of)).await;
        if let Ok(Err(reason)) = taken
            && !self.lacks_checkpoints.swap(true, Ordering::Relaxed)
        {
            let message = format!("no checkpoint was taken, and the run goes on: {reason}");
            self.send(RunEvent::Warning { phase: Some(phase.clone()), message });
        }
        if is_end {
            self.report_changes(phase).await;
        }
    }

    /// Reports the changes of the run to the workspace up to the last checkpoint, if they are others than before.
    pub(super) async fn report_changes(&self, phase: &PhaseName) {
        let Some(checkpoints) = self.plan.checkpoints.as_ref().filter(|_| self.plan.parent.is_none()) else {
            return;
        };
        let (checkpoints, run_id) = (Arc::clone(checkpoints), self.run_id.clone());
        let read = spawn_blocking(move || checkpoints.changed_so_far(&run_id)).await;
        match read {
            Ok(Ok(Some(changed))) => {
                let before = self.changed.lock().unwrap_or_else(PoisonError::into_inner).replace(changed);
                if before != Some(changed) {
                    self.send(RunEvent::WorkspaceChanged { phase: phase.clone(), changed });
                }
            }
            Ok(Err(reason)) => tracing::warn!(%phase, reason, "the size of the changes is not known"),
            Ok(Ok(None)) | Err(_) => {}
        }
    }

    /// Returns the files that an activation changed. `None` if there are no checkpoints around it.
    pub(super) async fn changed_files(&self, phase: &PhaseName, activation: u32) -> Option<Vec<String>> {
        let checkpoints = self.plan.checkpoints.as_ref().filter(|_| self.plan.parent.is_none())?;
        let of = CheckpointOf { run_id: self.run_id.clone(), phase: phase.clone(), activation, is_end: true };
        let checkpoints = Arc::clone(checkpoints);
        let changed = spawn_blocking(move || checkpoints.changed(&of)).await;
        match changed {
            Ok(Ok(files)) => files,
            Ok(Err(reason)) => {
                let message =
                    format!("the files that activation {activation} changed are not known: {reason}");
                self.send(RunEvent::Warning { phase: Some(phase.clone()), message });
                None
            }
            Err(_) => None,
        }
    }

    /// Puts a job of a phase into its sandbox.
    pub(super) fn confine(
        &self,
        job: Job,
        phase: &Phase,
        agent: Option<&AgentCommand>,
    ) -> Result<Job, String> {
        let Some(confinement) = &self.plan.confinement else { return Ok(job) };
        let (dir, workflow) = (self.dir(), self.workflow());
        let own = workflow.find(phase.name.as_str());
        let channels =
            workflow.channels().into_iter().filter(|(from, _)| Some(*from) == own.map(PhaseId::whole));
        let to = channels.map(|(_, to)| workflow.phase(to).name.clone());
        let mut directories: Vec<Utf8PathBuf> =
            to.chain(self.plan.result_channel(phase)).map(|to| dir.channel(&phase.name, &to)).collect();
        directories.extend(self.worktree_of(phase.name.as_str()));
        let files = dir.files().join(phase.name.as_str());
        // An agent has the directory since its dispatch message; commands do not need one.
        if files.is_dir() {
            directories.push(files);
        }
        let signal_file = dir.signal_file(&phase.name);
        let (messages, name) = (self.messages.clone(), phase.name.clone());
        let on_refusal = OnRefusal::new(move |access| {
            let _ = messages.send(Message::Event(RunEvent::AccessRefused { phase: name.clone(), access }));
        });
        confinement.confine(job, &PhaseProcess { phase, agent, directories, signal_file, on_refusal })
    }

    /// Starts a job of an agent or a command, and with the first one the watchdog.
    pub(super) async fn launch(&self, job: &Job) -> Result<Box<dyn Running>, LaunchError> {
        self.start_watchdog();
        let process = self.plan.launcher.launch(job).await?;
        Ok(WatchedProcess::watch(process, &self.watchdog))
    }

    /// Starts a job as [`Shared::launch`] does, in no pane.
    pub(super) async fn launch_without_pane(&self, job: &Job) -> Result<Box<dyn Running>, LaunchError> {
        self.start_watchdog();
        let process = self.plan.launcher.launch_without_pane(job).await?;
        Ok(WatchedProcess::watch(process, &self.watchdog))
    }

    fn start_watchdog(&self) {
        let mut state = self.watchdog.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*state, WatchdogState::Idle) {
            return;
        }
        *state = WatchdogState::Absent;
        if self.plan.watchdog.is_empty() {
            return;
        }
        let dir = self.dir();
        let order = WatchdogOrder {
            root: dir.root().to_owned(),
            workspace: dir.workspace().to_owned(),
            pid: std::process::id(),
            orchestrator: self.orchestrator.clone(),
            grace_ms: u64::try_from(self.plan.timing.kill_grace.as_millis()).unwrap_or(u64::MAX),
        };
        match Watchdog::start(&self.plan.watchdog, &order) {
            Ok(watchdog) => *state = WatchdogState::Active(watchdog),
            Err(why) => {
                let message = format!(
                    "cannot start the watchdog {}: {why}; if cliq is killed, agents go on until `cliq cancel` or `cliq run --resume`",
                    self.plan.watchdog[0]
                );
                self.send(RunEvent::Warning { phase: None, message });
            }
        }
    }

    /// Ends the watchdog: nothing of the run is left, and no process follows.
    pub(super) fn dismiss_watchdog(&self) {
        let mut state = self.watchdog.lock().unwrap_or_else(PoisonError::into_inner);
        if let WatchdogState::Active(watchdog) = std::mem::replace(&mut *state, WatchdogState::Absent) {
            watchdog.dismiss();
        }
    }

    fn watchdog_pid(&self) -> Option<Pid> {
        match &*self.watchdog.lock().unwrap_or_else(PoisonError::into_inner) {
            WatchdogState::Active(watchdog) => watchdog.pid(),
            WatchdogState::Idle | WatchdogState::Absent => None,
        }
    }

    /// Run and phase, after those of the runs that this one is part of: it distinguishes the processes of a run, and of the
    /// teams within it, from all others.
    fn run_path(&self, phase: &str) -> String {
        let own = format!("{}/{phase}", self.run_id);
        match &self.plan.parent {
            Some(parent) => format!("{};{own}", parent.path),
            None => own,
        }
    }

    /// Ends what is left of a phase, or of the run, outside of the process groups that were ended. Gives how much there was.
    pub(super) async fn end_orphans(&self, phase: Option<&PhaseName>) -> usize {
        let mark = Mark {
            run_id: Some(self.run_id.clone()),
            phase: phase.map(ToString::to_string),
            descendant: self.plan.adopts_orphans,
            except: self.watchdog_pid(),
            ..Mark::default()
        };
        // Among the own descendants it is quickly seen that there is nothing.
        if mark.descendant && marked(&mark).is_empty() {
            return 0;
        }
        let grace = self.plan.timing.kill_grace;
        spawn_blocking(move || end_marked(&mark, grace)).await.unwrap_or(0)
    }

    /// A usage with its cost, where the agent reports it or a price is known.
    pub(super) fn priced(&self, mut usage: Usage) -> Usage {
        if usage.cost_usd.is_none() {
            let price = usage.model.as_ref().and_then(|model| self.plan.prices.get(model));
            usage.cost_usd = price.map(|price| price.cost(&usage));
        }
        usage
    }

    /// Returns the data of a handoff: from the channel to `to`, or else from the newest channel that `from` wrote. A phase with items
    /// has a list, with `null` for an item without a handoff.
    pub(super) fn handoff_data(&self, from: &PhaseName, to: &PhaseName) -> Result<Value, NoHandoff> {
        let id = self.workflow().find(from.as_str()).filter(|id| id.item().is_none());
        let has_items = id.filter(|id| self.workflow().phase(*id).for_each.is_some());
        let Some(id) = has_items else {
            let data = self.data_of(from, to)?;
            return data.ok_or(NoHandoff::Nothing);
        };
        let sources = self.sources_of(id);
        let data = sources.iter().map(|item| Ok(self.data_of(item, to)?.unwrap_or(Value::Null)));
        data.collect::<Result<Vec<_>, NoHandoff>>().map(Value::Array)
    }

    fn data_of(&self, from: &PhaseName, to: &PhaseName) -> Result<Option<Value>, NoHandoff> {
        let (dir, limit) = (self.dir(), self.plan.max_file_bytes);
        let invalid = |error: cliq_fs::HandoffError| NoHandoff::Invalid(error.to_string());
        let envelope = match read_handoff(&dir.channel(from, to), from, limit).map_err(invalid)? {
            Some(envelope) => Some(envelope),
            None => {
                let newest = newest_handoff(&dir.channels(), from);
                let read = newest.map(|channel| read_handoff(&channel, from, limit)).transpose();
                read.map_err(invalid)?.flatten()
            }
        };
        let Some(envelope) = envelope else { return Ok(None) };
        let data = envelope.data().map(Value::Object);
        data.map(Some).ok_or(NoHandoff::NoData)
    }

    pub(super) fn values<'a>(&'a self, phase: &'a Phase) -> PhaseValues<'a> {
        self.values_at(phase, cliq_fs::now())
    }

    /// The values that templates have at a time.
    pub(super) fn values_at<'a>(&'a self, phase: &'a Phase, now: Timestamp) -> PhaseValues<'a> {
        let id = self.workflow().find(phase.name.as_str());
        let item = id.and_then(|id| Some((id.item()?, self.items_of(id)?)));
        PhaseValues { shared: self, phase, now, item }
    }
}

/// Reason why there is no data of a handoff.
pub(super) enum NoHandoff {
    /// The phase has handed nothing over.
    Nothing,
    /// The handoff has no `data`.
    NoData,
    /// The handoff is invalid, with the reason.
    Invalid(String),
}

/// The values of templates when a phase starts. All of one phase's templates see the same time.
pub(super) struct PhaseValues<'a> {
    shared: &'a Shared,
    phase: &'a Phase,
    now: Timestamp,
    /// Index of the item, with all items of the phase.
    item: Option<(u32, Arc<Vec<Value>>)>,
}

impl Values for PhaseValues<'_> {
    fn input(&self, key: &str) -> Option<String> {
        self.shared.inputs.get(key).cloned()
    }

    /// From the channel to the phase that asks, else from the newest channel that the other phase wrote.
    fn handoff(&self, from: &PhaseName) -> Result<Value, String> {
        self.shared.handoff_data(from, &self.phase.name).map_err(|error| match error {
            NoHandoff::Nothing => format!("`{from}` has handed nothing over"),
            NoHandoff::NoData => format!("the handoff of `{from}` has no `data`"),
            NoHandoff::Invalid(reason) => reason,
        })
    }

    fn item(&self) -> Option<Value> {
        let (item, items) = self.item.as_ref()?;
        items.get(*item as usize).cloned()
    }

    fn index(&self) -> Option<u32> {
        self.item.as_ref().map(|(item, _)| *item)
    }

    fn team_name(&self) -> String {
        self.shared.workflow().name.to_string()
    }

    fn date(&self) -> String {
        self.now.to_string().chars().take(10).collect()
    }

    fn timestamp(&self) -> String {
        self.now.to_string()
    }

    fn phase(&self) -> String {
        self.phase.name.to_string()
    }

    fn run_id(&self) -> String {
        self.shared.run_id.to_string()
    }
}

pub(super) fn newest_handoff(channels: &Utf8Path, from: &PhaseName) -> Option<Utf8PathBuf> {
    let prefix = format!("{from}--");
    let entries = channels.read_dir_utf8().ok()?.filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_name().starts_with(&prefix))
        .filter_map(|entry| {
            let written = entry.path().join("handoff.json").metadata().ok()?.modified().ok()?;
            Some((written, entry.into_path()))
        })
        .max()
        .map(|(_, channel)| channel)
}

/// A template without a value, as the reason of a failure.
pub(super) fn unresolved(error: &ResolveError) -> String {
    format!("it cannot start: {error}")
}

/// Subscribers of file changes.
#[derive(Clone, Default)]
pub(super) struct Wakers {
    by_file: Arc<Mutex<HashMap<Utf8PathBuf, Arc<Notify>>>>,
}

impl Wakers {
    /// From now on, `wake` wakes the returned waker on changes of `file`.
    pub(super) fn register(&self, file: &Utf8Path) -> Arc<Notify> {
        let mut map = self.by_file.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(map.entry(file.to_owned()).or_default())
    }

    pub(super) fn forget(&self, file: &Utf8Path) {
        self.by_file.lock().unwrap_or_else(PoisonError::into_inner).remove(file);
    }

    /// `None`: anything may have changed.
    pub(super) fn wake(&self, file: Option<&Utf8Path>) {
        let map = self.by_file.lock().unwrap_or_else(PoisonError::into_inner);
        match file {
            Some(file) => map.get(file).into_iter().for_each(|waker| waker.notify_one()),
            None => map.values().for_each(|waker| waker.notify_one()),
        }
    }
}
