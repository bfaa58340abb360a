//! Watchdog of a run: a small process that ends the run's processes if the orchestrator dies without having ended them, by
//! SIGKILL for example.
//!
//! The watchdog waits for the end of a pipe that only the orchestrator holds. A run that ends stops its watchdog first, so the end of the
//! pipe always means a death. The watchdog finds processes by the mark of this orchestrator in their environment and by the process groups
//! that it was told of. A resumed run has another mark: a late watchdog cannot touch it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use camino::Utf8PathBuf;
use cliq_fs::CliqDir;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use crate::dead_run::end_inner_orchestrators;
use crate::launcher::{Exit, Running};
use crate::orphans::{Mark, end_marked, marked};
use crate::tmux::revoke_all_of;

/// Maximum size of the first line that a watchdog reads, in bytes.
const ORDER_LIMIT: u64 = 64 << 10;
/// Longest grace period: nothing of a dead run is at work for longer than 5 s.
const LONGEST_GRACE: Duration = Duration::from_secs(3);
/// Maximum time between the end of the orchestrator's pipe and its death.
const LONGEST_DEATH: Duration = Duration::from_secs(1);
/// Interval of the searches after which nothing was found. A process that was just being started is found by the second.
const SETTLING: Duration = Duration::from_millis(300);

/// Facts that a watchdog needs, as the first line of its standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WatchdogOrder {
    /// Directory of the run.
    pub(crate) root: Utf8PathBuf,
    /// Workspace of the run.
    pub(crate) workspace: Utf8PathBuf,
    /// Process id of the orchestrator.
    pub(crate) pid: u32,
    /// Value of `CLIQ_ORCHESTRATOR` in the environment of its processes.
    pub(crate) orchestrator: String,
    /// Grace period after a request to end, in milliseconds.
    pub(crate) grace_ms: u64,
}

/// Handle of the orchestrator on its watchdog. Dropping it without [`Watchdog::dismiss`] counts as the orchestrator's death.
#[derive(Debug)]
pub(crate) struct Watchdog {
    child: Child,
    pipe: ChildStdin,
    /// Lines that the watchdog has not been sent yet.
    unsent: String,
}

