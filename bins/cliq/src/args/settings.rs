//! Arguments of the commands about settings.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// List all settings with values and sources, or those that begin with a word: `prices` shows what models cost.
    List {
        /// Beginning of the keys, such as `agents.claude-api`.
        prefix: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a setting.
    Get {
        /// Such as `max_parallel` or `agents.claude-api.model`.
        key: String,
        /// Print a secret as it is.
        #[arg(long)]
        reveal: bool,
    },
    /// Change a setting of this project.
    Set {
        /// Such as `max_parallel` or `agents.claude-api.model`.
        key: String,
        /// The value; items of a list are separated by commas. `-` reads it from standard input, so that no history keeps it.
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// For all projects.
        #[arg(short, long)]
        global: bool,
    },
    /// Print the JSON Schema of settings.json, for editors.
    Schema,
    /// Remove a setting of this project.
    Unset {
        /// Such as `max_parallel` or `agents.claude-api.model`.
        key: String,
        /// For all projects.
        #[arg(short, long)]
        global: bool,
    },
}

/// Trust a project: agents may read its skills, and those of the directories below it.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Directory of the project. Default: this one.
    pub(crate) dir: Option<Utf8PathBuf>,
    /// Trust it no longer.
    #[arg(long, conflicts_with = "list")]
    pub(crate) remove: bool,
    /// List the directories that you trust.
    #[arg(long, conflicts_with = "dir")]
    pub(crate) list: bool,
    /// Print JSON.
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
}

/// Write a skill for assistants into `.agents/skills/cliq` and `.claude/skills/cliq` of this project: how to make, validate, run and read teams.
#[derive(Debug, Args)]
pub(crate) struct SkillArgs {
    /// For all projects: into the home directory.
    #[arg(short, long)]
    pub(crate) global: bool,
    /// Replace a skill of this name that was edited, or that another program wrote.
    #[arg(long)]
    pub(crate) force: bool,
}
