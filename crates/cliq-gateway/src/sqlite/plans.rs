//! Plans and what happened to them.

use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;

use super::rows::{event, plan};
use super::{finish, insert, now};
use crate::store::{Outcome, PlanEvent, PlanRow, Step};

pub(super) async fn list(
    connection: &mut SqliteConnection,
    project: Option<&str>,
) -> Result<Vec<PlanRow>, sqlx::Error> {
    let rows = sqlx::query("SELECT * FROM plans WHERE ?1 IS NULL OR project = ?1 ORDER BY project, name")
        .bind(project)
        .fetch_all(connection)
        .await?;
    rows.iter().map(plan).collect()
}

pub(super) async fn find(
    connection: &mut SqliteConnection,
    project: &str,
    name: &str,
) -> Result<Option<PlanRow>, sqlx::Error> {
    let row = sqlx::query("SELECT * FROM plans WHERE project = ? AND name = ?")
        .bind(project)
        .bind(name)
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(plan).transpose()
}

pub(super) async fn events(
    connection: &mut SqliteConnection,
    project: &str,
    name: &str,
    after: i64,
) -> Result<Vec<PlanEvent>, sqlx::Error> {
    let rows = sqlx::query("SELECT * FROM plan_events WHERE project = ? AND plan = ? AND id > ? ORDER BY id")
        .bind(project)
        .bind(name)
        .bind(after)
        .fetch_all(connection)
        .await?;
    rows.iter().map(event).collect()
}

pub(super) async fn apply(connection: &mut SqliteConnection, step: &Step) -> Result<Outcome, sqlx::Error> {
    // Dropped without a commit, it is rolled back.
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let (plan, now) = (&step.plan, now());
    let changed = if plan.version == 0 {
        sqlx::query(
            "INSERT INTO plans (project, name, state, document, version, created_at, updated_at) VALUES (?, ?, ?, ?, 1, ?, ?) ON CONFLICT DO NOTHING",
        )
        .bind(&plan.project)
        .bind(&plan.name)
        .bind(&plan.state)
        .bind(&plan.document)
        .bind(&now)
        .bind(&now)
        .execute(&mut *transaction)
        .await?
    } else {
        sqlx::query(
            "UPDATE plans SET state = ?, document = ?, version = version + 1, updated_at = ? WHERE project = ? AND name = ? AND version = ?",
        )
        .bind(&plan.state)
        .bind(&plan.document)
        .bind(&now)
        .bind(&plan.project)
        .bind(&plan.name)
        .bind(plan.version)
        .execute(&mut *transaction)
        .await?
    };
    if changed.rows_affected() != 1 {
        return Ok(Outcome::Stale);
    }
    if let Some((claim, how)) = &step.finish
        && finish(&mut transaction, claim, how).await? == Outcome::Stale
    {
        return Ok(Outcome::Stale);
    }
    for event in &step.events {
        sqlx::query(
            "INSERT INTO plan_events (project, plan, at, kind, from_state, to_state, signal_id, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(&plan.project)
        .bind(&plan.name)
        .bind(&now)
        .bind(&event.kind)
        .bind(&event.from)
        .bind(&event.to)
        .bind(step.finish.as_ref().map(|(claim, _)| claim.signal()))
        .bind(&event.detail)
        .execute(&mut *transaction)
        .await?;
    }
    for signal in &step.emit {
        insert(&mut transaction, &plan.project, signal).await?;
    }
    transaction.commit().await?;
    Ok(Outcome::Applied)
}
