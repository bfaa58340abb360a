//! Arguments of `cliq ui` and `cliq runs`.

use clap::{Args, ValueEnum};

/// Show the runs of all projects on the full screen: follow, answer, steer, start. `cliq` alone on a terminal does the same.
#[derive(Debug, Args, Default)]
pub(crate) struct UiArgs {
    /// Print changes of runs as lines instead, for screen readers. Ends with Ctrl-C.
    #[arg(long)]
    pub(crate) plain: bool,
    /// Use the mouse: the wheel scrolls, a click chooses. Selecting text then needs Shift in most terminals.
    #[arg(long, conflicts_with = "plain")]
    pub(crate) mouse: bool,
}

/// State of runs in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateName {
    /// A person is asked.
    NeedsYou,
    /// Waits for a free slot of the server.
    Queued,
    /// Phases are at work.
    Running,
    /// Parked until an answer or a point in time.
    Waiting,
    /// The orchestrator died before the end.
    Interrupted,
    /// Every phase is done.
    Completed,
    /// A phase could not be completed.
    Escalated,
    /// The orchestrator could not go on.
    Failed,
    /// Cancelled.
    Cancelled,
}

/// List the runs of all projects and of the server of this machine, newest first.
#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// Words that title, team, project or id contain.
    pub(crate) words: Vec<String>,
    /// State. Repeatable.
    #[arg(long = "state", value_name = "STATE", value_enum)]
    pub(crate) states: Vec<StateName>,
    /// Only runs of this directory's project.
    #[arg(long)]
    pub(crate) here: bool,
    /// Maximum number of runs.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
