//! The command line.

mod agent;
mod checkpoint;
mod eval;
mod frequent;
mod inspect;
mod lazy;
mod outside;
mod plan;
mod review;
mod run;
mod server;
mod settings;
mod signal;
mod suggest;
mod team;
mod telemetry;
mod terminal;
mod trigger;

use camino::Utf8PathBuf;
use clap::{Args, Parser, Subcommand};

pub(crate) use agent::{AgentCommand, CheckRole, ModelApi};
pub(crate) use checkpoint::CheckpointCommand;
pub(crate) use eval::{EvalArgs, EvalCommand, EvalOutput};
pub(crate) use frequent::parse;
pub(crate) use inspect::{CiArgs, DemoArgs, DiffArgs, ExplainArgs, LogsArgs, OwnCommand};
pub(crate) use lazy::{Lazy, LazyArgs};
pub(crate) use outside::{AuthService, DoctorCommand, PullRequestArgs, ToolCommand, ToolName};
pub(crate) use plan::{DaemonCommand, PlanCommand};
pub(crate) use review::{AnswerArgs, CommentArgs, ReviewCommand, ReviewIdArg};
pub(crate) use run::{LauncherName, RunArgs};
pub(crate) use server::{A2aCommand, ScopeName, ServerCommand, ServerRunArgs, TokenCommand};
pub(crate) use settings::{SettingsCommand, SkillArgs, TrustArgs};
pub(crate) use signal::{MarkersArgs, SignalCommand, SignalStatusName};
pub(crate) use suggest::suggest;
pub(crate) use team::{
    GenerateArgs, GraphFormat, ImproveArgs, PublishArgs, TeamCommand, TestArgs, UpdateArgs,
};
pub(crate) use telemetry::TelemetryCommand;
pub(crate) use terminal::{RunsArgs, StateName, UiArgs};
pub(crate) use trigger::{AuditArgs, TriggerCommand};

