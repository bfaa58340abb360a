//! Being with one run: from the start of its orchestrator to the end in the store.

mod lost;

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_fs::CliqDir;
use cliq_gateway::GatewayError;
use cliq_orchestrator::{JournalFollower, JournalUpdate, PhaseStatus, Record, RunEvent, RunView};
use cliq_protocol::PhaseName;
use cliq_runs::{Change, Death, LifeEffect, NewRunEvent, Recovery, Run, RunOrigin, RunState};
use serde_json::Value;
use tokio::process::Child;

use super::journal::{apply, ended_work, is_of, status_document, stored, totals};
use super::task::{self, Outputs};
use super::{Followed, Shared, orchestrator, workspace};
use lost::Next;

/// How often a journal is read without a notification.
const POLL: Duration = Duration::from_millis(500);
/// How long to wait after a failure of the database, at most.
const RETRY: Duration = Duration::from_secs(5);
/// The exit code of a `cliq run` that the rules forbid.
const REFUSED: i32 = 4;
/// What a follower begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// Its orchestrator is to be started.
    Start,
    /// It was started before, by a server that died or by a person.
    TakeUp,
}

/// Follows a run in a task of its own.
pub(super) fn follow(shared: &Arc<Shared>, run: Run, begin: Begin) {
    let followed = Arc::new(Followed::default());
    let mut followers = shared.followers.lock().unwrap_or_else(PoisonError::into_inner);
    if followers.contains_key(&run.id) {
        return;
    }
    followers.insert(run.id.clone(), Arc::clone(&followed));
    drop(followers);
    let shared = Arc::clone(shared);
    let tasks = shared.tasks.clone();
    tasks.spawn(async move {
        let (id, dir) = (run.id.clone(), run.workspace.join(CliqDir::NAME));
        let journal = dir.join(CliqDir::JOURNAL);
        let mut follower = Follower {
            log: shared.log_file(&id),
            journal: JournalFollower::new(&journal),
            aside: dir.join("history").join(id.as_str()).join(CliqDir::JOURNAL),
            is_aside: false,
            is_ours: None,
            seen: 0,
            view: RunView::empty(),
            child: None,
            verdicts: Vec::new(),
            outputs: None,
            shared: &shared,
            followed: &followed,
            dir: None,
            run,
        };
        follower.work(begin).await;
        if let Some(dir) = follower.dir.take() {
            shared.unwatch(&dir, &followed.waker);
        }
        // The place may be another run's now.
        shared.followers.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        shared.queue.notify_one();
        if follower.run.life.state.is_final() {
            shared.hub.remove(&id);
        }
        if let Some(mut child) = follower.child.take() {
            // It is about to end. Until it is waited for, it stays as a zombie.
            tokio::spawn(async move { child.wait().await });
        }
    });
}

struct Follower<'a> {
    shared: &'a Arc<Shared>,
    followed: &'a Followed,
    run: Run,
    view: RunView,
    journal: JournalFollower,
    /// Where the journal is once a later run has put it aside.
    aside: Utf8PathBuf,
    is_aside: bool,
    /// Whether the journal is of this run; `None` until its first line is read.
    is_ours: Option<bool>,
    /// How many lines of the journal are in `view`.
    seen: u64,
    log: Utf8PathBuf,
    /// The orchestrator, where this server started it.
    child: Option<Child>,
    /// The directory that is watched.
    dir: Option<Utf8PathBuf>,
    /// For a task: the verdicts of its gates so far.
    verdicts: Vec<Value>,
    /// For a task whose callers get what agents print: how much of it they have.
    outputs: Option<Outputs>,
}

/// Something new of a run that is to be stored.
struct News {
    /// The line of the journal, from 1; `None` for an event that is not in the journal.
    line: Option<u64>,
    /// What the line says about the run.
    step: Option<(RunEvent, String)>,
    event: NewRunEvent,
}

