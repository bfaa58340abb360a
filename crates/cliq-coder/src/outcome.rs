//! Ends of a loop that are no answers (docs/outcomes.md).

use std::fmt;

use cliq_protocol::Limited;

/// Limit that ends a loop before it has an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// Number of replies.
    Turns(u32),
    /// Budget in tokens.
    Tokens(u64),
    /// Budget in US dollars.
    Usd(f64),
    /// Context in tokens, as it is set.
    Context(u64),
}

impl Limit {
    /// Returns the name and the value, as in handoffs and channel messages.
    #[must_use]
    pub fn limited(self) -> Limited {
        match self {
            Self::Turns(limit) => Limited::new("max_turns", limit),
            Self::Tokens(limit) => Limited::new("budget.tokens", limit),
            Self::Usd(limit) => Limited::new("budget.usd", limit),
            Self::Context(limit) => Limited::new("context_tokens", limit),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.limited().fmt(f)
    }
}

/// Failure that ends a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// A reply was cut off, and its continuation too.
    CutOff {
        /// Limit that cut the last one off, for people.
        detail: Option<String>,
    },
    /// The model refused twice.
    Refused {
        /// Reason of the refusal, for people.
        detail: Option<String>,
    },
    /// The model answered twice with nothing.
    Empty,
    /// The model called tools twice when it could not.
    Calls,
    /// The model repeated itself.
    Repetition(Repeated),
    /// The conversation is too long, and the model gave no summary of it.
    Summary(Box<Self>),
    /// The provider refuses the conversation, even without earlier thoughts.
    StaleThinking,
}

/// Content of replies that were equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repeated {
    /// Text without calls.
    Text,
    /// Calls with their results.
    Calls {
        /// Names of the tools, in their order.
        tools: Vec<String>,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail =
            |detail: &Option<String>| detail.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
        match self {
            Self::CutOff { detail: limit } => {
                write!(f, "the answer is still cut off after its continuation{}", detail(limit))
            }
            Self::Refused { detail: reason } => write!(f, "the model refused twice{}", detail(reason)),
            Self::Empty => f.write_str("the model answered with nothing, asked twice"),
            Self::Calls => {
                f.write_str("the model called tools instead of an answer, although it cannot call any now")
            }
            Self::Repetition(Repeated::Text) => {
                write!(f, "the model repeats itself: the same reply {} times in a row", crate::REPETITIONS)
            }
            Self::Repetition(Repeated::Calls { tools }) => {
                let tools: Vec<String> = tools.iter().map(|tool| format!("`{tool}`")).collect();
                let (tools, times) = (tools.join(", "), crate::REPETITIONS);
                write!(
                    f,
                    "the model repeats itself: {tools} with the same arguments and the same result {times} times in a row"
                )
            }
            Self::Summary(why) => {
                write!(f, "the conversation is too long and cannot be summarized: {why}")
            }
            Self::StaleThinking => {
                f.write_str("the provider refuses the conversation, even without earlier thoughts")
            }
        }
    }
}

impl std::error::Error for Failure {}
