//! The driver: performs the effects of the machine and feeds events back to it. It makes no decisions.
//!
//! One task, the dispatcher, owns the machine, the journal and the log. Every agent and every phase's commands run in
//! tasks of their own and report by message. What happened is in the journal before anything follows from it.

mod agent;
mod channel;
mod commands;
mod condition;
mod deadline;
mod decisions;
mod deliveries;
mod effects;
mod gate_files;
mod kept;
mod merging;
mod message;
mod notifications;
mod parking;
mod recording;
mod recovery;
mod shared;
mod spans;
mod steering;
mod values;
mod worktrees;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cliq_fs::{
    AppendedFile, FsError, PipelineStatus, ProjectLock, clear_signals, clear_status, clear_temporaries,
    create_channel, read_status, write_status,
};
use cliq_protocol::{ChangedLines, PhaseName, RunId, Usage};
use cliq_workflow::PhaseId;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::engine::{Effect, PhaseState, Pipeline};
use crate::events::{JOURNAL_VERSION, Record, RunEvent};
use crate::journal::{Journal, JournalWriter};
use crate::plan::RunPlan;
use crate::trace::{RunTrace, TraceSource};
use crate::view::RunView;
use crate::watch::DirectoryWatch;
use crate::watchdog::send_ended_groups;
pub use commands::repositories;
use parking::Parking;
pub(crate) use recovery::put_earlier_run_aside;
use shared::{Message, Shared, Wakers};
use spans::Spans;
use steering::Listeners;

/// Start mode of a driver.
pub(crate) enum StartMode {
    /// A new run.
    Start,
    /// A run that was recorded so far, to be gone on with.
    Resume {
        /// Journal of the run.
        journal: Journal,
        /// The phase that runs again, with what depends on it.
        from: Option<PhaseName>,
    },
}

/// Polling interval for a request to cancel the run.
const CONTROL_POLL: Duration = Duration::from_millis(250);
/// The same while the run waits for people and its directory is watched.
const IDLE_POLL: Duration = Duration::from_secs(15);
/// Time that deliveries may take after the end of the run.
const LAST_NOTIFICATIONS: Duration = Duration::from_secs(10);
/// As [`LAST_NOTIFICATIONS`], after a request to cancel.
const LAST_WHEN_CANCELLED: Duration = Duration::from_secs(2);

pub(crate) struct Driver {
    shared: Arc<Shared>,
    pipeline: Pipeline,
    journal: JournalWriter,
    log: AppendedFile,
    /// Lines for the log that are not in it yet.
    unlogged: String,
    view: RunView,
    spans: Spans,
    events: mpsc::UnboundedSender<Record>,
    inbox: mpsc::UnboundedReceiver<Message>,
    cancel: CancellationToken,
    tasks: TaskTracker,
    notifications: TaskTracker,
    notified: u32,
    /// The last activation of each phase: it is over before the next begins.
    activations: HashMap<PhaseId, JoinHandle<()>>,
    /// Ends the agent of a phase, with a reason.
    ends: HashMap<PhaseId, watch::Sender<Option<agent::EndRequest>>>,
    opening: StartMode,
    /// Effects of the last input that a resumed run has not performed yet.
    unfinished: Vec<Effect>,
    over: bool,
    /// Whether something could not be recorded.
    broken: bool,
    /// Final event of the run, reported when no task is left.
    last_word: Option<RunEvent>,
    /// Watches the signal files of agents. Made with the first agent: a run without agents does not need it, and ending it takes the system
    /// longer than a command.
    watch: Option<DirectoryWatch>,
    /// Activations that receive steering messages.
    listeners: Listeners,
    parking: Parking,
    _lock: ProjectLock,
}

