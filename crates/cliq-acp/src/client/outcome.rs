//! Ends of a turn and of a start. No variant is a catch-all: what is not clearly a success has a name of its own.

use std::fmt;

use crate::rpc::RpcError;

/// End of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The agent ended its turn with `end_turn`, without a request to cancel it.
    Completed,
    /// The model refused to continue.
    Refused,
    /// The token limit of the model was reached.
    MaxTokens,
    /// The agent's limit of model requests in one turn was reached.
    MaxTurnRequests,
    /// The turn was cancelled. An `end_turn` after a request to cancel counts as cancelled, too.
    Cancelled,
    /// Stop reason that the protocol does not define. It is not a success.
    UnknownStopReason(String),
    /// The turn failed.
    Failed(Failure),
}

impl Outcome {
    /// Whether the turn is a success: only [`Outcome::Completed`] is.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Completed)
    }

    pub(crate) fn from_stop_reason(reason: &str, is_cancelling: bool) -> Self {
        match reason {
            "end_turn" if is_cancelling => Self::Cancelled,
            "end_turn" => Self::Completed,
            "refusal" => Self::Refused,
            "max_tokens" => Self::MaxTokens,
            "max_turn_requests" => Self::MaxTurnRequests,
            "cancelled" => Self::Cancelled,
            other => Self::UnknownStopReason(other.to_owned()),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed => f.write_str("completed"),
            Self::Refused => f.write_str("the model refused to continue"),
            Self::MaxTokens => f.write_str("the token limit of the model was reached"),
            Self::MaxTurnRequests => {
                f.write_str("the agent's limit of model requests in one turn was reached")
            }
            Self::Cancelled => f.write_str("the turn was cancelled"),
            Self::UnknownStopReason(reason) => {
                write!(f, "the agent ended its turn with the unknown stop reason `{}`", head(reason))
            }
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

/// Step of the conversation in which something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// `initialize`: version and capabilities.
    Initialize,
    /// `session/new`.
    NewSession,
    /// `session/resume`.
    ResumeSession,
    /// `session/load`.
    LoadSession,
    /// Mode, model and options of the session.
    Configure,
    /// Between turns.
    Idle,
    /// `session/prompt`.
    Prompt,
    /// `session/cancel`, until the prompt is answered.
    Cancel,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Initialize => "initialize",
            Self::NewSession => "session/new",
            Self::ResumeSession => "session/resume",
            Self::LoadSession => "session/load",
            Self::Configure => "the configuration of the session",
            Self::Idle => "the wait for a prompt",
            Self::Prompt => "session/prompt",
            Self::Cancel => "session/cancel",
        })
    }
}

/// End of an agent's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentExit {
    /// Exit code.
    Code(i32),
    /// Number of the signal that ended it.
    Signal(i32),
}

impl fmt::Display for AgentExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "with code {code}"),
            Self::Signal(signal) => write!(f, "by signal {signal}"),
        }
    }
}

/// Reason why a start or a turn failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The program cannot be started.
    #[error("cannot start {program}: {reason}")]
    NotStarted {
        /// Path or name of the program.
        program: String,
        /// Reason of the system.
        reason: String,
    },
    /// The agent speaks another version of the protocol.
    #[error(
        "the agent speaks version {version} of the Agent Client Protocol, cliq speaks version 1; use a version of the agent that speaks it, too"
    )]
    UnsupportedVersion {
        /// Version of the agent.
        version: i64,
    },
    /// The agent requires a sign-in.
    #[error("the agent requires a sign-in ({message}){}; start the agent once in a terminal and sign in, or set its API key", list_of(" by one of", .methods))]
    SignInRequired {
        /// Step in which it was required.
        step: Step,
        /// Message of the agent.
        message: String,
        /// Names of the offered methods.
        methods: Vec<String>,
    },
    /// The agent answered with an error.
    #[error("the agent answered {step} with an error: {error}")]
    Rejected {
        /// Step that was answered.
        step: Step,
        /// Error of the agent.
        error: RpcError,
    },
    /// The agent's answer does not follow the protocol.
    #[error("the agent's answer to {step} does not follow the protocol: {reason}")]
    InvalidAnswer {
        /// Step that was answered.
        step: Step,
        /// Violation.
        reason: String,
    },
    /// The conversation cannot be continued.
    #[error("the agent can neither resume nor load a conversation; start a new one")]
    CannotContinue,
    /// The agent does not offer the value of an option.
    #[error("the agent has no {option} `{value}`{}", list_of("; it offers", .offered))]
    NotOffered {
        /// Name of the option: `mode`, `model`, or an id.
        option: String,
        /// Value of the settings.
        value: String,
        /// Offered values.
        offered: Vec<String>,
    },
    /// The agent accepted a value and did not take it.
    #[error("the agent accepted the {option} `{value}` and reports `{actual}`")]
    NotApplied {
        /// Name of the option.
        option: String,
        /// Value that was set.
        value: String,
        /// Value that the agent reports.
        actual: String,
    },
    /// The agent refused the value of an option.
    #[error("the agent refused the {option} `{value}`: {error}")]
    SettingRejected {
        /// Name of the option.
        option: String,
        /// Value that was set.
        value: String,
        /// Error of the agent.
        error: Box<RpcError>,
    },
    /// Line that exceeds the limit. A response may have been in it.
    #[error("the agent wrote a line of {bytes} bytes in {step}; the limit is {limit}")]
    LineTooLong {
        /// Step in which it came.
        step: Step,
        /// Length of the line.
        bytes: u64,
        /// Maximum length.
        limit: usize,
    },
    /// Line with more values than the limit. A response may have been in it.
    #[error("the agent wrote a line of more than {limit} JSON values in {step}")]
    TooManyValues {
        /// Step in which it came.
        step: Step,
        /// Maximum number of values.
        limit: usize,
    },
    /// Text of one turn that exceeds the limit.
    #[error("the agent wrote more than {limit} bytes of text in one turn")]
    TooMuchText {
        /// Maximum length.
        limit: usize,
    },
    /// The agent does not read its input.
    #[error("the agent does not read its input: {bytes} bytes wait for it in {step}")]
    InputStuck {
        /// Step in which it was noticed.
        step: Step,
        /// Bytes that wait.
        bytes: usize,
    },
    /// The agent closed its input and continued to run.
    #[error("the agent closed its input in {step}")]
    InputClosed {
        /// Step in which it happened.
        step: Step,
    },
    /// The agent closed its output and continued to run.
    #[error("the agent closed its output in {step}")]
    OutputClosed {
        /// Step in which it happened.
        step: Step,
    },
    /// The agent's process ended.
    #[error("the agent exited {exit} in {step}{}", cause(.errors))]
    AgentExited {
        /// Step in which it happened.
        step: Step,
        /// End of the process.
        exit: AgentExit,
        /// End of its error output, without secrets.
        errors: String,
    },
    /// The agent did not answer in time.
    #[error("the agent did not answer {step} in time")]
    TimedOut {
        /// Step that was not answered.
        step: Step,
    },
    /// The agent was silent for too long in a turn.
    #[error("the agent wrote nothing in {step} for longer than allowed")]
    Silent {
        /// Step in which it was silent.
        step: Step,
    },
    /// The start was cancelled.
    #[error("cancelled in {step}")]
    CancelledStart {
        /// Step that was not completed.
        step: Step,
    },
    /// A turn is running already.
    #[error("a turn is running; one prompt at a time can be sent")]
    Busy,
    /// The conversation is over.
    #[error("the agent's process has ended; start it again to continue")]
    Ended,
}

