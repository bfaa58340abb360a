//! Filter and cursor of a list of runs.

use crate::lifecycle::RunState;
use crate::run::RunId;

/// Filter for runs. An unset field matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// In one of these states; empty for all.
    pub states: Vec<RunState>,
    /// Of the team of this name.
    pub team: Option<String>,
    /// In this registered project.
    pub instance: Option<String>,
    /// Only runs after this place of the list.
    pub after: Option<RunCursor>,
    /// At most so many.
    pub limit: u32,
}

/// A place in a list of runs, newest first: the list goes on after this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCursor(pub RunId);
