//! Store in memory, for unit tests of everything above the database. It passes the suite of `cliq-store`.
//!
//! A change copies the state, applies itself to the copy and replaces the state if nothing refused it: the transaction of a database.

mod access;
mod evaluations;
mod runs;
mod tasks;
mod triggers;

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cliq_protocol::{RunId, Timestamp};

use crate::audit::AuditEntry;
use crate::change::RunEventRow;
use crate::evaluation::{EvaluationRow, TrialRow};
use crate::run::{Instance, Run};
use crate::sign_in::SignInAttempt;
use crate::store::StoreError;
use crate::task::{PushRow, TaskRow};
use crate::token::NewToken;
use crate::trigger::{EndedRun, Firing, TriggerRow};

/// Store in memory. Clones share their content, as several connections to one database do.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    settings: Mutex<Settings>,
    parts: Mutex<Parts>,
}

/// Content of other crates, which implement their storage traits with it.
#[derive(Default)]
struct Parts {
    by_type: HashMap<TypeId, Box<dyn Any + Send>>,
    on_cancelled_run: Option<fn(&MemoryStore, &RunId)>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("parts", &self.by_type.len()).finish_non_exhaustive()
    }
}

/// Behaviour that a test chooses.
#[derive(Debug, Default)]
struct Settings {
    /// Time by which the clock of the store is ahead of that of the system.
    ahead: Duration,
    is_shared: bool,
    /// Number of calls that fail.
    failures: u32,
}

/// Stored task with the columns that its row does not have.
#[derive(Debug, Clone)]
struct StoredTaskRow {
    row: TaskRow,
    /// State of the run for the caller, for filters.
    state: crate::lifecycle::RunState,
}

/// Stored firing with the columns that its row does not have.
#[derive(Debug, Clone)]
struct StoredFiring {
    firing: Firing,
    /// Whether its run has not ended.
    is_open: bool,
}

#[derive(Debug, Clone)]
struct Lease {
    holder: String,
    until_millis: i64,
}

/// Content of the store.
#[derive(Debug, Clone, Default)]
struct State {
    instances: BTreeMap<String, Instance>,
    runs: BTreeMap<RunId, Run>,
    events: BTreeMap<RunId, Vec<RunEventRow>>,
    /// Reviews that runs may wait for.
    pending_reviews: BTreeSet<String>,
    /// Reviews that each parked run waits for.
    waits: BTreeMap<RunId, Vec<String>>,
    leases: BTreeMap<String, Lease>,
    tokens: BTreeMap<String, NewToken>,
    tasks: BTreeMap<RunId, StoredTaskRow>,
    pushes: BTreeMap<(RunId, String), PushRow>,
    triggers: BTreeMap<String, TriggerRow>,
    firings: BTreeMap<i64, StoredFiring>,
    last_firing: i64,
    /// Firings by trigger and key.
    firing_keys: BTreeMap<(String, String), i64>,
    groups: BTreeMap<String, i64>,
    ends: BTreeMap<RunId, EndedRun>,
    evaluations: BTreeMap<String, EvaluationRow>,
    trials: BTreeMap<(String, u32), TrialRow>,
    audit: Vec<AuditEntry>,
    sign_ins: BTreeMap<String, SignInAttempt>,
}

impl MemoryStore {
    /// Lets the store count as one that several servers share.
    pub fn share(&self) {
        self.settings(|settings| settings.is_shared = true);
    }

    /// Moves the clock of the store forward.
    pub fn advance(&self, time: Duration) {
        self.settings(|settings| settings.ahead += time);
    }

    /// Lets the next calls fail, as a database that is locked.
    pub fn fail(&self, calls: u32) {
        self.settings(|settings| settings.failures = calls);
    }

    /// Adds a review that runs can wait for.
    pub fn add_pending_review(&self, id: &str) {
        self.lock(|state| state.pending_reviews.insert(id.to_owned()));
    }

    /// Ends a review: queues the runs that wait for it.
    pub fn end_review(&self, id: &str) {
        let now = self.now();
        self.lock(|state| {
            state.pending_reviews.remove(id);
            runs::wake(state, id, now);
        });
    }

    /// Works on the content of type `P`, as one call of the store. For the storage traits of other crates.
    ///
    /// # Errors
    /// Returns an error if the store is to fail.
    pub fn part<P: Default + Send + 'static, T>(
        &self,
        work: impl FnOnce(&mut P) -> T,
    ) -> Result<T, StoreError> {
        self.check()?;
        let mut parts = self.shared.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let part = parts.by_type.entry(TypeId::of::<P>()).or_insert_with(|| Box::new(P::default()));
        // The content is found by its type.
        let part = part.downcast_mut().ok_or_else(|| StoreError::new("content of another type"))?;
        Ok(work(part))
    }

    /// Calls a function after each change that stores a cancelled run.
    pub fn on_cancelled_run(&self, call: fn(&Self, &RunId)) {
        let mut parts = self.shared.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.on_cancelled_run = Some(call);
    }

    fn run_was_cancelled(&self, id: &RunId) {
        let call = self.shared.parts.lock().unwrap_or_else(PoisonError::into_inner).on_cancelled_run;
        if let Some(call) = call {
            call(self, id);
        }
    }

    /// Returns the time of the clock of the store.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_unix_millis(self.now_millis())
    }

    fn settings<T>(&self, work: impl FnOnce(&mut Settings) -> T) -> T {
        work(&mut self.shared.settings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn lock<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.shared.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns an error if this call is to fail.
    fn check(&self) -> Result<(), StoreError> {
        let fails = self.settings(|settings| {
            let fails = settings.failures > 0;
            settings.failures = settings.failures.saturating_sub(1);
            fails
        });
        if fails {
            return Err(StoreError::Locked { database: "memory".to_owned(), seconds: 0 });
        }
        Ok(())
    }

    /// Runs one call.
    fn call<T>(&self, work: impl FnOnce(&mut State) -> T) -> Result<T, StoreError> {
        self.check()?;
        Ok(self.lock(work))
    }

    /// Runs one call as a transaction: `None` changes nothing.
    fn transaction<T>(&self, work: impl FnOnce(&mut State) -> Option<T>) -> Result<Option<T>, StoreError> {
        self.call(|state| {
            let mut next = state.clone();
            let result = work(&mut next)?;
            *state = next;
            Some(result)
        })
    }

    fn now_millis(&self) -> i64 {
        let ahead = self.settings(|settings| settings.ahead);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + ahead;
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

/// Returns the first `limit` items.
fn first<T>(items: impl IntoIterator<Item = T>, limit: u32) -> Vec<T> {
    items.into_iter().take(limit as usize).collect()
}
