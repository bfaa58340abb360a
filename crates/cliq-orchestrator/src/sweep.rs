//! The second net: processes that left their group (by `setsid`, say) are found by the run's mark in their environment.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};

/// Ends every process on this machine that has `CLIQ_RUN_ID=<run_id>` in its environment, save this one: asks, waits
/// for `grace`, then forces. With `phase`, only those that also have `CLIQ_PHASE=<phase>`. Gives how many it found.
///
/// Finds nothing on systems without `/proc`.
pub fn sweep(run_id: &str, phase: Option<&str>, grace: Duration) -> usize {
    let mark = Mark { run_id: run_id.to_owned(), phase: phase.map(str::to_owned), session: None };
    let found = marked(&mark);
    for &pid in &found {
        let _ = kill_process(pid, Signal::TERM);
    }
    if found.is_empty() {
        return 0;
    }
    let deadline = Instant::now() + grace;
    loop {
        let left = marked(&mark);
        if left.is_empty() {
            return found.len();
        }
        if Instant::now() >= deadline {
            for pid in left {
                let _ = kill_process(pid, Signal::KILL);
            }
            return found.len();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What tells a run's processes from others.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) run_id: String,
    /// Only those of a phase.
    pub(crate) phase: Option<String>,
    /// Only those of a session, by the number of the process that leads or led it.
    pub(crate) session: Option<i32>,
}

/// The processes that bear a mark, this one left out. The shim of a pane counts by its session.
pub(crate) fn marked(mark: &Mark) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let me = getpid();
    let run = format!("CLIQ_RUN_ID={}", mark.run_id);
    let phase = mark.phase.as_ref().map(|phase| format!("CLIQ_PHASE={phase}"));
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw))
        .filter(|&pid| pid != me)
        .filter(|pid| {
            let number = pid.as_raw_nonzero().get();
            if mark.session.is_some_and(|session| cliq_fs::session_of(number) != Some(session)) {
                return false;
            }
            // A zombie's environment reads as empty, so the dead do not count.
            let Ok(environment) = fs::read(format!("/proc/{number}/environ")) else {
                return false;
            };
            let has = |mark: &str| environment.split(|&b| b == 0).any(|variable| variable == mark.as_bytes());
            has(&run) && phase.as_deref().is_none_or(has)
        })
        .collect()
}
