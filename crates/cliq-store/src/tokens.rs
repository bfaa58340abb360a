//! Access tokens.

use cliq_model::{NewToken, Token, TokenKind};

use cliq_protocol::Timestamp;

use crate::connection::{Connection, Target};
use crate::error::DatabaseError;
use crate::rows::token;
use crate::statement::arguments;

pub(crate) async fn add(connection: &mut Connection, new: &NewToken) -> Result<(), DatabaseError> {
    let sql = "INSERT INTO tokens (id, hash, kind, label, scope, created_at, expires_at, parent, person) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let person = new.person.as_ref().and_then(|person| serde_json::to_string(person).ok());
    let arguments = arguments![
        &new.id,
        &new.hash,
        new.kind.as_str(),
        &new.label,
        new.scope.as_str(),
        new.created_at,
        new.expires_at,
        new.parent.as_deref(),
        person.as_deref()
    ];
    connection.run(sql, arguments).await.map(drop)
}

pub(crate) async fn find(connection: &mut Connection, id: &str) -> Result<Option<Token>, DatabaseError> {
    let sql = "SELECT * FROM tokens WHERE id = $1";
    connection.run(sql, arguments![id]).await?.rows.first().map(token).transpose()
}

pub(crate) async fn list(connection: &mut Connection) -> Result<Vec<Token>, DatabaseError> {
    let sql = "SELECT * FROM tokens WHERE kind = $1 ORDER BY created_at DESC, id";
    let arguments = arguments![TokenKind::Api.as_str()];
    connection.run(sql, arguments).await?.rows.iter().map(token).collect()
}

pub(crate) async fn remove(connection: &mut Connection, id: &str) -> Result<bool, DatabaseError> {
    let sql = "DELETE FROM tokens WHERE id = $1 OR parent = $1";
    Ok(connection.run(sql, arguments![id]).await?.changed > 0)
}

pub(crate) async fn remove_expired(connection: &mut Connection, now: Timestamp) -> Result<(), DatabaseError> {
    let sql = "DELETE FROM tokens WHERE expires_at IS NOT NULL AND expires_at < $1";
    connection.run(sql, arguments![now]).await.map(drop)
}
