//! Following a Job and the journal of its run to the end.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Cluster, JobEnd, KubernetesOptions};
use cliq_fs::{CliqDir, PipelineStatus, write_status};
use cliq_protocol::RunId;
use tokio::time::{Instant, sleep};

use crate::cancellation::Cancellation;
use crate::child_process::JournalTail;
use crate::error::BackendError;
use crate::follower_lock::cancelled;
use crate::monitor::RunMonitor;
use cliq_orchestrator::internals::blocking;

/// Polling interval of the journal.
const POLL: Duration = Duration::from_millis(100);
/// Time until the end of a journal must be visible here. Network file systems cache.
const VISIBILITY: Duration = Duration::from_secs(60);
/// Time until the cluster must report the end of a run, once its journal records it.
const REPORT: Duration = Duration::from_secs(15);

/// Follower of a Job that exists.
pub(super) struct JobFollower<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) run_id: &'a RunId,
    pub(super) options: &'a KubernetesOptions,
    pub(super) dir: &'a CliqDir,
    /// Time that a cancelled run has to end.
    pub(super) grace: Duration,
    /// Whether this process created the Job.
    pub(super) is_own: bool,
}

/// Notices of the cluster and records of the journal that the monitor has not received.
struct News<'a> {
    notices: &'a Mutex<Vec<String>>,
    journal: JournalTail,
}

impl News<'_> {
    async fn read(&mut self, monitor: &mut RunMonitor<'_>) {
        let new = std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner));
        new.iter().for_each(|text| monitor.observer().notice(text));
        self.journal.read(monitor).await;
    }
}

impl JobFollower<'_> {
    /// Follows Job and journal to the end. Returns `None` if the run was cancelled before it started.
    pub(super) async fn follow(
        &self,
        monitor: &mut RunMonitor<'_>,
        cancel: &Cancellation,
    ) -> Result<Option<JobEnd>, BackendError> {
        let notices: Mutex<Vec<String>> = Mutex::default();
        let mut news = News { notices: &notices, journal: JournalTail::new(self.dir, self.run_id) };
        let mut job = std::pin::pin!(self.cluster.follow(self.run_id, self.options, |text| {
            notices.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        }));
        // Requests by `cliq cancel` only: the token is handled here.
        let never = Cancellation::new();
        let mut by_command = std::pin::pin!(cancelled(self.dir, &never));
        let (mut asked, mut is_cancelled): (Option<Instant>, bool) = (None, false);
        let mut recorded: Option<Instant> = None;
        let end = loop {
            tokio::select! {
                end = &mut job => {
                    news.read(monitor).await;
                    if end.is_err() && self.is_own && !monitor.has_started() {
                        // No follower would see it start.
                        let _ = self.cluster.remove(self.run_id).await;
                    }
                    break end?;
                }
                () = cancel.cancelled(), if asked.is_none() => {
                    asked = Some(Instant::now());
                    let dir = self.dir.clone();
                    blocking(move || write_status(&dir, PipelineStatus::Cancelled)).await?;
                }
                () = &mut by_command, if !is_cancelled && !monitor.has_started() => is_cancelled = true,
                () = sleep(POLL) => {}
            }
            news.read(monitor).await;
            // A run that works reads the request and ends by itself.
            let is_overdue = asked.is_some_and(|asked| asked.elapsed() > self.grace);
            if is_overdue || (!monitor.has_started() && (is_cancelled || asked.is_some())) {
                self.cluster.remove(self.run_id).await?;
                news.read(monitor).await;
                if !monitor.has_started() {
                    return Ok(None);
                }
                break JobEnd::Removed;
            }
            // The API server is unreachable or slow.
            if monitor.is_over() && recorded.get_or_insert_with(Instant::now).elapsed() > REPORT {
                break JobEnd::Removed;
            }
        };
        let deadline = Instant::now() + VISIBILITY;
        let exited = matches!(end, JobEnd::Exited { .. });
        loop {
            news.read(monitor).await;
            let is_complete = monitor.is_over() || !monitor.has_started() || !exited;
            if is_complete || Instant::now() > deadline {
                return Ok(Some(end));
            }
            sleep(POLL).await;
        }
    }
}
