//! Plans and what happened to them.

use cliq_gateway::{PlanEvent, PlanRow, Step};
use cliq_model::Outcome;

use crate::connection::{Connection, Target};
use crate::error::DatabaseError;
use crate::rows::{plan, plan_event};
use crate::signals::{finish, insert};
use crate::statement::arguments;
use crate::time::now;

pub(crate) async fn list(
    connection: &mut Connection,
    project: Option<&str>,
) -> Result<Vec<PlanRow>, DatabaseError> {
    let sql = "SELECT * FROM plans WHERE $1 IS NULL OR project = $1 ORDER BY project, name";
    connection.run(sql, arguments![project]).await?.rows.iter().map(plan).collect()
}

pub(crate) async fn find(
    connection: &mut Connection,
    project: &str,
    name: &str,
) -> Result<Option<PlanRow>, DatabaseError> {
    let sql = "SELECT * FROM plans WHERE project = $1 AND name = $2";
    connection.run(sql, arguments![project, name]).await?.rows.first().map(plan).transpose()
}

pub(crate) async fn events(
    connection: &mut Connection,
    project: &str,
    name: &str,
    after: i64,
) -> Result<Vec<PlanEvent>, DatabaseError> {
    let sql = "SELECT * FROM plan_events WHERE project = $1 AND plan = $2 AND id > $3 ORDER BY id";
    connection.run(sql, arguments![project, name, after]).await?.rows.iter().map(plan_event).collect()
}

pub(crate) async fn apply(connection: &mut Connection, step: &Step) -> Result<Outcome, DatabaseError> {
    let mut transaction = connection.begin().await?;
    let is_postgres = transaction.is_postgres();
    let (plan, now) = (&step.plan, now());
    let changed = if plan.version == 0 {
        let sql = "INSERT INTO plans (project, name, state, document, version, created_at, updated_at) VALUES ($1, $2, $3, $4, 1, $5, $5) ON CONFLICT DO NOTHING";
        let arguments = arguments![&plan.project, &plan.name, &plan.state, &plan.document, now];
        transaction.run(sql, arguments).await?
    } else {
        let sql = "UPDATE plans SET state = $1, document = $2, version = version + 1, updated_at = $3 WHERE project = $4 AND name = $5 AND version = $6";
        let arguments = arguments![&plan.state, &plan.document, now, &plan.project, &plan.name, plan.version];
        transaction.run(sql, arguments).await?
    };
    if changed.changed != 1 {
        return Ok(Outcome::Stale);
    }
    if let Some((claim, how)) = &step.finish
        && finish(&mut transaction, claim, how).await? == Outcome::Stale
    {
        return Ok(Outcome::Stale);
    }
    for event in &step.events {
        let sql = "INSERT INTO plan_events (project, plan, at, kind, from_state, to_state, signal_id, detail) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let signal = step.finish.as_ref().map(|(claim, _)| claim.signal());
        let arguments = arguments![
            &plan.project,
            &plan.name,
            now,
            &event.kind,
            &event.from,
            &event.to,
            signal,
            &event.detail
        ];
        transaction.run(sql, arguments).await?;
    }
    for signal in &step.emit {
        insert(&mut transaction, is_postgres, &plan.project, signal).await?;
    }
    transaction.commit().await?;
    Ok(Outcome::Applied)
}
