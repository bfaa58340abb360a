//! Arguments of commands that look at runs, and of the demo.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand};

use super::ModelApi;

/// Explain a run: events, cause of the end, what to look at next.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The run: its id, or the beginning of it. Default: the last one.
    pub(crate) run: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print what a run did as markdown, for a pull request or the summary of a job (docs/repositories.md).
#[derive(Debug, Args)]
pub(crate) struct CiArgs {
    /// The run: its id, or the beginning of it. Default: the last one.
    pub(crate) run: Option<String>,
    /// Address of a page with all of it, `https://` or `http://`.
    #[arg(long, value_name = "URL", value_parser = page_address)]
    pub(crate) link: Option<String>,
}

fn page_address(text: &str) -> Result<String, &'static str> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_one = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
    if is_one && !text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        Ok(text.to_owned())
    } else {
        Err("an address begins with https:// or http://, has a host and no blanks")
    }
}

/// Look at this program itself (docs/upgrade.md).
#[derive(Debug, Subcommand)]
pub(crate) enum OwnCommand {
    /// Say which formats the files here have, and whether there is a newer release. Uses the network for an address only.
    Check {
        /// Address or directory of a release: its SHA256SUMS is read. Default: the variable CLIQ_RELEASE; without both, no release is looked for.
        #[arg(long, value_name = "URL|DIR")]
        from: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Show what the last run, a phase or one activation changed in the workspace.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The phase, the item `PHASE.INDEX`, or the activation `PHASE.N`; without it, the whole run.
    pub(crate) of: Option<String>,
    /// Print a summary of changed lines per file.
    #[arg(long)]
    pub(crate) stat: bool,
    /// Print the changed files as JSON.
    #[arg(long, conflicts_with = "stat")]
    pub(crate) json: bool,
}

/// Print the log of the orchestrator, or of a phase: output of its agent and commands.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The phase; without it, the orchestrator's own log.
    pub(crate) phase: Option<String>,
    /// Follow until the run ends.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Show what the model of the phase received, answered and did, in all its activations.
    #[arg(long, requires = "phase")]
    pub(crate) transcript: bool,
    /// Print the lines of the transcript as JSON.
    #[arg(long, requires = "transcript")]
    pub(crate) json: bool,
}

/// Run a bundled team on real files in DIR: no key, model or account needed.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// A new or empty directory. Default: `cliq-demo`, or the first free `cliq-demo-N`.
    pub(crate) dir: Option<Utf8PathBuf>,
    /// Show a plan that outlives its daemon, instead of a run.
    #[arg(long)]
    pub(crate) plan: bool,
    /// Show a run with a review: answer it on a page, or in another terminal.
    #[arg(long, conflicts_with = "plan")]
    pub(crate) review: bool,
    /// Show a run that fetches pages from a site on this machine, and publishes what it makes of them to it.
    #[arg(long, conflicts_with_all = ["plan", "review"])]
    pub(crate) pull: bool,
    /// Show an evaluation of two variants of a team, whose agents use no model.
    #[arg(long, conflicts_with_all = ["plan", "review", "pull", "model"])]
    pub(crate) eval: bool,
    /// Show a feature that models with tools develop, test and review. A server on this machine plays the model: no key is needed.
    #[arg(long, value_name = "API", num_args = 0..=1, require_equals = true, default_missing_value = "openai",
        conflicts_with_all = ["plan", "review", "pull"])]
    pub(crate) model: Option<ModelApi>,
}
