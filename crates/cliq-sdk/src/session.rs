//! The agent's end of the protocol, below handlers.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{FsError, HandoffError, SignalWriteError, SignalWriter};
use cliq_protocol::{
    AgentMessage, ChannelBody, ChannelMessage, DecodeError, Limited, NotifyRequest, OrderState, Usage,
    WaitingReview,
};
use serde_json::Value;

/// Error of an agent, apart from its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SdkError {
    /// Standard input cannot be read.
    #[error("cannot read the message on standard input: {0}")]
    Stdin(#[from] std::io::Error),
    /// Standard input holds no dispatch message.
    #[error("standard input holds no dispatch message: {0}")]
    Message(#[from] DecodeError),
    /// The dispatch has its terminal message. The orchestrator empties the channel before each activation, so this dispatch is an old
    /// one that was repeated by hand.
    #[error(
        "cannot answer the dispatch: {0} already has its last message; to repeat a dispatch by hand, move this file away first"
    )]
    AlreadyAnswered(Utf8PathBuf),
    /// A signal cannot be written.
    #[error(transparent)]
    Signal(#[from] SignalWriteError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FsError),
    /// A handoff is there and cannot be read.
    #[error(transparent)]
    Handoff(#[from] HandoffError),
    /// There is no channel to that phase.
    #[error("this phase has no channel to `{to}`; it has: {known}")]
    NoChannel {
        /// Requested recipient.
        to: String,
        /// Possible recipients.
        known: String,
    },
    /// The gate may not route there.
    #[error("this gate may not route to `{target}`; it may route to: {known}")]
    RouteTarget {
        /// Requested target.
        target: String,
        /// Possible targets.
        known: String,
    },
}

/// Error of a handler that a limit ended before its work was done. The phase escalates with the name and the value of the limit, and is
/// not tried again by itself.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct LimitReached {
    /// Description for people, with the setting that raises the limit.
    pub message: String,
    /// Limit that ended the work.
    pub limited: Limited,
}

impl LimitReached {
    /// Returns the error of a limit. `message` is for people, with the setting that raises the limit.
    #[must_use]
    pub fn new(message: impl Into<String>, limited: Limited) -> Self {
        Self { message: message.into(), limited }
    }

    /// Finds a reached limit in an error and its sources.
    #[must_use]
    pub fn of<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        std::iter::successors(Some(error), |error| error.source())
            .find_map(|error| error.downcast_ref::<Self>())
    }
}

/// Writes progress and notifications. Clones write to the same channel, from any thread.
#[derive(Debug, Clone)]
pub struct Reporter {
    writer: Arc<Mutex<SignalWriter>>,
}

impl Reporter {
    pub(crate) fn write(&self, body: ChannelBody) -> Result<(), SdkError> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).write(body).map_err(Into::into)
    }

    /// Says how far the work is.
    ///
    /// # Errors
    /// The agent has completed already, or the channel cannot be written.
    pub fn progress(&self, message: impl Into<String>) -> Result<(), SdkError> {
        self.write(ChannelBody::Progress { message: Some(message.into()), usage: None, review: None })
    }

    /// Reports the usage of language models of this activation so far. A later report replaces an earlier one. The
    /// orchestrator ends an agent whose usage exceeds its budget (docs/team-yml.md).
    ///
    /// # Errors
    /// The agent has completed already, or the channel cannot be written.
    pub fn usage(&self, usage: &Usage) -> Result<(), SdkError> {
        self.write(ChannelBody::Progress {
            message: None,
            usage: Some(Box::new(usage.clone())),
            review: None,
        })
    }

    /// Reports the review that the agent waits for, and again when fewer people are waited for.
    ///
    /// # Errors
    /// The agent has completed already, or the channel cannot be written.
    pub fn review(&self, message: impl Into<String>, review: &WaitingReview) -> Result<(), SdkError> {
        let (message, review) = (Some(message.into()), Some(Box::new(review.clone())));
        self.write(ChannelBody::Progress { message, usage: None, review })
    }

    /// Asks the orchestrator to deliver a notification.
    ///
    /// # Errors
    /// The agent has completed already, or the channel cannot be written.
    pub fn notify(&self, request: NotifyRequest) -> Result<(), SdkError> {
        self.write(ChannelBody::Notify(request))
    }

    fn is_finished(&self) -> bool {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).order().state() == OrderState::Finished
    }
}

