//! Audit log, attempts to sign in, sessions.

use async_trait::async_trait;
use cliq_protocol::Timestamp;

use super::{MemoryStore, first, runs};
use crate::audit::{AuditAction, AuditEntry, AuditFilter};
use crate::sign_in::SignInAttempt;
use crate::store::{AuditStore, SignInStore, StoreError};
use crate::token::{Token, TokenKind};

/// Maximum number of sessions that are listed.
const SESSIONS: u32 = 1000;

#[async_trait]
impl AuditStore for MemoryStore {
    async fn add_audit(&self, action: &AuditAction) -> Result<(), StoreError> {
        self.call(|state| {
            let id = state.audit.last().map_or(1, |last| last.id + 1);
            state.audit.push(AuditEntry { id, action: action.clone() });
        })
    }

    async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, StoreError> {
        let AuditFilter { actor, since, until, after, before, limit } = filter;
        self.call(|state| {
            let is_listed = |entry: &&AuditEntry| {
                let action = &entry.action;
                let is_by = |actor: &String| action.actor == *actor || action.person.as_ref() == Some(actor);
                actor.as_ref().is_none_or(is_by)
                    && since.is_none_or(|since| action.ts >= since)
                    && until.is_none_or(|until| action.ts < until)
                    && after.is_none_or(|after| entry.id > after)
                    && before.is_none_or(|before| entry.id < before)
            };
            let mut found: Vec<AuditEntry> = state.audit.iter().filter(is_listed).cloned().collect();
            if after.is_none() {
                found.reverse();
            }
            first(found, *limit)
        })
    }
}

#[async_trait]
impl SignInStore for MemoryStore {
    async fn add_sign_in(&self, attempt: &SignInAttempt, now: Timestamp) -> Result<(), StoreError> {
        self.call(|state| {
            state.sign_ins.retain(|_, known| known.expires_at >= now);
            state.sign_ins.insert(attempt.state.clone(), attempt.clone());
        })
    }

    async fn take_sign_in(&self, state: &str) -> Result<Option<SignInAttempt>, StoreError> {
        self.call(|stored| stored.sign_ins.remove(state))
    }

    async fn sessions(&self, now: Timestamp) -> Result<Vec<Token>, StoreError> {
        self.call(|state| {
            let sessions = runs::tokens(state, TokenKind::Session).into_iter();
            first(sessions.filter(|token| token.expires_at.is_none_or(|at| at > now)), SESSIONS)
        })
    }
}
