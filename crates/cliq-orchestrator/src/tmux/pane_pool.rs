//! Assignment of panes to jobs, and their title lines.
//!
//! A job in a spare pane runs before it is visible. Moving it, setting titles and opening the next spare pane is done
//! in the background, one request after the other.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as PlainMutex, PoisonError};
use std::time::Duration;

use camino::Utf8PathBuf;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::layout::{PanePlacement, place};
use super::server::{PaneRow, Script, TmuxError, TmuxServer};
use super::spare::{Feed, MOST_SPARES, Spare, WAIT};
use crate::phase_status::PhaseStatus;

/// Time for which titles are collected before tmux is asked to show them: tmux is busiest with panes at that moment.
const GATHER: Duration = Duration::from_millis(30);

/// The session and what is known of it.
#[derive(Debug)]
pub(super) struct PanePool {
    pub(super) server: TmuxServer,
    /// The program that runs jobs within panes, and its first arguments.
    shim: Vec<String>,
    /// Directory of the pipes of spare panes.
    dir: Utf8PathBuf,
    /// The pane that this process itself works in, where it is one of the session's.
    pub(super) own_pane: Option<String>,
    state: Mutex<State>,
    spares: PlainMutex<Vec<Spare>>,
    /// Target number of spare panes.
    wanted: AtomicUsize,
    requests: mpsc::UnboundedSender<Request>,
    pending: PlainMutex<Option<mpsc::UnboundedReceiver<Request>>>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the session is there.
    open: bool,
    /// Whether no more panes are to be opened.
    closed: bool,
    /// The pane of each job title.
    panes: HashMap<String, String>,
    /// The panes as tmux listed them last; `None` if the list is outdated.
    rows: Option<Vec<PaneRow>>,
    /// Of each pane that a job was started in, whether the job is over: known here before tmux lists it.
    over: HashMap<String, Arc<AtomicBool>>,
}

#[derive(Debug)]
enum Request {
    /// A job runs in what was a spare pane.
    Show {
        title: String,
        pane: String,
        over: Arc<AtomicBool>,
    },
    /// A job runs in a pane that people see already.
    Seen {
        title: String,
        pane: String,
    },
    Set(String, PhaseStatus),
    /// See to it that there are spare panes.
    Prepare,
    /// Reply when all earlier requests are done.
    Flush(oneshot::Sender<()>),
}

impl PanePool {
    pub(super) fn new(
        server: TmuxServer,
        shim: Vec<String>,
        dir: Utf8PathBuf,
        own_pane: Option<String>,
    ) -> Self {
        let (requests, pending) = mpsc::unbounded_channel();
        Self {
            server,
            shim,
            dir,
            own_pane,
            state: Mutex::default(),
            spares: PlainMutex::default(),
            wanted: AtomicUsize::new(MOST_SPARES),
            requests,
            pending: PlainMutex::new(Some(pending)),
        }
    }

    /// There will be this many jobs. The first has no use for a spare pane.
    pub(super) fn expect(&self, jobs: usize) {
        self.wanted.store(jobs.saturating_sub(1).min(MOST_SPARES), Ordering::Relaxed);
    }

    /// A pane that waits for a job, if there is one.
    pub(super) fn take_spare(&self) -> Option<Spare> {
        let mut spares = self.spares();
        while !spares.is_empty() {
            let spare = spares.remove(0);
            if spare.is_waiting() {
                return Some(spare);
            }
        }
        None
    }

