//! Observer of the processes of runs, for figures.

use std::time::Duration;

use cliq_model::Run;

/// Observer of the processes of runs. A supervisor knows no figures.
pub trait ProcessObserver: Send + Sync + std::fmt::Debug {
    /// Observes that a run got a slot after a time in the queue.
    fn starts(&self, run: &Run, waited: Duration);

    /// Observes that a run ended or is parked, and works no longer. Without news its journal has no record since it rested before, or since
    /// this server follows it. Called on the thread of the run, which may wait for the files of its
    /// workspace, before another run can get the workspace.
    fn rests(&self, run: &Run, has_news: bool);
}
