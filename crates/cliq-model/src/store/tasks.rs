//! Storage of tasks of A2A and of their push notifications.

use async_trait::async_trait;

use crate::store::StoreError;
use crate::task::{PushRow, StoredTask, TaskFilter, TaskRow};
use cliq_protocol::{RunId, Timestamp};

/// Keeps tasks and push notifications. New tasks are stored with their run by [`crate::RunStore::change`].
#[async_trait]
pub trait TaskStore: Send + Sync + std::fmt::Debug {
    /// A task of an owner. `None` if there is none, or it is another owner's.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn task(&self, owner: &str, id: &RunId) -> Result<Option<StoredTask>, StoreError>;

    /// The task that a message of an owner made.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn task_of_message(&self, owner: &str, message_id: &str) -> Result<Option<StoredTask>, StoreError>;

    /// A task by its id alone, for the server itself.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn task_of_run(&self, id: &RunId) -> Result<Option<TaskRow>, StoreError>;

    /// Replaces the messages of a task. `false` if they are no longer those in `known`.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn put_messages(&self, id: &RunId, known: &str, messages: &str) -> Result<bool, StoreError>;

    /// Tasks of an owner, last changed first. The `view` of their runs is left out.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<StoredTask>, StoreError>;

    /// Returns the number of tasks that match a filter on all pages.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn count_tasks(&self, filter: &TaskFilter) -> Result<u64, StoreError>;

    /// Stores a receiver of push notifications, new or changed. `false` where another changed it since.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn put_push(&self, push: &PushRow) -> Result<bool, StoreError>;

    /// The receivers of a task, by id.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn pushes(&self, task_id: &RunId) -> Result<Vec<PushRow>, StoreError>;

    /// Removes a receiver.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn remove_push(&self, task_id: &RunId, id: &str) -> Result<(), StoreError>;

    /// Active receivers whose task has events that are not delivered, and whose time has come at `now` (UTC), at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn due_pushes(&self, now: Timestamp, limit: u32) -> Result<Vec<PushRow>, StoreError>;
}
