//! Arguments of the commands about teams.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand, ValueEnum};

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
        /// Check the team as one that is being written: an input that nothing refers to is a warning.
        #[arg(long)]
        draft: bool,
        /// Check it again whenever a file of it changes, as a draft. Ctrl-C ends it.
        #[arg(long, conflicts_with = "json")]
        watch: bool,
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
    Schema {
        /// Print the schema of files of tests.
        #[arg(long)]
        tests: bool,
    },
    /// Run the tests of a team with scripted agents: no model is asked.
    Test(TestArgs),
    /// List the teams here, installed and bundled.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Install a team for all projects, from a folder, a git repository or a registry. Shows first what the team may do.
    Install {
        /// A folder with a team.yml; the URL of a git repository, with `#BRANCH`, `#TAG` or `#COMMIT`; `@scope/name` or `@scope/name@RANGE`; or
        /// `oci://HOST/PATH:VERSION`.
        source: String,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
        /// Install a version that is older than the installed one.
        #[arg(long)]
        allow_downgrade: bool,
    },
    /// Show which locked packages have newer versions.
    Outdated {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Take new versions of the locked teams, after showing what differs.
    Update(UpdateArgs),
    /// Write the next version into team.yml.
    Version {
        /// `patch`, `minor`, `major`, or a version.
        next: String,
        /// A team's folder or team.yml. Default: the team here.
        path: Option<String>,
    },
    /// Publish the team as a package in a registry.
    Publish(PublishArgs),
    /// Search the registries of the settings.
    Search {
        /// Words of the name or the description. Without any, all packages.
        words: Vec<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a package: its versions, whose signature it has, what it may do.
    Info {
        /// `@scope/name`, `@scope/name@RANGE` or `oci://HOST/PATH:VERSION`.
        package: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Create an example team in a folder of its name.
    Create {
        /// `name` or `@scope/name`.
        name: String,
    },
    /// Have a model make a new team from a description.
    Generate(GenerateArgs),
    /// Have a model change a team. Shows the difference before anything is written.
    Improve(ImproveArgs),
    /// Show a team: what it does, what it needs, its phases.
    Show {
        /// As for `validate`.
        path: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// Description of the work of the team; `-` reads it from standard input.
    pub(crate) text: String,
    /// New folder of the team. Default: its name, in the current directory.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) to: Option<Utf8PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImproveArgs {
    /// A team's folder or team.yml, or `@scope/name` with `--to`.
    pub(crate) team: String,
    /// Description of the change; `-` reads it from standard input.
    pub(crate) text: String,
    /// Change the text of this role only.
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<String>,
    /// New folder for the changed team. Default: the folder of the team.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) to: Option<Utf8PathBuf>,
    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// A team's folder or team.yml, a file of tests in its `tests` folder, or `@scope/name`. Default: the team here.
    pub(crate) path: Option<String>,
    /// Run only tests whose name contains this text; may be repeated.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Vec<String>,
    /// Check the files of tests and run nothing.
    #[arg(long)]
    pub(crate) check: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// Names of teams, `@scope/name`. Default: all.
    pub(crate) teams: Vec<String>,
    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Only show what differs.
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PublishArgs {
    /// A team's folder or team.yml. Default: the team here.
    pub(crate) path: Option<String>,
    /// The repository, `oci://HOST/PATH`. Default: that of the scope, by the setting registries.SCOPE.
    #[arg(long, value_name = "REPOSITORY")]
    pub(crate) to: Option<String>,
    /// The SSH key that signs the package. Default: the setting packages.signing_key.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<String>,
    /// Check and show everything, and publish nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
