//! Ending what a dead orchestrator left running.

use std::time::Duration;

use cliq_fs::{CliqDir, ProjectLock, clear_temporaries};
use cliq_protocol::{PhaseName, RunId};
use rustix::process::{Pid, Signal, kill_process};

use crate::orphans::{Mark, end_marked, marked};
use crate::tmux::revoke_all;

/// Ends all processes of a run whose orchestrator died: jobs that were about to start never do, and every process on
/// this machine that is of the run by its environment, save this one, is asked to end and after `grace` forced to. Gives
/// how many it found. `dir` is the directory of the run. The caller makes sure that no run is under way there.
///
/// Orchestrators of team phases are killed first: one that lived on would take the end of its commands for a failure.
///
/// Finds no processes on systems without `/proc`.
pub fn end_dead_run(dir: &CliqDir, run_id: &RunId, grace: Duration) -> usize {
    revoke_all(dir);
    // Values of templates that were on their way to a command.
    let _ = clear_temporaries(dir);
    let mark = Mark { run_id: Some(run_id.clone()), ..Mark::default() };
    end_inner_orchestrators(dir, &mark) + end_marked(&mark, grace)
}

/// Kills the orchestrators of team phases that bear a mark. Gives how many.
pub(crate) fn end_inner_orchestrators(dir: &CliqDir, mark: &Mark) -> usize {
    let mut orchestrators = Vec::new();
    inner_orchestrators(dir, &mut orchestrators);
    if orchestrators.is_empty() {
        return 0;
    }
    let found = marked(mark).into_iter().filter(|pid| orchestrators.contains(pid));
    found.filter(|&pid| kill_process(pid, Signal::KILL).is_ok()).count()
}

/// Finds the orchestrators of team phases, at any depth, by the locks that they hold.
fn inner_orchestrators(dir: &CliqDir, found: &mut Vec<Pid>) {
    let Ok(teams) = dir.teams().read_dir_utf8() else { return };
    for name in teams.flatten().filter_map(|team| PhaseName::parse(team.file_name()).ok()) {
        let team = dir.team_of(&name);
        if let Ok(Some(Some(pid))) = ProjectLock::holder(&team) {
            found.extend(i32::try_from(pid).ok().and_then(Pid::from_raw));
        }
        inner_orchestrators(&team, found);
    }
}
