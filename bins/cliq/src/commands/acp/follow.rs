//! Following of a run: its journal becomes updates, its reviews become gates.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use cliq_acp::agent::{AgentEvent, TurnEnd, TurnId};
use cliq_acp::schema::{ContentChunk, Diff, SessionUpdate, ToolCallContent};
use cliq_orchestrator::internals::{DirectoryWatch, spawn_blocking};
use cliq_orchestrator::{JournalFollower, JournalUpdate, Record, RunEvent, RunView};
use cliq_project::Project;
use cliq_protocol::RunId;
use tokio::sync::{Notify, mpsc};

use super::report::{EndedActivation, Report, thought};
use super::runs::FollowedRun;
use super::words::LiveWords;
use super::{gates, summary};
use crate::failure::Failure;
use crate::run_process;

/// Interval in which the journal is read if no change is noticed.
const POLL: Duration = Duration::from_millis(250);
/// Time for the process of a run to end after the run.
const LAST: Duration = Duration::from_secs(20);
/// Maximum number of files whose changes are shown for an activation, and maximum size of each in bytes.
const MAX_FILES: usize = 20;
const MAX_FILE: u64 = 64 << 10;

/// Follower of one run.
pub(super) struct Follower {
    turn: TurnId,
    project: Project,
    run: FollowedRun,
    journal: JournalFollower,
    report: Report,
    /// Number of records of the run that were read.
    seen: usize,
    /// Gates that are open.
    gates: BTreeSet<String>,
    words: LiveWords,
    /// Gate that has been answered.
    skipped: Option<String>,
    events: mpsc::Sender<AgentEvent>,
    changed: Arc<Notify>,
    _watch: Option<DirectoryWatch>,
}

/// State of a followed run.
pub(super) enum Step {
    /// The run goes on, or was not started yet.
    Active,
    /// The turn ends.
    Ended(TurnEnd),
}

impl Follower {
    pub(super) fn new(
        turn: TurnId,
        project: Project,
        run: FollowedRun,
        events: mpsc::Sender<AgentEvent>,
    ) -> Self {
        let changed = Arc::new(Notify::new());
        let notify = Arc::clone(&changed);
        let watch = DirectoryWatch::new(move |_| notify.notify_one()).ok();
        let watch = watch.filter(|watch| watch.add(project.dir().root()).is_ok());
        let report = report_of(&project, &run.id);
        let journal = JournalFollower::new(&project.dir().journal());
        let (gates, skipped) = (BTreeSet::new(), None);
        Self {
            turn,
            project,
            run,
            journal,
            report,
            seen: 0,
            gates,
            words: LiveWords::default(),
            skipped,
            events,
            changed,
            _watch: watch,
        }
    }

    /// Leaves out a gate that has been answered.
    pub(super) fn skip_gate(&mut self, gate: Option<String>) {
        self.skipped = gate;
    }

    pub(super) fn run(&self) -> &RunId {
        &self.run.id
    }

    pub(super) fn project(&self) -> &Project {
        &self.project
    }

    /// Reads what the journal has already, without updates, and shows what is at work.
    pub(super) async fn attach(&mut self) -> Result<(), Failure> {
        for record in self.read()? {
            self.report.apply(&record);
        }
        self.report.take_ended();
        self.words.skip(self.project.dir(), &self.report.activations());
        for update in self.report.active() {
            self.send(update).await?;
        }
        Ok(())
    }

    /// Waits until the journal may have changed.
    pub(super) async fn changed(&self) {
        let _ = tokio::time::timeout(POLL, self.changed.notified()).await;
    }

    /// Reports what is new.
    pub(super) async fn step(&mut self) -> Result<Step, Failure> {
        // The process first: a run that ends in between is then read to its end.
        let is_working = self.is_working()?;
        let records = self.read()?;
        self.show_words().await?;
        for record in &records {
            for update in self.report.apply(record) {
                self.send(update).await?;
            }
        }
        self.show_words().await?;
        for ended in self.report.take_ended() {
            self.show_changes(ended).await?;
        }
        self.report_gates().await?;
        let has_begun = self.seen > self.run.before;
        if has_begun && self.report.view().status.is_some() {
            self.wait_for_process().await;
            return self.end().await;
        }
        if is_working {
            return Ok(Step::Active);
        }
        if !has_begun {
            let words = run_process::last_words(self.project.dir());
            return Err(Failure::failed(format!("the run has not started: {words}")));
        }
        self.end().await
    }

    /// Whether a process works on the run. A run that was started here has one from then on.
    pub(super) fn is_working(&mut self) -> Result<bool, Failure> {
        if let Some(child) = &mut self.run.child {
            return Ok(child.try_wait()?.is_none());
        }
        run_process::is_active(self.project.dir())
    }

