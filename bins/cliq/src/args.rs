//! The command line.

mod checkpoint;
mod eval;
mod inspect;
mod lazy;
mod outside;
mod review;
mod run;
mod server;
mod suggest;
mod trigger;

use camino::Utf8PathBuf;
use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use checkpoint::CheckpointCommand;
pub(crate) use eval::{EvalArgs, EvalCommand, EvalOutput};
pub(crate) use inspect::{DemoArgs, DiffArgs, ExplainArgs, LogsArgs};
pub(crate) use lazy::{Lazy, LazyArgs};
pub(crate) use outside::{AuthService, DoctorCommand, PullRequestArgs, ToolCommand, ToolName};
pub(crate) use review::{AnswerArgs, ReviewCommand, ReviewIdArg};
pub(crate) use run::{LauncherName, RunArgs};
pub(crate) use server::{A2aCommand, ScopeName, ServerCommand, ServerRunArgs, TokenCommand};
pub(crate) use suggest::suggest;
pub(crate) use trigger::{AuditArgs, TriggerCommand};

/// Runs teams of agents.
///
/// A run has four steps: `cliq init`, `cliq assemble TEAM`, `cliq req -m TEXT`, `cliq run`. `cliq demo` shows one.
#[derive(Debug, Parser)]
#[command(name = "cliq", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Work as if started in DIR.
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    pub(crate) directory: Option<Utf8PathBuf>,
    /// Log to standard error: -v information, -vv debugging, -vvv everything. CLIQ_LOG is finer.
    #[arg(short = 'v', long = "verbose", action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make this directory a project: create .cliq/.
    Init,
    /// Choose the team and copy it into .cliq/.
    Assemble {
        /// A folder with a team.yml, or `@scope/name`.
        team: String,
    },
    /// Set the requirement, the task of the team. Archives the last run.
    Req(ReqArgs),
    /// Run the team.
    Run(RunArgs),
    /// Show the state of the run.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Follow the run to its end.
        #[arg(long, conflicts_with = "json")]
        watch: bool,
    },
    /// Explain a run: events, cause of the end, what to look at next.
    Explain(LazyArgs<ExplainArgs>),
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

