//! Inside a pane: runs the job and passes on what it prints.

use std::ffi::OsString;
use std::fs;
use std::io::{self, PipeReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

use super::spare::{self, WAIT};
use super::spec::Claim;
use crate::launcher::{Exit, Job};
use crate::process::{Capture, Terminal, exit_of, explain, spawn_job};

/// Time of silence after which the shim checks whether the job has ended.
const SILENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Runs the job that a launcher described in the file that `args` names, in the pane that this process was started in.
/// Gives the job's own exit status. Where a signal ended it, this process ends by the same signal and does not return.
///
/// With the arguments `-` and a log file, passes standard input on to that log: what a job leaves running may still
/// print. With `+` and a pipe, waits there for the name of that file.
#[must_use]
pub fn run_pane(args: &[String]) -> ExitCode {
    let outcome = match args {
        [stdin, log] if stdin == "-" => keep_on(Utf8Path::new(log)),
        [wait, feed] if wait == WAIT => match spare::wait(Utf8Path::new(feed)) {
            Ok(Some(spec)) => run(&spec),
            Ok(None) => close_own_pane(),
            Err(error) => Err(error),
        },
        [spec] => run(Utf8Path::new(spec)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "this is for cliq's own use")),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(io::stderr(), "cliq: {error}");
            ExitCode::from(127)
        }
    }
}

/// No job will come: the pane, which would stay for people to read, goes.
fn close_own_pane() -> io::Result<u8> {
    let Some(pane) = std::env::var_os("TMUX_PANE") else { return Ok(0) };
    Command::new("tmux").arg("kill-pane").arg("-t").arg(pane).stdin(Stdio::null()).status().map(|_| 0)
}

/// Checks for failures that are known before a pane is opened.
pub(super) fn check(job: &Job) -> io::Result<()> {
    if !job.dir.is_dir() {
        return Err(explain(job, rustix::io::Errno::NOENT.into()));
    }
    if !job.program.contains('/') {
        return Ok(());
    }
    let meta = fs::metadata(job.dir.join(&job.program)).map_err(|error| explain(job, error))?;
    if meta.is_file() && meta.permissions().mode() & 0o111 != 0 {
        return Ok(());
    }
    Err(explain(job, rustix::io::Errno::ACCESS.into()))
}

fn run(spec: &Utf8Path) -> io::Result<u8> {
    let Some((claim, job)) = Claim::on(spec)? else {
        return Err(io::Error::other("the job was called off before it began"));
    };
    let mut capture = Capture::new(job.log.clone());
    // Processes that the job leaves become children of this process, so that it knows whether there are any.
    #[cfg(target_os = "linux")]
    let adopts = rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok();
    #[cfg(not(target_os = "linux"))]
    let adopts = false;
    // When this process ends, the terminal hangs up on its own group; the job's is another, and what it leaves running stays.
    let spawned = spawn_job(&job, Terminal::Inherited);
    drop(claim);
    let (mut child, mut reader) = match spawned {
        Ok(spawned) => spawned,
        Err(error) => {
            pass_on(format!("cannot start {}: {error}\n", job.program).as_bytes(), &mut capture);
            let report =
                ExitReport { exit: Exit::Code(127), alone: true, start_error: Some(error.to_string()) };
            fs::write(exit_file(spec), serde_json::to_vec(&report)?)?;
            return Ok(127);
        }
    };
    give_terminal(&child);
    // What people type in the pane is for the job. It works in a group of its own, so it does not hear by itself.
    let interrupted = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&interrupted))?;
    let status = follow(&mut child, &mut reader, &mut capture, &job, &interrupted);
    take_terminal();
    let status = status?;
    capture.finish();
    let exit = exit_of(status);
    let report = ExitReport { exit, alone: adopts && has_no_children(), start_error: None };
    let written = fs::write(exit_file(spec), serde_json::to_vec(&report)?);
    match exit {
        Exit::Code(code) => written.map(|()| u8::try_from(code).unwrap_or(1)),
        Exit::Signal(signal) => Ok(Signal::from_named_raw(signal).map_or(1, end_by)),
    }
}