/// Runs teams of agents.
///
/// A run has four steps: `cliq init`, `cliq assemble TEAM`, `cliq req -m TEXT`, `cliq run`. `cliq demo` shows one. `cliq` alone, on a terminal,
/// shows the runs of all projects (`cliq ui`).
#[derive(Debug, Parser)]
#[command(name = "cliq", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of all commands.
#[derive(Debug, Args)]
pub(crate) struct GlobalArgs {
    /// Work as if started in DIR.
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    pub(crate) directory: Option<Utf8PathBuf>,
    /// Log to standard error: -v information, -vv debugging, -vvv everything. CLIQ_LOG is finer.
    #[arg(short = 'v', long = "verbose", action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make this directory a project: create .cliq/.
    Init,
    /// Choose the team and copy it into .cliq/.
    Assemble {
        /// A folder with a team.yml, `@scope/name`, `@scope/name@RANGE`, `oci://HOST/PATH:VERSION`, or the URL of a git repository with `#REF`.
        #[arg(required_unless_present = "locked")]
        team: Option<String>,
        /// Take exactly what .cliq/team.lock names, and fail if that is not to be had.
        #[arg(long)]
        locked: bool,
    },
    /// Set the requirement, the task of the team. Archives the last run.
    Req(ReqArgs),
    /// Run the team.
    Run(RunArgs),
    /// Show the state of the run.
    Status(StatusArgs),
    /// Show the runs of all projects on the full screen: follow, answer, steer, start. `cliq` alone on a terminal does the same.
    Ui(LazyArgs<UiArgs>),
    /// List the runs of all projects and of the server of this machine, newest first.
    Runs(LazyArgs<RunsArgs>),
    /// Explain a run: events, cause of the end, what to look at next.
    Explain(LazyArgs<ExplainArgs>),
    /// Print what a run did as markdown, for a pull request or the summary of a job.
    Ci(LazyArgs<CiArgs>),
    /// Show what the last run, a phase or one activation changed in the workspace.
    Diff(LazyArgs<DiffArgs>),
    /// Checkpoints of the workspace: list, take and restore them.
    #[command(subcommand)]
    Checkpoint(Lazy<CheckpointCommand>),
    /// Print the log of the orchestrator, or of a phase: output of its agent and commands.
    Logs(LazyArgs<LogsArgs>),
    /// Show the panes of the run.
    Attach {
        /// The phase whose pane is brought to the front.
        phase: Option<String>,
    },
    /// Send guidance to the run: an addition to the task for agents at work and those that start later.
    Steer(LazyArgs<SteerArgs>),
    /// Stop the run of this project.
    Cancel,
    /// Remove all files of runs from .cliq/. Keeps team, roles, requirement and settings.
    Clean,
    /// Check programs, credentials and services that cliq uses.
    Doctor {
        /// Print JSON.
        #[arg(long, global = true)]
        json: bool,
        #[command(subcommand)]
        command: Option<DoctorCommand>,
    },
    /// Look at this program itself: files of other versions, newer releases.
    #[command(subcommand, name = "self")]
    Own(Lazy<OwnCommand>),
    /// Tools for commands of phases.
    #[command(subcommand)]
    Tool(Lazy<ToolCommand>),
    /// Sign in to a service as a person.
    Auth {
        /// The service.
        #[arg(value_enum)]
        service: AuthService,
    },
    /// Run a bundled team on real files in DIR: no key, model or account needed.
    Demo(LazyArgs<DemoArgs>),
    /// Evaluate teams: run a suite of cases with several variants, and compare them.
    Eval(LazyArgs<EvalArgs>),
    /// Manage teams.
    #[command(subcommand)]
    Team(Lazy<TeamCommand>),
    /// Inspect and test agents.
    #[command(subcommand)]
    Agent(Lazy<AgentCommand>),
    /// Read and change settings.
    #[command(subcommand)]
    Settings(Lazy<SettingsCommand>),
    /// Traces, metrics and logs for tools that speak OpenTelemetry.
    #[command(subcommand)]
    Telemetry(Lazy<TelemetryCommand>),
    /// Trust a project: agents may read its skills.
    Trust(LazyArgs<TrustArgs>),
    /// Write a skill for assistants: how to make, validate, run and read teams.
    Skill(LazyArgs<SkillArgs>),
    /// Emit and inspect signals.
    #[command(subcommand)]
    Signal(Lazy<SignalCommand>),
    /// Manage plans, which outlive a run.
    #[command(subcommand)]
    Plan(Lazy<PlanCommand>),
    /// Control the daemon that drives plans.
    #[command(subcommand)]
    Daemon(Lazy<DaemonCommand>),
    /// Control the server: API, dashboard, A2A agent.
    #[command(subcommand)]
    Server(Lazy<ServerCommand>),
    /// List, test and pause triggers, which start runs by themselves.
    #[command(subcommand)]
    Trigger(Lazy<TriggerCommand>),
    /// Show the audit log: actions by the API, pages, commands, MCP and A2A.
    Audit(LazyArgs<AuditArgs>),
    /// List and answer reviews.
    #[command(subcommand)]
    Review(Lazy<ReviewCommand>),
    /// Serve this machine's projects to an editor, as an agent of the Agent Client Protocol on standard input and output.
    Acp(LazyArgs<AcpArgs>),
    /// Serve signals, plans and runs to agents, as an MCP server on standard input and output.
    #[cfg(feature = "mcp")]
    Mcp,
    /// Find the markers in an agent's text and report the decisive one.
    Markers(MarkersArgs),
    /// The cliq in a container: reads what is handed over, and becomes `cliq` with the arguments that follow.
    #[cfg(any(feature = "docker", feature = "kubernetes"))]
    #[command(hide = true)]
    Contained {
        /// The file that has what is handed over. Default: the first line of standard input.
        #[arg(long, value_name = "FILE")]
        handover: Option<Utf8PathBuf>,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Write man pages, one for each command, into a directory.
    Man {
        /// The directory, such as /usr/local/share/man/man1. It is created where it is missing.
        dir: Utf8PathBuf,
    },
    /// Print the completion script of a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Show the state of the run.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Follow the run to its end: on a terminal on the full screen, else as lines.
    #[arg(long, conflicts_with = "json")]
    pub(crate) watch: bool,
}

/// Serve this machine's projects to an editor, as an agent of the Agent Client Protocol on standard input and output.
#[derive(Debug, Args)]
pub(crate) struct AcpArgs {
    /// Set up an agent in this terminal instead: show which ones can work on this machine, and set the default.
    #[arg(long)]
    pub(crate) setup: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SteerArgs {
    /// Text of the message, at most 16 KiB. `-` reads standard input.
    #[arg(allow_hyphen_values = true)]
    pub(crate) text: String,
    /// Phase that receives the message. Default: every phase.
    #[arg(long, value_name = "PHASE")]
    pub(crate) phase: Option<String>,
    /// The run: its id, or the beginning of it. Default: the last one of this project.
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    /// Id of the message: the same message sent twice with one id arrives once.
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ReqArgs {
    /// Text of the requirement.
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// File with the requirement; `-` for standard input.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<Utf8PathBuf>,
}
