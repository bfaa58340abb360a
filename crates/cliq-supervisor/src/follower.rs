//! Follower of one run: from the start of its orchestrator until its end is stored.
//!
//! A follower has a thread of its own, on which it reads and writes the files of its workspace: they may lie on a file system that
//! does not respond (docs/decisions/0059-a-follower-has-a-thread.md).

mod reader;
mod recovery;
mod state;

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use cliq_fs::CliqDir;
use cliq_model::{Death, Recovery, Run, RunState};
use cliq_orchestrator::{JournalFollower, RunView};
use tokio::process::Child;
use tokio::runtime::Handle;

use crate::output::Outputs;
use crate::shared::{FollowerHandle, Shared};
use crate::words::WordsReader;
use crate::{orchestrator, steering, workspace};
use recovery::Next;
use state::Follower;

/// Polling interval of the journal.
const POLL: Duration = Duration::from_millis(500);
/// Time within which a run that was taken over and has not begun may still begin.
const BEGINNING: Duration = Duration::from_secs(2);
/// Time after which a thread is requested again that the system refused.
const NO_THREAD: Duration = Duration::from_secs(1);
/// Exit code of a `cliq run` that the re-run rules refuse.
const REFUSED: i32 = 4;

/// Directory of signals in `.cliq`.
const SIGNALS: &str = "signals";

/// First action of a follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartMode {
    /// Start the orchestrator.
    Start,
    /// Follow an orchestrator that a dead supervisor or a person has started.
    Adopt,
}

/// Starts the follower of a run on a thread. Does nothing if the run has one.
pub(crate) fn follow(shared: &Arc<Shared>, run: Run, mode: StartMode) {
    let handle = Arc::new(FollowerHandle::default());
    let mut followers = shared.followers.lock().unwrap_or_else(PoisonError::into_inner);
    if followers.contains_key(&run.id) {
        return;
    }
    followers.insert(run.id.clone(), Arc::clone(&handle));
    drop(followers);
    let work = shared.tasks.track_future(accompany(Arc::clone(shared), handle, run.clone(), mode));
    let runtime = Handle::current();
    let thread = std::thread::Builder::new().name("follower".to_owned());
    if let Err(error) = thread.spawn(move || runtime.block_on(work)) {
        tracing::error!(run = %run.id, %error, "cannot start a thread for the run; retrying");
        shared.followers.lock().unwrap_or_else(PoisonError::into_inner).remove(&run.id);
        let (again, shared) = (Arc::clone(shared), shared);
        shared.tasks.spawn(async move {
            tokio::select! {
                () = again.stopping.cancelled() => {}
                () = tokio::time::sleep(NO_THREAD) => follow(&again, run, mode),
            }
        });
    }
}

/// Follows a run to its end, and gives its slot back.
async fn accompany(shared: Arc<Shared>, handle: Arc<FollowerHandle>, run: Run, mode: StartMode) {
    let (id, dir) = (run.id.clone(), run.workspace.join(CliqDir::NAME));
    let journal = dir.join(CliqDir::JOURNAL);
    let mut follower = Follower {
        log: shared.options.log_file(&id),
        journal: JournalFollower::new(&journal),
        archived: dir.join("history").join(id.as_str()).join(CliqDir::JOURNAL),
        is_archived: false,
        is_same_run: None,
        seen: 0,
        view: Arc::new(RunView::empty()),
        child: None,
        verdicts: Vec::new(),
        outputs: None,
        passed: 0,
        shared: &shared,
        handle: &handle,
        dir: None,
        is_listening: false,
        words: WordsReader::default(),
        adopted: (mode == StartMode::Adopt).then(Instant::now),
        run,
    };
    let observer = shared.options.observer.clone();
    if let Some(observer) = observer.as_ref().filter(|_| mode == StartMode::Start) {
        let since = follower.run.woken_at.unwrap_or(follower.run.queued_at);
        observer.starts(&follower.run, crate::clock::now().since(since));
    }
    let records = follower.run.journal_lines;
    follower.work(mode).await;
    let run = &follower.run;
    // Not one that is queued again: its segment goes on.
    let rests = run.life.state.is_final() || run.life.state == RunState::Waiting;
    if let Some(observer) = observer.filter(|_| rests) {
        observer.rests(run, run.journal_lines > records);
    }
    if let Some(dir) = follower.dir.take() {
        shared.unwatch(&dir, &handle.waker);
        shared.unwatch(&dir.join(SIGNALS), &handle.speech);
    }
    shared.hub.silence(&id);
    // Another run may get the slot now.
    shared.followers.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    shared.queue.notify_one();
    if follower.run.life.state.is_final() {
        shared.hub.remove(&id);
    } else if !follower.run.life.state.is_active() {
        shared.hub.rest(&id);
    }
    if let Some(mut child) = follower.child.take() {
        // Reap the process, which is about to end.
        tokio::spawn(async move { child.wait().await });
    }
}