impl Follower<'_> {
    async fn work(&mut self, begin: Begin) {
        if self.is_task() && self.shared.options.workflow_streaming {
            let restored = Outputs::restore(self.shared.store.as_ref(), &self.run.id).await;
            self.outputs = restored.map_err(|error| tracing::warn!(%error, "output is not streamed")).ok();
        }
        match begin {
            Begin::Start if !self.start().await => return,
            Begin::TakeUp => self.follow_elsewhere(),
            Begin::Start => {}
        }
        loop {
            // Another has changed it: a caller who asked another server to cancel it, or a server that took it over.
            if self.followed.newest.load(Ordering::SeqCst) > self.run.version && self.reload().await.is_ok() {
                tracing::debug!(run = %self.run.id, "it was changed elsewhere");
            }
            if !self.is_own() {
                return;
            }
            self.watch();
            // First this, then the journal: what it wrote before its end is read.
            let gone = self.is_gone();
            let news = self.read();
            if !news.is_empty() && !self.store(&news).await {
                return;
            }
            if self.run.life.state.is_final() {
                return;
            }
            if self.run.life.cancel_requested && self.can_hear() {
                orchestrator::send_cancel(&self.run.workspace);
            }
            if gone {
                match self.lost().await {
                    Next::Follow => {}
                    Next::End => return,
                }
            }
            tokio::select! {
                () = self.shared.stopping.cancelled() => return,
                () = self.followed.waker.notified() => {}
                () = exited(&mut self.child) => {}
                () = tokio::time::sleep(POLL) => {}
            }
        }
    }

    /// Prepares the workspace and starts the orchestrator. `false` where the run is over, or another has changed it.
    async fn start(&mut self) -> bool {
        let (host, run) = (self.shared.options.host.clone(), self.run.clone());
        let guard = self.shared.options.repository_guard(&run);
        let prepared = if run.life.resume || !workspace::needs_preparation(&run) {
            Ok(())
        } else {
            let prepared = tokio::task::spawn_blocking(move || workspace::prepare(&host, &guard, &run)).await;
            match prepared {
                Ok(prepared) => prepared.map_err(|error| error.to_string()),
                Err(panic) => Err(format!("its workspace cannot be prepared: {panic}")),
            }
        };
        if prepared.is_ok() && self.is_task() && !self.run.life.resume {
            let event = task::prepared(&self.shared.options.host, &self.run);
            self.commit(|change, _| {
                change.push(event.clone());
                Vec::new()
            })
            .await;
        }
        let started = prepared.and_then(|()| {
            let options = &self.shared.options;
            orchestrator::start(&options.host, &self.run, &self.log, options.task_instance(&self.run))
                .map_err(|error| format!("its orchestrator cannot be started: {error}"))
        });
        match started {
            Ok(child) => {
                self.child = Some(child);
                self.shared.metrics.run_started();
                true
            }
            Err(reason) => {
                self.end_lost(Death::NeverBegan, Recovery::Fail, reason).await;
                false
            }
        }
    }

    /// Starts a process that follows the run's Job in the cluster, where the one that did died with its server.
    fn follow_elsewhere(&mut self) {
        let is_known = self.run.origin.is_ours() && self.run.life.began;
        let is_followed = orchestrator::is_alive(&self.log) || orchestrator::is_waiting(&self.run.workspace);
        if !self.shared.options.runs_in_cluster || !is_known || is_followed {
            return;
        }
        match orchestrator::follow(&self.shared.options.host, &self.run, &self.log) {
            Ok(child) => self.child = Some(child),
            Err(error) => tracing::warn!(run = %self.run.id, %error, "the Job of a run cannot be followed"),
        }
    }

    fn watch(&mut self) {
        let dir = self.run.workspace.join(CliqDir::NAME);
        if self.dir.is_none() && dir.is_dir() {
            self.shared.watch(&dir, &self.followed.waker);
            self.dir = Some(dir);
        }
    }

    /// Whether somebody would see a request to cancel: one that works elsewhere may wait for its turn for long.
    fn can_hear(&self) -> bool {
        match self.run.life.state {
            RunState::Running => true,
            RunState::Starting => orchestrator::is_waiting(&self.run.workspace),
            _ => false,
        }
    }

    /// Whether the orchestrator is gone.
    fn is_gone(&mut self) -> bool {
        if let Some(child) = &mut self.child {
            match child.try_wait() {
                Ok(None) => return false,
                // It was refused: the project is another run's.
                Ok(Some(status)) if status.code() == Some(REFUSED) => return true,
                // It may have followed a container in which the orchestrator lives.
                _ if !orchestrator::is_project_busy(&self.run.workspace) => return true,
                _ => self.child = None,
            }
        }
        // A person may have started or resumed it in its project. Once its journal is aside, the project is another run's.
        let is_busy = !self.is_aside && orchestrator::is_project_busy(&self.run.workspace);
        !is_busy && !orchestrator::is_alive(&self.log)
    }

    /// What is new in the journal: the lines that are not in the store.
    fn read(&mut self) -> Vec<News> {
        let update = match self.journal.read() {
            Ok(update) => update,
            Err(error) => {
                tracing::warn!(run = %self.run.id, %error, "the journal cannot be read; it is tried again");
                return Vec::new();
            }
        };
        let records = match update {
            JournalUpdate::More(records) => records,
            JournalUpdate::Afresh(records) => {
                self.seen = 0;
                self.view = RunView::empty();
                self.is_ours = None;
                records
            }
            _ => Vec::new(),
        };
        // A journal begins with the id of its run. One that was just created is empty.
        if self.is_ours.is_none() && !records.is_empty() {
            self.is_ours = Some(is_of(&records, &self.run));
        }
        if self.is_ours != Some(true) {
            // A later run has put it aside.
            if !self.is_aside && self.aside.exists() {
                self.journal = JournalFollower::new(&self.aside);
                self.is_aside = true;
                return self.read();
            }
            return Vec::new();
        }
        let mut news = Vec::new();
        for record in records {
            self.view.apply(&record);
            self.seen += 1;
            let is_new = self.seen > self.run.journal_lines;
            if is_new {
                self.read_output(ended_work(&record.event), true, &mut news);
            }
            let event = if self.is_task() { self.task_event(&record) } else { stored(&record) };
            if is_new {
                let step = Some((record.event, record.ts.as_str().to_owned()));
                news.push(News { line: Some(self.seen), step, event });
            }
        }
        let at_work = self.view.phases.iter().filter(|phase| phase.status == PhaseStatus::Running);
        let at_work: Vec<PhaseName> = at_work.map(|phase| phase.name.clone()).collect();
        at_work.iter().for_each(|phase| self.read_output(Some(phase), false, &mut news));
        self.shared.hub.set_view(&self.run.id, self.view.clone());
        news
    }

    /// Stores events of the journal with the state that they lead to. `false` where the server stops before.
    async fn store(&mut self, news: &[News]) -> bool {
        let (mut document, mut finished) = (None, None);
        let (shared, verdicts) = (Arc::clone(self.shared), std::mem::take(&mut self.verdicts));
        let host = &shared.options.host;
        let stored = self
            .commit(|change, view| {
                let mut effects = Vec::new();
                for news in news {
                    // Another may have stored a part of them.
                    if news.line.is_some_and(|line| line <= change.run.journal_lines) {
                        continue;
                    }
                    change.run.journal_lines = news.line.unwrap_or(change.run.journal_lines);
                    change.push(news.event.clone());
                    if let Some((event, ts)) = &news.step {
                        effects.extend(apply(&mut change.run, event, ts));
                    }
                }
                change.run.totals = totals(view);
                if change.run.life.state.is_final() {
                    let document = document.get_or_insert_with(|| status_document(host, &change.run, view));
                    change.run.view.clone_from(document);
                    if let Some(instance_id) = shared.options.task_instance(&change.run) {
                        let finished = finished.get_or_insert_with(|| {
                            task::finished(host, instance_id, &change.run, view, &verdicts)
                        });
                        change.push(finished.clone());
                    }
                }
                effects
            })
            .await;
        self.verdicts = verdicts;
        if stored && self.run.life.state.is_final() {
            self.leave_workspace().await;
        }
        stored
    }

    /// Whether the run is this server's. One that ended or waits again is nobody's.
    fn is_own(&self) -> bool {
        let is_active = matches!(self.run.life.state, RunState::Starting | RunState::Running);
        !is_active || self.shared.has(&self.run)
    }

    fn is_task(&self) -> bool {
        self.run.origin == RunOrigin::A2a
    }

    /// A line of the journal for callers of A2A.
    fn task_event(&mut self, record: &Record) -> NewRunEvent {
        let event = cliq_project::task_event(record, &self.view);
        if matches!(record.event, RunEvent::Verdict { .. }) {
            self.verdicts.push(event.clone());
        }
        let kind = event["event"].as_str().unwrap_or("unknown").to_owned();
        NewRunEvent { ts: record.ts.as_str().to_owned(), kind, data: event.to_string() }
    }

    /// Adds what a phase's agent printed since.
    fn read_output(&mut self, phase: Option<&PhaseName>, is_over: bool, news: &mut Vec<News>) {
        let (Some(outputs), Some(name)) = (&mut self.outputs, phase) else { return };
        let Ok(dir) = CliqDir::open(&self.run.workspace) else { return };
        let Some(phase) = self.view.phases.iter().find(|phase| phase.name == *name) else { return };
        let input_required = self.view.phases.iter().any(|phase| phase.review.is_some());
        let events = outputs.read(&dir, name, phase.iterations, is_over, input_required);
        news.extend(events.into_iter().map(|event| News { line: None, step: None, event }));
    }

    /// The workspace of a task goes after its end: what callers get is in the event log. It stays where they asked for it.
    async fn leave_workspace(&self) {
        if self.is_task() && !self.run.request.keep_workspace {
            let path = self.run.workspace.clone();
            let removed = tokio::task::spawn_blocking(move || workspace::remove(&path)).await;
            if let Ok(Err(error)) = removed {
                tracing::warn!(run = %self.run.id, %error, "the workspace of a task cannot be removed");
            }
        }
    }

    /// Stores a change. Tries until it succeeds or the server stops; gives whether it did. A change may be made several times.
    async fn commit(&mut self, mut make: impl FnMut(&mut Change, &RunView) -> Vec<LifeEffect>) -> bool {
        let mut wait = Duration::from_millis(50);
        loop {
            let mut change = Change::of(self.run.clone());
            let effects = make(&mut change, &self.view);
            let failed = match self.shared.commit(&change).await {
                Ok(Some(run)) => {
                    self.run = run;
                    if effects.contains(&LifeEffect::SendCancel) {
                        orchestrator::send_cancel(&self.run.workspace);
                    }
                    return true;
                }
                Ok(None) => match self.reload().await {
                    // Another server has it: what this one would store is stored by that.
                    Ok(()) if !self.is_own() => return false,
                    reloaded => reloaded.err(),
                },
                Err(error) => Some(error),
            };
            if let Some(error) = failed {
                tracing::error!(run = %self.run.id, %error, "events cannot be stored; it is tried again");
                tokio::select! {
                    () = self.shared.stopping.cancelled() => return false,
                    () = tokio::time::sleep(wait) => {}
                }
                wait = (wait * 2).min(RETRY);
            }
        }
    }

    /// Takes the run as another left it.
    async fn reload(&mut self) -> Result<(), GatewayError> {
        if let Some(run) = self.shared.store.run(&self.run.id).await? {
            self.run = run;
        }
        Ok(())
    }
}

async fn exited(child: &mut Option<Child>) {
    match child {
        Some(child) => drop(child.wait().await),
        None => std::future::pending().await,
    }
}
