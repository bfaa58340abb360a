//! Arguments of the commands about agents.

#[cfg(any(feature = "docker", feature = "kubernetes"))]
use camino::Utf8PathBuf;
use clap::{Subcommand, ValueEnum};

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
    /// Show what an agent can do (NAME), or test a program against the protocol (-- COMMAND).
    Check {
        /// Name of the agent, as in team.yml.
        #[arg(value_name = "NAME", conflicts_with = "command")]
        name: Option<String>,
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
        #[arg(last = true, required_unless_present = "name", value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Handle the dispatch message on standard input with the built-in agent that it names, as `cliq-agent` does.
    Handle,
    /// Convert the document on standard input to markdown.
    #[command(hide = true)]
    Convert,
    /// Run a command in a sandbox (docs/sandbox.md).
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
        /// Mechanism: `auto`, `bubblewrap`, `landlock`, or `seatbelt` on macOS. By default that of `sandbox.mechanism`.
        #[arg(long, value_parser = ["auto", "bubblewrap", "landlock", "seatbelt"])]
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
    /// Answer the message on standard input with the reply of a script (docs/team-test.md).
    #[command(hide = true)]
    Scripted {
        /// The script, as JSON.
        script: camino::Utf8PathBuf,
        /// Directory for the records of activations.
        records: camino::Utf8PathBuf,
    },
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
