//! Storage of triggers, firings and concurrency groups.

use async_trait::async_trait;
use cliq_protocol::Timestamp;

use crate::store::{Outcome, StoreError};
use crate::trigger::{
    Added, EndedRun, Firing, FiringDecision, FiringFilter, GroupState, MarkStep, NewFiring, NewTrigger,
    TriggerRow,
};

/// Keeps triggers and firings. Each function is one transaction, and returns an error if the store fails.
#[async_trait]
pub trait TriggerStore: Send + Sync + std::fmt::Debug {
    /// Stores the triggers of a server's file. New ones get their initial mark; those that are not in the list are removed.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    async fn sync_triggers(&self, triggers: &[NewTrigger]) -> Result<(), StoreError>;

    /// Returns the state of all triggers.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    async fn trigger_rows(&self) -> Result<Vec<TriggerRow>, StoreError>;

    /// Returns the state of a trigger.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    async fn trigger_row(&self, name: &str) -> Result<Option<TriggerRow>, StoreError>;

    /// Pauses or resumes a trigger, and sets its mark if one is given. Returns `false` if there is no such trigger.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    async fn set_paused(&self, name: &str, is_paused: bool, mark: Option<&str>) -> Result<bool, StoreError>;

    /// Moves a mark and adds the firings of the causes in between, unless another server was faster.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    async fn advance(&self, step: &MarkStep, firings: &[NewFiring]) -> Result<Outcome, StoreError>;

    /// Adds a firing unless its key is known.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    async fn add_firing(&self, firing: &NewFiring) -> Result<Added, StoreError>;

    /// Returns undecided firings with a number above `after`, in the order of arrival.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    async fn pending_firings(&self, after: i64, limit: u32) -> Result<Vec<Firing>, StoreError>;

    /// Stores a decision about an undecided firing. Returns `false` if it was decided before.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    async fn decide_firing(
        &self,
        id: i64,
        decision: &FiringDecision,
        at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Returns the state of a concurrency group.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    async fn group(&self, name: &str) -> Result<GroupState, StoreError>;

    /// Returns firings, newest first. Their payload is left out.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    async fn firings(&self, filter: &FiringFilter) -> Result<Vec<Firing>, StoreError>;

    /// Returns the newest firing of each trigger. Their payload is left out.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    async fn last_firings(&self) -> Result<Vec<Firing>, StoreError>;

    /// Returns ends of runs that no trigger has seen, oldest first.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    async fn ended_runs(&self, limit: u32) -> Result<Vec<EndedRun>, StoreError>;

    /// Removes an end and adds its firings. Returns `false` if another server was faster.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    async fn consume_end(&self, end: &EndedRun, firings: &[NewFiring]) -> Result<bool, StoreError>;

    /// Removes decided firings with a cause before `before` (UTC), and their keys.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    async fn remove_firings(&self, before: Timestamp) -> Result<u64, StoreError>;
}
