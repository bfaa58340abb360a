//! The command line of `cliq review`.

use clap::{Args, Subcommand};

use super::run::key_value;

#[derive(Debug, Subcommand)]
pub(crate) enum ReviewCommand {
    /// List the open reviews of this project; outside of a project, of this machine.
    List {
        /// Include closed reviews.
        #[arg(short, long)]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a review: subject, reviewers, answers, record.
    Show {
        #[command(flatten)]
        id: ReviewIdArg,
        /// Include the text of files and changes.
        #[arg(long)]
        full: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Comment on a review: on a line of its changes, or on the whole. Comments decide nothing; those on lines go along with a request for
    /// changes.
    Comment {
        #[command(flatten)]
        comment: CommentArgs,
    },
    /// Approve: the run goes on.
    Approve {
        #[command(flatten)]
        answer: AnswerArgs,
    },
    /// Request changes: a phase works again with your message, then the review opens again.
    RequestChanges {
        /// Phase that makes the changes. Required where there are several.
        #[arg(long, value_name = "PHASE")]
        to: Option<String>,
        #[command(flatten)]
        answer: AnswerArgs,
    },
    /// Reject: the run stops. A request or a question of an agent is declined, and the agent goes on.
    Reject {
        #[command(flatten)]
        answer: AnswerArgs,
    },
    /// Print the link to the page of a review, and open it in a browser where there is one.
    Open {
        #[command(flatten)]
        id: ReviewIdArg,
        /// Reviewer whose link to print, where there are several.
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
pub(crate) struct CommentArgs {
    #[command(flatten)]
    pub(crate) id: ReviewIdArg,
    /// Text of the comment.
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) message: Option<String>,
    /// Line of the changes, by its number in the file as it is now.
    #[arg(long, value_name = "PATH:LINE")]
    pub(crate) at: Option<String>,
    /// The line of `--at` is a removed one, by its number before the change.
    #[arg(long, requires = "at")]
    pub(crate) removed: bool,
    /// Withdraw your comment with this id, or the beginning of one.
    #[arg(long, value_name = "COMMENT", conflicts_with_all = ["message", "at"])]
    pub(crate) withdraw: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    pub(crate) id: ReviewIdArg,
    /// Message to the team. A request for changes needs one, or comments on lines.
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) message: Option<String>,
    /// The answer to a field of the review's form.
    #[arg(long = "input", value_name = "K=V", value_parser = key_value)]
    pub(crate) inputs: Vec<(String, String)>,
    /// Reviewer in whose name to answer, where there are several.
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) reviewer: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
