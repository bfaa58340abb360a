//! The second net: processes that left their group (by `setsid`, say) are found by the run's mark in their environment.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};

/// Ends every process on this machine that has `CLIQ_RUN_ID=<run_id>` in its environment, save this one: asks, waits
/// for `grace`, then forces. With `phase`, only those that also have `CLIQ_PHASE=<phase>`. Gives how many it found.
///
/// Finds nothing on systems without `/proc`.
pub fn sweep(run_id: &str, phase: Option<&str>, grace: Duration) -> usize {
    let found = marked(run_id, phase);
    for &pid in &found {
        let _ = kill_process(pid, Signal::TERM);
    }
    if found.is_empty() {
        return 0;
    }
    let deadline = Instant::now() + grace;
    loop {
        let left = marked(run_id, phase);
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

fn marked(run_id: &str, phase: Option<&str>) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let me = getpid();
    let run = format!("CLIQ_RUN_ID={run_id}");
    let phase = phase.map(|phase| format!("CLIQ_PHASE={phase}"));
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw))
        .filter(|&pid| pid != me)
        .filter(|pid| {
            // A zombie's environment reads as empty, so the dead do not count.
            let Ok(environment) = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())) else {
                return false;
            };
            let has = |mark: &str| environment.split(|&b| b == 0).any(|variable| variable == mark.as_bytes());
            has(&run) && phase.as_deref().is_none_or(has)
        })
        .collect()
}