impl Follower<'_> {
    async fn work(&mut self, mode: StartMode) {
        if self.is_delegated() && self.shared.options.stores_output {
            let restored = Outputs::restore(self.shared.store.as_ref(), &self.run.id).await;
            self.outputs = restored.map_err(|error| tracing::warn!(%error, "output is not streamed")).ok();
        }
        match mode {
            StartMode::Start if !self.start().await => return,
            StartMode::Adopt => self.refollow_job(),
            StartMode::Start => {}
        }
        loop {
            // Changed by another replica: cancelled through it, or taken over by it.
            if self.handle.newest.load(Ordering::SeqCst) > self.run.version && self.reload().await.is_ok() {
                tracing::debug!(run = %self.run.id, "another replica changed the run");
            }
            if !self.is_own() {
                return;
            }
            self.watch();
            self.pass_steering();
            // Check this before reading the journal, so that everything written before the end is read.
            let gone = self.is_gone() && !self.may_still_begin();
            let pending = self.read();
            if !pending.is_empty() && !self.store(&pending).await {
                return;
            }
            if !self.run.life.state.is_active() {
                return;
            }
            self.listen();
            if self.run.life.cancel_requested && self.can_be_cancelled() {
                orchestrator::send_cancel(&self.run.workspace);
            }
            if gone {
                match self.recover().await {
                    Next::Restart if self.start().await => {}
                    Next::Restart | Next::End => return,
                }
            }
            tokio::select! {
                () = self.shared.stopping.cancelled() => return,
                () = self.handle.waker.notified() => {}
                () = exited(&mut self.child) => {}
                () = spoken(self.handle, self.words.next()) => {}
                () = tokio::time::sleep(POLL) => {}
            }
        }
    }

    /// Prepares the workspace and starts the orchestrator. Returns `false` if the run has ended or another replica changed it.
    async fn start(&mut self) -> bool {
        let (options, run) = (&self.shared.options, &self.run);
        let prepared = if run.life.resume || !workspace::needs_preparation(run) {
            Ok(())
        } else {
            workspace::prepare(&options.host, &options.repository_guard(run), run)
                .map_err(|error| error.to_string())
        };
        let is_new = prepared.is_ok() && !self.run.life.resume;
        let event = is_new.then(|| self.shared.options.delegated_prepared(&self.run)).flatten();
        if let Some(event) = event {
            self.commit(|change, _| {
                change.push(event.clone());
                Vec::new()
            })
            .await;
        }
        self.watch();
        self.pass_steering();
        let started = prepared.and_then(|()| {
            orchestrator::start(&self.shared.options, &self.run)
                .map_err(|error| format!("its orchestrator cannot be started: {error}"))
        });
        match started {
            Ok(child) => {
                self.child = Some(child);
                self.shared.counters.count_start();
                true
            }
            Err(reason) => {
                self.end_lost(Death::NeverBegan, Recovery::Fail, reason).await;
                false
            }
        }
    }

    /// Starts a process that follows the run's Job in the cluster, if the previous one died with its supervisor.
    fn refollow_job(&mut self) {
        let is_known = self.run.origin.is_started_by_server() && self.run.life.began;
        let is_followed = cliq_backends::internals::is_alive(&self.log)
            || cliq_backends::internals::is_followed(&self.run.workspace);
        if !self.shared.options.runs_in_cluster || !is_known || is_followed {
            return;
        }
        match orchestrator::follow_job(&self.shared.options, &self.run) {
            Ok(child) => self.child = Some(child),
            Err(error) => tracing::warn!(run = %self.run.id, %error, "cannot follow the Job of a run"),
        }
    }

    /// Passes steering messages that arrived before the run started. They may arrive until its journal exists. Called again after an error.
    fn pass_steering(&mut self) {
        let arrived = self.run.request.steering.len();
        if self.passed == arrived || self.dir.is_none() {
            return;
        }
        match steering::pass_on(&self.run) {
            Ok(()) => self.passed = arrived,
            Err(error) => tracing::warn!(run = %self.run.id, %error, "cannot pass steering messages on"),
        }
    }

    /// Publishes the words of agents at work.
    fn listen(&mut self) {
        if self.run.life.state == RunState::Running && self.words.is_due() {
            self.shared.hub.speak(self.words.read(&self.run.id, &self.run.workspace, &self.view));
        }
    }

    fn watch(&mut self) {
        let dir = self.run.workspace.join(CliqDir::NAME);
        let signals = dir.join(SIGNALS);
        if !self.is_listening && signals.is_dir() {
            self.shared.watch(&signals, &self.handle.speech);
            self.is_listening = true;
        }
        if self.dir.is_none() && dir.is_dir() {
            self.shared.watch(&dir, &self.handle.waker);
            self.dir = Some(dir);
        }
    }

    /// Whether a process would read a request to cancel. A run in a container or cluster may be queued there for long.
    fn can_be_cancelled(&self) -> bool {
        match self.run.life.state {
            RunState::Running => true,
            RunState::Starting => cliq_backends::internals::is_followed(&self.run.workspace),
            RunState::Queued
            | RunState::Waiting
            | RunState::Completed
            | RunState::Escalated
            | RunState::Failed
            | RunState::Cancelled => false,
        }
    }

    /// Whether a supervisor that dispatched the run may still start its orchestrator: it prepares the workspace before, and does not
    /// notice at once that another one took the run over.
    fn may_still_begin(&self) -> bool {
        let has_begun = self.run.life.began && !self.run.life.resume;
        !has_begun
            && self.child.is_none()
            && self.adopted.is_some_and(|adopted| adopted.elapsed() < BEGINNING)
    }

    /// Whether the orchestrator is gone.
    fn is_gone(&mut self) -> bool {
        if let Some(child) = &mut self.child {
            match child.try_wait() {
                Ok(None) => return false,
                // It was refused: the project is another run's.
                Ok(Some(status)) if status.code() == Some(REFUSED) => return true,
                // The process may only have followed a container in which the orchestrator runs.
                _ if !cliq_backends::internals::is_project_busy(&self.run.workspace) => return true,
                _ => self.child = None,
            }
        }
        // A person may have started or resumed it in its project. Once its journal is aside, the project is another run's.
        let is_busy = !self.is_archived && cliq_backends::internals::is_project_busy(&self.run.workspace);
        !is_busy && !cliq_backends::internals::is_alive(&self.log)
    }
}

/// Waits until an agent has said something, and the next look at words is due.
async fn spoken(handle: &FollowerHandle, due: tokio::time::Instant) {
    handle.speech.notified().await;
    tokio::time::sleep_until(due).await;
}

async fn exited(child: &mut Option<Child>) {
    match child {
        Some(child) => drop(child.wait().await),
        None => std::future::pending().await,
    }
}