impl Failure {
    /// Replaces the texts of the agent.
    pub(crate) fn mask(&mut self, mask: &dyn Fn(&str) -> String) {
        let in_error = |error: &mut RpcError| {
            error.message = mask(&error.message);
            // A value that is no JSON without its secrets is left out.
            error.data =
                error.data.take().and_then(|data| serde_json::from_str(&mask(&data.to_string())).ok());
        };
        match self {
            Self::SignInRequired { message: text, .. }
            | Self::AgentExited { errors: text, .. }
            | Self::NotApplied { actual: text, .. } => *text = mask(text),
            Self::Rejected { error, .. } => in_error(error),
            Self::SettingRejected { error, .. } => in_error(error),
            Self::NotStarted { .. }
            | Self::UnsupportedVersion { .. }
            | Self::InvalidAnswer { .. }
            | Self::CannotContinue
            | Self::NotOffered { .. }
            | Self::LineTooLong { .. }
            | Self::TooManyValues { .. }
            | Self::TooMuchText { .. }
            | Self::InputStuck { .. }
            | Self::InputClosed { .. }
            | Self::OutputClosed { .. }
            | Self::TimedOut { .. }
            | Self::Silent { .. }
            | Self::CancelledStart { .. }
            | Self::Busy
            | Self::Ended => {}
        }
    }
}

fn list_of(before: &str, names: &[String]) -> String {
    const SHOWN: usize = 12;
    match names.len() {
        0 => String::new(),
        n => {
            let shown: Vec<String> =
                names.iter().take(SHOWN).map(|name| format!("`{}`", head(name))).collect();
            let rest = if n > SHOWN { format!(" and {} more", n - SHOWN) } else { String::new() };
            format!("{before} {}{rest}", shown.join(", "))
        }
    }
}

fn cause(errors: &str) -> String {
    match errors.trim() {
        "" => String::new(),
        errors => format!(": {errors}"),
    }
}

/// Returns the beginning of a text of an agent, on one line, for messages.
pub(crate) fn head(text: &str) -> String {
    const SHOWN: usize = 200;
    let flat: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN + 1).collect();
    match flat.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &flat[..end]),
        None => flat,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_end_turn_without_a_cancel_is_a_success() {
        for (reason, is_cancelling, expected) in [
            ("end_turn", false, Outcome::Completed),
            ("end_turn", true, Outcome::Cancelled),
            ("refusal", false, Outcome::Refused),
            ("max_tokens", false, Outcome::MaxTokens),
            ("max_turn_requests", false, Outcome::MaxTurnRequests),
            ("cancelled", false, Outcome::Cancelled),
            ("End_Turn", false, Outcome::UnknownStopReason("End_Turn".into())),
            ("", false, Outcome::UnknownStopReason(String::new())),
        ] {
            let outcome = Outcome::from_stop_reason(reason, is_cancelling);
            assert_eq!(outcome.is_success(), outcome == Outcome::Completed);
            assert_eq!(outcome, expected, "{reason}");
        }
    }

    #[test]
    fn texts_of_agents_are_cut() {
        assert_eq!(head(&"é\n".repeat(300)).chars().count(), 201);
        let failure = Failure::NotOffered {
            option: "mode".into(),
            value: "x".into(),
            offered: (0..14).map(|n| n.to_string()).collect(),
        };
        assert!(failure.to_string().ends_with("`11` and 2 more"), "{failure}");
    }
}
