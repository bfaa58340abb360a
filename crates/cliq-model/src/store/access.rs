//! Storage of the audit log, of attempts to sign in and of sessions.

use async_trait::async_trait;
use cliq_protocol::Timestamp;

use crate::audit::{AuditAction, AuditEntry, AuditFilter};
use crate::sign_in::SignInAttempt;
use crate::store::StoreError;
use crate::token::Token;

/// Keeps the audit log. There is no function that changes or removes an entry, and the database refuses both.
#[async_trait]
pub trait AuditStore: Send + Sync + std::fmt::Debug {
    /// Appends an entry.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    async fn add_audit(&self, action: &AuditAction) -> Result<(), StoreError>;

    /// Returns entries.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, StoreError>;
}

/// Keeps attempts to sign in, for any number of servers, and sessions of browsers.
#[async_trait]
pub trait SignInStore: Send + Sync + std::fmt::Debug {
    /// Stores an attempt, and removes those that are void at `now` (UTC).
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    async fn add_sign_in(&self, attempt: &SignInAttempt, now: Timestamp) -> Result<(), StoreError>;

    /// Removes an attempt and returns it: each can be completed once.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    async fn take_sign_in(&self, state: &str) -> Result<Option<SignInAttempt>, StoreError>;

    /// Returns the sessions of browsers that are valid at `now` (UTC), newest first.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    async fn sessions(&self, now: Timestamp) -> Result<Vec<Token>, StoreError>;
}
