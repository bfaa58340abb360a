//! A job in a pane.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use cliq_fs::{open_regular, read_limited};
use cliq_protocol::RunId;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::time::Instant;

use super::pane_pool::PanePool;
use super::server::TmuxError;
use super::shim::{ExitReport, exit_file};
use super::spare::Feed;
use super::spec;
use crate::blocking::spawn_blocking;
use crate::launcher::{Exit, Job, Running};
use crate::orphans::{Mark, marked};
use crate::process::{TAIL_BYTES, last_lines};

/// Maximum size of the shim's exit report, in bytes.
const EXIT_LIMIT: u64 = 64 << 10;
const NOTICE: Duration = Duration::from_millis(300);

pub(super) struct Pane {
    pool: Arc<PanePool>,
    id: String,
    pid: u32,
    exited: ExitWatch,
    exit: Option<Exit>,
    /// Reason why the job was never started, as the shim reports it.
    start_error: Option<String>,
    /// Set once the program in the pane has ended.
    over: Arc<AtomicBool>,
    feed: Option<Feed>,
    /// Nothing of the job is left in its session.
    gone: bool,
    /// Nothing of it is left anywhere.
    alone: bool,
    log: Utf8PathBuf,
    /// Offset of this job's output in the log.
    log_start: u64,
    mark: Mark,
    /// File with the job's description until the job runs.
    spec: Utf8PathBuf,
}

impl Pane {
    pub(super) fn new(
        pool: Arc<PanePool>,
        id: String,
        pid: u32,
        job: &Job,
        spec: Utf8PathBuf,
        log_start: u64,
        over: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let variable = |key: &str| job.env.get(key).cloned();
        Ok(Self {
            pool,
            id,
            pid,
            exited: ExitWatch::new(pid)?,
            exit: None,
            start_error: None,
            over,
            feed: None,
            spec,
            gone: false,
            alone: false,
            log: job.log.clone(),
            log_start,
            mark: Mark {
                run_id: variable("CLIQ_RUN_ID").and_then(|id| RunId::parse(&id).ok()),
                phase: variable("CLIQ_PHASE"),
                session: i32::try_from(pid).ok(),
                ..Mark::default()
            },
        })
    }

    /// Keeps the pipe that the job came through open: the shim may not have begun to read.
    pub(super) fn keep(mut self, feed: Feed) -> Self {
        self.feed = Some(feed);
        self
    }

