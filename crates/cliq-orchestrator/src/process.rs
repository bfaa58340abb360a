//! The `process` launcher: plain child processes, each in a process group of its own and without a terminal.
//!
//! The group is signalled before its leader is reaped, because afterwards its number may be that of another process. On
//! the way out the handle kills the group, so that no panic or dropped future leaves a process behind.

mod capture;
mod descriptors;
mod group;
mod start_error;
mod terminal;

use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cliq_fs::open_regular;
use rustix::process::{Pid, Signal};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

use crate::launcher::{Exit, Job, LaunchError, Launcher, Running};
use capture::Reader;
pub(crate) use capture::{Capture, TAIL_BYTES, last_lines};
pub use descriptors::raise_descriptor_limit;
pub(crate) use group::{ExitWatch, is_alive as group_is_alive};
pub(crate) use start_error::explain;
pub use terminal::leave_terminal;
pub(crate) use terminal::{NO_TERMINAL, Terminal, lacks_terminal};

/// Time in which output is still read after the process has exited while others hold its output open.
const DRAIN: Duration = Duration::from_millis(200);
/// Number of times, one millisecond apart, that processes of an ended group are reaped before the group is looked at.
const ADOPTED_TRIES: u32 = 4;

/// Starts plain child processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessLauncher;

struct Process {
    child: Child,
    pid: Pid,
    exited: ExitWatch,
    exit: Option<Exit>,
    /// Whether the whole group is gone and its number no longer ours.
    gone: bool,
    capture: Arc<Mutex<Capture>>,
    /// Gives the end of the pipe back, so that it is closed when there is time for it.
    pump: JoinHandle<Option<Reader>>,
    /// The end of the pipe, once nothing more comes.
    drained: Option<Reader>,
    /// Reservation of descriptors, released with the process.
    _descriptors: Option<OwnedSemaphorePermit>,
}

#[async_trait]
impl Launcher for ProcessLauncher {
    async fn launch(&self, job: &Job) -> Result<Box<dyn Running>, LaunchError> {
        let descriptors = descriptors::reserve().await;
        start(job, descriptors)
            .map(|process| Box::new(process) as Box<dyn Running>)
            .map_err(|source| LaunchError { program: job.program.clone(), source })
    }
}

/// Starts a job, in a group of its own. Gives the end of the pipe that all it prints comes out of.
///
/// # Errors
/// Returns the reason why it cannot be started, which names the part of the job that it is about.
pub(crate) fn spawn_job(job: &Job, terminal: Terminal) -> io::Result<(Child, PipeReader)> {
    spawn_unexplained(job, terminal).map_err(|error| explain(job, error))
}

fn spawn_unexplained(job: &Job, terminal: Terminal) -> io::Result<(Child, PipeReader)> {
    let (reader, writer) = io::pipe()?;
    let stdin = match &job.stdin {
        Some(path) => Stdio::from(open_regular(path).map_err(|error| error.source)?.0),
        None => Stdio::null(),
    };
    let mut command = Command::new(&job.program);
    // A run that a hook of git started works on its own directory and not on the repository of the hook.
    cliq_git::remove_local_variables(&mut command);
    command
        .args(&job.args)
        .envs(&job.env)
        .current_dir(&job.dir)
        .stdin(stdin)
        .stdout(writer.try_clone()?)
        .stderr(writer);
    terminal.apply(&mut command)?;
    // The command keeps its ends of the pipe open; they go with it, so that the output has an end.
    spawn(&mut command).map(|child| (child, reader))
}

fn start(job: &Job, descriptors: Option<OwnedSemaphorePermit>) -> io::Result<Process> {
    let (child, reader) = spawn_job(job, Terminal::None)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    let exited = ExitWatch::new(pid)?;
    let capture = Arc::new(Mutex::new(Capture::new(job.log.clone())));
    let pump = tokio::spawn(capture::pump(OwnedFd::from(reader), Arc::clone(&capture)));
    Ok(Process {
        child,
        pid,
        exited,
        exit: None,
        gone: false,
        capture,
        pump,
        drained: None,
        _descriptors: descriptors,
    })
}

/// A program that was written a moment ago may still be open for writing in a child that another thread is just
/// forking; the system then says "text file busy" for an instant.
fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 0..50 {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(2));
            }
            other => return other,
        }
    }
    command.spawn()
}

pub(crate) fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(0)),
    }
}

#[async_trait]
impl Running for Process {
    fn pid(&self) -> Option<u32> {
        Some(self.child.id())
    }

    fn group(&self) -> Option<u32> {
        Some(self.child.id())
    }

    async fn wait(&mut self) -> io::Result<Exit> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        self.exited.wait().await?;
        // Not reaped: its number, and with it the group's, stays taken until the group is ended.
        let exit = group::peek(self.pid)?;
        self.exit = Some(exit);
        Ok(exit)
    }

    async fn end(&mut self, grace: Duration) {
        if self.gone {
            return;
        }
        let _ = rustix::process::kill_process_group(self.pid, Signal::TERM);
        let deadline = tokio::time::Instant::now() + grace;
        let leader = tokio::time::timeout_at(deadline, self.exited.wait()).await;
        let mut exists = true;
        if leader.is_ok() {
            self.reap();
            // The first process of a namespace ends just after the leader that waits for it.
            for _ in 0..ADOPTED_TRIES {
                exists = group::exists(self.pid);
                if !exists {
                    break;
                }
                if !group::reap_adopted(self.pid) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
        let mut is_alive = exists && group::is_alive(self.pid);
        while is_alive && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
            is_alive = group::is_alive(self.pid);
        }
        if is_alive {
            let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        }
        if self.exit.is_none() || leader.is_err() {
            let _ = self.exited.wait().await;
            self.reap();
        }
        self.gone = true;
        self.drain().await;
    }

    async fn output_tail(&mut self) -> String {
        self.drain().await;
        self.capture.lock().unwrap_or_else(PoisonError::into_inner).tail()
    }

    fn has_output(&self) -> bool {
        self.capture.lock().unwrap_or_else(PoisonError::into_inner).has_output()
    }
}

impl Process {
    fn reap(&mut self) {
        if let Ok(status) = self.child.wait() {
            self.exit = Some(exit_of(status));
        }
    }

    /// Waits for the end of the output, for a short time only where another process holds it open.
    async fn drain(&mut self) {
        if !self.pump.is_finished()
            && let Ok(Ok(reader)) = tokio::time::timeout(DRAIN, &mut self.pump).await
        {
            self.drained = reader;
        }
        if self.gone {
            self.pump.abort();
            self.capture.lock().unwrap_or_else(PoisonError::into_inner).finish();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.gone {
            let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
            let _ = self.child.wait();
        }
        self.pump.abort();
        self.capture.lock().unwrap_or_else(PoisonError::into_inner).finish();
    }
}