impl Driver {
    /// Makes everything ready: the layout, signals, all channels, the journal.
    pub(crate) fn new(
        plan: RunPlan,
        run_id: RunId,
        opening: StartMode,
        lock: ProjectLock,
        events: mpsc::UnboundedSender<Record>,
        cancel: CancellationToken,
    ) -> Result<Self, FsError> {
        let dir = plan.dir.clone();
        dir.ensure_layout()?;
        match opening {
            StartMode::Start => clear_signals(&dir)?,
            StartMode::Resume { .. } => {
                clear_status(&dir)?;
                clear_temporaries(&dir)?;
            }
        }
        for (from, to) in plan.workflow.channels() {
            create_channel(&dir.channel(&plan.workflow.phase(from).name, &plan.workflow.phase(to).name))?;
        }
        for (_, phase) in plan.workflow.phases() {
            if let Some(result) = plan.result_channel(phase) {
                create_channel(&dir.channel(&phase.name, &result))?;
            }
        }
        if let (StartMode::Start, Some(kept)) = (&opening, &plan.kept) {
            kept::restore(&plan, kept)?;
        }
        let wakers = Wakers::default();
        let (messages, inbox) = mpsc::unbounded_channel();
        let mut view = RunView::new(&plan.workflow);
        let (journal, (pipeline, unfinished), notified) = match &opening {
            StartMode::Start => {
                let pipeline = Pipeline::new(Arc::clone(&plan.workflow));
                (JournalWriter::create(&dir.journal())?, (pipeline, Vec::new()), 0)
            }
            StartMode::Resume { journal, .. } => {
                journal.records.iter().for_each(|record| view.apply(record));
                let asked = |record: &&Record| matches!(record.event, RunEvent::NotifyRequested { .. });
                let notified = journal.records.iter().filter(asked).count();
                let writer = JournalWriter::reopen(&dir.journal(), journal)?;
                let replayed = journal.replay_to_the_end(Arc::clone(&plan.workflow));
                (writer, replayed, u32::try_from(notified).unwrap_or(0))
            }
        };
        let log = AppendedFile::open(&dir.orchestrator_log())?;
        let listeners = Listeners::new(&dir, &run_id);
        let parking = Parking::new(&plan)?;
        let inputs = plan.resolved_inputs();
        let trace = trace_of(&plan, &run_id, &opening);
        let shared = Arc::new(Shared {
            trace,
            plan,
            run_id,
            orchestrator: uuid::Uuid::now_v7().to_string(),
            watchdog: Default::default(),
            inputs,
            messages,
            stop: CancellationToken::new(),
            over: CancellationToken::new(),
            no_more_deliveries: CancellationToken::new(),
            wakers,
            lacks_checkpoints: Default::default(),
            changed: Mutex::new(matches!(opening, StartMode::Start).then(ChangedLines::default)),
            items: Default::default(),
        });
        for (id, _) in pipeline.workflow().phases() {
            if let Some(items) = pipeline.item_values(id) {
                shared.remember_items(id, items);
            }
        }
        if let (StartMode::Start, Some(kept)) = (&opening, &shared.plan.kept) {
            for kept in kept.phases.iter().filter(|kept| !kept.items.is_empty()) {
                if let Some(id) = shared.workflow().find(kept.phase.as_str()) {
                    shared.remember_items(id, kept.items.clone());
                }
            }
        }
        Ok(Self {
            shared,
            pipeline,
            journal,
            log,
            unlogged: String::new(),
            view,
            spans: Spans::default(),
            events,
            inbox,
            cancel,
            tasks: TaskTracker::new(),
            notifications: TaskTracker::new(),
            notified,
            activations: HashMap::new(),
            ends: HashMap::new(),
            opening,
            unfinished,
            over: false,
            broken: false,
            last_word: None,
            watch: None,
            listeners,
            parking,
            _lock: lock,
        })
    }

