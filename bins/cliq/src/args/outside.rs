//! Arguments of commands that speak to the outside.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum DoctorCommand {
    /// Test the settings of a service with one call that changes nothing
    Test {
        /// A connector, `sharepoint`, `github`, `gitlab` or `bitbucket`.
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolCommand {
    /// Run a tool.
    Run {
        /// The tool.
        #[arg(value_enum)]
        tool: ToolName,
        #[command(flatten)]
        args: Box<PullRequestArgs>,
    },
    /// List the tools.
    List,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolName {
    /// Exit 0 if the branch has an open pull request, else 1.
    PrExists,
    /// Make a pull request of the branch, unless it has an open one.
    CreatePr,
}

#[derive(Debug, Args)]
pub(crate) struct PullRequestArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The directory of the repository. Default: this one.
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<Utf8PathBuf>,
    /// Remote of the code host.
    #[arg(long, default_value = "origin")]
    pub(crate) remote: String,
    /// The branch. Default: the one that is checked out.
    #[arg(long)]
    pub(crate) branch: Option<String>,
    /// create-pr: branch to merge into. Default: the remote's default branch.
    #[arg(long, value_name = "BRANCH")]
    pub(crate) base: Option<String>,
    /// create-pr: the title. Default: the subject of the last commit.
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// create-pr: the description, in markdown. Default: the text of the last commit.
    #[arg(long, conflicts_with = "body_file")]
    pub(crate) body: Option<String>,
    /// create-pr: a file with the description.
    #[arg(long, value_name = "FILE")]
    pub(crate) body_file: Option<Utf8PathBuf>,
    /// create-pr: make it a draft.
    #[arg(long)]
    pub(crate) draft: bool,
    /// create-pr: a label (GitHub, GitLab). Repeatable.
    #[arg(long = "label", value_name = "LABEL")]
    pub(crate) labels: Vec<String>,
    /// create-pr: a reviewer (GitHub). Repeatable.
    #[arg(long = "reviewer", value_name = "NAME")]
    pub(crate) reviewers: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuthService {
    /// Google Drive, with `agents.gdrive.auth_mode` oauth.
    Gdrive,
}
