//! Arguments of `cliq telemetry`.

use camino::Utf8PathBuf;
use clap::Subcommand;

/// Traces, metrics and logs for tools that speak OpenTelemetry (docs/telemetry.md).
#[derive(Debug, Subcommand)]
pub(crate) enum TelemetryCommand {
    /// Show what is exported, and where to.
    Show {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Export what no receiver has taken of the last run of this project.
    Send {
        /// Longest time in seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
        timeout: u64,
        /// Directory of another run: .cliq/history/RUN, or .cliq/plans/PLAN/jobs/JOB.
        #[arg(long, value_name = "DIR")]
        run_dir: Option<Utf8PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}
