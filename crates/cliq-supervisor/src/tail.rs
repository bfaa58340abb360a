//! Reader of a run's events from any position: first from the store, then live. Each event once, in order.

use std::sync::Arc;
use std::time::Duration;

use cliq_model::StoreError;
use cliq_protocol::RunId;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::hub::{Batch, StoredEvent};
use crate::shared::Shared;

/// Maximum number of events read from the store at once.
const MAX_PAGE: u32 = 1000;
/// Interval in which a silent reader reads the store: a notification may be missing, or another replica owns the run.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Item of an [`EventTail`].
#[derive(Debug)]
pub enum TailItem {
    /// Next events, at least one.
    Events(Arc<Vec<StoredEvent>>),
    /// Nothing happened during the heartbeat interval.
    Idle,
    /// The supervisor stops. The reader reconnects later.
    Stopping,
    /// The run has ended and every event was returned.
    End,
}

/// Reader of a run's events: first from the store, then live.
///
/// ```no_run
/// # async fn example(supervisor: cliq_supervisor::Supervisor, id: cliq_protocol::RunId) -> Result<(), cliq_model::StoreError> {
/// use cliq_supervisor::TailItem;
///
/// let mut tail = supervisor.tail(&id, 0);
/// loop {
///     match tail.next().await? {
///         TailItem::Events(events) => {
///             for event in events.iter() {
///                 println!("{} {}", event.row.id, event.row.kind);
///             }
///         }
///         TailItem::Idle => {}
///         TailItem::Stopping | TailItem::End => break,
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct EventTail {
    shared: Arc<Shared>,
    run: RunId,
    receiver: Receiver<Batch>,
    /// Number of the last event that was returned.
    last: i64,
    /// Whether the store may contain events that were not returned.
    behind: bool,
}

impl EventTail {
    /// Creates a reader of the events after number `after`. Call this before reading the run, so that no event is lost in between.
    pub(crate) fn new(shared: Arc<Shared>, run: &RunId, after: i64) -> Self {
        let receiver = shared.hub.subscribe(run);
        Self { shared, run: run.clone(), receiver, last: after, behind: true }
    }

    /// Waits for the next item.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    pub async fn next(&mut self) -> Result<TailItem, StoreError> {
        let stopping = self.shared.stopping.clone();
        loop {
            if self.behind
                && let Some(found) = self.stored().await?
            {
                return Ok(found);
            }
            tokio::select! {
                () = stopping.cancelled() => return Ok(TailItem::Stopping),
                received = self.receiver.recv() => match received {
                    Ok(batch) if batch.last <= self.last => {}
                    Ok(batch) if batch.first > self.last + 1 => self.behind = true,
                    Ok(batch) => {
                        let events = batch.after(self.last);
                        self.last = batch.last;
                        return Ok(TailItem::Events(events));
                    }
                    // The reader lagged, or the run has ended. Missed events are in the store.
                    Err(RecvError::Lagged(_) | RecvError::Closed) => self.behind = true,
                },
                () = tokio::time::sleep(HEARTBEAT) => {
                    self.behind = true;
                    return Ok(TailItem::Idle);
                }
            }
        }
    }

    /// Returns stored events that were not returned yet, or the end. Returns `None` if there are none.
    async fn stored(&mut self) -> Result<Option<TailItem>, StoreError> {
        loop {
            let rows = self.shared.store.run_events(&self.run, self.last, MAX_PAGE).await?;
            if let Some(last) = rows.last() {
                self.last = last.id;
                return Ok(Some(TailItem::Events(Arc::new(
                    rows.into_iter().map(StoredEvent::new).collect(),
                ))));
            }
            match self.shared.store.run(&self.run).await? {
                Some(run) if run.last_event > self.last => {}
                // Resumed, or removed from the hub: the old subscription is dead.
                Some(run) if !run.life.state.is_final() && self.receiver.is_closed() => {
                    self.receiver = self.shared.hub.subscribe(&self.run);
                    tokio::task::yield_now().await;
                }
                Some(run) if !run.life.state.is_final() => {
                    self.behind = false;
                    return Ok(None);
                }
                _ => return Ok(Some(TailItem::End)),
            }
        }
    }
}
