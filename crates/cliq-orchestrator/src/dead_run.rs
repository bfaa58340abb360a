//! Ending what a dead orchestrator left running.

use std::time::Duration;

use cliq_fs::CliqDir;

use crate::orphans::{Mark, end_marked};
use crate::tmux::revoke_all;

/// Ends all processes of a run whose orchestrator died: jobs that were about to start never do, and every process on
/// this machine that is of the run by its environment, save this one, is asked to end and after `grace` forced to. Gives
/// how many it found. `dir` is the directory of the run. The caller makes sure that no run is under way there.
///
/// Finds no processes on systems without `/proc`.
pub fn end_dead_run(dir: &CliqDir, run_id: &str, grace: Duration) -> usize {
    revoke_all(dir);
    end_marked(&Mark { run_id: run_id.to_owned(), ..Mark::default() }, grace)
}
