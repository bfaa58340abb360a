//! Storage traits. `cliq-store` implements them for SQLite and PostgreSQL; `MemoryStore` (feature `test-util`) is for
//! unit tests.

mod access;
mod error;
mod evaluations;
#[cfg(feature = "test-util")]
mod memory;
mod runs;
mod tasks;
mod triggers;

pub use access::{AuditStore, SignInStore};
pub use error::StoreError;
pub use evaluations::EvaluationStore;
#[cfg(feature = "test-util")]
pub use memory::MemoryStore;
pub use runs::{RunCounts, RunStore};
pub use tasks::TaskStore;
pub use triggers::TriggerStore;

/// Whether a change took place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The change was applied.
    Applied,
    /// Optimistic-lock conflict: the stored version differs, or the signal has another claim. No change was made.
    Stale,
}
