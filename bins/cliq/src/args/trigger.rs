//! The command lines of `cliq trigger` and `cliq audit`.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum TriggerCommand {
    /// List triggers with their next tick and their last firing.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a trigger: source, conditions, next ticks, history.
    Show {
        /// The trigger.
        name: String,
        /// Maximum number of firings.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what a payload would start. Starts nothing.
    Test {
        /// The trigger.
        name: String,
        /// File with the body of a delivery, or a JSON object with `headers`, `body`, `run` or `files`. `-` reads standard input.
        #[arg(long, value_name = "FILE")]
        payload: Option<Utf8PathBuf>,
        /// Header of the delivery, `NAME: VALUE`. Can be repeated.
        #[arg(long = "header", value_name = "HEADER")]
        headers: Vec<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Pause a trigger: its causes start nothing until it is resumed.
    Pause {
        /// The trigger.
        name: String,
    },
    /// Resume a trigger. Ticks and changes while it was paused are not caught up.
    Resume {
        /// The trigger.
        name: String,
    },
    /// Report every problem of triggers.yml, with place and remedy.
    Validate {
        /// The file. Default: triggers.yml in the cliq home.
        file: Option<Utf8PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a bundled example of triggers.yml.
    Example {
        /// The example.
        #[arg(default_value = "schedule", value_parser = ["schedule", "github-issue"])]
        name: String,
    },
    /// Print the JSON Schema of triggers.yml, for editors.
    Schema,
}

/// Show the audit log: actions by the API, pages, commands, MCP and A2A. Newest first.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Only actions of this actor: label of a token, name or mail address of a person, user of this machine.
    #[arg(long)]
    pub(crate) actor: Option<String>,
    /// Only actions at this time or later: ISO-8601 with its zone.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only actions before this time.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Maximum number of actions. With --json, all of them by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Export: a JSON object per line, oldest first.
    #[arg(long)]
    pub(crate) json: bool,
}