/// Maximum size of a signal channel that is searched for a terminal message, in bytes.
const MAX_CHANNEL: u64 = 64 << 20;

/// Whether a signal channel has a terminal message.
fn is_answered(path: &Utf8Path) -> bool {
    let Ok(bytes) = cliq_fs::read_limited(path, MAX_CHANNEL) else { return false };
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.filter_map(|line| ChannelMessage::decode(line).ok()).any(|message| message.body.is_terminal())
}

/// A dispatch that was accepted: `ok` is written. Dropping it before it is finished reports an error, so that neither an
/// early return nor a panic goes unsaid.
///
/// ```no_run
/// use cliq_sdk::Session;
///
/// // Without handlers: the program decides when to read the message and when to report.
/// let session = Session::accept()?;
/// session.reporter().progress("working")?;
/// session.complete(Some(serde_json::json!({ "files": 3 })))?;
/// # Ok::<(), cliq_sdk::SdkError>(())
/// ```
#[derive(Debug)]
pub struct Session {
    message: AgentMessage,
    reporter: Reporter,
}

impl Session {
    /// Reads the message on standard input and acknowledges it.
    ///
    /// # Errors
    /// There is no message, or the signal channel cannot be written.
    pub fn accept() -> Result<Self, SdkError> {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes)?;
        Self::open(AgentMessage::decode(&bytes)?)
    }

    /// Acknowledges a message that was had otherwise.
    ///
    /// # Errors
    /// The dispatch was answered before, or the signal channel cannot be written.
    pub fn open(message: AgentMessage) -> Result<Self, SdkError> {
        if is_answered(message.dispatch.signal_file()) {
            return Err(SdkError::AlreadyAnswered(message.dispatch.signal_file().to_owned()));
        }
        let writer = SignalWriter::open(message.dispatch.signal_file(), message.dispatch.dispatch_type())?;
        let reporter = Reporter { writer: Arc::new(Mutex::new(writer)) };
        reporter.write(ChannelBody::Ok)?;
        Ok(Self { message, reporter })
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &AgentMessage {
        &self.message
    }

    /// To report with.
    #[must_use]
    pub fn reporter(&self) -> &Reporter {
        &self.reporter
    }

    /// Reports success. Nothing can be said after it.
    ///
    /// # Errors
    /// The channel cannot be written.
    pub fn complete(self, result: Option<Value>) -> Result<(), SdkError> {
        self.reporter.write(ChannelBody::Complete { result })
    }

    /// Reports failure. Nothing can be said after it.
    ///
    /// # Errors
    /// The channel cannot be written.
    pub fn error(self, error: impl Into<String>) -> Result<(), SdkError> {
        self.reporter.write(ChannelBody::Error { error: error.into(), usage: None, limited: None })
    }

    /// Reports that a limit ended the work. Nothing can be said after it.
    ///
    /// # Errors
    /// Returns an error if the channel cannot be written.
    pub fn limited(self, error: impl Into<String>, limited: Limited) -> Result<(), SdkError> {
        self.reporter.write(ChannelBody::Error { error: error.into(), usage: None, limited: Some(limited) })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.reporter.is_finished() {
            return;
        }
        let error = if std::thread::panicking() {
            "the agent panicked"
        } else {
            "the agent returned without completing"
        };
        let _ =
            self.reporter.write(ChannelBody::Error { error: error.to_owned(), usage: None, limited: None });
    }
}
