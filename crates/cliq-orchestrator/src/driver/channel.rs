//! Signal channel of an agent, as the orchestrator reads it.

use cliq_fs::SignalTail;
use cliq_protocol::{ChannelBody, ChannelOrder, FieldError, Limited, Line, Usage, WaitingReview, WireTime};
use tokio::time::Instant;

/// End of a signal channel.
pub(super) enum Terminal {
    Complete(Option<serde_json::Value>),
    Error(String, Option<Box<Usage>>, Option<Limited>),
}

impl Terminal {
    /// The usage that it reports. One that cannot be read is an error, for a warning.
    pub(super) fn usage(&self) -> Result<Option<Usage>, FieldError> {
        match self {
            Self::Complete(result) => result.as_ref().map_or(Ok(None), Usage::of_result),
            Self::Error(_, usage, _) => Ok(usage.as_deref().cloned()),
        }
    }
}

/// Message without an effect.
pub(super) enum Odd {
    /// A line that is no message, or a message that may not come now: a warning, for people.
    NoEffect(String),
    /// Error that the agent reported after it had completed its phase.
    ErrorAfterComplete(String),
}

/// Reads a channel and judges the order.
pub(super) struct Follower {
    tail: SignalTail,
    order: ChannelOrder,
    /// Whether the terminal message is `complete`.
    has_completed: bool,
    /// The last review that the agent named.
    pub(super) review: Option<WaitingReview>,
    /// Time before which the agent has nothing to do, with other reviews that end its wait.
    pub(super) idle: Option<(WireTime, Vec<String>)>,
    /// Time from which on people are asked by the agent at work. The time of the agent stands still meanwhile.
    pub(super) asks_since: Option<Instant>,
}

impl Follower {
    pub(super) fn new(file: &camino::Utf8Path) -> Self {
        Self {
            tail: SignalTail::new(file),
            order: ChannelOrder::new(),
            has_completed: false,
            review: None,
            idle: None,
            asks_since: None,
        }
    }

    /// Reads what is new. Gives the terminal message once it has come; passes the rest to `each`, and what has no
    /// effect to `odd`.
    pub(super) fn read(
        &mut self,
        mut each: impl FnMut(ChannelBody),
        mut odd: impl FnMut(Odd),
    ) -> Result<Option<Terminal>, String> {
        let (mut terminal, order, has_completed) = (None, &mut self.order, &mut self.has_completed);
        let read = self.tail.read_new(|Line { offset, message }| {
            let message = match message {
                Ok(message) => message,
                Err(fault) => {
                    return odd(Odd::NoEffect(format!(
                        "the line at byte {offset} is not a message and is skipped: {fault}"
                    )));
                }
            };
            if let Err(violation) = order.accept(&message.body) {
                return odd(match message.body {
                    ChannelBody::Error { error, .. } if *has_completed => Odd::ErrorAfterComplete(error),
                    _ => Odd::NoEffect(format!("the message at byte {offset} has no effect: {violation}")),
                });
            }
            match message.body {
                ChannelBody::Complete { result } => {
                    *has_completed = true;
                    terminal = Some(Terminal::Complete(result));
                }
                ChannelBody::Error { error, usage, limited } => {
                    terminal = Some(Terminal::Error(error, usage, limited));
                }
                other => each(other),
            }
        });
        read.map_err(|error| error.to_string())?;
        Ok(terminal)
    }
}
