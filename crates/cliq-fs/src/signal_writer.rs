//! Writer of a signal channel, in the only order that the protocol allows (docs/protocol.md).

use std::fs::File;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{
    ChannelBody, ChannelMessage, ChannelOrder, DispatchType, MAX_LINE_BYTES, OrderViolation,
};

use crate::atomic::{open_append, write_at_once};
use crate::{FsError, IoContext, now};

/// The writing end of a signal channel.
///
/// Each message is one line and one write. What would break the order is refused and not written.
#[derive(Debug)]
pub struct SignalWriter {
    path: Utf8PathBuf,
    file: File,
    dispatch: DispatchType,
    order: ChannelOrder,
}

/// Reason why a message was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignalWriteError {
    /// The order of messages forbids it now.
    #[error(transparent)]
    Order(#[from] OrderViolation),
    /// The message is longer than readers accept.
    #[error(
        "the message has {bytes} bytes, and readers skip lines over {MAX_LINE_BYTES}: hand large data over in a file"
    )]
    TooLong {
        /// Length of the line in bytes.
        bytes: usize,
    },
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] FsError),
}

impl SignalWriter {
    /// Opens a channel that nothing has been written to in this activation.
    ///
    /// # Errors
    /// The file cannot be opened for append.
    pub fn open(path: &Utf8Path, dispatch: DispatchType) -> Result<Self, FsError> {
        let file = open_append(path)?;
        Ok(Self { path: path.to_owned(), file, dispatch, order: ChannelOrder::new() })
    }

    /// State of the channel.
    #[must_use]
    pub fn order(&self) -> ChannelOrder {
        self.order
    }

    /// Appends a message, stamped with the time.
    ///
    /// # Errors
    /// The order forbids it, it is too long, or the file cannot be written. Nothing counts as said then.
    pub fn write(&mut self, body: ChannelBody) -> Result<(), SignalWriteError> {
        let mut order = self.order;
        order.accept(&body)?;
        let line = ChannelMessage::new(now(), self.dispatch, body).encode();
        if line.len() > MAX_LINE_BYTES {
            return Err(SignalWriteError::TooLong { bytes: line.len() });
        }
        write_at_once(&mut self.file, &line).at("append to", &self.path)?;
        self.order = order;
        Ok(())
    }
}
