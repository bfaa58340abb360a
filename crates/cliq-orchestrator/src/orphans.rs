//! Orphans: processes that left their process group (by `setsid`, for example). They are found by the mark of the run in their
//! environment.

#[cfg(target_os = "linux")]
use std::fs::{self, File};
#[cfg(target_os = "linux")]
use std::io::Read;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::time::{Duration, Instant};

use cliq_protocol::RunId;
use rustix::process::{Pid, Signal, getpid, kill_process};

/// Makes this process, instead of the first one of the system, the parent of processes that its descendants leave behind.
/// A run then needs to look for them only among its own descendants, which is much faster than looking at every process
/// there is: say so in [`crate::RunPlan::adopts_orphans`]. Gives whether the system can do that.
///
/// The call changes a property of the whole process, so only programs should make it, not libraries.
#[must_use]
pub fn adopt_orphans() -> bool {
    #[cfg(target_os = "linux")]
    let adopts = rustix::process::set_child_subreaper(Some(getpid())).is_ok() && lists_children();
    #[cfg(not(target_os = "linux"))]
    let adopts = false;
    adopts
}

/// Whether the system lists the children of a process.
#[cfg(target_os = "linux")]
fn lists_children() -> bool {
    let me = getpid().as_raw_nonzero();
    Path::new(&format!("/proc/{me}/task/{me}/children")).exists()
}

/// Time for killed processes to be gone.
const DYING: Duration = Duration::from_secs(1);

/// Ends every process with a mark. Gives how many it found.
pub(crate) fn end_marked(mark: &Mark, grace: Duration) -> usize {
    let found = marked(mark);
    for &pid in &found {
        let _ = kill_process(pid, Signal::TERM);
    }
    if found.is_empty() {
        return 0;
    }
    let deadline = Instant::now() + grace;
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return found.len();
        }
        if Instant::now() >= deadline {
            for pid in left {
                let _ = kill_process(pid, Signal::KILL);
            }
            if Instant::now() >= deadline + DYING {
                return found.len();
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The variable that names the runs and phases of a process: `<run id>/<phase>`, and after a semicolon the same for the
/// run of a team within.
pub(crate) const RUN_PATH: &str = "CLIQ_RUN_PATH";

/// The variable that names the orchestrator of a process: another one each time that a run is started or resumed.
pub(crate) const ORCHESTRATOR: &str = "CLIQ_ORCHESTRATOR";

/// The mark of a run, a phase, a session or an orchestrator in the environment of its processes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mark {
    /// Run of the processes, if the mark is that of a run.
    pub(crate) run_id: Option<RunId>,
    /// Instead of those of a run, those of this orchestrator: the value of [`ORCHESTRATOR`].
    pub(crate) orchestrator: Option<String>,
    /// Only those of a phase.
    pub(crate) phase: Option<String>,
    /// Only those of a session, by the number of the process that leads or led it.
    pub(crate) session: Option<i32>,
    /// Only descendants of this process.
    pub(crate) descendant: bool,
    /// Descendant that is known to bear no mark: the watchdog.
    pub(crate) except: Option<Pid>,
}

impl Mark {
    /// Whether a variable of an environment, `NAME=VALUE`, is the mark.
    fn is_in(&self, variable: &[u8]) -> bool {
        let name = if self.orchestrator.is_some() { ORCHESTRATOR } else { RUN_PATH };
        let value = variable.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        let Some(value) = value.and_then(|value| std::str::from_utf8(value).ok()) else { return false };
        match &self.orchestrator {
            Some(orchestrator) => value == orchestrator,
            None => self.is_on(value),
        }
    }

    /// Whether a process with this run path is of the run, or of a team within it.
    fn is_on(&self, path: &str) -> bool {
        path.split(';').filter_map(|step| step.split_once('/')).any(|(run, phase)| {
            self.run_id.as_ref().is_some_and(|own| *own == run)
                && self.phase.as_deref().is_none_or(|wanted| wanted == phase)
        })
    }
}

/// The processes with a mark, without this one. The shim of a pane counts by its session.
pub(crate) fn marked(mark: &Mark) -> Vec<Pid> {
    let me = getpid().as_raw_nonzero().get();
    let candidates = if mark.descendant { descendants(mark.except) } else { None };
    let found = cliq_fs::processes_with(candidates.as_deref(), |variable| mark.is_in(variable));
    let found = found.unwrap_or_else(|error| {
        tracing::warn!(%error, "the processes of a run cannot be looked for");
        Vec::new()
    });
    let is_of_session =
        |pid: &i32| mark.session.is_none_or(|session| cliq_fs::session_of(*pid) == Some(session));
    found.into_iter().filter(|pid| *pid != me).filter(is_of_session).filter_map(Pid::from_raw).collect()
}

#[cfg(not(target_os = "linux"))]
fn descendants(_: Option<Pid>) -> Option<Vec<i32>> {
    None
}

/// All descendants of this process but one; `None` if the system does not say.
#[cfg(target_os = "linux")]
fn descendants(except: Option<Pid>) -> Option<Vec<i32>> {
    let mut found = Vec::new();
    let mut pending = vec![getpid()];
    let mut children = String::new();
    while let Some(parent) = pending.pop() {
        let number = parent.as_raw_nonzero();
        for task in numbers_in(&format!("/proc/{number}/task")) {
            children.clear();
            let file = format!("/proc/{number}/task/{}/children", task.as_raw_nonzero());
            match File::open(file).and_then(|mut file| file.read_to_string(&mut children)) {
                Ok(_) => {}
                Err(_) if parent == getpid() && task == getpid() => return None,
                // It has gone in the meantime.
                Err(_) => continue,
            }
            for child in
                children.split_ascii_whitespace().filter_map(|n| n.parse().ok().and_then(Pid::from_raw))
            {
                if Some(child) == except {
                    continue;
                }
                found.push(child.as_raw_nonzero().get());
                pending.push(child);
            }
        }
    }
    Some(found)
}

/// The entries of a directory whose names are numbers of processes.
#[cfg(target_os = "linux")]
fn numbers_in(dir: &str) -> Vec<Pid> {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_reach_into_teams_within() {
        let mark = |run: &str, phase: Option<&str>| Mark {
            run_id: RunId::parse(run).ok(),
            phase: phase.map(str::to_owned),
            ..Mark::default()
        };
        let path = "r1/build;r2/test";
        assert!(mark("r1", None).is_on(path) && mark("r2", None).is_on(path));
        assert!(mark("r1", Some("build")).is_on(path) && mark("r2", Some("test")).is_on(path));
        // A phase of the same name in the outer run is another one.
        assert!(!mark("r1", Some("test")).is_on(path) && !mark("r", None).is_on(path));
    }

    #[test]
    fn mark_of_an_orchestrator_is_of_no_other_one() {
        let mark = Mark { orchestrator: Some("o1".to_owned()), ..Mark::default() };
        assert!(mark.is_in(b"CLIQ_ORCHESTRATOR=o1"));
        for other in
            ["CLIQ_ORCHESTRATOR=o2", "CLIQ_ORCHESTRATOR=o11", "CLIQ_RUN_PATH=o1/a", "X=CLIQ_ORCHESTRATOR=o1"]
        {
            assert!(!mark.is_in(other.as_bytes()), "{other}");
        }
        let mark = Mark { run_id: RunId::parse("r1").ok(), ..Mark::default() };
        assert!(mark.is_in(b"CLIQ_RUN_PATH=r1/a") && !mark.is_in(b"CLIQ_ORCHESTRATOR=r1"));
    }
}