#[derive(Debug, Subcommand)]
pub(crate) enum SignalCommand {
    /// Put a signal into the queue.
    Emit {
        /// Such as `implement_finished`; a wrong one shows all.
        #[arg(value_name = "TYPE")]
        kind: String,
        /// Plan that the signal concerns.
        plan: String,
        /// A JSON object, or free text. `-` reads standard input.
        #[arg(long, value_name = "JSON", default_value = "", allow_hyphen_values = true)]
        payload: String,
        #[command(flatten)]
        project: ProjectArg,
    },
    /// List signals, the oldest first.
    List {
        /// Only signals of this state.
        #[arg(long)]
        status: Option<SignalStatusName>,
        /// Only signals about this plan.
        #[arg(long)]
        plan: Option<String>,
        /// Include all projects.
        #[arg(long, conflicts_with = "project")]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        project: ProjectArg,
    },
    /// Show a signal with its payload and its result.
    Show {
        /// Number of the signal.
        id: i64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Make a failed signal pending again.
    Retry {
        /// Number of the signal.
        id: i64,
    },
    /// Show the outcome of the latest signals.
    History {
        /// Only signals about this plan.
        plan: Option<String>,
        /// Maximum number of signals.
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        project: ProjectArg,
    },
}

/// Whose signals or plans.
#[derive(Debug, Args)]
pub(crate) struct ProjectArg {
    /// The project's directory. Default: CLIQ_PROJECT, else this one or the nearest above it.
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SignalStatusName {
    /// Waiting to be claimed.
    Pending,
    /// Claimed.
    Processing,
    /// Processed.
    Done,
    /// Refused, or not processed.
    Failed,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Add a plan: a markdown file with a goal, `## Wave N` and `### Task N: title`.
    Add {
        /// The file. The plan is named after it.
        file: Utf8PathBuf,
        /// Another name.
        #[arg(long)]
        name: Option<String>,
    },
    /// Start a plan.
    Start {
        /// The plan.
        plan: String,
    },
    /// Show the state of a plan; without a name, of all plans of the project.
    Status {
        /// The plan.
        plan: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Follow the plan to its end.
        #[arg(long, conflicts_with = "json", requires = "plan")]
        watch: bool,
    },
    /// Print a plan's file with the state of each task.
    Show {
        /// The plan.
        plan: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the events of a plan.
    Events {
        /// The plan.
        plan: String,
        /// Print a JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Attach to the tmux pane of a working agent. Leave with Ctrl-b d.
    Attach {
        /// The plan.
        plan: String,
        /// Task of the agent, such as `w1-t2` or `plan`. Required if several agents work.
        task: Option<String>,
    },
    /// Answer a question that an agent asks.
    Answer {
        /// The plan.
        plan: String,
        /// The answer. `-` reads standard input.
        text: String,
        /// Number of the question. Required if there are several.
        #[arg(long, value_name = "N")]
        question: Option<u64>,
    },
    /// Send guidance to the agents of a plan that start from now on.
    Steer {
        /// The plan.
        plan: String,
        /// Text of the message, at most 16 KiB. `-` reads standard input.
        #[arg(allow_hyphen_values = true)]
        text: String,
        /// Task whose agents receive it, such as `w1-t2`, or `plan` for agents of the plan itself. Default: all agents.
        #[arg(long, value_name = "TASK")]
        task: Option<String>,
        /// Id of the message: the same message sent twice with one id arrives once.
        #[arg(long, value_name = "ID")]
        id: Option<String>,
    },
    /// Cancel a plan and end its agents.
    Cancel {
        /// The plan.
        plan: String,
    },
    /// Repeat a plan that is done, planning included.
    StartOver {
        /// The plan.
        plan: String,
    },
    /// Repeat the waves of a plan that is done.
    Reimplement {
        /// The plan.
        plan: String,
    },
    /// Repeat the review of a plan that is done.
    RequestReview {
        /// The plan.
        plan: String,
    },
    /// Reopen a cancelled plan: it is ready again.
    Reopen {
        /// The plan.
        plan: String,
    },
    /// List plans.
    List {
        /// Include all projects.
        #[arg(long)]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Run in the foreground and print each action.
    Run {
        /// Leave the terminal: for `cliq daemon start`.
        #[arg(long, hide = true)]
        detached: bool,
    },
    /// Start in the background.
    Start,
    /// Stop, and end the agents. The next daemon starts them anew.
    Stop,
    /// Show whether the daemon is running.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct MarkersArgs {
    /// File with the output of an agent. Default, or `-`: standard input.
    pub(crate) file: Option<Utf8PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the format of a marker, or of all, for prompts to quote.
    #[arg(long, value_name = "MARKER", conflicts_with_all = ["file", "json"])]
    pub(crate) format: Option<Option<String>>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// List all settings with values and sources.
    List {
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
    /// Remove a setting of this project.
    Unset {
        /// Such as `max_parallel` or `agents.claude-api.model`.
        key: String,
        /// For all projects.
        #[arg(short, long)]
        global: bool,
    },
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

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CheckRole {
    /// As the agent of a standard phase.
    Standard,
    /// As the agent of a gate.
    Gate,
}

/// API of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelApi {
    /// The Messages API.
    Anthropic,
    /// The Chat Completions API.
    Openai,
    /// The Gemini API.
    Gemini,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Test an agent against the protocol and report each violation.
    Check {
        /// Role of the agent.
        #[arg(long = "as", value_enum, default_value = "standard")]
        role: CheckRole,
        /// Time limit for each message, in seconds.
        #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
        timeout: u64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// The agent's program and its arguments.
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Handle the dispatch message on standard input with the built-in agent that it names, as `cliq-agent` does.
    Handle,
    /// Convert the document on standard input to markdown.
    #[command(hide = true)]
    Convert,
    /// Run a command in a sandbox (docs/sandbox.md).
    #[cfg(target_os = "linux")]
    Sandbox {
        /// Profile: `workspace` (write here, read all but secrets) or `strict` (read this directory and system programs only).
        #[arg(long, default_value = "workspace", value_parser = ["workspace", "strict"])]
        profile: String,
        /// Network access: `all`, `none`, or hosts separated by commas.
        #[arg(long, default_value = "all")]
        network: String,
        /// Path that may be read too; may be repeated.
        #[arg(long, value_name = "PATH")]
        read: Vec<String>,
        /// Path that may be read and written too; may be repeated.
        #[arg(long, value_name = "PATH")]
        write: Vec<String>,
        /// Environment variable to keep; may be repeated.
        #[arg(long, value_name = "NAME")]
        env: Vec<String>,
        /// Mechanism: `auto`, `bubblewrap` or `landlock`. By default that of `sandbox.mechanism`.
        #[arg(long, value_parser = ["auto", "bubblewrap", "landlock"])]
        mechanism: Option<String>,
        /// The program and its arguments.
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Show inputs, outputs and settings of a connector.
    Show {
        /// The connector.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run the team of a team phase, whose dispatch message is on standard input.
    #[command(hide = true)]
    Team {
        /// The agent for phases that name none.
        #[arg(long)]
        agent: Option<String>,
    },
    /// Make the review of a human gate, whose dispatch message is on standard input, and wait for it.
    #[command(hide = true)]
    Review,
    /// Work as an agent of a plan in a container or a cluster: for the daemon.
    #[cfg(any(feature = "docker", feature = "kubernetes"))]
    #[command(hide = true)]
    Plan {
        /// Work here, with the assignment in DIR, and not with that on standard input where the settings say.
        #[arg(long, value_name = "DIR", requires = "run_id")]
        here: Option<Utf8PathBuf>,
        /// The id of the run.
        #[arg(long, value_name = "RUN")]
        run_id: Option<cliq_protocol::RunId>,
    },
    /// List the available agents.
    List,
}
