//! Attempts to sign in by a provider, and sessions of browsers.

use async_trait::async_trait;
use cliq_model::{SignInAttempt, SignInStore, StoreError, Token, TokenKind};

use cliq_protocol::Timestamp;

use crate::connection::{Connection, Target};
use crate::error::DatabaseError;
use crate::rows::{sign_in, token};
use crate::statement::arguments;
use crate::store::{SqlStore, on};

async fn add(connection: &mut Connection, new: &SignInAttempt, now: Timestamp) -> Result<(), DatabaseError> {
    connection.run("DELETE FROM sign_ins WHERE expires_at < $1", arguments![now]).await?;
    let sql =
        "INSERT INTO sign_ins (state, browser, nonce, verifier, expires_at) VALUES ($1, $2, $3, $4, $5)";
    let arguments = arguments![&new.state, &new.browser, &new.nonce, &new.verifier, new.expires_at];
    connection.run(sql, arguments).await.map(drop)
}

async fn take(connection: &mut Connection, state: &str) -> Result<Option<SignInAttempt>, DatabaseError> {
    let sql = "DELETE FROM sign_ins WHERE state = $1 RETURNING *";
    connection.run(sql, arguments![state]).await?.rows.first().map(sign_in).transpose()
}

async fn sessions(connection: &mut Connection, now: Timestamp) -> Result<Vec<Token>, DatabaseError> {
    let sql = "SELECT * FROM tokens WHERE kind = $1 AND (expires_at IS NULL OR expires_at > $2) ORDER BY created_at DESC, id LIMIT 1000";
    let answer = connection.run(sql, arguments![TokenKind::Session.as_str(), now]).await?;
    answer.rows.iter().map(token).collect()
}

#[async_trait]
impl SignInStore for SqlStore {
    async fn add_sign_in(&self, attempt: &SignInAttempt, now: Timestamp) -> Result<(), StoreError> {
        on!(self.writer("the sign-in"), connection => add(connection, attempt, now).await)
    }

    async fn take_sign_in(&self, state: &str) -> Result<Option<SignInAttempt>, StoreError> {
        on!(self.writer("the sign-in"), connection => take(connection, state).await)
    }

    async fn sessions(&self, now: Timestamp) -> Result<Vec<Token>, StoreError> {
        on!(self.reader(), connection => sessions(connection, now).await)
    }
}
