//! Events that change the screen, and effects that follow from them.

use std::sync::Arc;

use cliq_protocol::Timestamp;
use crossterm::event::{KeyEvent, MouseEvent};

use crate::model::{Changes, Offers, ReviewDetail, RunDetail, RunKey, RunList};
use crate::source::{Action, ActionResult, TextPart, TextRequest};

/// Event of the screen.
#[derive(Debug, Clone)]
pub enum Event {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse was used.
    Mouse(MouseEvent),
    /// A text was pasted.
    Paste(String),
    /// The terminal has another size, in columns and rows.
    Resized(u16, u16),
    /// Time passed.
    Tick(Timestamp),
    /// A request was answered.
    Loaded(Box<Reply>),
    /// An action ended.
    Acted(Box<Action>, Result<ActionResult, String>),
    /// The terminal was given to another program, which has ended. An error says why it could not start.
    Returned(Option<String>),
}

/// Answered request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// List of runs.
    Runs(Result<Arc<RunList>, String>),
    /// Phases of a run.
    Detail(RunKey, Result<RunDetail, String>),
    /// Part of a text.
    Text(TextRequest, Result<TextPart, String>),
    /// Changed files of a run or phase.
    Changes(ChangesRequest, Result<Changes, String>),
    /// Review to answer.
    Review(RunKey, String, Result<ReviewDetail, String>),
    /// Places and teams for a new run.
    Offers(Result<Offers, String>),
}

/// Request for changed files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesRequest {
    /// Run.
    pub run: RunKey,
    /// Phase, or `None` for the whole run.
    pub phase: Option<String>,
    /// Pending review whose changes are wanted.
    pub review: Option<String>,
}

/// Request to the source.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// List of runs.
    Runs,
    /// Phases of a run.
    Detail(RunKey),
    /// Part of a text.
    Text(TextRequest),
    /// Changed files.
    Changes(ChangesRequest),
    /// Review.
    Review(RunKey, String),
    /// Places and teams for a new run near a run.
    Offers(Option<RunKey>),
}

/// Effect of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Ask the source.
    Load(Request),
    /// Carry out an action.
    Act(Action),
    /// Put a text on the clipboard.
    Copy(String),
    /// Give the terminal to the panes of a run, or of one phase.
    Attach(RunKey, Option<String>),
    /// Suspend the program, as the shell's job control does.
    Suspend,
    /// Leave.
    Quit,
}
