//! Interface between the screen and what it shows.

use std::process::Command;
use std::sync::Arc;

use cliq_protocol::Object;
use cliq_review::{Choice, ReviewId, Side};

use crate::model::{Changes, Offers, ReviewDetail, RunDetail, RunKey, RunList};

/// Kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// Output of agents, commands and the orchestrator.
    Log,
    /// Transcript of a model, as JSON lines.
    Transcript,
}

/// Place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPlace {
    /// The last lines.
    End,
    /// Whole lines that end before a byte.
    Before(u64),
    /// Whole lines from a byte on.
    After(u64),
}

/// Request for a part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextRequest {
    /// Run.
    pub run: RunKey,
    /// Phase; `None` for the orchestrator.
    pub phase: Option<String>,
    /// Kind.
    pub kind: TextKind,
    /// File; `None` for the newest one of the phase.
    pub file: Option<String>,
    /// Place.
    pub place: TextPlace,
    /// Text to find, ignoring case: the last line that has it and begins before the place, or the first one from it on. At the end: the last
    /// line.
    pub find: Option<String>,
}

/// Part of a text: whole lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextPart {
    /// Name of the file; empty if there is none.
    pub file: String,
    /// Names of all files of the phase, oldest first.
    pub files: Vec<String>,
    /// Offset of the first byte.
    pub start: u64,
    /// Bytes. A last line without an end is not among them, unless it is very long.
    pub bytes: Vec<u8>,
    /// Size of the file in bytes.
    pub size: u64,
    /// Offset of the line that was found.
    pub found: Option<u64>,
}

/// Action of a person.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Answers a review.
    Answer {
        /// Run.
        run: RunKey,
        /// Review.
        review: ReviewId,
        /// Choice.
        choice: Choice,
        /// Message to the team.
        message: Option<String>,
        /// Values of the form.
        inputs: Object,
        /// Reviewer in whose name, or `None` for the user of this machine.
        reviewer: Option<String>,
    },
    /// Comments on a line: at a review, or as guidance for the run.
    Comment {
        /// Run.
        run: RunKey,
        /// Review, or `None` for guidance.
        review: Option<ReviewId>,
        /// Path relative to the workspace.
        path: String,
        /// Hunks of the file, as shown.
        hunks: String,
        /// Side of the change.
        side: Side,
        /// Number of the line on its side, 1-based.
        line: u64,
        /// Text.
        text: String,
    },
    /// Sends guidance.
    Steer {
        /// Run.
        run: RunKey,
        /// Phase, or `None` for all.
        phase: Option<String>,
        /// Text.
        text: String,
    },
    /// Cancels a run.
    Cancel(RunKey),
    /// Continues the last run of a project.
    Resume(RunKey),
    /// Runs the team again from the beginning.
    RunAgain(RunKey),
    /// Starts a run.
    Start {
        /// Directory of the project.
        project: String,
        /// Team to assemble, or `None` for the assembled one.
        team: Option<String>,
        /// Requirement.
        requirement: String,
        /// Values of inputs.
        inputs: Vec<(String, String)>,
    },
    /// Opens the page of a run or its review in a browser.
    Open(RunKey),
}

/// Result of an action.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActionResult {
    /// Sentence for the person.
    pub message: String,
    /// Run to choose.
    pub chosen: Option<RunKey>,
    /// Link to show, if no browser could be opened.
    pub link: Option<String>,
}

/// Source of runs. Methods block; the screen calls them on threads of its own. Errors are sentences for people.
pub trait Source: Send + Sync {
    /// Returns the runs of all projects: the same value as before if nothing has changed.
    ///
    /// # Errors
    /// Returns an error if nothing can be read.
    fn runs(&self) -> Result<Arc<RunList>, String>;

    /// Returns a run with its phases.
    ///
    /// # Errors
    /// Returns an error if the run is gone or cannot be read.
    fn detail(&self, run: &RunKey) -> Result<RunDetail, String>;

    /// Returns a part of a text. A text that does not exist is empty.
    ///
    /// # Errors
    /// Returns an error if the text cannot be read.
    fn text(&self, request: &TextRequest) -> Result<TextPart, String>;

    /// Returns the changed files of a run or of one phase; of a phase with a pending review, those under review.
    ///
    /// # Errors
    /// Returns an error if the changes cannot be read.
    fn changes(&self, run: &RunKey, phase: Option<&str>, review: Option<&str>) -> Result<Changes, String>;

    /// Returns a review.
    ///
    /// # Errors
    /// Returns an error if there is no such review.
    fn review(&self, run: &RunKey, review: &str) -> Result<ReviewDetail, String>;

    /// Returns places and teams for a new run. `near` is the chosen run.
    ///
    /// # Errors
    /// Returns an error if teams cannot be read.
    fn offers(&self, near: Option<&RunKey>) -> Result<Offers, String>;

    /// Carries out an action.
    ///
    /// # Errors
    /// Returns an error if the action was refused or failed. Nothing else has changed then.
    fn carry_out(&self, action: &Action) -> Result<ActionResult, String>;

    /// Returns the program that shows the panes of a run on the terminal.
    ///
    /// # Errors
    /// Returns an error if the run has no panes.
    fn attach(&self, run: &RunKey, phase: Option<&str>) -> Result<Command, String>;
}
