//! Process of an agent, in a process group of its own.
//!
//! The group is signalled before its leader is reaped, because afterwards its number may be that of another process. Children that
//! left the group are found by a mark in their environment, on systems with `/proc`.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::net::unix::pipe;
use tokio::time::Instant;

use super::outcome::AgentExit;

/// Variable that marks the processes of an agent.
pub const MARK: &str = "CLIQ_ACP_AGENT";
/// Interval at which a process group is looked at while it ends.
const POLL: Duration = Duration::from_millis(5);

/// Number of agents that this process started.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// Pipes of a process.
pub(super) struct Pipes {
    pub(super) input: pipe::Sender,
    pub(super) output: pipe::Receiver,
    pub(super) errors: pipe::Receiver,
}

/// Process of an agent. Its group is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    pid: Pid,
    exited: ExitWatch,
    mark: String,
    exit: Option<AgentExit>,
    /// Whether the group is gone and its number no longer ours.
    is_gone: bool,
}

impl Process {
    /// Starts a command in a group of its own, with pipes.
    pub(super) fn start(command: &mut Command) -> io::Result<(Self, Pipes)> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}-{since}", std::process::id());
        command.env(MARK, &mark).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(command)?;
        let pid = Pid::from_child(&child);
        let attach = |child: &mut Child| {
            let missing = || io::Error::other("a pipe is missing");
            let input = OwnedFd::from(child.stdin.take().ok_or_else(missing)?);
            let output = OwnedFd::from(child.stdout.take().ok_or_else(missing)?);
            let errors = OwnedFd::from(child.stderr.take().ok_or_else(missing)?);
            let pipes = Pipes {
                input: pipe::Sender::from_owned_fd(input)?,
                output: pipe::Receiver::from_owned_fd(output)?,
                errors: pipe::Receiver::from_owned_fd(errors)?,
            };
            Ok::<_, io::Error>((pipes, ExitWatch::new(pid)?))
        };
        match attach(&mut child) {
            Ok((pipes, exited)) => Ok((Self { child, pid, exited, mark, exit: None, is_gone: false }, pipes)),
            Err(error) => {
                let _ = rustix::process::kill_process_group(pid, Signal::KILL);
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Waits for the end of the process, without reaping it. Cancel safe.
    pub(super) async fn wait(&mut self) -> AgentExit {
        if let Some(exit) = self.exit {
            return exit;
        }
        let exit = match self.exited.wait().await.and_then(|()| peek(self.pid)) {
            Ok(exit) => exit,
            // Another waiter has reaped the process.
            Err(_) => AgentExit::Code(0),
        };
        self.exit = Some(exit);
        exit
    }

    /// Ends the group: waits, sends SIGTERM, waits, sends SIGKILL, and reaps the leader. Returns whether processes were left
    /// that had to be killed after the leader had ended.
    pub(super) async fn end(&mut self, close: Duration, terminate: Duration) -> bool {
        if self.is_gone {
            return false;
        }
        let _ = tokio::time::timeout(close, self.wait()).await;
        let mut was_left = false;
        if self.is_group_alive() {
            was_left = self.exit.is_some();
            let _ = rustix::process::kill_process_group(self.pid, Signal::TERM);
            let deadline = Instant::now() + terminate;
            while self.is_group_alive() && Instant::now() < deadline {
                let _ = tokio::time::timeout(POLL, self.wait()).await;
                if self.exit.is_some() && self.is_group_alive() {
                    tokio::time::sleep(POLL).await;
                }
            }
        }
        was_left | self.kill()
    }

    /// Kills the group and what left it, and reaps the leader. Returns whether processes had left the group.
    fn kill(&mut self) -> bool {
        if self.is_gone {
            return false;
        }
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        let marked = kill_marked(&self.mark);
        if let Ok(status) = self.child.wait() {
            self.exit = self.exit.or(Some(exit_of(status)));
        }
        self.is_gone = true;
        marked
    }

    /// Whether a living process is in the group. The leader is not reaped yet, so that the number is still that of the group.
    fn is_group_alive(&self) -> bool {
        let group = self.pid.as_raw_nonzero().get();
        cliq_fs::process_group_is_alive(group).unwrap_or(self.exit.is_none())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A program that was written a moment ago may still be open for writing in a child that another thread is just forking.
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

/// Kills processes with a mark in their environment. Returns whether there were any.
fn kill_marked(mark: &str) -> bool {
    let wanted = format!("{MARK}={mark}");
    let mut found = false;
    // A process that forks while it is looked for is found the next time.
    for _ in 0..3 {
        let pids = cliq_fs::processes_with(None, |variable| variable == wanted.as_bytes());
        // Where the system lists none, those of the agent's group are ended all the same.
        let Ok(pids) = pids else { break };
        if pids.is_empty() {
            break;
        }
        found = true;
        for pid in pids.into_iter().filter_map(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
    found
}

fn exit_of(status: ExitStatus) -> AgentExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => AgentExit::Code(code),
        (None, signal) => AgentExit::Signal(signal.unwrap_or(0)),
    }
}

/// Returns the end of a process that has exited, without reaping it.
fn peek(pid: Pid) -> io::Result<AgentExit> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let status = rustix::process::waitid(WaitId::Pid(pid), options)?.ok_or(io::ErrorKind::WouldBlock)?;
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ok(AgentExit::Code(code)),
        (None, signal) => Ok(AgentExit::Signal(signal.unwrap_or(0))),
    }
}

/// Future of the exit of a process, without reaping it.
#[derive(Debug)]
struct ExitWatch {
    #[cfg(target_os = "linux")]
    fd: tokio::io::unix::AsyncFd<OwnedFd>,
    #[cfg(not(target_os = "linux"))]
    pid: Pid,
}

#[cfg(target_os = "linux")]
impl ExitWatch {
    #[expect(
        deprecated,
        reason = "its replacement is unsafe for the sake of types that lie about their descriptor; an OwnedFd does not"
    )]
    fn new(pid: Pid) -> io::Result<Self> {
        let fd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
        Ok(Self { fd: tokio::io::unix::AsyncFd::with_interest(fd, tokio::io::Interest::READABLE)? })
    }

    async fn wait(&self) -> io::Result<()> {
        // A process descriptor becomes readable when its process exits, and stays so.
        self.fd.readable().await.map(|mut guard| guard.retain_ready())
    }
}

#[cfg(not(target_os = "linux"))]
impl ExitWatch {
    fn new(pid: Pid) -> io::Result<Self> {
        Ok(Self { pid })
    }

    async fn wait(&self) -> io::Result<()> {
        let pid = self.pid;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let wait = move || rustix::process::waitid(WaitId::Pid(pid), options).map(drop);
        tokio::task::spawn_blocking(wait).await.map_err(io::Error::other)?.map_err(Into::into)
    }
}
