//! Publication of new events to subscribers.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cliq_model::RunEventRow;
use cliq_orchestrator::RunView;
use cliq_protocol::{PhaseName, RunId};
use tokio::sync::{broadcast, watch};

use crate::words::Words;

/// Number of batches that a subscriber may lag behind. A slower subscriber continues from the store.
const BACKLOG: usize = 256;

/// Stored event. All its subscribers share one instance.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoredEvent {
    /// Row of the event.
    pub row: RunEventRow,
    /// Value that a front end derives from the event once for all subscribers, such as its wire form.
    derived: Arc<OnceLock<Box<dyn Any + Send + Sync>>>,
}

impl StoredEvent {
    pub(crate) fn new(row: RunEventRow) -> Self {
        Self { row, derived: Arc::default() }
    }

    /// Returns the value derived from the event. `derive` runs on the first call only. Returns `None` if another front end of the
    /// same process has derived a value of another type.
    pub fn derived<T: Send + Sync + 'static>(&self, derive: impl FnOnce(&RunEventRow) -> T) -> Option<&T> {
        self.derived.get_or_init(|| Box::new(derive(&self.row))).downcast_ref()
    }
}

/// Events of one run that were stored together.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    /// Number of the first event.
    pub(crate) first: i64,
    /// Number of the last event.
    pub(crate) last: i64,
    events: Arc<Vec<StoredEvent>>,
}

impl Batch {
    pub(crate) fn new(rows: &[RunEventRow]) -> Option<Self> {
        let (first, last) = (rows.first()?.id, rows.last()?.id);
        Some(Self { first, last, events: Arc::new(rows.iter().cloned().map(StoredEvent::new).collect()) })
    }

    /// Returns the events with a number greater than `after`. Copies nothing if all events qualify.
    pub(crate) fn after(&self, after: i64) -> Arc<Vec<StoredEvent>> {
        if after < self.first {
            return Arc::clone(&self.events);
        }
        Arc::new(self.events.iter().filter(|event| event.row.id > after).cloned().collect())
    }
}

/// State of an active run.
#[derive(Debug)]
struct LiveRun {
    view: Arc<RunView>,
    sender: broadcast::Sender<Batch>,
}

/// Active runs and their subscribers.
#[derive(Debug, Default)]
pub struct Hub {
    runs: Mutex<HashMap<RunId, LiveRun>>,
    changes: watch::Sender<u64>,
    words: Mutex<HashMap<RunId, BTreeMap<PhaseName, Arc<Words>>>>,
    speakers: Speakers,
}

/// Sender of the words of all runs.
#[derive(Debug)]
struct Speakers(broadcast::Sender<Arc<Words>>);

impl Default for Speakers {
    fn default() -> Self {
        Self(broadcast::channel(BACKLOG * 4).0)
    }
}

impl Hub {
    fn with<T>(&self, id: &RunId, work: impl FnOnce(&mut LiveRun) -> T) -> T {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        work(runs.entry(id.clone()).or_insert_with(|| LiveRun {
            view: Arc::new(RunView::empty()),
            sender: broadcast::channel(BACKLOG).0,
        }))
    }

    /// Publishes stored events to subscribers.
    pub(crate) fn publish(&self, id: &RunId, rows: &[RunEventRow]) {
        let Some(batch) = Batch::new(rows) else { return };
        self.wake();
        // An error means that there are no subscribers.
        let _ = self.with(id, |run| run.sender.clone()).send(batch);
    }