    /// Waits until the process of the run has ended: a prompt that follows can start a run.
    async fn wait_for_process(&mut self) {
        let last = Instant::now() + LAST;
        while self.is_working().unwrap_or(false) && Instant::now() < last {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Reads the records of this run that are new.
    fn read(&mut self) -> Result<Vec<Record>, Failure> {
        let (records, is_afresh) = match self.journal.read()? {
            JournalUpdate::More(records) => (records, false),
            JournalUpdate::Afresh(records) => (records, true),
            _ => (Vec::new(), false),
        };
        if is_afresh {
            let run = records.iter().find_map(|record| match &record.event {
                RunEvent::RunStarted { run_id, .. } => Some(run_id),
                _ => None,
            });
            if run.is_some_and(|run| *run != self.run.id) {
                if self.seen > 0 {
                    return Err(Failure::failed(format!("another run has replaced run {}", self.run.id)));
                }
                // The journal of the last run, which the new one puts aside.
                self.journal = JournalFollower::new(&self.project.dir().journal());
                return Ok(Vec::new());
            }
            // A journal that was replaced is read from its start.
            self.report = report_of(&self.project, &self.run.id);
            let known = self.seen.min(records.len());
            self.seen = records.len();
            let (old, new) = records.split_at(known);
            for record in old {
                self.report.apply(record);
            }
            return Ok(new.to_vec());
        }
        self.seen += records.len();
        Ok(records)
    }

    /// Shows what agents at work said: before their end is read, and after their start is.
    async fn show_words(&mut self) -> Result<(), Failure> {
        let activations = self.report.activations();
        for (phase, text) in self.words.read(self.project.dir(), &activations) {
            self.send(thought(format!("{phase}: {text}"))).await?;
        }
        Ok(())
    }

    async fn report_gates(&mut self) -> Result<(), Failure> {
        let open = self.report.reviews();
        let closed: Vec<String> = self.gates.iter().filter(|id| !open.contains_key(*id)).cloned().collect();
        for gate in closed {
            self.gates.remove(&gate);
            self.tell(AgentEvent::GateClosed { turn: self.turn, gate }).await?;
        }
        // A run that has ended has no open review.
        let has_ended = self.report.view().status.is_some();
        for (id, review) in open.into_iter().filter(|_| !has_ended) {
            if self.skipped.as_ref() != Some(&id) && self.gates.insert(id) {
                let gate = Box::new(gates::of(&review));
                self.tell(AgentEvent::GateOpened { turn: self.turn, gate }).await?;
            }
        }
        Ok(())
    }

    async fn show_changes(&mut self, ended: EndedActivation) -> Result<(), Failure> {
        let (project, run) = (self.project.clone(), self.run.id.clone());
        let call = ended.call.clone();
        let read = spawn_blocking(move || changes(&project, &run, &ended)).await;
        let Ok(Some((diffs, paths))) = read else { return Ok(()) };
        match self.report.add_changes(&call, diffs, paths) {
            Some(update) => self.send(update).await,
            None => Ok(()),
        }
    }

    async fn end(&mut self) -> Result<Step, Failure> {
        let summary::RunEnd { message, end } = summary::of(&self.project, &self.report);
        let chunk = ContentChunk::new(message.into());
        self.send(SessionUpdate::AgentMessageChunk(chunk)).await?;
        Ok(Step::Ended(end))
    }

    async fn send(&self, update: SessionUpdate) -> Result<(), Failure> {
        self.tell(AgentEvent::Update { turn: self.turn, update: Box::new(update) }).await
    }

    async fn tell(&self, event: AgentEvent) -> Result<(), Failure> {
        self.events.send(event).await.map_err(|_| Failure::failed("the editor has gone"))
    }
}

/// Returns a report that knows the phases of the assembled team.
fn report_of(project: &Project, run: &RunId) -> Report {
    let view = project.workflow().map_or_else(|_| RunView::empty(), |workflow| RunView::new(&workflow));
    Report::new(run, project.dir().workspace().to_owned(), view)
}

/// Returns the changes of an activation: diffs, and paths within the workspace. Returns `None` if none are known.
pub(super) fn changes(
    project: &Project,
    run: &RunId,
    ended: &EndedActivation,
) -> Option<(Vec<ToolCallContent>, Vec<Utf8PathBuf>)> {
    let store = project.checkpoint_store(&project.settings().ok()?).ok()?;
    let of = format!("{}.{}", ended.phase, ended.activation);
    let found = project.activation_changes(&store, run, Some(&of)).ok()?;
    let found = found
        .into_iter()
        .find(|found| found.phase == ended.phase.as_str() && found.activation == Some(ended.activation))?;
    let changes = store.changes(&found.from, &found.to).ok()?;
    let paths: Vec<Utf8PathBuf> =
        changes.into_iter().take(MAX_FILES).map(|change| change.path.into()).collect();
    let text = |of, path: &Utf8PathBuf| {
        let bytes = store.read_file(of, path.as_str(), MAX_FILE).ok()??;
        String::from_utf8(bytes).ok()
    };
    let diff = |path: &Utf8PathBuf| {
        let (old, new) = (text(&found.from, path), text(&found.to, path));
        // A file that is too large or not text has no diff.
        let new = new.or_else(|| old.is_some().then(String::new))?;
        let path = project.dir().workspace().join(path);
        Some(ToolCallContent::Diff(Diff::new(path, new).old_text(old)))
    };
    let diffs = paths.iter().filter_map(diff).collect();
    (!paths.is_empty()).then_some((diffs, paths))
}
