//! Storage of evaluations and their trials.

use async_trait::async_trait;
use cliq_protocol::{RunId, Timestamp};

use crate::evaluation::{EvaluationRow, TrialRow};
use crate::store::StoreError;

/// Keeps evaluations. Each function is one transaction.
#[async_trait]
pub trait EvaluationStore: Send + Sync + std::fmt::Debug {
    /// Stores a new evaluation with its trials.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    async fn add_evaluation(&self, evaluation: &EvaluationRow, trials: &[TrialRow])
    -> Result<(), StoreError>;

    /// Returns the newest evaluations.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    async fn evaluations(&self, limit: u32) -> Result<Vec<EvaluationRow>, StoreError>;

    /// Returns the evaluation whose id is `id` or ends with it, or `None` if there is none or more than one.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    async fn evaluation(&self, id: &str) -> Result<Option<EvaluationRow>, StoreError>;

    /// Returns the trials of an evaluation in the order of their numbers.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    async fn trials(&self, evaluation: &str) -> Result<Vec<TrialRow>, StoreError>;

    /// Returns the trial whose last attempt is a run, with the id of its evaluation.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    async fn trial_of_run(&self, run: &RunId) -> Result<Option<(String, TrialRow)>, StoreError>;

    /// Stores the state of a trial, unless it has finished before. Returns whether it was stored: each trial counts once.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    async fn save_trial(&self, evaluation: &str, trial: &TrialRow) -> Result<bool, StoreError>;

    /// Stores the end of an evaluation.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    async fn end_evaluation(&self, evaluation: &str, at: Timestamp) -> Result<(), StoreError>;
}
