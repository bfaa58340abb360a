//! The command line of `cliq review`.

use clap::{Args, Subcommand};

use super::run::key_value;

#[derive(Debug, Subcommand)]
pub(crate) enum ReviewCommand {
    /// List the reviews that wait in this project; outside of a project, all of this machine.
    List {
        /// Those that are over too.
        #[arg(short, long)]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a review: what it is about, who was asked, what was answered, its record.
    Show {
        #[command(flatten)]
        id: ReviewIdArg,
        /// With the text of files and changes.
        #[arg(long)]
        full: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Approve: the run goes on.
    Approve {
        #[command(flatten)]
        answer: AnswerArgs,
    },
    /// Request changes: a phase works again with your words, and you are asked again.
    RequestChanges {
        /// The phase that makes the changes. May be left out where there is only one.
        #[arg(long, value_name = "PHASE")]
        to: Option<String>,
        #[command(flatten)]
        answer: AnswerArgs,
    },
    /// Reject: the run stops.
    Reject {
        #[command(flatten)]
        answer: AnswerArgs,
    },
    /// Print the link to the page of a review, and open it in a browser where there is one.
    Open {
        #[command(flatten)]
        id: ReviewIdArg,
        /// Whose link. May be left out where that is clear.
        #[arg(long = "as", value_name = "NAME")]
        reviewer: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ReviewIdArg {
    /// The review: its id, or the beginning of it. Default: the one that waits in this project.
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    pub(crate) id: ReviewIdArg,
    /// Words for the team. Required for a request for changes.
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) message: Option<String>,
    /// The answer to a field of the review's form.
    #[arg(long = "input", value_name = "K=V", value_parser = key_value)]
    pub(crate) inputs: Vec<(String, String)>,
    /// In whose name, where several people are asked.
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) reviewer: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
