//! Evaluations and their trials as they are stored (docs/eval.md).

use camino::Utf8PathBuf;
use cliq_protocol::{RunId, Timestamp};

/// Evaluation as it is stored. The store does not read its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationRow {
    /// Id, a UUID in the order of time.
    pub id: String,
    /// Name of the suite.
    pub name: String,
    /// Directory of the workspaces of its trials.
    pub directory: Utf8PathBuf,
    /// The suite with the contents of its files, as JSON.
    pub document: String,
    /// Time of the start, UTC.
    pub created_at: Timestamp,
    /// Time of the end, UTC. `None` while trials are left.
    pub ended_at: Option<Timestamp>,
    /// Number of trials.
    pub trials: u64,
    /// Number of trials that ended.
    pub finished: u64,
}

/// State of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialState {
    /// The trial has not started.
    Pending,
    /// A run of the trial was started.
    Running,
    /// The trial has a result. It never changes again.
    Finished,
}

impl TrialState {
    /// Name of the state in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Finished => "finished",
        }
    }

    /// Returns the state with a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Running, Self::Finished].into_iter().find(|state| state.as_str() == text)
    }
}

/// Trial as it is stored. The store does not read its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialRow {
    /// Number in the evaluation, 1-based.
    pub number: u32,
    /// Name of the variant.
    pub variant: String,
    /// Name of the case.
    pub case: String,
    /// Number of the repeat, 1-based.
    pub repeat: u32,
    /// State.
    pub state: TrialState,
    /// Number of attempts that ended with an infrastructure error.
    pub attempts: u32,
    /// Id of the run of the last attempt.
    pub run_id: Option<RunId>,
    /// Result as JSON. Empty before the end.
    pub result: String,
}
