//! New events of runs, for their subscribers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use cliq_a2a::EventNumber;
use cliq_orchestrator::RunView;
use cliq_runs::{RunEventRow, RunId};
use tokio::sync::{broadcast, watch};

/// How many batches a subscriber may be behind before it is cut off. It goes on from the store then.
const BACKLOG: usize = 256;

/// A stored event with its form on the wire, made once for all subscribers.
#[derive(Debug, Clone)]
pub(crate) struct StoredEvent {
    /// The event.
    pub(crate) row: RunEventRow,
    /// The event as a server-sent event. JSON text has no line breaks.
    pub(crate) frame: Bytes,
    /// Its updates for callers of A2A, in each version of the protocol. Made when the first stream needs them.
    pub(crate) updates: [OnceLock<Arc<[TaskUpdate]>>; 2],
}

/// An update of a task, written in a version of A2A.
#[derive(Debug)]
pub(crate) struct TaskUpdate {
    pub(crate) number: EventNumber,
    /// The item of the stream as JSON.
    pub(crate) json: Arc<str>,
    /// Whether the task is over with it.
    pub(crate) is_last: bool,
}

impl StoredEvent {
    pub(crate) fn new(row: RunEventRow) -> Self {
        let frame = format!("id: {}\nevent: {}\ndata: {}\n\n", row.id, row.kind, row.data).into();
        Self { row, frame, updates: Default::default() }
    }
}

/// Events that were stored together.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    /// The number of the first event.
    pub(crate) first: i64,
    /// The number of the last event.
    pub(crate) last: i64,
    events: Arc<Vec<StoredEvent>>,
}

impl Batch {
    pub(crate) fn new(rows: &[RunEventRow]) -> Option<Self> {
        let (first, last) = (rows.first()?.id, rows.last()?.id);
        Some(Self { first, last, events: Arc::new(rows.iter().cloned().map(StoredEvent::new).collect()) })
    }

    /// The events after number `after`. Nothing is copied where that is all of them.
    pub(crate) fn after(&self, after: i64) -> Arc<Vec<StoredEvent>> {
        if after < self.first {
            return Arc::clone(&self.events);
        }
        Arc::new(self.events.iter().filter(|event| event.row.id > after).cloned().collect())
    }
}

/// What is kept of a run while it is active.
#[derive(Debug)]
struct LiveRun {
    view: RunView,
    sender: broadcast::Sender<Batch>,
}

/// The active runs and their subscribers.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    runs: Mutex<HashMap<RunId, LiveRun>>,
    changes: watch::Sender<u64>,
}

impl Hub {
    fn with<T>(&self, id: &RunId, work: impl FnOnce(&mut LiveRun) -> T) -> T {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        work(
            runs.entry(id.clone())
                .or_insert_with(|| LiveRun { view: RunView::empty(), sender: broadcast::channel(BACKLOG).0 }),
        )
    }

    /// Sends stored events to subscribers.
    pub(crate) fn publish(&self, id: &RunId, rows: &[RunEventRow]) {
        let Some(batch) = Batch::new(rows) else { return };
        self.wake();
        // Without subscribers there is nothing to do.
        let _ = self.with(id, |run| run.sender.clone()).send(batch);
    }

    /// Wakes those that wait for a change of any run.
    pub(crate) fn wake(&self) {
        self.changes.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// The state of the run after the events that are published next.
    pub(crate) fn set_view(&self, id: &RunId, view: RunView) {
        self.with(id, |run| run.view = view);
    }

    /// The state of an active run. `None` where none is known.
    pub(crate) fn view(&self, id: &RunId) -> Option<RunView> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(id).map(|run| run.view.clone()).filter(|view| view.run_id.is_some())
    }

    /// Follows a run from now on.
    pub(crate) fn subscribe(&self, id: &RunId) -> broadcast::Receiver<Batch> {
        self.with(id, |run| run.sender.subscribe())
    }

    /// A receiver that is notified of each change of any run.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The runs that have subscribers.
    pub(crate) fn subscribed(&self) -> Vec<RunId> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.iter().filter(|(_, run)| run.sender.receiver_count() > 0).map(|(id, _)| id.clone()).collect()
    }

    /// The number of subscribers.
    pub(crate) fn subscribers(&self) -> usize {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.values().map(|run| run.sender.receiver_count()).sum()
    }

    /// Drops what is kept of a run that ended. Subscribers hear of the end.
    pub(crate) fn remove(&self, id: &RunId) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// Drops the state of runs that are not active and have no subscribers.
    pub(crate) fn retain(&self, is_active: impl Fn(&RunId) -> bool) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|id, run| is_active(id) || run.sender.receiver_count() > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_gives_what_comes_after_a_number() {
        let row = |id| RunEventRow { id, ts: String::new(), kind: "a".into(), data: "{}".into() };
        let batch = Batch::new(&[row(4), row(5), row(6)]).expect("events");
        for (after, left) in [(0, 3), (3, 3), (4, 2), (6, 0), (9, 0)] {
            assert_eq!(batch.after(after).len(), left, "{after}");
        }
        assert_eq!(&batch.after(0)[0].frame[..], b"id: 4\nevent: a\ndata: {}\n\n");
        assert!(Batch::new(&[]).is_none());
    }
}
