//! What the lines above panes say: set in the background, several at once, and nobody waits for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::server::{Script, TmuxServer};
use crate::view::PhaseStatus;

/// How long titles are gathered before tmux is asked to show them: it is busiest with panes just then.
const GATHER: Duration = Duration::from_millis(30);

#[derive(Debug)]
enum Request {
    /// What runs in a pane now.
    New {
        title: String,
        pane: String,
    },
    Set(String, PhaseStatus),
    /// Tell when all that was asked before is done.
    Flush(oneshot::Sender<()>),
}

/// The way to the task that sets titles.
#[derive(Debug)]
pub(super) struct Titles {
    requests: mpsc::UnboundedSender<Request>,
    pending: Mutex<Option<mpsc::UnboundedReceiver<Request>>>,
}

impl Titles {
    pub(super) fn new() -> Self {
        let (requests, pending) = mpsc::unbounded_channel();
        Self { requests, pending: Mutex::new(Some(pending)) }
    }

    /// Begins to work. What was asked before is not lost.
    pub(super) fn begin(&self, server: Arc<TmuxServer>) {
        if let Some(requests) = self.pending.lock().unwrap_or_else(PoisonError::into_inner).take() {
            tokio::spawn(work(server, requests));
        }
    }

    /// A pane is a phase's from now on, which runs in it.
    pub(super) fn new_pane(&self, title: &str, pane: &str) {
        let _ = self.requests.send(Request::New { title: title.to_owned(), pane: pane.to_owned() });
    }

    pub(super) fn set(&self, title: &str, status: PhaseStatus) {
        let _ = self.requests.send(Request::Set(title.to_owned(), status));
    }

    /// Waits until all is shown that was asked for.
    pub(super) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.requests.send(Request::Flush(done)).is_ok() {
            let _ = flushed.await;
        }
    }
}

async fn work(server: Arc<TmuxServer>, mut requests: mpsc::UnboundedReceiver<Request>) {
    let mut panes: HashMap<String, String> = HashMap::new();
    let (mut changed, mut waiting) = (Vec::new(), Vec::new());
    while let Some(first) = requests.recv().await {
        let mut next = Some(first);
        while let Some(request) = next {
            match request {
                Request::New { title, pane } => {
                    panes.retain(|_, other| *other != pane);
                    panes.insert(title.clone(), pane);
                    changed.push((title, PhaseStatus::Running));
                }
                Request::Set(title, status) => changed.push((title, status)),
                Request::Flush(done) => waiting.push(done),
            }
            next = requests.try_recv().ok();
            if next.is_none() && waiting.is_empty() && changed.len() < 20 {
                next = tokio::time::timeout(GATHER, requests.recv()).await.ok().flatten();
            }
        }
        for some in changed.chunks(20) {
            let mut script = Script::new();
            for (title, status) in some {
                if let Some(pane) = panes.get(title) {
                    script.title(pane, title, *status);
                }
            }
            if !script.is_empty() {
                // A pane without its title is a pane all the same.
                let _ = server.run(script).await;
            }
        }
        changed.clear();
        for done in waiting.drain(..) {
            let _ = done.send(());
        }
    }
}
