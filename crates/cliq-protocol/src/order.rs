//! The order of channel messages: one `ok`, any number of `progress` and `notify`, one terminal message
//! (docs/protocol.md). The writer refuses what breaks it, the reader passes over it.

use crate::ChannelBody;

/// State of a signal channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OrderState {
    /// Nothing yet: only `ok` may come.
    #[default]
    AwaitingOk,
    /// Acknowledged: anything but a second `ok` may come.
    Working,
    /// A terminal message came: nothing may follow.
    Finished,
}

/// The state machine of one signal channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChannelOrder {
    state: OrderState,
}

/// A message that may not come now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderViolation {
    /// Something came before `ok`.
    #[error("`{status}` before `ok`: the first message of a channel is `ok`")]
    BeforeOk {
        /// The status of what came.
        status: &'static str,
    },
    /// `ok` came twice.
    #[error("a second `ok`: a channel has exactly one")]
    SecondOk,
    /// Something came after the terminal message.
    #[error("`{status}` after the terminal message: nothing follows `complete` or `error`")]
    AfterTerminal {
        /// The status of what came.
        status: &'static str,
    },
}

impl ChannelOrder {
    /// A channel with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// State of the channel.
    #[must_use]
    pub fn state(self) -> OrderState {
        self.state
    }

    /// Takes the next message.
    ///
    /// # Errors
    /// The message may not come now; the state is as before.
    pub fn accept(&mut self, body: &ChannelBody) -> Result<(), OrderViolation> {
        let status = body.status();
        self.state = match (self.state, body) {
            (OrderState::AwaitingOk, ChannelBody::Ok) => OrderState::Working,
            (OrderState::AwaitingOk, _) => return Err(OrderViolation::BeforeOk { status }),
            (OrderState::Working, ChannelBody::Ok) => return Err(OrderViolation::SecondOk),
            (OrderState::Working, body) if body.is_terminal() => OrderState::Finished,
            (OrderState::Working, _) => OrderState::Working,
            (OrderState::Finished, _) => return Err(OrderViolation::AfterTerminal { status }),
        };
        Ok(())
    }
}
