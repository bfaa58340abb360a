//! Arguments of `cliq run`.

use std::io::Read;

use clap::{Args, ValueEnum};
use cliq_project::{LauncherKind, Profile, RunSpec};
use cliq_protocol::{Budget, RunId, TRACE_VARIABLE};

use crate::failure::Failure;

/// Maximum size of a description in bytes.
const MAX_SPEC: u64 = 32 << 20;

/// Launcher of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LauncherName {
    /// Plain child processes.
    Process,
    /// A pane of tmux for each phase.
    Tmux,
}

impl From<LauncherName> for LauncherKind {
    fn from(name: LauncherName) -> Self {
        match name {
            LauncherName::Process => Self::Process,
            LauncherName::Tmux => Self::Tmux,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Run again without confirmation, in any state of the last run.
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Continue the last run. Completed phases are not run again; unfinished, failed and stopped ones start anew.
    #[arg(long, conflicts_with_all = ["force", "inputs"])]
    pub(crate) resume: bool,
    /// Publish and restore without asking.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Run PHASE again, with all phases that depend on it and all that are not complete.
    #[arg(long, value_name = "PHASE", conflicts_with_all = ["force", "inputs"])]
    pub(crate) from: Option<String>,
    /// Run the phases whose inputs differ from the last run, with all phases that depend on them and all that did not complete. The others
    /// keep their outcome. Inputs that are not given are those of the last run.
    #[arg(long, conflicts_with_all = ["force", "resume", "from"])]
    pub(crate) changed: bool,
    /// Restore the workspace to its state before PHASE first started, then run.
    #[arg(long, requires = "from")]
    pub(crate) restore: bool,
    /// Exit with code 6 once the run only waits for people. `cliq run --resume` continues it.
    #[arg(long, conflicts_with = "detach")]
    pub(crate) park: bool,
    /// Plain child processes, plain lines, no questions.
    #[arg(long)]
    pub(crate) headless: bool,
    /// Launcher of phases. Default: tmux if it is installed and standard output is a terminal, else process.
    #[arg(long, value_enum, conflicts_with = "headless")]
    pub(crate) launcher: Option<LauncherName>,
    /// Run in a container (settings: `docker.*`).
    #[arg(long, conflicts_with_all = ["no_docker", "launcher"])]
    pub(crate) docker: bool,
    /// Run as a Job of a Kubernetes cluster (settings: `kubernetes.*`).
    #[arg(long, conflicts_with_all = ["docker", "no_docker", "launcher"])]
    pub(crate) kubernetes: bool,
    /// Run on this machine, regardless of the settings.
    #[arg(long)]
    pub(crate) no_docker: bool,
    /// Run in a tmux session in the background.
    #[arg(short, long, conflicts_with_all = ["headless", "json", "launcher"])]
    pub(crate) detach: bool,
    /// Agent of phases that name none, for this run.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Title of the run. Default: the first line of the requirement.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["resume", "from"])]
    pub(crate) title: Option<String>,
    /// Value of an input of the team. Repeatable.
    #[arg(long = "input", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) inputs: Vec<(String, String)>,
    /// Maximum number of phases at the same time. Default: no limit.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_parallel: Option<u32>,
    /// Token limit of the run's language models, instead of the team's `budget`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget_tokens: Option<u64>,
    /// Cost limit of the run's language models in US dollars, instead of the team's `budget`.
    #[arg(long, value_name = "X", value_parser = amount)]
    pub(crate) budget_usd: Option<f64>,
    /// Profile of the sandbox around all agents and commands: `off`, `workspace` or `strict`. Settings and team can make it stricter.
    #[arg(long, value_name = "PROFILE", value_parser = profile)]
    pub(crate) sandbox: Option<Profile>,
    /// Print events as JSON, one per line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Start nothing. Print what would be fetched, and what would be published where; with `--changed`, which phases would run and why.
    #[arg(long, conflicts_with_all = ["resume", "from", "detach"])]
    pub(crate) dry_run: bool,
    /// The id of the run, a UUID: for `cliq server`.
    #[arg(long, value_name = "ID", hide = true, value_parser = run_id)]
    pub(crate) run_id: Option<RunId>,
    /// JSON description of the run, instead of options; `-` is standard input: for `cliq server`.
    #[arg(
        long,
        value_name = "FILE",
        hide = true,
        conflicts_with_all = ["agent", "title", "inputs", "max_parallel", "budget_tokens", "budget_usd", "sandbox"]
    )]
    pub(crate) spec: Option<String>,
    /// Write `.cliq/signals/_a2a_events`; the name of this cliq: for `cliq server`.
    #[arg(long, value_name = "INSTANCE", hide = true)]
    pub(crate) a2a_events: Option<String>,
}

impl RunArgs {
    /// Returns the description of the run: from the options, or from a file or standard input for `cliq server`.
    pub(crate) fn spec(&self) -> Result<RunSpec, Failure> {
        if let Some(source) = &self.spec {
            let bytes = match source.as_str() {
                "-" => read_input(std::io::stdin())?,
                path => read_input(std::fs::File::open(path)?)?,
            };
            return RunSpec::decode(&bytes).map_err(|why| Failure::usage(format!("{source}: {why}")));
        }
        Ok(RunSpec {
            // A person assembles the team and sets the requirement before.
            team: None,
            requirement: None,
            repos: Vec::new(),
            title: self.title.clone(),
            inputs: self.inputs.iter().cloned().collect(),
            agent: self.agent.clone(),
            max_parallel: self.max_parallel,
            budget: Budget { tokens: self.budget_tokens, usd: self.budget_usd },
            sandbox: self.sandbox,
            // A value that is none begins no trace and ends no run.
            trace: std::env::var(TRACE_VARIABLE).ok().and_then(|context| context.parse().ok()),
        })
    }
}

fn read_input(input: impl Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    input.take(MAX_SPEC).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn profile(text: &str) -> Result<Profile, String> {
    Profile::parse(text).ok_or_else(|| "write `off`, `workspace` or `strict`".to_owned())
}

fn run_id(text: &str) -> Result<RunId, String> {
    RunId::parse_uuid(text).ok_or_else(|| "write a UUID".to_owned())
}

fn amount(text: &str) -> Result<f64, String> {
    let amount = text.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount > 0.0);
    amount.ok_or_else(|| "write a number above 0, such as 2.50".to_owned())
}

pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}