/// Makes the job the foreground of the pane, so that people can answer what it asks on the terminal.
fn give_terminal(child: &Child) {
    let job = Pid::from_child(child);
    // In a pane without a person, or after the pane was closed, there is nobody to answer either way.
    if rustix::termios::tcsetpgrp(io::stdin(), job).is_ok() {
        // A job that asked before this was stopped for it.
        let _ = rustix::process::kill_process_group(job, Signal::CONT);
    }
}

/// Makes the shim the foreground of the pane again: when it ends, the terminal hangs up on the foreground, and what the job
/// leaves running stays.
fn take_terminal() {
    // A process in the background is stopped for this unless it blocks the signal.
    let stop = nix::sys::signal::SigSet::from(nix::sys::signal::Signal::SIGTTOU);
    if stop.thread_block().is_ok() {
        let _ = rustix::termios::tcsetpgrp(io::stdin(), rustix::process::getpgrp());
    }
}

/// Report of the shim about the end of its job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ExitReport {
    pub(super) exit: Exit,
    /// Whether certainly nothing of the job is left.
    pub(super) alone: bool,
    /// Reason why the job was never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) start_error: Option<String>,
}

fn has_no_children() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            // One that had ended.
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return false,
            Err(error) => return error == rustix::io::Errno::CHILD,
        }
    }
}

/// Returns the file for the shim's exit report. tmux knows the end too, but forgets it for panes that are reused.
pub(super) fn exit_file(spec: &Utf8Path) -> Utf8PathBuf {
    spec.with_extension("exit")
}

/// Passes on what is printed until the job is over. Who else holds its output open then is followed in the background.
fn follow(
    child: &mut Child,
    reader: &mut PipeReader,
    capture: &mut Capture,
    job: &Job,
    interrupted: &AtomicBool,
) -> io::Result<ExitStatus> {
    let mut buffer = vec![0; 64 * 1024];
    let mut looked = Instant::now();
    loop {
        if readable(reader, SILENCE)? {
            match reader.read(&mut buffer)? {
                0 => return child.wait(),
                n => pass_on(&buffer[..n], capture),
            }
            if looked.elapsed() < Duration::from_millis(20) {
                continue;
            }
        }
        looked = Instant::now();
        if interrupted.swap(false, Ordering::Relaxed) {
            let _ = rustix::process::kill_process_group(Pid::from_child(child), Signal::INT);
        }
        if let Some(status) = child.try_wait()? {
            // What it printed itself is in the pipe by now; more than a pipe holds is of others.
            let mut left: usize = 64 * 1024;
            while left > 0 && readable(reader, Timespec { tv_sec: 0, tv_nsec: 0 })? {
                match reader.read(&mut buffer)? {
                    0 => return Ok(status),
                    n => {
                        pass_on(&buffer[..n], capture);
                        left = left.saturating_sub(n);
                    }
                }
            }
            hand_on(reader, job)?;
            return Ok(status);
        }
    }
}

fn readable(reader: &PipeReader, timeout: Timespec) -> io::Result<bool> {
    let mut fds = [PollFd::new(reader, PollFlags::IN)];
    match poll(&mut fds, Some(&timeout)) {
        Ok(n) => Ok(n > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes to the pane, which may be closed, and to the log.
fn pass_on(bytes: &[u8], capture: &mut Capture) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
    capture.feed(bytes);
}

/// Leaves the reading to a process that stays until no process can print. It bears the job's marks and ends with it.
fn hand_on(reader: &PipeReader, job: &Job) -> io::Result<()> {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let own = args.split_last().map_or(&[][..], |(_, own)| own);
    let own = own.strip_suffix(&[OsString::from(WAIT)]).unwrap_or(own);
    Command::new(std::env::current_exe()?)
        .args(own)
        .args(["-", job.log.as_str()])
        .envs(&job.env)
        .stdin(reader.try_clone()?)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map(drop)
}

fn keep_on(log: &Utf8Path) -> io::Result<u8> {
    let mut capture = Capture::new(log.to_owned());
    let mut input = io::stdin().lock();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match input.read(&mut buffer)? {
            0 => break,
            n => capture.feed(&buffer[..n]),
        }
    }
    capture.finish();
    Ok(0)
}

/// Ends this process as the job ended, without another core file.
fn end_by(signal: Signal) -> u8 {
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
    1
}