    fn spares(&self) -> std::sync::MutexGuard<'_, Vec<Spare>> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, request: Request) {
        // The task that answers lives as long as this.
        let _ = self.requests.send(request);
    }

    /// A job was started in what was a spare pane: it is to be seen.
    pub(super) fn show(&self, title: &str, pane: &str, over: Arc<AtomicBool>) {
        self.ask(Request::Show { title: title.to_owned(), pane: pane.to_owned(), over });
    }

    pub(super) fn set_title(&self, title: &str, status: PhaseStatus) {
        self.ask(Request::Set(title.to_owned(), status));
    }

    /// Waits until all is seen that was asked for.
    pub(super) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        self.ask(Request::Flush(done));
        let _ = flushed.await;
    }

    /// Puts a job's command into a pane, and says which one it is. `over` resolves when that job is over.
    pub(super) async fn open_pane(
        self: &Arc<Self>,
        title: &str,
        spec: &str,
        over: Arc<AtomicBool>,
    ) -> Result<(String, u32), TmuxError> {
        let mut state = self.state.lock().await;
        if !std::mem::replace(&mut state.open, true) {
            if let Some(requests) = self.pending.lock().unwrap_or_else(PoisonError::into_inner).take() {
                tokio::spawn(work(Arc::downgrade(self), requests));
            }
            if self.own_pane.is_none() {
                // What a run whose orchestrator died left, or one that was kept.
                let _ = self.server.kill().await;
            }
        }
        let command: Vec<&str> = self.shim.iter().map(String::as_str).chain([spec]).collect();
        let (pane, pid) = self
            .with_rows(&mut state, |state, rows| {
                let mut script = Script::new();
                match self.place(state, rows, title) {
                    PanePlacement::NewSession => script.new_session(&self.server.session, &command),
                    PanePlacement::Respawn(id) => script.respawn(&id, &command),
                    PanePlacement::Split { window, beside } => script.split(&window, &beside, &command),
                    PanePlacement::NewWindow => script.new_window(&self.server.session, &command),
                }
                script
            })
            .await?
            .pop()
            .ok_or_else(|| TmuxError::Answer("no pane".to_owned()))?;
        state.settle(title, &pane, over);
        drop(state);
        self.ask(Request::Seen { title: title.to_owned(), pane: pane.clone() });
        self.ask(Request::Prepare);
        Ok((pane, pid))
    }

    fn place(&self, state: &State, rows: &[PaneRow], title: &str) -> PanePlacement {
        let rows: Vec<PaneRow> =
            rows.iter().filter(|row| row.session == self.server.session).cloned().collect();
        let known = state.panes.get(title).filter(|id| rows.iter().any(|row| row.id == **id));
        place(&rows, known.map(String::as_str), self.own_pane.as_deref())
    }

    /// Runs a script that is made from the panes that there are, and gives the panes that it opened. What is known of them
    /// may be old, as people open and close panes too: then it is made once more from what tmux says.
    async fn with_rows(
        &self,
        state: &mut State,
        script: impl Fn(&State, &[PaneRow]) -> Script,
    ) -> Result<Vec<(String, u32)>, TmuxError> {
        let mut known = state.rows.take();
        let mut tries = 0;
        loop {
            tries += 1;
            let (mut rows, is_fresh) = match known.take() {
                Some(rows) => (rows, false),
                None => (self.server.panes().await?, true),
            };
            for row in &mut rows {
                row.dead |= state.over.get(&row.id).is_some_and(|over| over.load(Ordering::Acquire));
            }
            let mut script = script(state, &rows);
            script.list();
            match self.server.open(script).await {
                Ok(opened) => {
                    state.rows = (!opened.rows.is_empty()).then_some(opened.rows);
                    return Ok(opened.panes);
                }
                // Fresh ones may be old too: what a killed orchestrator asked for may be done just now.
                Err(TmuxError::Refused(_)) if !is_fresh || tries < 3 => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves a pane to where people see it, where `show` names one, and opens what is missing of spare panes.
    async fn arrange(&self, show: Option<(&str, &str, Arc<AtomicBool>)>) -> Result<(), TmuxError> {
        let mut state = self.state.lock().await;
        if state.closed {
            return Ok(());
        }
        let missing = self.wanted.load(Ordering::Relaxed).saturating_sub(self.spares().len());
        if missing == 0 && show.is_none() {
            return Ok(());
        }
        let feeds: Vec<Feed> =
            (0..missing).map(|_| Feed::new(&self.dir)).collect::<Result<_, _>>().map_err(TmuxError::Run)?;
        let shim: Vec<&str> = self.shim.iter().map(String::as_str).chain([WAIT]).collect();
        let opened = self
            .with_rows(&mut state, |state, rows| {
                let mut script = Script::new();
                let spares = self.server.spare_session();
                let shown = show.as_ref().map(|(_, pane, _)| *pane);
                let mut is_there =
                    rows.iter().any(|row| row.session == spares && Some(row.id.as_str()) != shown);
                // This first: where it fails, nothing was opened, and all can be done again.
                if let Some((title, pane, _)) = &show {
                    match self.place(state, rows, title) {
                        PanePlacement::NewSession => {
                            script.become_session(&spares, &self.server.session);
                            is_there = false;
                        }
                        PanePlacement::Respawn(id) => script.replace(&id, pane),
                        PanePlacement::Split { window, beside } => script.join(&window, &beside, pane),
                        PanePlacement::NewWindow => script.own_window(&self.server.session, pane),
                    }
                }
                for feed in &feeds {
                    let command = [&shim[..], &[feed.path().as_str()]].concat();
                    script.spare(&spares, !std::mem::replace(&mut is_there, true), &command);
                }
                script
            })
            .await;
        if let Some((title, pane, over)) = show {
            state.settle(title, pane, over);
        }
        let opened = opened?.into_iter().zip(feeds);
        self.spares().extend(opened.map(|((pane, pid), feed)| Spare { pane, pid, feed }));
        Ok(())
    }

    /// Ends the session. With `keep`, all that people see of it stays.
    pub(super) async fn close(&self, keep: bool) {
        if !self.state.lock().await.open {
            return;
        }
        if keep {
            self.flush().await;
        }
        self.state.lock().await.closed = true;
        if keep || self.own_pane.is_some() {
            let _ = self.server.kill_spares().await;
        }
        match &self.own_pane {
            _ if keep => {}
            None => drop(self.server.kill().await),
            // The pane that this runs in is closed by leaving.
            Some(own) => drop(self.server.kill_others(own).await),
        }
        // Last, because a waiter would close a pane that is gone already.
        self.spares().clear();
    }
}

impl State {
    /// A pane is a title's from now on.
    fn settle(&mut self, title: &str, pane: &str, over: Arc<AtomicBool>) {
        self.panes.retain(|_, other| other != pane);
        self.panes.insert(title.to_owned(), pane.to_owned());
        self.over.insert(pane.to_owned(), over);
    }
}

/// Answers requests until there can be no more.
async fn work(pool: std::sync::Weak<PanePool>, mut requests: mpsc::UnboundedReceiver<Request>) {
    let mut panes: HashMap<String, String> = HashMap::new();
    let mut statuses: HashMap<String, PhaseStatus> = HashMap::new();
    let (mut changed, mut waiting) = (BTreeSet::new(), Vec::new());
    while let Some(first) = requests.recv().await {
        let Some(pool) = pool.upgrade() else { return };
        let mut next = Some(first);
        while let Some(request) = next {
            match request {
                Request::Show { title, pane, over } => {
                    // A pane that cannot be shown works all the same.
                    let _ = pool.arrange(Some((&title, &pane, over))).await;
                    panes.retain(|_, other| *other != pane);
                    panes.insert(title.clone(), pane);
                    changed.insert(title);
                }
                Request::Seen { title, pane } => {
                    panes.retain(|_, other| *other != pane);
                    panes.insert(title.clone(), pane);
                    changed.insert(title);
                }
                Request::Prepare => drop(pool.arrange(None).await),
                Request::Set(title, status) => {
                    statuses.insert(title.clone(), status);
                    changed.insert(title);
                }
                Request::Flush(done) => waiting.push(done),
            }
            next = requests.try_recv().ok();
            if next.is_none() && waiting.is_empty() && changed.len() < 20 {
                next = tokio::time::timeout(GATHER, requests.recv()).await.ok().flatten();
            }
        }
        let changed: Vec<String> = std::mem::take(&mut changed).into_iter().collect();
        for some in changed.chunks(20) {
            let mut script = Script::new();
            for title in some {
                if let Some(pane) = panes.get(title) {
                    let status = statuses.get(title).copied().unwrap_or(PhaseStatus::Running);
                    script.title(pane, title, status);
                }
            }
            if !script.is_empty() {
                // A pane without its title is a pane all the same.
                let _ = pool.server.run(script).await;
            }
        }
        for done in waiting.drain(..) {
            let _ = done.send(());
        }
    }
}