impl Watchdog {
    /// Starts a watchdog: a program, with its first arguments, that calls [`run_watchdog`].
    pub(crate) fn start(command: &[String], order: &WatchdogOrder) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut child = Command::new(program)
            .args(arguments)
            // It must neither bear the marks of a run nor keep a directory in use.
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .spawn()?;
        let mut pipe = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        if let Err(error) = pipe.write_all(&line) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
        Ok(Self { child, pipe, unsent: String::new() })
    }

    /// Process id of the watchdog.
    pub(crate) fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Sends that a group began.
    fn began(&mut self, group: u32) {
        let _ = writeln!(self.unsent, "+{group}");
        self.send();
    }

    /// Notes that a group ended. It is sent with the next group that begins, or by [`Watchdog::send`].
    fn ended(&mut self, group: u32) {
        let _ = writeln!(self.unsent, "-{group}");
    }

    /// Sends what has not been sent.
    fn send(&mut self) {
        if !self.unsent.is_empty() {
            // A watchdog that is gone cannot help any more, and the run goes on.
            let _ = self.pipe.write_all(self.unsent.as_bytes());
            self.unsent.clear();
        }
    }

    /// Ends the watchdog at once: nothing of the run is left.
    pub(crate) fn dismiss(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Watchdog of a run, started with the first process.
pub(crate) type SharedWatchdog = Arc<Mutex<WatchdogState>>;

/// State of the watchdog of a run.
#[derive(Debug, Default)]
pub(crate) enum WatchdogState {
    /// No process was started so far.
    #[default]
    Idle,
    /// A watchdog is active.
    Active(Watchdog),
    /// The run has no watchdog, or none any more.
    Absent,
}

/// Process that a watchdog knows by its group.
pub(crate) struct WatchedProcess {
    inner: Box<dyn Running>,
    watchdog: SharedWatchdog,
    /// Group of the process, until it has been ended.
    group: Option<u32>,
}

impl WatchedProcess {
    pub(crate) fn watch(inner: Box<dyn Running>, watchdog: &SharedWatchdog) -> Box<dyn Running> {
        let Some(group) = inner.group() else { return inner };
        with_watchdog(watchdog, |watchdog| watchdog.began(group));
        Box::new(Self { inner, watchdog: Arc::clone(watchdog), group: Some(group) })
    }

    fn forget(&mut self) {
        if let Some(group) = self.group.take() {
            with_watchdog(&self.watchdog, |watchdog| watchdog.ended(group));
        }
    }
}

/// Sends a watchdog the ends of groups that it has not been sent. For moments in which the orchestrator has nothing else to do: in a
/// chain of phases they are sent together with the next group.
pub(crate) fn send_ended_groups(watchdog: &SharedWatchdog) {
    with_watchdog(watchdog, Watchdog::send);
}

fn with_watchdog(watchdog: &SharedWatchdog, act: impl FnOnce(&mut Watchdog)) {
    if let WatchdogState::Active(watchdog) = &mut *watchdog.lock().unwrap_or_else(PoisonError::into_inner) {
        act(watchdog);
    }
}

#[async_trait]
impl Running for WatchedProcess {
    fn pid(&self) -> Option<u32> {
        self.inner.pid()
    }

    fn group(&self) -> Option<u32> {
        self.inner.group()
    }

    async fn wait(&mut self) -> io::Result<Exit> {
        self.inner.wait().await
    }

    fn start_error(&self) -> Option<&str> {
        self.inner.start_error()
    }

    async fn end(&mut self, grace: Duration) {
        self.inner.end(grace).await;
        self.forget();
    }

    fn left_nothing(&self) -> bool {
        self.inner.left_nothing()
    }

    async fn output_tail(&mut self) -> String {
        self.inner.output_tail().await
    }

    fn has_output(&self) -> bool {
        self.inner.has_output()
    }
}

impl Drop for WatchedProcess {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Watches over the orchestrator that holds the other end of standard input, and ends what it leaves. For a program of its own:
/// it changes the session of the process. `cliq` does so as `cliq watchdog`.
#[must_use]
pub fn run_watchdog() -> ExitCode {
    // Signals of a terminal are not for it, and it outlives the terminal.
    let _ = rustix::process::setsid();
    leave_output();
    match watch(io::stdin().lock()) {
        Ok(Some((order, groups))) => {
            await_death(order.pid);
            end_run(&order, groups);
            ExitCode::SUCCESS
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Lets go of standard output and standard error: their readers wait for the end of the orchestrator, not for that of its watchdog.
fn leave_output() {
    if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

/// Reads the order and the groups until the orchestrator is dead. Returns `None` if it died before it gave an order: it had
/// started nothing.
fn watch(input: impl Read) -> io::Result<Option<(WatchdogOrder, BTreeSet<i32>)>> {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    (&mut input).take(ORDER_LIMIT).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Ok(None);
    }
    let order = serde_json::from_slice(&line)?;
    let mut groups = BTreeSet::new();
    loop {
        line.clear();
        (&mut input).take(ORDER_LIMIT).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(Some((order, groups)));
        }
        note(&mut groups, &line);
    }
}

/// Notes a group that began (`+`) or ended (`-`). A torn line has no effect.
fn note(groups: &mut BTreeSet<i32>, line: &[u8]) {
    let Some(text) = std::str::from_utf8(line).ok().and_then(|line| line.strip_suffix('\n')) else { return };
    let number = |text: &str| text.parse::<i32>().ok().filter(|&number| number > 1);
    if let Some(group) = text.strip_prefix('+').and_then(number) {
        groups.insert(group);
    } else if let Some(group) = text.strip_prefix('-').and_then(number) {
        groups.remove(&group);
    }
}

/// Waits until the orchestrator is dead: a process closes its pipes before its children get another parent, by which agents tell the
/// death of a run from a cancellation.
fn await_death(orchestrator: u32) {
    let deadline = Instant::now() + LONGEST_DEATH;
    while std::os::unix::process::parent_id() == orchestrator && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends everything of a run whose orchestrator died.
fn end_run(order: &WatchdogOrder, groups: BTreeSet<i32>) {
    let grace = Duration::from_millis(order.grace_ms).min(LONGEST_GRACE);
    let mark = Mark { orchestrator: Some(order.orchestrator.clone()), ..Mark::default() };
    let dir = CliqDir::at(&order.root, &order.workspace).ok();
    if let Some(dir) = &dir {
        revoke_all_of(dir, order.pid);
        end_inner_orchestrators(dir, &mark);
    }
    end_groups(groups, &mark, grace);
    let last = Instant::now() + LONGEST_GRACE;
    while Instant::now() < last {
        std::thread::sleep(SETTLING);
        if marked(&mark).is_empty() {
            break;
        }
        end_marked(&mark, Duration::ZERO);
    }
}

/// Ends groups and marked processes together, so that both have the same grace period.
fn end_groups(groups: BTreeSet<i32>, mark: &Mark, grace: Duration) {
    let signal = |groups: &[Pid], signal| {
        for &group in groups {
            let _ = kill_process_group(group, signal);
        }
    };
    let mut groups: Vec<Pid> = groups.into_iter().filter_map(Pid::from_raw).collect();
    signal(&groups, Signal::TERM);
    std::thread::scope(|scope| {
        scope.spawn(|| end_marked(mark, grace));
        let deadline = Instant::now() + grace;
        loop {
            // A group that was seen to be gone is never signalled again: its number may be another's.
            groups.retain(|&group| crate::process::group_is_alive(group));
            if groups.is_empty() {
                return;
            }
            if Instant::now() >= deadline {
                return signal(&groups, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_groups_are_sent_with_the_next_group_or_on_demand() {
        let mut child =
            Command::new("/bin/cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut read = BufReader::new(child.stdout.take().unwrap());
        let pipe = child.stdin.take().unwrap();
        let mut watchdog = Watchdog { child, pipe, unsent: String::new() };
        let mut line = || {
            let mut line = String::new();
            read.read_line(&mut line).unwrap();
            line
        };
        watchdog.began(20);
        watchdog.ended(20);
        assert_eq!(line(), "+20\n");
        assert_eq!(watchdog.unsent, "-20\n");
        watchdog.began(30);
        // The number of a group that ended may be that of the next one.
        assert_eq!([line(), line()], ["-20\n", "+30\n"]);
        watchdog.ended(30);
        let shared = Arc::new(Mutex::new(WatchdogState::Active(watchdog)));
        send_ended_groups(&shared);
        assert_eq!(line(), "-30\n");
        let WatchdogState::Active(watchdog) = std::mem::take(&mut *shared.lock().unwrap()) else { panic!() };
        assert_eq!(watchdog.unsent, "");
        watchdog.dismiss();
    }

    #[test]
    fn watchdog_knows_the_groups_that_have_not_ended() {
        let order = WatchdogOrder {
            root: "/project/.cliq".into(),
            workspace: "/project".into(),
            pid: 7,
            orchestrator: "o".to_owned(),
            grace_ms: 2000,
        };
        let line = serde_json::to_string(&order).unwrap();
        let input = format!("{line}\n+20\n+30\n-20\n+40\n+1\n+-5\nodd\n-\n+5");
        let (read, groups) = watch(input.as_bytes()).unwrap().expect("an order");
        assert_eq!(read.orchestrator, "o");
        // Groups 0 and 1, negative numbers and the torn last line have no effect.
        assert_eq!(groups.into_iter().collect::<Vec<_>>(), [30, 40]);
        assert!(watch(line.as_bytes()).unwrap().is_none(), "a torn order");
        assert!(watch(&b""[..]).unwrap().is_none());
        assert!(watch(&b"{}\n"[..]).is_err());
    }
}
