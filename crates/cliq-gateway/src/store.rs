//! Store of signals and plans. `cliq-store` implements it for SQLite and PostgreSQL.

use std::time::Duration;

use async_trait::async_trait;
use cliq_model::{Outcome, StoreError};
use cliq_protocol::Timestamp;
use serde::Serialize;

use crate::signal::{Claim, NewSignal, Signal, SignalStatus};

/// Filter for signals. An unset field matches everything.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this project.
    pub project: Option<String>,
    /// About this plan.
    pub plan: Option<String>,
    /// With this status.
    pub status: Option<SignalStatus>,
    /// At most so many, the newest.
    pub limit: Option<u32>,
}

/// Numbers of signals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignalCounts {
    /// Number by status. A status without signals may be left out.
    pub by_status: Vec<(SignalStatus, u64)>,
    /// Time of emission of the oldest pending signal, UTC.
    pub oldest_pending: Option<Timestamp>,
}

/// End of the processing of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// The signal was processed, with this result.
    Done(String),
    /// The signal was rejected or could not be processed, for this reason.
    Failed(String),
}

/// A plan as it is stored. The store does not read its document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanRow {
    /// The project.
    pub project: String,
    /// Name, unique in the project.
    pub name: String,
    /// State, for lists.
    pub state: String,
    /// All that is known of it, as JSON.
    pub document: String,
    /// Number of changes. A change names the version on which it is based, and is refused if the stored version differs. 0 for a
    /// plan that is not stored yet.
    pub version: i64,
    /// Time of creation, UTC.
    pub created_at: Timestamp,
    /// Time of the last change, UTC.
    pub updated_at: Timestamp,
}

/// Something that happened to a plan, to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Kind of the event.
    pub kind: String,
    /// The plan's state before.
    pub from: String,
    /// And after.
    pub to: String,
    /// More about it, as JSON.
    pub detail: String,
}

/// A row of the event log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanEvent {
    /// Number in the order of events.
    pub id: i64,
    /// The plan.
    pub plan: String,
    /// Time, UTC.
    pub at: Timestamp,
    /// Kind of the event.
    pub kind: String,
    /// The plan's state before.
    pub from: String,
    /// And after.
    pub to: String,
    /// The signal that made it happen, if any.
    pub signal: Option<i64>,
    /// More about it.
    pub detail: serde_json::Value,
}

/// A change of a plan with everything that belongs to it: all of it happens, or nothing.
#[derive(Debug)]
pub struct Step {
    /// The plan as it is to be, with the version that it was made from.
    pub plan: PlanRow,
    /// Events of the step.
    pub events: Vec<NewEvent>,
    /// The signal that was processed, and how it went.
    pub finish: Option<(Claim, Finish)>,
    /// Signals that follow.
    pub emit: Vec<NewSignal>,
}

/// Keeps signals and plans.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    /// Adds a pending signal. Gives its number.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn create(&self, project: &str, signal: &NewSignal) -> Result<i64, StoreError>;

    /// As [`Self::create`], for a signal that a file brought: a file whose `identity` is known was added before, and is
    /// not added again. Gives the number either way.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn create_from_file(
        &self,
        project: &str,
        signal: &NewSignal,
        identity: &str,
    ) -> Result<i64, StoreError>;

    /// A file that was brought in has gone: another one may look just like it from now on.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn forget_file(&self, identity: &str) -> Result<(), StoreError>;

    /// Claims the oldest pending signal of a project. No other worker gets it until it is finished or the claim is taken
    /// away by [`Self::reset_stuck`].
    ///
    /// # Errors
    /// The store cannot be written.
    async fn claim(&self, project: &str, worker: &str) -> Result<Option<(Claim, Signal)>, StoreError>;

    /// Marks a claimed signal as done or failed.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn finish(&self, claim: &Claim, finish: &Finish) -> Result<Outcome, StoreError>;

    /// Makes signals pending again that have been claimed for longer than `age`. Gives their numbers.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn reset_stuck(&self, age: Duration) -> Result<Vec<i64>, StoreError>;

    /// Makes signals pending again that a worker of this name has claimed. For a worker that knows itself to be the only
    /// one of its name, when it begins: those claims are of one that died. Gives their numbers.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn reset_claims(&self, worker: &str) -> Result<Vec<i64>, StoreError>;

    /// Makes a failed signal pending again. `false` where it is none.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn retry(&self, id: i64) -> Result<bool, StoreError>;

    /// Signals, the oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn signals(&self, filter: &Filter) -> Result<Vec<Signal>, StoreError>;

    /// Counts the signals of all projects.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn signal_counts(&self) -> Result<SignalCounts, StoreError>;

    /// A signal by its number.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn signal(&self, id: i64) -> Result<Option<Signal>, StoreError>;

    /// Projects that have pending signals, or plans.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn projects(&self) -> Result<Vec<String>, StoreError>;

    /// Plans, of one project or of all, by name.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn plans(&self, project: Option<&str>) -> Result<Vec<PlanRow>, StoreError>;

    /// A plan.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn plan(&self, project: &str, name: &str) -> Result<Option<PlanRow>, StoreError>;

    /// Changes a plan, with everything that belongs to the change.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn apply(&self, step: &Step) -> Result<Outcome, StoreError>;

    /// Returns the events of a plan with an id greater than `after`, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn events(&self, project: &str, plan: &str, after: i64) -> Result<Vec<PlanEvent>, StoreError>;
}
