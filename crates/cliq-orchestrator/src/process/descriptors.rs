//! Bound on concurrent processes by the limit of open file descriptors: a process waits for descriptors instead of failing.

use std::sync::{Arc, OnceLock};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Descriptors for everything but processes: journal, logs, watches, the runtime.
const RESERVE: u64 = 48;
/// Descriptors of one process: pipe, exit watch, log, signal file, and one for the moment of its start.
const PER_PROCESS: u64 = 6;
/// Minimum number of concurrent processes, however low the limit is.
const MIN_PROCESSES: u64 = 2;

/// Raises the soft limit of open file descriptors to the hard limit. The call changes a property of the whole process, so only programs
/// should make it, not libraries.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // A refusal leaves the limit as it is: processes then wait for their turn.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Number of concurrent processes for a limit of descriptors. `None` stands for no limit.
fn processes_for(limit: Option<u64>) -> usize {
    let processes = limit.map_or(u64::MAX, |limit| limit.saturating_sub(RESERVE) / PER_PROCESS);
    usize::try_from(processes.max(MIN_PROCESSES)).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

/// Waits until there are descriptors for another process. They are reserved until the permit is dropped.
pub(super) async fn reserve() -> Option<OwnedSemaphorePermit> {
    static PROCESSES: OnceLock<Arc<Semaphore>> = OnceLock::new();
    let of_limit = || Arc::new(Semaphore::new(processes_for(getrlimit(Resource::Nofile).current)));
    // The semaphore is never closed.
    Arc::clone(PROCESSES.get_or_init(of_limit)).acquire_owned().await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_fit_into_the_limit() {
        assert_eq!(processes_for(None), Semaphore::MAX_PERMITS);
        assert_eq!(processes_for(Some(0)), 2);
        assert_eq!(processes_for(Some(RESERVE + 3 * PER_PROCESS - 1)), 2);
        assert_eq!(processes_for(Some(RESERVE + 3 * PER_PROCESS)), 3);
        assert_eq!(processes_for(Some(1024)), 162);
    }
}
