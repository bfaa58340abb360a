//! Reading a run's events from any place on: first from the store, then as they happen. Each event once, in order.

use std::sync::Arc;
use std::time::Duration;

use cliq_gateway::GatewayError;
use cliq_runs::RunId;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::app::App;
use crate::hub::{Batch, StoredEvent};

/// The most events of one look into the store.
const MAX_PAGE: u32 = 1000;
/// How often a silent reader looks into the store: a notification may have been missed, or another server owns the run.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// What a reader gets.
#[derive(Debug)]
pub(crate) enum Tailed {
    /// The next events, at least one.
    Events(Arc<Vec<StoredEvent>>),
    /// Nothing happened for a while.
    Idle,
    /// The server stops. The reader comes back later.
    Stopping,
    /// The run is over, and every event was given.
    End,
}

/// A reader of a run's events.
pub(crate) struct Tail {
    app: Arc<App>,
    run: RunId,
    receiver: Receiver<Batch>,
    /// The number of the last event that was given.
    last: i64,
    /// Whether events in the store may be missing.
    behind: bool,
}

impl Tail {
    /// A reader of the events after number `after`. Made before the run is looked at, so that no event falls between.
    pub(crate) fn new(app: Arc<App>, run: &RunId, after: i64) -> Self {
        let receiver = app.hub.subscribe(run);
        Self { app, run: run.clone(), receiver, last: after, behind: true }
    }

    /// What comes next.
    pub(crate) async fn next(&mut self) -> Result<Tailed, GatewayError> {
        let stopping = self.app.stopping.clone();
        loop {
            if self.behind
                && let Some(found) = self.stored().await?
            {
                return Ok(found);
            }
            tokio::select! {
                () = stopping.cancelled() => return Ok(Tailed::Stopping),
                received = self.receiver.recv() => match received {
                    Ok(batch) if batch.last <= self.last => {}
                    Ok(batch) if batch.first > self.last + 1 => self.behind = true,
                    Ok(batch) => {
                        let events = batch.after(self.last);
                        self.last = batch.last;
                        return Ok(Tailed::Events(events));
                    }
                    // The reader was slower than the run, or the run has ended. What it missed is in the store.
                    Err(RecvError::Lagged(_) | RecvError::Closed) => self.behind = true,
                },
                () = tokio::time::sleep(HEARTBEAT) => {
                    self.behind = true;
                    return Ok(Tailed::Idle);
                }
            }
        }
    }

    /// Events that are stored and were not given, or the end. `None` where there are none.
    async fn stored(&mut self) -> Result<Option<Tailed>, GatewayError> {
        loop {
            let rows = self.app.runs.run_events(&self.run, self.last, MAX_PAGE).await?;
            if let Some(last) = rows.last() {
                self.last = last.id;
                return Ok(Some(Tailed::Events(Arc::new(rows.into_iter().map(StoredEvent::new).collect()))));
            }
            match self.app.runs.run(&self.run).await? {
                Some(run) if run.last_event > self.last => {}
                // It was resumed, or the hub has forgotten it: the old subscription is dead.
                Some(run) if !run.life.state.is_final() && self.receiver.is_closed() => {
                    self.receiver = self.app.hub.subscribe(&self.run);
                    tokio::task::yield_now().await;
                }
                Some(run) if !run.life.state.is_final() => {
                    self.behind = false;
                    return Ok(None);
                }
                _ => return Ok(Some(Tailed::End)),
            }
        }
    }
}
