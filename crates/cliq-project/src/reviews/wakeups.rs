//! Wake-ups of the agent of a review: a change of the review, a signal. Without a pipe for changes it polls.

use std::fs::OpenOptions;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use camino::Utf8PathBuf;
use nix::errno::Errno;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// Wake-ups of the agent of a review.
pub(super) struct Wakeups {
    signalled: Arc<Notify>,
    cancelled: Arc<AtomicBool>,
    /// Named pipe that is written with each change of the review. `None`: the review is kept elsewhere.
    changes: Option<(Receiver, Utf8PathBuf)>,
}

impl Wakeups {
    /// Listens to signals. Needs a runtime with IO.
    pub(super) fn new() -> std::io::Result<Self> {
        let (signalled, cancelled) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
            let mut signal = signal(kind)?;
            let (signalled, cancelled) = (Arc::clone(&signalled), Arc::clone(&cancelled));
            tokio::spawn(async move {
                signal.recv().await;
                cancelled.store(true, Ordering::SeqCst);
                signalled.notify_one();
            });
        }
        Ok(Self { signalled, cancelled, changes: None })
    }

    /// Listens to changes of the review too, by a named pipe. One that cannot be made is done without.
    pub(super) fn listen(&mut self, pipe: Utf8PathBuf) {
        let made = mkfifo(pipe.as_std_path(), Mode::S_IRUSR | Mode::S_IWUSR);
        if made.is_ok() || made == Err(Errno::EEXIST) {
            // Open for writing as well: otherwise the pipe ends with its first writer.
            let opened = OpenOptions::new().read(true).write(true).open(&pipe).and_then(Receiver::from_file);
            self.changes = opened.ok().map(|receiver| (receiver, pipe));
        }
    }

    /// Whether the agent was asked to end.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Whether each change of the review wakes the agent.
    pub(super) fn are_complete(&self) -> bool {
        self.changes.is_some()
    }

    /// Waits for a wake-up, at most so long.
    pub(super) async fn wait(&self, at_most: Duration) {
        tokio::select! {
            () = self.signalled.notified() => {}
            () = changed(self.changes.as_ref()) => {}
            () = tokio::time::sleep(at_most) => {}
        }
    }
}

impl Drop for Wakeups {
    fn drop(&mut self) {
        if let Some((_, pipe)) = &self.changes {
            let _ = std::fs::remove_file(pipe);
        }
    }
}

async fn changed(changes: Option<&(Receiver, Utf8PathBuf)>) {
    let Some((receiver, _)) = changes else { return std::future::pending().await };
    if receiver.readable().await.is_ok() {
        let mut bytes = [0; 64];
        while receiver.try_read(&mut bytes).is_ok_and(|read| read > 0) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_change_wakes_the_agent() {
        let dir = tempfile::tempdir().expect("a directory");
        let pipe = camino::Utf8Path::from_path(dir.path()).expect("UTF-8").join("r.wake");
        for _ in 0..2 {
            let mut wakeups = Wakeups::new().expect("signals");
            assert!(!wakeups.are_complete());
            wakeups.listen(pipe.clone());
            assert!(wakeups.are_complete() && !wakeups.is_cancelled());
            for _ in 0..3 {
                std::fs::write(&pipe, "xyz").expect("written");
                wakeups.wait(Duration::from_secs(60)).await;
            }
            // Nothing is left over: this wait ends by its time.
            wakeups.wait(Duration::from_millis(20)).await;
        }
        assert!(!pipe.exists(), "it goes with its agent");
    }

    #[tokio::test]
    async fn without_a_pipe_the_agent_polls() {
        let mut wakeups = Wakeups::new().expect("signals");
        wakeups.listen("/nowhere/r.wake".into());
        assert!(!wakeups.are_complete());
        wakeups.wait(Duration::from_millis(1)).await;
    }
}