    /// Runs to the end. Gives the run as it then stands.
    pub(crate) async fn run(mut self) -> RunView {
        self.open();
        let status_file = self.shared.dir().pipeline_status();
        let control = self.shared.wakers.register(&status_file);
        let steered = self.shared.wakers.register(self.listeners.inbox());
        // The command that cancels waits for the run, so this is polled even with a watch.
        let often = self.shared.plan.timing.poll_interval.min(CONTROL_POLL);
        let mut next_look = Instant::now();
        let mut cancelled = false;
        while !self.over {
            let mut look = false;
            if self.inbox.is_empty() && !self.unlogged.is_empty() {
                // What can go on goes on first: no phase starts later for the sake of the log.
                tokio::task::yield_now().await;
                if self.inbox.is_empty() {
                    self.flush_log();
                    send_ended_groups(&self.shared.watchdog);
                }
            }
            tokio::select! {
                Some(message) = self.inbox.recv() => {
                    if self.may_work() {
                        self.received(message);
                    }
                }
                () = self.cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    if !self.may_work() {
                        continue;
                    }
                    // Agents that are asked to end see why (docs/protocol.md).
                    if let Err(error) = write_status(self.shared.dir(), PipelineStatus::Cancelled) {
                        self.cannot_record(&error);
                    }
                    self.happened(RunEvent::CancelRequested { by: "a signal".to_owned() });
                }
                () = control.notified() => look = true,
                () = steered.notified() => self.receive_steering(),
                reads = self.listeners.reads() => self.steering_read(&reads),
                () = sleep_until(next_look) => look = true,
            }
            if look {
                let is_idle = self.watch.is_some() && self.pipeline.waits().is_some();
                next_look = Instant::now() + if is_idle { IDLE_POLL } else { often };
            }
            if look {
                self.poll_steering();
            }
            if look && !cancelled && read_status(self.shared.dir()) == Some(PipelineStatus::Cancelled) {
                cancelled = true;
                self.happened(RunEvent::CancelRequested { by: "cliq cancel".to_owned() });
            }
            if !cancelled && self.park_if_waiting() {
                next_look = Instant::now() + often;
            }
            if look
                && !self.broken
                && let Some(loss) = self.journal.loss()
            {
                // Without it nobody could see, cancel or resume the run, however long its agents work or wait.
                self.broken = true;
                let journal = self.shared.dir().journal();
                let reason = format!("its journal was {loss}: {journal}; start it again with `cliq run`");
                self.happened(RunEvent::OrchestratorFailed { reason });
            }
        }
        self.wind_up().await;
        self.view
    }

    /// Feeds the start of the run to the machine, which starts the first phases.
    fn open(&mut self) {
        let plan = &self.shared.plan;
        let with_pane = plan.workflow.phases().filter(|(_, phase)| phase.kind.has_pane());
        plan.launcher.expect(with_pane.map(|(_, phase)| 1 + phase.commands.len()).sum());
        if let Some(message) = plan.confinement.as_ref().and_then(|confinement| confinement.warning()) {
            self.shared.send(RunEvent::Warning { phase: None, message });
        }
        let (cliq_version, pid) = (env!("CARGO_PKG_VERSION").to_owned(), std::process::id());
        let max_parallel = plan.max_parallel;
        let sandboxes = self.sandboxes();
        match std::mem::replace(&mut self.opening, StartMode::Start) {
            StartMode::Start => self.happened(RunEvent::RunStarted {
                version: if plan.kept.is_some() { JOURNAL_VERSION } else { 1 },
                run_id: self.shared.run_id.clone(),
                team: plan.workflow.name.to_string(),
                title: plan.title.clone(),
                phase_count: u32::try_from(plan.workflow.phases().filter(|(_, p)| !p.support).count()).ok(),
                cliq_version,
                pid,
                max_parallel,
                inputs: self.shared.inputs.clone(),
                shape: plan.shape(),
                budgets: plan.recorded_budgets(),
                agent_models: plan.agent_models(),
                trace: match plan.trace {
                    TraceSource::Within(parent) => Some(parent),
                    TraceSource::Own { .. } | TraceSource::Off => None,
                },
                kept: plan.kept.as_ref().map(|kept| kept.phases.clone()).unwrap_or_default(),
            }),
            StartMode::Resume { from, .. } => {
                for effect in std::mem::take(&mut self.unfinished) {
                    // What was to run starts anew with the rest.
                    if matches!(effect, Effect::Report(_) | Effect::DeliverVerdict { .. })
                        && let Err(error) = self.perform(effect)
                    {
                        self.cannot_record(&error);
                    }
                }
                if self.pipeline.is_parked()
                    && let Err(error) = self.clear_parked_signals()
                {
                    self.cannot_record(&error);
                }
                if !self.pipeline.is_finished() && !self.pipeline.is_parked() {
                    self.happened(RunEvent::RunInterrupted);
                    match recovery::unprocessed(&self.shared, &self.pipeline) {
                        Ok(events) => events.into_iter().for_each(|event| self.happened(event)),
                        Err(error) => self.cannot_record(&error),
                    }
                }
                let budgets = self.shared.plan.recorded_budgets();
                self.wait_for_attempts();
                self.happened(RunEvent::RunResumed { cliq_version, pid, max_parallel, from, budgets });
            }
        }
        for event in sandboxes {
            self.publish(event);
        }
    }

    /// Returns the events that record the sandboxes of phases.
    fn sandboxes(&self) -> Vec<RunEvent> {
        let plan = &self.shared.plan;
        let Some(confinement) = &plan.confinement else { return Vec::new() };
        let Some(mechanism) = confinement.mechanism() else { return Vec::new() };
        let sandboxed = plan.workflow.phases().filter_map(|(_, phase)| {
            let agent = plan.agent_of(phase).and_then(|agent| plan.agents.get(agent));
            let sandbox = confinement.sandbox(phase, agent);
            let (phase, mechanism) = (phase.name.clone(), mechanism.to_owned());
            sandbox.is_on().then_some(RunEvent::PhaseSandboxed { phase, sandbox, mechanism })
        });
        sandboxed.collect()
    }

    /// Waits for remaining agents and deliveries. Their late messages become warnings.
    async fn wind_up(&mut self) {
        self.flush_log();
        send_ended_groups(&self.shared.watchdog);
        self.shared.over.cancel();
        self.tasks.close();
        self.notifications.close();
        let patience = if self.cancel.is_cancelled() { LAST_WHEN_CANCELLED } else { LAST_NOTIFICATIONS };
        if tokio::time::timeout(patience, self.notifications.wait()).await.is_err() {
            self.shared.no_more_deliveries.cancel();
        }
        self.tasks.wait().await;
        self.notifications.wait().await;
        while let Ok(message) = self.inbox.try_recv() {
            if let Message::Event(
                event @ (RunEvent::Warning { .. } | RunEvent::CompletionContradicted { .. }),
            ) = message
            {
                self.publish(event);
            }
        }
        self.shared.end_orphans(None).await;
        self.shared.dismiss_watchdog();
        self.shared.plan.launcher.close().await;
        if self.last_word.is_some() {
            // Senders whose message is not in the journal before the end are refused.
            self.receive_steering();
        }
        self.finish();
    }

    /// Publishes the end of the run. This comes last, so that a subscriber finds nothing running any more.
    fn finish(&mut self) {
        let Some(RunEvent::RunFinished { status, reason, phase }) = self.last_word.take() else { return };
        let (mut status, mut reason) = (status, reason);
        if let Err(error) = write_status(self.shared.dir(), status) {
            status = PipelineStatus::Failed;
            reason.get_or_insert_with(|| error.to_string());
        }
        self.publish(RunEvent::RunFinished { status, reason, phase });
        self.flush_log();
    }

    fn received(&mut self, message: Message) {
        match message {
            Message::Event(event) => self.happened(event),
            Message::Notify(phase, request) => self.notify(Some(phase), request),
            Message::Usage(phase, usage, is_final) => self.usage_reported(phase, *usage, is_final),
        }
    }

    /// Records the usage of an agent, unless it was asked to end: its later messages have no effect.
    fn usage_reported(&mut self, phase: PhaseName, usage: Usage, is_final: bool) {
        let id = self.shared.workflow().find(phase.as_str());
        if id.is_some_and(|id| self.pipeline.takes_usage(id)) {
            let usage = self.shared.priced(usage);
            self.happened(RunEvent::UsageReported { phase, usage, is_final });
        }
    }

    /// Records an event, and where it is an input of the machine, does what follows.
    fn happened(&mut self, event: RunEvent) {
        if !self.is_steering_of_now(&event) {
            return;
        }
        let workflow = Arc::clone(&self.shared.plan.workflow);
        let input = event.as_input(&workflow);
        // Work that failed, as opposed to a verdict: `on_fail` is for it.
        let may_have_failed = event.may_fail().and_then(|phase| workflow.find(phase.as_str()));
        let is_verdict = |id: PhaseId| {
            matches!(event, RunEvent::CommandsFinished { .. }) && workflow.phase(id).kind.is_gate()
        };
        let may_have_failed = may_have_failed.filter(|id| !is_verdict(*id));
        let begins = matches!(event, RunEvent::RunStarted { .. } | RunEvent::RunResumed { .. });
        self.publish(event);
        if begins {
            self.announce("on_start", &serde_json::Map::new());
        }
        let Some(input) = input else { return };
        self.note_decision(&input);
        for effect in self.pipeline.step(input) {
            let starts = match &effect {
                Effect::RunAgent { phase, .. } => Some(*phase),
                _ => None,
            };
            if let Err(error) = self.perform(effect) {
                // The machine waits for what it started: an agent that was not started comes back at once.
                if let Some(phase) = starts {
                    let phase = self.shared.workflow().name_of(phase);
                    self.shared.send(self.shared.stopped(&phase));
                }
                return self.happened(RunEvent::OrchestratorFailed { reason: error.to_string() });
            }
        }
        if let Some(phase) =
            may_have_failed.filter(|id| matches!(self.pipeline.state(*id), PhaseState::Escalated(_)))
        {
            self.notify_of(phase, "on_fail");
        }
    }
}

/// Returns the trace of a run, and whether it is recorded. A resumed run stays in the trace that it began in.
fn trace_of(plan: &RunPlan, run_id: &RunId, opening: &StartMode) -> Option<(Mutex<RunTrace>, bool)> {
    let (parent, below) = match plan.trace {
        TraceSource::Off => return None,
        TraceSource::Own { below } => (None, below),
        TraceSource::Within(parent) => (Some(parent), 0),
    };
    let trace = match opening {
        StartMode::Start => RunTrace::new(run_id.clone(), parent),
        StartMode::Resume { journal, .. } => {
            let first = journal.records.first().and_then(RunTrace::of);
            let mut trace = first.unwrap_or_else(|| RunTrace::new(run_id.clone(), None));
            journal.records.iter().for_each(|record| trace.observe(&record.event));
            trace
        }
    };
    let is_sampled = trace.is_sampled(below);
    Some((Mutex::new(trace), is_sampled))
}
