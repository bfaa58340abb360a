//! Process groups: knowing that a leader exited without reaping it, and whether anyone of a group is left.

use std::io;

use rustix::process::{Pid, WaitId, WaitIdOptions};

use crate::launcher::Exit;

/// Resolves when a process has exited, without reaping it.
pub(crate) struct ExitWatch {
    #[cfg(target_os = "linux")]
    fd: tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>,
    #[cfg(not(target_os = "linux"))]
    pid: Pid,
}

#[cfg(target_os = "linux")]
impl ExitWatch {
    #[expect(
        deprecated,
        reason = "its replacement is unsafe for the sake of types that lie about their descriptor; an OwnedFd does not"
    )]
    pub(crate) fn new(pid: Pid) -> io::Result<Self> {
        let fd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
        Ok(Self { fd: tokio::io::unix::AsyncFd::with_interest(fd, tokio::io::Interest::READABLE)? })
    }

    pub(crate) async fn wait(&self) -> io::Result<()> {
        // A process descriptor becomes readable when its process exits, and stays so.
        self.fd.readable().await.map(|mut guard| guard.retain_ready())
    }
}

#[cfg(not(target_os = "linux"))]
impl ExitWatch {
    pub(crate) fn new(pid: Pid) -> io::Result<Self> {
        Ok(Self { pid })
    }

    pub(crate) async fn wait(&self) -> io::Result<()> {
        let pid = self.pid;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let wait = move || rustix::process::waitid(WaitId::Pid(pid), options).map(drop);
        crate::blocking::spawn_blocking(wait).await.map_err(io::Error::other)?.map_err(Into::into)
    }
}

/// Returns the end of a process that has exited, without reaping it.
pub(crate) fn peek(pid: Pid) -> io::Result<Exit> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let status = rustix::process::waitid(WaitId::Pid(pid), options)?.ok_or(io::ErrorKind::WouldBlock)?;
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ok(Exit::Code(code)),
        (None, signal) => Ok(Exit::Signal(signal.unwrap_or(0))),
    }
}

/// Reaps processes of a group that became children of this process, as it adopts orphans. Only after the leader is reaped. Returns `false` if there are none.
pub(crate) fn reap_adopted(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let mut any = false;
    while let Ok(Some(_)) = rustix::process::waitid(WaitId::Pgid(Some(pid)), options) {
        any = true;
    }
    any
}

/// Whether any process of the group is left, even one that has exited.
pub(crate) fn exists(pid: Pid) -> bool {
    rustix::process::test_kill_process_group(pid).is_ok()
}

/// Whether a living process of the group is left.
pub(crate) fn is_alive(pid: Pid) -> bool {
    // Nearly always no process is left, and that check is cheap. Only otherwise are the processes listed.
    exists(pid) && cliq_fs::process_group_is_alive(pid.as_raw_nonzero().get()).unwrap_or(true)
}