    /// Returns the end as reported by the shim. If the shim was killed, returns what tmux knows. A pane that a person closed counts
    /// as a hang-up.
    async fn status(&mut self) -> io::Result<Exit> {
        let exit_file = exit_file(&self.spec);
        let report: Option<ExitReport> =
            read_limited(&exit_file, EXIT_LIMIT).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let _ = fs::remove_file(&exit_file);
        if let Some(report) = report {
            (self.gone, self.alone) = (report.alone, report.alone);
            self.start_error = report.start_error;
            return Ok(report.exit);
        }
        let deadline = Instant::now() + NOTICE;
        loop {
            match self.pool.server.exit(&self.id).await {
                Ok(Some((_, Some(signal)))) => return Ok(Exit::Signal(signal)),
                Ok(Some((Some(code), None))) => return Ok(Exit::Code(code)),
                Ok(None | Some((None, None))) if Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                Ok(_) | Err(TmuxError::Refused(_)) => return Ok(Exit::Signal(Signal::HUP.as_raw())),
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    /// Looks who is left of the job and does something about it. Looking takes milliseconds, in which nothing else must wait.
    async fn look<T: Send + 'static>(
        &self,
        then: impl FnOnce(&[Pid], u32) -> T + Send + 'static,
    ) -> Option<T> {
        let (mark, shim) = (self.mark.clone(), self.pid);
        spawn_blocking(move || then(&marked(&mark), shim)).await.ok()
    }
}

/// Remaining processes of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remaining {
    /// No process.
    None,
    /// The job itself, perhaps with others.
    Job,
    /// Only what it started.
    Others,
}

/// Says who is left, and with `really` asks them to end: the job itself as long as it is there, so that it can see to what it
/// started; then the others.
fn ask(found: &[Pid], shim: u32, really: bool) -> Remaining {
    let number = |pid: &Pid| pid.as_raw_nonzero().get();
    let is_job =
        |pid: &&Pid| cliq_fs::parent_of(number(pid)).is_some_and(|parent| u32::try_from(parent) == Ok(shim));
    let jobs: Vec<Pid> = found.iter().filter(is_job).copied().collect();
    if !jobs.is_empty() {
        if really {
            for &job in &jobs {
                // It leads a group of its own; an orphan that the shim adopted does not.
                let _ = kill_process_group(job, Signal::TERM);
                let _ = kill_process(job, Signal::TERM);
            }
        }
        return Remaining::Job;
    }
    // The shim leaves when the job does.
    let others: Vec<Pid> = found.iter().filter(|pid| number(pid).unsigned_abs() != shim).copied().collect();
    if really {
        for &pid in &others {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
    match (found.is_empty(), others.is_empty()) {
        (true, _) => Remaining::None,
        // The shim is about to leave.
        (false, true) => Remaining::Job,
        (false, false) => Remaining::Others,
    }
}

fn kill_all(found: &[Pid]) {
    for &pid in found {
        let _ = kill_process(pid, Signal::KILL);
    }
}

#[async_trait]
impl Running for Pane {
    fn pid(&self) -> Option<u32> {
        Some(self.pid)
    }

    async fn wait(&mut self) -> io::Result<Exit> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        self.exited.wait().await?;
        self.over.store(true, Ordering::Release);
        self.feed = None;
        let exit = self.status().await?;
        self.exit = Some(exit);
        Ok(exit)
    }

    fn start_error(&self) -> Option<&str> {
        self.start_error.as_deref()
    }

    async fn end(&mut self, grace: Duration) {
        if self.gone {
            return;
        }
        // A job that has not begun is not found among the processes, and must not begin any more.
        let spec = self.spec.clone();
        let _ = spawn_blocking(move || spec::revoke(&spec)).await;
        let deadline = Instant::now() + grace;
        // The processes that were asked to end last; each is asked once.
        let mut asked = Remaining::None;
        loop {
            let before = asked;
            let left = self.look(move |found, shim| {
                let left = ask(found, shim, false);
                if left == before { left } else { ask(found, shim, true) }
            });
            asked = left.await.unwrap_or(Remaining::None);
            if asked == Remaining::None {
                break;
            }
            if Instant::now() >= deadline {
                self.look(|found, _| kill_all(found)).await;
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let _ = self.wait().await;
        self.gone = true;
    }

    fn left_nothing(&self) -> bool {
        self.alone
    }

    async fn output_tail(&mut self) -> String {
        let read = || -> io::Result<(Vec<u8>, bool)> {
            let (mut file, end) = open_regular(&self.log).map_err(|error| error.source)?;
            let start = end.saturating_sub(TAIL_BYTES as u64).max(self.log_start);
            file.seek(SeekFrom::Start(start))?;
            let mut bytes = Vec::new();
            file.take(TAIL_BYTES as u64).read_to_end(&mut bytes)?;
            Ok((bytes, start > self.log_start))
        };
        let (bytes, cut) = read().unwrap_or_default();
        last_lines(&bytes, cut)
    }

    fn has_output(&self) -> bool {
        self.log.metadata().is_ok_and(|meta| meta.len() > self.log_start)
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        if !self.gone {
            spec::revoke(&self.spec);
            kill_all(&marked(&self.mark));
        }
    }
}

/// Notices the exit of a process that is not a child of this one.
struct ExitWatch {
    #[cfg(target_os = "linux")]
    fd: Option<crate::process::ExitWatch>,
    #[cfg(not(target_os = "linux"))]
    pid: Option<Pid>,
}

#[cfg(target_os = "linux")]
impl ExitWatch {
    fn new(pid: u32) -> io::Result<Self> {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        match crate::process::ExitWatch::new(pid) {
            Ok(watch) => Ok(Self { fd: Some(watch) }),
            // It has gone already.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
                Ok(Self { fd: None })
            }
            Err(error) => Err(error),
        }
    }

    async fn wait(&self) -> io::Result<()> {
        match &self.fd {
            Some(watch) => watch.wait().await,
            None => Ok(()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl ExitWatch {
    fn new(pid: u32) -> io::Result<Self> {
        Ok(Self { pid: i32::try_from(pid).ok().and_then(Pid::from_raw) })
    }

    async fn wait(&self) -> io::Result<()> {
        while self.pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}