    /// Notifies subscribers of changes.
    pub fn wake(&self) {
        self.changes.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Publishes words of agents.
    pub(crate) fn speak(&self, words: Vec<Words>) {
        for words in words.into_iter().map(Arc::new) {
            let mut all = self.words.lock().unwrap_or_else(PoisonError::into_inner);
            let of_run = all.entry(words.run.clone()).or_default();
            if words.text.is_empty() {
                of_run.remove(&words.phase);
            } else {
                of_run.insert(words.phase.clone(), Arc::clone(&words));
            }
            if of_run.is_empty() {
                all.remove(&words.run);
            }
            drop(all);
            // An error means that there are no subscribers.
            let _ = self.speakers.0.send(words);
        }
    }

    /// Returns the last words of the phases of a run that are at work here.
    #[must_use]
    pub fn words(&self, id: &RunId) -> BTreeMap<PhaseName, Arc<Words>> {
        let all = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(id).cloned().unwrap_or_default()
    }

    /// Subscribes to the words of all runs: the last ones of all phases at work, then those from now on. A slow subscriber loses words.
    #[must_use]
    pub fn listen(&self) -> (Vec<Arc<Words>>, broadcast::Receiver<Arc<Words>>) {
        // In this order: words between the two come twice, and are not lost.
        let receiver = self.speakers.0.subscribe();
        let all = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        (all.values().flat_map(BTreeMap::values).cloned().collect(), receiver)
    }

    /// Returns the number of subscribers to words: pages that are open.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.speakers.0.receiver_count()
    }

    /// Drops the words of a run that works no longer here.
    pub(crate) fn silence(&self, id: &RunId) {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// Sets the view of a run after the events that are published next.
    pub(crate) fn set_view(&self, id: &RunId, view: Arc<RunView>) {
        self.with(id, |run| run.view = view);
    }

    /// Returns the view of an active run, or `None` if it is not known here.
    #[must_use]
    pub fn view(&self, id: &RunId) -> Option<Arc<RunView>> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(id).map(|run| Arc::clone(&run.view)).filter(|view| view.run_id.is_some())
    }

    /// Subscribes to a run from now on.
    pub(crate) fn subscribe(&self, id: &RunId) -> broadcast::Receiver<Batch> {
        self.with(id, |run| run.sender.subscribe())
    }

    /// Returns a receiver that is notified of each change of any run.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Runs that have subscribers.
    pub(crate) fn subscribed(&self) -> Vec<RunId> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.iter().filter(|(_, run)| run.sender.receiver_count() > 0).map(|(id, _)| id.clone()).collect()
    }

    /// Number of subscribers.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.values().map(|run| run.sender.receiver_count()).sum()
    }

    /// Drops the state of a finished run and closes its subscriptions.
    pub(crate) fn remove(&self, id: &RunId) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// Drops the state of a parked run, unless it has subscribers.
    pub(crate) fn rest(&self, id: &RunId) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.get(id).is_some_and(|run| run.sender.receiver_count() == 0) {
            runs.remove(id);
        }
    }

    /// Drops the state of runs that are not active and have no subscribers.
    pub(crate) fn retain(&self, is_active: impl Fn(&RunId) -> bool) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|id, run| is_active(id) || run.sender.receiver_count() > 0);
    }
}

#[cfg(test)]
mod tests {
    use cliq_protocol::Timestamp;

    use super::*;

    #[test]
    fn a_listener_gets_what_was_said_last_and_what_is_said_next() {
        let hub = Hub::default();
        let words = |phase: &str, text: &str| Words {
            run: RunId::parse("r").unwrap(),
            phase: PhaseName::parse(phase).unwrap(),
            text: text.into(),
            at_ms: 0,
        };
        hub.speak(vec![words("a", "one"), words("b", "two")]);
        hub.speak(vec![words("a", "three"), words("b", "")]);
        let (said, mut next) = hub.listen();
        assert_eq!(said.iter().map(|words| &*words.text).collect::<Vec<_>>(), ["three"]);
        hub.speak(vec![words("b", "four")]);
        assert_eq!(&*next.try_recv().unwrap().text, "four");
        assert!(next.try_recv().is_err());
    }

    #[test]
    fn batch_returns_events_after_number() {
        let row =
            |id| RunEventRow { id, ts: Timestamp::UNIX_EPOCH.into(), kind: "a".into(), data: "{}".into() };
        let batch = Batch::new(&[row(4), row(5), row(6)]).expect("events");
        for (after, left) in [(0, 3), (3, 3), (4, 2), (6, 0), (9, 0)] {
            assert_eq!(batch.after(after).len(), left, "{after}");
        }
        assert!(Batch::new(&[]).is_none());
    }
}
