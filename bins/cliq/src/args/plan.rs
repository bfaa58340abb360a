//! Arguments of the commands about plans and the daemon.

use camino::Utf8PathBuf;
use clap::Subcommand;

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
