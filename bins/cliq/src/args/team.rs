//! Arguments of the commands about teams.

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum GraphFormat {
    /// A list for people.
    Text,
    /// A Mermaid flowchart.
    Mermaid,
    /// A Graphviz digraph.
    Dot,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TeamCommand {
    /// Report every problem of a team, with place and remedy.
    Validate {
        /// A team's folder or team.yml, or `@scope/name`. Default: the team here, else the assembled one.
        path: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Draw the phases of a team.
    Graph {
        /// As for `validate`.
        path: Option<String>,
        /// Output format.
        #[arg(long, value_enum, default_value = "text")]
        format: GraphFormat,
    },
    /// Print the JSON Schema of team.yml, for editors.
    Schema,
    /// List the teams here, installed and bundled.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Install a team for all projects, from a folder or a git repository.
    Install {
        /// A folder with a team.yml, or the URL of a git repository, with `#BRANCH` or `#TAG` where it is not the usual one.
        source: String,
    },
    /// Create an example team in a folder of its name.
    Create {
        /// `name` or `@scope/name`.
        name: String,
    },
    /// Show a team: what it does, what it needs, its phases.
    Show {
        /// As for `validate`.
        path: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}
