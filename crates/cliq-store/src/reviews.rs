//! Reviews, and what their reviewers are shown.

use async_trait::async_trait;
use cliq_model::{AuditAction, StoreError};
use cliq_protocol::{ReviewSubject, RunId, Timestamp};
use cliq_review::{Content, Event, Review, ReviewFilter, ReviewId, ReviewState, ReviewStore};

use crate::cells::Cells;
use crate::connection::{Connection, Target, Tx};
use crate::error::DatabaseError;
use crate::statement::{Row, arguments};
use crate::store::{SqlStore, on};
use crate::{audit, parking, wake_file};

/// Default maximum number of reviews in a list.
const LIMIT: u32 = 200;

/// Statement that replaces a version of a review.
const SAVE: &str =
    "UPDATE reviews SET state = $2, document = $3, version = $4 + 1 WHERE id = $1 AND version = $4";

fn review(row: &Row) -> Result<(Review, i64), DatabaseError> {
    let row = Cells::new(row, "reviews", &["id"]);
    Ok((row.json("document")?, row.integer("version")?))
}

fn encode(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| StoreError::new(format!("a review cannot be stored: {error}")))
}

async fn add(
    connection: &mut Connection,
    new: &Review,
    document: &str,
    content: &str,
) -> Result<bool, DatabaseError> {
    let mut transaction = connection.begin().await?;
    let sql = "INSERT INTO reviews (id, review_key, project, run_id, state, created_ms, document, version) VALUES ($1, $2, $3, $4, $5, $6, $7, 1) ON CONFLICT DO NOTHING";
    let key = new.key();
    let arguments = arguments![
        new.id.as_str(),
        &key,
        new.project.as_str(),
        new.run_id.as_str(),
        new.state.as_str(),
        new.created.unix_millis(),
        document
    ];
    if transaction.run(sql, arguments).await?.changed == 0 {
        return Ok(false);
    }
    let sql = "INSERT INTO review_contents (id, document) VALUES ($1, $2)";
    transaction.run(sql, arguments![new.id.as_str(), content]).await?;
    transaction.commit().await?;
    Ok(true)
}

async fn get(connection: &mut Connection, id: &ReviewId) -> Result<Option<(Review, i64)>, DatabaseError> {
    let sql = "SELECT * FROM reviews WHERE id = $1";
    connection.run(sql, arguments![id.as_str()]).await?.rows.first().map(review).transpose()
}

async fn content(connection: &mut Connection, id: &ReviewId) -> Result<Option<Content>, DatabaseError> {
    let sql = "SELECT * FROM review_contents WHERE id = $1";
    let answer = connection.run(sql, arguments![id.as_str()]).await?;
    answer.rows.first().map(|row| Cells::new(row, "review_contents", &["id"]).json("document")).transpose()
}

async fn list(connection: &mut Connection, filter: &ReviewFilter) -> Result<Vec<Review>, DatabaseError> {
    let limit = i64::from(if filter.limit == 0 { LIMIT } else { filter.limit });
    // An empty text stands for no condition.
    let (project, run) = (
        filter.project.as_deref().unwrap_or_default(),
        filter.run_id.as_ref().map(RunId::as_str).unwrap_or_default(),
    );
    let state = if filter.pending { "pending" } else { "" };
    let sql = "SELECT * FROM reviews WHERE ($1 = '' OR project = $1) AND ($2 = '' OR run_id = $2) AND ($3 = '' OR state = $3) ORDER BY created_ms DESC, id LIMIT $4";
    let answer = connection.run(sql, arguments![project, run, state, limit]).await?;
    answer.rows.iter().map(|row| review(row).map(|(review, _)| review)).collect()
}

async fn save(
    connection: &mut Connection,
    new: &Review,
    document: &str,
    version: i64,
) -> Result<bool, DatabaseError> {
    let arguments = arguments![new.id.as_str(), new.state.as_str(), document, version];
    if new.is_pending() {
        return Ok(connection.run(SAVE, arguments).await?.changed == 1);
    }
    let mut transaction = connection.begin().await?;
    let answered = if new.subject.is_some() { answered(&mut transaction, new).await? } else { None };
    if transaction.run(SAVE, arguments).await?.changed != 1 {
        return Ok(false);
    }
    if let Some(action) = answered {
        audit::add(&mut transaction, &action).await?;
    }
    parking::wake(&mut transaction, new.id.as_str()).await?;
    transaction.commit().await?;
    Ok(true)
}

