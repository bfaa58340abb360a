//! Tool that runs shell commands.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
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
/// Maximum number of commands that run in the background.
const MAX_BACKGROUND: usize = 8;
/// Polling interval for the end of a command that was told to end.
const TICK: Duration = Duration::from_millis(10);
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
    /// Whether it goes on in the background, such as a server: the result is a number for `read_output` and `stop_command`. It ends with your
    /// work at the latest. Default: false.
    background: Option<bool>,
}

/// Arguments of `read_output` and `stop_command`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct OfBackground {
    /// Number of the command, from the result of `run_command`.
    number: u32,
}

/// Processes of commands that run, for their end.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    is_cancelled: Arc<AtomicBool>,
    groups: Arc<Mutex<Vec<Pid>>>,
    /// Commands in the background, by their numbers.
    background: Arc<Mutex<BTreeMap<u32, Background>>>,
}

/// Command in the background.
#[derive(Debug)]
struct Background {
    command: String,
    group: Pid,
    output: Arc<Mutex<Output>>,
    started: Instant,
    /// End of the command, or `None` if it is running.
    end: Arc<Mutex<Option<String>>>,
}

/// Command that was started.
struct Started {
    child: Child,
    group: Pid,
    output: Arc<Mutex<Output>>,
    end_of_output: mpsc::Receiver<()>,
}

impl Cancel {
    /// Ends all commands, and those that start later. Returns at once.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        for group in self.groups().iter() {
            let _ = kill_process_group(*group, Signal::KILL);
        }
    }

    fn background(&self) -> std::sync::MutexGuard<'_, BTreeMap<u32, Background>> {
        self.background.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn groups(&self) -> std::sync::MutexGuard<'_, Vec<Pid>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a command in a process group of its own, and collects its output.
fn start(workspace: &Workspace, script: &str, limit: usize, cancel: &Cancel) -> Result<Started, String> {
    let failed = |error: io::Error| format!("cannot start the command: {error}");
    let (reader, out) = io::pipe().map_err(failed)?;
    let err = out.try_clone().map_err(failed)?;
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).current_dir(workspace.root()).stdin(Stdio::null()).process_group(0);
    let child = command.stdout(out).stderr(err).spawn().map_err(failed)?;
    // The command has the write ends of the pipe.
    drop(command);
    let group = Pid::from_child(&child);
    cancel.groups().push(group);
    if cancel.is_cancelled.load(Ordering::SeqCst) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let output = Arc::new(Mutex::new(Output::new(limit)));
    let (ended, end_of_output) = mpsc::channel();
    {
        let output = Arc::clone(&output);
        std::thread::spawn(move || {
            collect(reader, &output);
            let _ = ended.send(());
        });
    }
    Ok(Started { child, group, output, end_of_output })
}

pub(super) fn run(workspace: &Workspace, arguments: &RunCommand, limit: usize, cancel: &Cancel) -> Outcome {
    if arguments.background == Some(true) {
        return run_in_background(workspace, &arguments.command, limit, cancel);
    }
    let seconds = arguments.timeout_seconds.unwrap_or(USUAL).clamp(1, LONGEST);
    let started = Instant::now();
    let Started { mut child, group, output, end_of_output } =
        start(workspace, &arguments.command, limit, cancel)?;
    let (exited, exit) = mpsc::channel();
    let waiter = std::thread::spawn(move || {
        let status = child.wait();
        let _ = exited.send(());
        status
    });
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

fn run_in_background(workspace: &Workspace, script: &str, limit: usize, cancel: &Cancel) -> Outcome {
    let mut all = cancel.background();
    let running = all.values().filter(|command| command.end().is_none()).count();
    if running >= MAX_BACKGROUND {
        return Err(format!("{running} commands run in the background: `stop_command` ends one"));
    }
    let Started { mut child, group, output, .. } = start(workspace, script, limit, cancel)?;
    let end = Arc::new(Mutex::new(None));
    let started = Instant::now();
    {
        let (end, groups) = (Arc::clone(&end), Arc::clone(&cancel.groups));
        std::thread::spawn(move || {
            let status = child.wait();
            // Those that it left behind.
            let _ = kill_process_group(group, Signal::KILL);
            groups.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| *known != group);
            let how = status.map_or_else(|error| format!("its end is unknown: {error}"), how);
            *end.lock().unwrap_or_else(PoisonError::into_inner) = Some(how);
        });
    }
    let number = all.keys().last().map_or(1, |last| last + 1);
    all.insert(number, Background { command: script.to_owned(), group, output, started, end });
    Ok(format!("it runs in the background; its number is {number}: `read_output` shows what it prints"))
}

