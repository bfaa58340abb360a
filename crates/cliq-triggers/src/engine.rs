//! Engine of triggers: brings causes to the store, and runs to the supervisor.
//!
//! * `catalog.rs` keeps the triggers of the file up to date.
//! * `ticks.rs`, `accept.rs`, `ends.rs` and `files.rs` turn causes into firings.
//! * `firings.rs` decides firings and starts their runs.

mod accept;
mod catalog;
mod ends;
mod files;
mod firings;
#[cfg(test)]
mod tests;
mod ticks;

use std::collections::HashMap;
use std::sync::Arc;

use camino::Utf8PathBuf;
use cliq_model::{Firing, FiringFilter, RunStore, StoreError, TriggerRow, TriggerStore};
use cliq_supervisor::Supervisor;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::documents::{FiringDocument, PlanDocument, TestRequest, TriggerDocument, test_trigger};
use crate::file::TriggersCheck;
use crate::model::{Source, Trigger};

pub use accept::{Accepted, HookRefusal, MAX_BODY, parse_body};
use catalog::Catalog;

/// Maximum number of triggers in a row: each starts after the run of the one before.
const MAX_DEPTH: u32 = 10;

/// Options of an engine.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The cliq home, with `triggers.yml` and settings.
    pub home: Utf8PathBuf,
}

/// Reason why an engine cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The file has errors.
    #[error("triggers.yml has errors")]
    Invalid(Box<TriggersCheck>),
    /// The file or the settings cannot be read.
    #[error("cannot read the triggers: {0}")]
    File(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Debug)]
struct Inner {
    home: Utf8PathBuf,
    store: Arc<dyn TriggerStore>,
    runs: Arc<dyn RunStore>,
    supervisor: Supervisor,
    catalog: watch::Sender<Arc<Catalog>>,
    /// Notified when a firing was stored.
    pending: Notify,
    stopping: CancellationToken,
}

/// Handle of an engine. Clones share the same engine.
#[derive(Debug, Clone)]
pub struct Engine {
    inner: Arc<Inner>,
    tasks: TaskTracker,
}

impl Engine {
    /// Reads the triggers and starts to watch their sources, until `stopping` is cancelled. Needs a tokio runtime with IO and time.
    ///
    /// # Errors
    /// Returns an error if the file has errors, or the store fails.
    pub async fn start(
        options: EngineOptions,
        store: Arc<dyn TriggerStore>,
        runs: Arc<dyn RunStore>,
        supervisor: Supervisor,
        stopping: CancellationToken,
    ) -> Result<Self, StartError> {
        let catalog = catalog::load(&options.home)?;
        let inner = Inner {
            home: options.home,
            store,
            runs,
            supervisor,
            catalog: watch::Sender::new(Arc::new(catalog)),
            pending: Notify::new(),
            stopping,
        };
        let engine = Self { inner: Arc::new(inner), tasks: TaskTracker::new() };
        engine.inner.sync().await?;
        for work in 0..5 {
            let inner = Arc::clone(&engine.inner);
            match work {
                0 => engine.tasks.spawn(catalog::run(inner)),
                1 => engine.tasks.spawn(ticks::run(inner)),
                2 => engine.tasks.spawn(ends::run(inner)),
                3 => engine.tasks.spawn(files::run(inner)),
                _ => engine.tasks.spawn(firings::run(inner)),
            };
        }
        engine.tasks.close();
        Ok(engine)
    }

    /// Waits until the tasks of the engine have ended. The stop token must be cancelled before.
    pub async fn stop(&self) {
        self.tasks.wait().await;
    }

    /// Returns the triggers with their state, in the order of the file.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn list(&self) -> Result<Vec<TriggerDocument>, StoreError> {
        let catalog = self.inner.catalog();
        let rows = self.inner.rows().await?;
        let last = self.inner.store.last_firings().await?.into_iter();
        let mut last: HashMap<String, Firing> = last.map(|firing| (firing.trigger.clone(), firing)).collect();
        let now = cliq_fs::now();
        let document = |trigger: &Arc<Trigger>| {
            TriggerDocument::new(trigger, rows.get(&trigger.name), last.remove(&trigger.name), now)
        };
        Ok(catalog.triggers.iter().map(document).collect())
    }

    /// Returns a trigger with its state, or `None` if there is no such trigger.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn trigger(&self, name: &str) -> Result<Option<TriggerDocument>, StoreError> {
        let Some(trigger) = self.inner.catalog().find(name) else { return Ok(None) };
        let row = self.inner.store.trigger_row(name).await?;
        let filter = FiringFilter { trigger: Some(name.to_owned()), limit: 1, ..FiringFilter::default() };
        let last = self.inner.store.firings(&filter).await?.pop();
        Ok(Some(TriggerDocument::new(&trigger, row.as_ref(), last, cliq_fs::now())))
    }

    /// Returns firings, newest first.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn firings(&self, filter: &FiringFilter) -> Result<Vec<FiringDocument>, StoreError> {
        Ok(self.inner.store.firings(filter).await?.into_iter().map(FiringDocument::from).collect())
    }

    /// Pauses or resumes a trigger. Causes while it is paused start nothing. Returns `false` if there is no such trigger.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn set_paused(&self, name: &str, is_paused: bool) -> Result<bool, StoreError> {
        let Some(trigger) = self.inner.catalog().find(name) else { return Ok(false) };
        set_paused(self.inner.store.as_ref(), &trigger, is_paused).await
    }

    /// Returns what a payload would start, or `None` if there is no such trigger. Stores and starts nothing.
    #[must_use]
    pub fn test(&self, name: &str, request: &TestRequest) -> Option<PlanDocument> {
        let trigger = self.inner.catalog().find(name)?;
        Some(test_trigger(&trigger, request, cliq_fs::now()))
    }

    /// Returns the problem of the file, if its present text cannot be used. The triggers are then those of its last valid text.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.inner.catalog().problem.clone()
    }
}

/// Pauses or resumes a trigger in a store. Ticks and changes while it was paused are not caught up. Returns `false` if no server has stored the
/// trigger yet.
///
/// # Errors
/// Returns an error if the store fails.
pub async fn set_paused(
    store: &dyn TriggerStore,
    trigger: &Trigger,
    is_paused: bool,
) -> Result<bool, StoreError> {
    let mark = match trigger.source {
        Source::Schedule(_) if !is_paused => Some(cliq_fs::now().to_string()),
        // The state of the files is read again.
        Source::Files(_) if !is_paused => Some(String::new()),
        _ => None,
    };
    store.set_paused(&trigger.name, is_paused, mark.as_deref()).await
}

impl Inner {
    fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.borrow())
    }

    /// Brings the rows of the store to the triggers of the file.
    async fn sync(&self) -> Result<(), StoreError> {
        let now = cliq_fs::now().to_string();
        let triggers: Vec<_> = self.catalog().triggers.iter().map(|trigger| trigger.row(&now)).collect();
        self.store.sync_triggers(&triggers).await
    }

    /// Returns the rows by name.
    async fn rows(&self) -> Result<HashMap<String, TriggerRow>, StoreError> {
        let rows = self.store.trigger_rows().await?;
        Ok(rows.into_iter().map(|row| (row.name.clone(), row)).collect())
    }
}
