//! Storage of runs: instances, queue, events, leases, tokens.

use std::time::Duration;

use async_trait::async_trait;
use cliq_protocol::{RunId, Timestamp};

use crate::change::{Change, RunEventRow};
use crate::lifecycle::RunState;
use crate::page::RunFilter;
use crate::queue::Queue;
use crate::run::{Instance, Run};
use crate::store::{Outcome, StoreError};
use crate::token::{NewToken, Token};
use crate::usage::UsageTotals;

/// Number of runs by state.
pub type RunCounts = Vec<(RunState, u64)>;

/// Keeps instances, runs with their queue and events, and tokens. Each function fails where the store cannot be read or written.
#[async_trait]
pub trait RunStore: Send + Sync + std::fmt::Debug {
    /// Registers a project. Gives the instance; where the path is registered already, that one.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn add_instance(&self, instance: &Instance) -> Result<Instance, StoreError>;

    /// All registered projects, by path.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn instances(&self) -> Result<Vec<Instance>, StoreError>;

    /// A registered project.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn instance(&self, id: &str) -> Result<Option<Instance>, StoreError>;

    /// Removes a registration. Runs stay. `false` if there is none.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn forget_instance(&self, id: &str) -> Result<bool, StoreError>;

    /// Stores a change of a run, or a new run, with its events.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn change(&self, change: &Change) -> Result<Outcome, StoreError>;

    /// A run.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError>;

    /// Runs, newest first. Their `view` is left out.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>, StoreError>;

    /// Queued runs, at most `limit` of each kind.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn queue(&self, limit: u32) -> Result<Queue, StoreError>;

    /// Waiting runs whose time to wake has come by the clock of the store, at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn due(&self, limit: u32) -> Result<Vec<Run>, StoreError>;

    /// The earliest time, UTC, at which a waiting run is to be woken.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Runs that are starting or running.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn active(&self) -> Result<Vec<Run>, StoreError>;

    /// Returns the newest other run in the workspace of a run that has not ended or has started after it.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn later_run(&self, run: &Run) -> Result<Option<RunId>, StoreError>;

    /// Returns the number of runs by state, without trials of evaluations.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn counts(&self) -> Result<RunCounts, StoreError>;

    /// Returns the usage of the runs requested since `since` (UTC).
    ///
    /// # Errors
    /// The store cannot be read.
    async fn usage(&self, since: Timestamp) -> Result<UsageTotals, StoreError>;

    /// Events of a run with numbers above `after`, oldest first, at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn run_events(&self, id: &RunId, after: i64, limit: u32) -> Result<Vec<RunEventRow>, StoreError>;

    /// Removes a run and its events.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn remove_run(&self, id: &RunId) -> Result<(), StoreError>;

    /// Runs that ended before `before` (UTC), at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn ended_before(&self, before: Timestamp, limit: u32) -> Result<Vec<Run>, StoreError>;

    /// Whether several servers may use it.
    fn is_shared(&self) -> bool;

    /// Takes a lease that is free or over, or makes one's own longer, from now on by the clock of the store. `false` where another
    /// holds it.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn take_lease(&self, name: &str, holder: &str, time: Duration) -> Result<bool, StoreError>;

    /// Gives a lease back before it is over.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn give_lease(&self, name: &str, holder: &str) -> Result<(), StoreError>;

    /// Returns the holders of the leases whose names begin with `prefix`.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn lease_holders(&self, prefix: &str) -> Result<Vec<String>, StoreError>;

    /// Stores a token.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn add_token(&self, token: &NewToken) -> Result<(), StoreError>;

    /// A token by its id, whether it is valid or not.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn token(&self, id: &str) -> Result<Option<Token>, StoreError>;

    /// Tokens that people made, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn tokens(&self) -> Result<Vec<Token>, StoreError>;

    /// Removes a token and the sessions that were opened with it: they are refused from now on. `false` if there is none.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn revoke_token(&self, id: &str) -> Result<bool, StoreError>;

    /// Removes tokens that expired before `now` (UTC).
    ///
    /// # Errors
    /// The store cannot be written.
    async fn remove_expired_tokens(&self, now: Timestamp) -> Result<(), StoreError>;
}