impl Background {
    fn end(&self) -> Option<String> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Output so far, and the state.
    fn shown(&self) -> String {
        let text = self.output.lock().unwrap_or_else(PoisonError::into_inner).text();
        let line = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let state = match self.end() {
            Some(how) => format!("[{how}]"),
            None => format!("[running for {:.0} s]", self.started.elapsed().as_secs_f64()),
        };
        format!("{text}{line}{state}")
    }
}

fn with_background(
    arguments: &OfBackground,
    cancel: &Cancel,
    act: impl FnOnce(&Background) -> String,
) -> Outcome {
    let all = cancel.background();
    match all.get(&arguments.number) {
        Some(command) => Ok(act(command)),
        None if all.is_empty() => Err("no command runs in the background".to_owned()),
        None => {
            let known: Vec<String> = all
                .iter()
                .map(|(number, command)| {
                    format!("{number} ({})", cliq_protocol::shorten(&command.command, 40))
                })
                .collect();
            Err(format!("there is no command {}; there are: {}", arguments.number, known.join(", ")))
        }
    }
}

pub(super) fn read_output(arguments: &OfBackground, cancel: &Cancel) -> Outcome {
    with_background(arguments, cancel, Background::shown)
}

pub(super) fn stop(arguments: &OfBackground, cancel: &Cancel) -> Outcome {
    with_background(arguments, cancel, |command| {
        let until = Instant::now() + GRACE;
        let _ = kill_process_group(command.group, Signal::TERM);
        while command.end().is_none() && Instant::now() < until {
            std::thread::sleep(TICK);
        }
        if command.end().is_none() {
            let _ = kill_process_group(command.group, Signal::KILL);
            while command.end().is_none() && Instant::now() < until + GRACE {
                std::thread::sleep(TICK);
            }
        }
        command.shown()
    })
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
        let arguments =
            RunCommand { command: command.to_owned(), timeout_seconds: Some(seconds), background: None };
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
    fn commands_in_the_background_are_read_stopped_and_end_with_the_host() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = camino::Utf8Path::from_path(dir.path()).expect("UTF-8");
        let workspace = Workspace::open(root, Vec::new()).expect("there");
        let cancel = Cancel::default();
        let begin = |command: &str| {
            let command = command.to_owned();
            let arguments = RunCommand { command, timeout_seconds: None, background: Some(true) };
            run(&workspace, &arguments, 1000, &cancel)
        };
        let read = |number| read_output(&OfBackground { number }, &cancel);
        let wait_for = |number, text: &str| {
            while !read(number).expect("known").contains(text) {
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        assert!(read(1).expect_err("none").contains("no command runs"));
        assert!(begin("echo ready; sleep 600").expect("started").contains("its number is 1"));
        wait_for(1, "ready\n[running for ");
        assert!(begin("echo over; exit 3").expect("started").contains("its number is 2"));
        wait_for(2, "over\n[exit status 3]");
        assert!(read(3).expect_err("unknown").contains("there are: 1 (echo ready; sleep 600), 2"));
        let stopped = stop(&OfBackground { number: 1 }, &cancel).expect("known");
        assert!(stopped.starts_with("ready\n[killed by signal 15]"), "{stopped}");
        begin("trap '' TERM; echo $$ > pid; sleep 600").expect("started");
        let pid = || std::fs::read_to_string(dir.path().join("pid")).unwrap_or_default();
        while pid().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        cancel.cancel();
        wait_for(3, "[killed by signal 9]");
        let cancel = Cancel::default();
        let begin = || {
            let arguments =
                RunCommand { command: "sleep 600".to_owned(), timeout_seconds: None, background: Some(true) };
            run(&workspace, &arguments, 1000, &cancel)
        };
        assert!((0..MAX_BACKGROUND).all(|_| begin().is_ok()));
        assert!(begin().expect_err("too many").contains("`stop_command` ends one"));
        cancel.cancel();
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