/// Entry of the audit log for a request of an agent at work that is answered now: what was asked, and who allowed or refused it.
async fn answered(transaction: &mut Tx<'_>, new: &Review) -> Result<Option<AuditAction>, DatabaseError> {
    let (Some(subject), ReviewState::Decided { at, .. }) = (&new.subject, &new.state) else {
        return Ok(None);
    };
    let Some(answer) = new.answers.last().map(|accepted| &accepted.answer) else { return Ok(None) };
    let sql = "SELECT * FROM reviews WHERE id = $1";
    let rows = transaction.run(sql, arguments![new.id.as_str()]).await?;
    let was_pending = rows.rows.first().map(review).transpose()?.is_some_and(|(old, _)| old.is_pending());
    let is_approved = new.ask_answer().is_some_and(|answer| answer.is_approved());
    let (action, outcome) = match (subject, is_approved) {
        (ReviewSubject::Permission { .. }, true) => ("permission", "allowed"),
        (ReviewSubject::Permission { .. }, false) => ("permission", "refused"),
        (ReviewSubject::Question { .. }, true) => ("question", "answered"),
        (ReviewSubject::Question { .. }, false) => ("question", "declined"),
    };
    Ok(was_pending.then(|| AuditAction {
        ts: *at,
        actor: answer.actor.clone(),
        person: None,
        via: answer.via.as_str().to_owned(),
        action: action.to_owned(),
        target: format!(
            "{} (run {}, phase {}, review {})",
            subject.sentence(),
            new.run_id,
            new.phase,
            new.id
        ),
        outcome: outcome.to_owned(),
        request_id: None,
        peer: None,
    }))
}

/// Cancels the reviews that a cancelled run has left pending: their agents were ended before they could. Those of other runs of the same
/// project stay.
pub(crate) async fn cancel_pending(
    transaction: &mut Tx<'_>,
    run_id: &str,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let sql = if transaction.is_postgres() {
        "SELECT * FROM reviews WHERE run_id = $1 AND state = 'pending' ORDER BY id FOR UPDATE"
    } else {
        "SELECT * FROM reviews WHERE run_id = $1 AND state = 'pending' ORDER BY id"
    };
    let pending = transaction.run(sql, arguments![run_id]).await?;
    for row in &pending.rows {
        let (old, version) = review(row)?;
        let event = Event::Cancel { reason: "the run was cancelled".to_owned() };
        let Ok(Some(new)) = old.step(&event, now) else { continue };
        let document =
            serde_json::to_string(&new).map_err(|error| DatabaseError::column("document", error))?;
        let arguments = arguments![new.id.as_str(), new.state.as_str(), &document, version];
        transaction.run(SAVE, arguments).await?;
    }
    Ok(())
}

async fn remove(connection: &mut Connection, before: i64) -> Result<u64, DatabaseError> {
    let mut transaction = connection.begin().await?;
    let sql = "DELETE FROM review_contents WHERE id IN (SELECT id FROM reviews WHERE state <> 'pending' AND created_ms < $1)";
    transaction.run(sql, arguments![before]).await?;
    let sql = "DELETE FROM reviews WHERE state <> 'pending' AND created_ms < $1";
    let removed = transaction.run(sql, arguments![before]).await?.changed;
    transaction.commit().await?;
    Ok(removed)
}

#[async_trait]
impl ReviewStore for SqlStore {
    async fn add_review(&self, new: &Review, new_content: &Content) -> Result<bool, StoreError> {
        let (document, shown) = (encode(new)?, encode(new_content)?);
        on!(self.writer("the review"), connection => add(connection, new, &document, &shown).await)
    }

    async fn review(&self, id: &ReviewId) -> Result<Option<(Review, i64)>, StoreError> {
        on!(self.reader(), connection => get(connection, id).await)
    }

    async fn review_content(&self, id: &ReviewId) -> Result<Option<Content>, StoreError> {
        on!(self.reader(), connection => content(connection, id).await)
    }

    async fn reviews(&self, filter: &ReviewFilter) -> Result<Vec<Review>, StoreError> {
        on!(self.reader(), connection => list(connection, filter).await)
    }

    async fn save_review(&self, new: &Review, version: i64) -> Result<bool, StoreError> {
        let document = encode(new)?;
        let saved = async {
            on!(self.writer("the review"), connection => save(connection, new, &document, version).await)
        };
        let is_saved = saved.await?;
        if is_saved && let Some(file) = self.location().wake_file(&new.id) {
            wake_file::wake(&file);
        }
        Ok(is_saved)
    }

    async fn remove_reviews(&self, before: Timestamp) -> Result<u64, StoreError> {
        on!(self.writer("the review"), connection => remove(connection, before.unix_millis()).await)
    }
}
