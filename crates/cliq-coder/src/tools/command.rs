//! Tool that runs shell commands.

use std::io::{self, PipeReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Outcome;
use super::paths::Workspace;

/// Time limit of a command that names none, and the longest one, in seconds.
const USUAL: u64 = 120;
const LONGEST: u64 = 3_600;
/// Time between the requests to end and to be killed.
const GRACE: Duration = Duration::from_secs(2);
/// Time in which output is still read after the command has ended while others hold it open.
const DRAIN: Duration = Duration::from_millis(200);

/// Arguments of `run_command`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct RunCommand {
    /// Command for `sh -c`.
    command: String,
    /// Time limit in seconds. Default: 120, maximum: 3600.
    timeout_seconds: Option<u64>,
}

/// Processes of commands that run, for their end.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    is_cancelled: Arc<AtomicBool>,
    groups: Arc<Mutex<Vec<Pid>>>,
}

impl Cancel {
    /// Ends all commands, and those that start later. Returns at once.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        for group in self.groups().iter() {
            let _ = kill_process_group(*group, Signal::KILL);
        }
    }

    fn groups(&self) -> std::sync::MutexGuard<'_, Vec<Pid>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn run(workspace: &Workspace, arguments: &RunCommand, limit: usize, cancel: &Cancel) -> Outcome {
    let seconds = arguments.timeout_seconds.unwrap_or(USUAL).clamp(1, LONGEST);
    let (reader, writer) = io::pipe().map_err(|error| format!("cannot start the command: {error}"))?;
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(&arguments.command)
        .current_dir(workspace.root())
        .stdin(Stdio::null())
        .process_group(0);
    let writers = writer.try_clone().map(|other| (writer, other));
    let (out, err) = writers.map_err(|error| format!("cannot start the command: {error}"))?;
    let started = Instant::now();
    let mut child = command
        .stdout(out)
        .stderr(err)
        .spawn()
        .map_err(|error| format!("cannot start the command: {error}"))?;
    // The command has the write ends of the pipe.
    drop(command);
    let group = Pid::from_child(&child);
    cancel.groups().push(group);
    let output = Arc::new(Mutex::new(Output::new(limit)));
    let (ended, end_of_output) = mpsc::channel();
    {
        let output = Arc::clone(&output);
        std::thread::spawn(move || {
            collect(reader, &output);
            let _ = ended.send(());
        });
    }
    let (exited, exit) = mpsc::channel();
    let waiter = std::thread::spawn(move || {
        let status = child.wait();
        let _ = exited.send(());
        status
    });
    if cancel.is_cancelled.load(Ordering::SeqCst) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let is_late = exit.recv_timeout(Duration::from_secs(seconds)).is_err();
    if is_late {
        let _ = kill_process_group(group, Signal::TERM);
        if exit.recv_timeout(GRACE).is_err() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
    let status = waiter.join().unwrap_or_else(|_| Err(io::Error::other("its end is unknown")));
    // Those that it left behind.
    let _ = kill_process_group(group, Signal::KILL);
    cancel.groups().retain(|known| *known != group);
    let _ = end_of_output.recv_timeout(DRAIN);
    let text = output.lock().unwrap_or_else(PoisonError::into_inner).text();
    let status = status.map_err(|error| format!("the end of the command is unknown: {error}"))?;
    let time = started.elapsed().as_secs_f64();
    let end = if cancel.is_cancelled.load(Ordering::SeqCst) {
        "[cancelled]".to_owned()
    } else if is_late {
        format!("[ended after {seconds} s: it took too long]")
    } else {
        format!("[{} after {time:.1} s]", how(status))
    };
    let text = if text.is_empty() || text.ends_with('\n') {
        format!("{text}{end}")
    } else {
        format!("{text}\n{end}")
    };
    if status.success() && !is_late { Ok(text) } else { Err(text) }
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, signal) => format!("killed by signal {}", signal.unwrap_or(0)),
    }
}

fn collect(mut reader: PipeReader, output: &Mutex<Output>) {
    let mut buffer = [0; 8192];
    while let Ok(n @ 1..) = reader.read(&mut buffer) {
        output.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..n]);
    }
}

/// Beginning and end of an output.
#[derive(Debug)]
struct Output {
    head: Vec<u8>,
    tail: Vec<u8>,
    limit: usize,
    dropped: usize,
}

impl Output {
    fn new(limit: usize) -> Self {
        Self { head: Vec::new(), tail: Vec::new(), limit: limit.saturating_sub(100).max(200), dropped: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        let (head, tail) = (self.limit * 2 / 5, self.limit * 3 / 5);
        let room = head.saturating_sub(self.head.len()).min(bytes.len());
        // Nothing may go to the head once there is a tail.
        let room = if self.tail.is_empty() { room } else { 0 };
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend_from_slice(&bytes[room..]);
        if self.tail.len() > 2 * tail {
            let excess = self.tail.len() - tail;
            self.tail.drain(..excess);
            self.dropped += excess;
        }
    }

    fn text(&self) -> String {
        let tail = self.limit * 3 / 5;
        let excess = self.tail.len().saturating_sub(tail);
        let excess =
            if self.dropped == 0 && self.head.len() + self.tail.len() <= self.limit { 0 } else { excess };
        let dropped = self.dropped + excess;
        let head = String::from_utf8_lossy(&self.head);
        let end = String::from_utf8_lossy(&self.tail[excess..]);
        if dropped == 0 {
            format!("{head}{end}")
        } else {
            format!("{head}\n[{dropped} bytes removed]\n{end}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_in(dir: &tempfile::TempDir, command: &str, seconds: u64) -> Outcome {
        let root = camino::Utf8Path::from_path(dir.path()).expect("UTF-8");
        let workspace = Workspace::open(root, Vec::new()).expect("there");
        let arguments = RunCommand { command: command.to_owned(), timeout_seconds: Some(seconds) };
        run(&workspace, &arguments, 1000, &Cancel::default())
    }

    #[test]
    fn output_and_status_are_returned() {
        let dir = tempfile::tempdir().expect("a directory");
        let good = run_in(&dir, "echo out; echo err >&2; pwd -P", 10).expect("good");
        assert!(good.starts_with("out\nerr\n/") && good.contains("[exit status 0 after "), "{good}");
        let bad = run_in(&dir, "printf no; exit 3", 10).expect_err("bad");
        assert!(bad.starts_with("no\n[exit status 3 after "), "{bad}");
        let long = run_in(&dir, "yes | head -c 100000; echo last", 10).expect("good");
        assert!(long.len() < 1200 && long.contains("bytes removed]") && long.contains("last\n["), "{long}");
        assert!(run_in(&dir, "read line", 10).is_err(), "there is no input");
    }

    #[test]
    fn commands_end_with_all_their_processes() {
        let dir = tempfile::tempdir().expect("a directory");
        let late = run_in(&dir, "trap '' TERM; echo started; sleep 600", 1).expect_err("late");
        assert!(late.starts_with("started\n[ended after 1 s"), "{late}");
        // The output stays open, and the command is over all the same.
        let left = run_in(&dir, "sleep 600 & echo $! > pid; echo done", 60).expect("good");
        assert!(left.starts_with("done\n"), "{left}");
        let pid = std::fs::read_to_string(dir.path().join("pid")).expect("written");
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        while !state().is_empty() && !state().contains(") Z ") {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
