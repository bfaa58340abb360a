//! Steering messages of an activation (docs/steering.md).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use cliq_fs::{SignalWatch, SteeringTail};
use cliq_protocol::{PhaseDispatch, SteeringMessage};

use crate::SdkError;

/// Interval in which the file is read if no change is noticed: some file systems report none.
const POLL: Duration = Duration::from_secs(5);
/// The same if the system has no more watches.
const POLL_UNWATCHED: Duration = Duration::from_millis(100);

/// Reader of the steering messages of an activation: first those of the dispatch message, then those that arrive while the agent
/// works. Each message once.
///
/// A message that was returned counts as delivered. An agent that never reads leaves later messages to the next activation.
#[derive(Debug)]
pub struct Steering {
    ready: VecDeque<SteeringMessage>,
    tail: Option<SteeringTail>,
    changes: mpsc::Receiver<()>,
    notifier: mpsc::Sender<()>,
    is_stopped: Arc<AtomicBool>,
    /// Absent before the first wait, and if the system has no more watches.
    watch: Option<SignalWatch>,
}

/// Ends the waits of a [`Steering`] from another thread.
#[derive(Debug, Clone)]
pub struct SteeringStop {
    notifier: mpsc::Sender<()>,
    is_stopped: Arc<AtomicBool>,
}

impl SteeringStop {
    /// Ends the wait under way, and all later ones.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        // The reader may be gone.
        let _ = self.notifier.send(());
    }
}

impl Steering {
    pub(crate) fn new(dispatch: &PhaseDispatch) -> Self {
        let tail = dispatch.steering_file.as_deref().map(SteeringTail::new);
        Self::of(dispatch.steering.iter().cloned().collect(), tail)
    }

    fn of(ready: VecDeque<SteeringMessage>, tail: Option<SteeringTail>) -> Self {
        let (notifier, changes) = mpsc::channel();
        Self { ready, tail, changes, notifier, is_stopped: Arc::default(), watch: None }
    }

    /// Leaves out the messages of the dispatch message, for an agent that has read them there. Call it before the first read.
    #[must_use]
    pub fn live_only(mut self) -> Self {
        self.ready.clear();
        self
    }

    /// Whether waits were ended by [`SteeringStop::stop`].
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Returns a handle that ends waits.
    #[must_use]
    pub fn stop_handle(&self) -> SteeringStop {
        SteeringStop { notifier: self.notifier.clone(), is_stopped: Arc::clone(&self.is_stopped) }
    }

    /// Returns the next message, or `None` if there is none now. Does not wait.
    ///
    /// # Errors
    /// Returns an error if the steering file cannot be read.
    pub fn try_next(&mut self) -> Result<Option<SteeringMessage>, SdkError> {
        if self.ready.is_empty()
            && let Some(tail) = &mut self.tail
        {
            // A line that is no message is for a newer agent.
            self.ready.extend(tail.read_new()?.into_iter().filter_map(Result::ok));
        }
        Ok(self.ready.pop_front())
    }

    /// Waits until there may be a message: [`Steering::try_next`] returns it, or `None` if the file changed otherwise. Returns `false` after
    /// `timeout` and after [`SteeringStop::stop`]. Reads no message, so none counts as delivered.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        let last = Instant::now().checked_add(timeout);
        self.start_watch();
        loop {
            if self.is_stopped.load(Ordering::SeqCst) {
                return false;
            }
            if !self.ready.is_empty() || self.tail.as_ref().is_some_and(SteeringTail::has_changed) {
                return true;
            }
            let now = Instant::now();
            if last.is_some_and(|last| now >= last) {
                return false;
            }
            let poll = if self.watch.is_some() { POLL } else { POLL_UNWATCHED };
            // Never disconnected: `notifier` lives as long.
            let _ = self.changes.recv_timeout(last.map_or(poll, |last| (last - now).min(poll)));
            while self.changes.try_recv().is_ok() {}
        }
    }

    /// Waits for the next message. Returns `None` after `timeout` and after [`SteeringStop::stop`].
    ///
    /// # Errors
    /// Returns an error if the steering file cannot be read.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<SteeringMessage>, SdkError> {
        let last = Instant::now().checked_add(timeout);
        loop {
            let left = last.map_or(timeout, |last| last.saturating_duration_since(Instant::now()));
            if !self.wait(left) {
                return Ok(None);
            }
            if let Some(message) = self.try_next()? {
                return Ok(Some(message));
            }
        }
    }

    /// Watches the directory of the steering file.
    fn start_watch(&mut self) {
        if self.watch.is_some() {
            return;
        }
        let notifier = self.notifier.clone();
        let dir = self.tail.as_ref().and_then(|tail| tail.path().parent());
        let watch = |dir| {
            SignalWatch::new(dir, move |_| {
                let _ = notifier.send(());
            })
        };
        self.watch = dir.and_then(|dir| watch(dir).ok());
    }
}

#[cfg(test)]
mod tests {
    use camino::{Utf8Path, Utf8PathBuf};
    use cliq_fs::append_steering;
    use cliq_protocol::{Timestamp, WireTime};

    use super::*;

    fn message(id: &str) -> SteeringMessage {
        let ts = WireTime::from(Timestamp::UNIX_EPOCH);
        SteeringMessage { id: id.into(), ts, from: "Ana".into(), text: "x".into(), phase: None }
    }

    fn reader(file: &Utf8Path, dispatched: &[&str]) -> Steering {
        Steering::of(dispatched.iter().map(|id| message(id)).collect(), Some(SteeringTail::new(file)))
    }

    fn file(dir: &tempfile::TempDir) -> Utf8PathBuf {
        Utf8Path::from_path(dir.path()).expect("text").join("s.jsonl")
    }

    #[test]
    fn messages_of_the_dispatch_come_first_and_each_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = file(&dir);
        let mut all = reader(&file, &["1", "2"]);
        append_steering(&file, &message("3")).expect("written");
        let ids = |reader: &mut Steering| {
            let next = || reader.try_next().expect("read").map(|message| message.id);
            std::iter::from_fn(next).collect::<Vec<_>>()
        };
        assert_eq!(ids(&mut all), ["1", "2", "3"]);
        append_steering(&file, &message("4")).expect("written");
        assert_eq!(ids(&mut all), ["4"]);
        assert_eq!(ids(&mut reader(&file, &["1", "2"]).live_only()), ["3", "4"]);
    }

    #[test]
    fn a_reader_waits_for_a_message_and_for_its_timeout() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = file(&dir);
        let mut reader = reader(&file, &[]);
        assert_eq!(reader.next_within(Duration::from_millis(1)).expect("read"), None);
        let writer = std::thread::spawn({
            let file = file.clone();
            move || append_steering(&file, &message("1"))
        });
        let received = reader.next_within(Duration::from_secs(60)).expect("read");
        assert_eq!(received, Some(message("1")));
        writer.join().expect("no panic").expect("written");
        let stop = reader.stop_handle();
        let stopper = std::thread::spawn(move || stop.stop());
        assert_eq!(reader.next_within(Duration::from_secs(600)).expect("read"), None);
        stopper.join().expect("no panic");
    }
}
