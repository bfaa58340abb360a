//! Arguments of `cliq checkpoint`.

use clap::Subcommand;

/// Checkpoints of the workspace: list, take and restore them.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointCommand {
    /// List the checkpoints, oldest first.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Store the files of the workspace now.
    Take,
    /// Make the files of the workspace those of a checkpoint. The present state is stored first.
    Restore {
        /// Number of the checkpoint.
        id: u64,
        /// Restore without asking.
        #[arg(short, long)]
        yes: bool,
    },
}
