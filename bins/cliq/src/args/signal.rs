//! Arguments of the commands about signals and markers.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand, ValueEnum};

/// Project whose signals or plans a command is about.
#[derive(Debug, Args)]
pub(crate) struct ProjectArg {
    /// The project's directory. Default: CLIQ_PROJECT, else this one or the nearest above it.
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SignalCommand {
    /// Put a signal into the queue.
    Emit {
        /// Such as `implement_finished`; a wrong one shows all.
        #[arg(value_name = "TYPE")]
        kind: String,
        /// Plan that the signal concerns.
        plan: String,
        /// A JSON object, or free text. `-` reads standard input.
        #[arg(long, value_name = "JSON", default_value = "", allow_hyphen_values = true)]
        payload: String,
        #[command(flatten)]
        project: ProjectArg,
    },
    /// List signals, the oldest first.
    List {
        /// Only signals of this state.
        #[arg(long)]
        status: Option<SignalStatusName>,
        /// Only signals about this plan.
        #[arg(long)]
        plan: Option<String>,
        /// Include all projects.
        #[arg(long, conflicts_with = "project")]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        project: ProjectArg,
    },
    /// Show a signal with its payload and its result.
    Show {
        /// Number of the signal.
        id: i64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Make a failed signal pending again.
    Retry {
        /// Number of the signal.
        id: i64,
    },
    /// Show the outcome of the latest signals.
    History {
        /// Only signals about this plan.
        plan: Option<String>,
        /// Maximum number of signals.
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        project: ProjectArg,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SignalStatusName {
    /// Waiting to be claimed.
    Pending,
    /// Claimed.
    Processing,
    /// Processed.
    Done,
    /// Refused, or not processed.
    Failed,
}

#[derive(Debug, Args)]
pub(crate) struct MarkersArgs {
    /// File with the output of an agent. Default, or `-`: standard input.
    pub(crate) file: Option<Utf8PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the format of a marker, or of all, for prompts to quote.
    #[arg(long, value_name = "MARKER", conflicts_with_all = ["file", "json"])]
    pub(crate) format: Option<Option<String>>,
}
