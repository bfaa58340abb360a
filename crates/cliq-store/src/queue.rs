//! The signal queue (docs/signals.md).

use std::time::Duration;

use async_trait::async_trait;
use cliq_gateway::{
    Claim, Filter, Finish, NewSignal, PlanEvent, PlanRow, Signal, SignalCounts, SignalStatus, Step, Store,
};
use cliq_model::{Outcome, StoreError};

use crate::cells::Cells;
use crate::connection::{Connection, Target};
use crate::error::DatabaseError;
use crate::rows::signal;
use crate::signals::{finish, insert};
use crate::statement::arguments;
use crate::store::{SqlStore, on};
use crate::time::{ago, now};
use crate::{plans, reaper};

/// Time for which the identity of a bridged file is remembered: far longer than the file can outlive its row.
const REMEMBERED: Duration = Duration::from_secs(30 * 24 * 3600);

const CLAIM_SQLITE: &str = "UPDATE signals SET status = 'processing', claimed_by = $1, claimed_at = $2 WHERE id = (SELECT id FROM signals WHERE project = $3 AND status = 'pending' ORDER BY created_at, id LIMIT 1) RETURNING *";
/// Others claim at the same moment: each takes the oldest that no other is about to take.
const CLAIM_POSTGRES: &str = "UPDATE signals SET status = 'processing', claimed_by = $1, claimed_at = $2 WHERE id = (SELECT id FROM signals WHERE project = $3 AND status = 'pending' ORDER BY created_at, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING *";

async fn insert_from_file(
    connection: &mut Connection,
    project: &str,
    signal: &NewSignal,
    identity: &str,
) -> Result<i64, DatabaseError> {
    let mut transaction = connection.begin().await?;
    let is_postgres = transaction.is_postgres();
    if is_postgres {
        // Two bridges with the same file: one waits for the other.
        transaction.script("LOCK TABLE bridged_files IN SHARE ROW EXCLUSIVE MODE").await?;
    }
    let sql = "SELECT signal_id FROM bridged_files WHERE identity = $1";
    if let Some(row) = transaction.run(sql, arguments![identity]).await?.rows.first() {
        return row.integer("signal_id");
    }
    let id = insert(&mut transaction, is_postgres, project, signal).await?;
    let sql = "INSERT INTO bridged_files (identity, signal_id, bridged_at) VALUES ($1, $2, $3)";
    transaction.run(sql, arguments![identity, id, now()]).await?;
    let sql = "DELETE FROM bridged_files WHERE bridged_at < $1";
    transaction.run(sql, arguments![ago(REMEMBERED)]).await?;
    transaction.commit().await?;
    Ok(id)
}

async fn list(connection: &mut Connection, filter: &Filter) -> Result<Vec<Signal>, DatabaseError> {
    let answer = connection
        .run(
            "SELECT * FROM (SELECT * FROM signals WHERE ($1 IS NULL OR project = $1) AND ($2 IS NULL OR plan_file = $2) AND ($3 IS NULL OR status = $3) ORDER BY id DESC LIMIT $4) AS newest ORDER BY id",
            arguments![
                filter.project.as_deref(),
                filter.plan.as_deref(),
                filter.status.map(SignalStatus::as_str),
                filter.limit.map_or(i64::MAX, i64::from)
            ],
        )
        .await?;
    answer.rows.iter().map(signal).collect()
}

async fn count(connection: &mut Connection) -> Result<SignalCounts, DatabaseError> {
    let sql = "SELECT status, COUNT(*) AS number, MIN(created_at) AS oldest FROM signals GROUP BY status";
    let answer = connection.run(sql, arguments![]).await?;
    let mut counts = SignalCounts::default();
    for row in &answer.rows {
        let status = Cells::new(row, "signals", &["status"]).word("status", SignalStatus::parse)?;
        counts.by_status.push((status, row.count("number")?));
        if status == SignalStatus::Pending {
            // Another program may have written a signal without a time.
            counts.oldest_pending = row.text("oldest")?.parse().ok();
        }
    }
    Ok(counts)
}

#[async_trait]
impl Store for SqlStore {
    async fn create(&self, project: &str, signal: &NewSignal) -> Result<i64, StoreError> {
        on!(self.writer("the signal"), connection => {
            let is_postgres = connection.is_postgres();
            insert(connection, is_postgres, project, signal).await
        })
    }

    async fn create_from_file(
        &self,
        project: &str,
        signal: &NewSignal,
        identity: &str,
    ) -> Result<i64, StoreError> {
        on!(self.writer("the signal"), connection => insert_from_file(connection, project, signal, identity).await)
    }

    async fn forget_file(&self, identity: &str) -> Result<(), StoreError> {
        let sql = "DELETE FROM bridged_files WHERE identity = $1";
        on!(self.writer("the signal"), connection => connection.run(sql, arguments![identity]).await.map(drop))
    }

    async fn claim(&self, project: &str, worker: &str) -> Result<Option<(Claim, Signal)>, StoreError> {
        // Unlike any other claim, of this worker too.
        let holder = format!("{worker}#{}", uuid::Uuid::now_v7().simple());
        let claimed = on!(self.writer("the signal"), connection => async {
            let sql = if connection.is_postgres() { CLAIM_POSTGRES } else { CLAIM_SQLITE };
            let answer = connection.run(sql, arguments![&holder, now(), project]).await?;
            answer.rows.first().map(signal).transpose()
        }.await)?;
        Ok(claimed.map(|signal| (Claim::new(signal.id, holder), signal)))
    }

    async fn finish(&self, claim: &Claim, how: &Finish) -> Result<Outcome, StoreError> {
        on!(self.writer("the signal"), connection => finish(connection, claim, how).await)
    }

    async fn reset_stuck(&self, age: Duration) -> Result<Vec<i64>, StoreError> {
        on!(self.writer("the release of signals"), connection => reaper::expired(connection, age).await)
    }

    async fn reset_claims(&self, worker: &str) -> Result<Vec<i64>, StoreError> {
        on!(self.writer("the release of signals"), connection => reaper::of_worker(connection, worker).await)
    }

    async fn retry(&self, id: i64) -> Result<bool, StoreError> {
        let sql = "UPDATE signals SET status = 'pending', claimed_by = '', claimed_at = '', processed_at = '', result = '' WHERE id = $1 AND status = 'failed'";
        on!(self.writer("the signal"), connection => {
            connection.run(sql, arguments![id]).await.map(|answer| answer.changed == 1)
        })
    }

    async fn signals(&self, filter: &Filter) -> Result<Vec<Signal>, StoreError> {
        on!(self.reader(), connection => list(connection, filter).await)
    }

    async fn signal_counts(&self) -> Result<SignalCounts, StoreError> {
        on!(self.reader(), connection => count(connection).await)
    }

    async fn signal(&self, id: i64) -> Result<Option<Signal>, StoreError> {
        let sql = "SELECT * FROM signals WHERE id = $1";
        on!(self.reader(), connection => async {
            connection.run(sql, arguments![id]).await?.rows.first().map(signal).transpose()
        }.await)
    }

    async fn projects(&self) -> Result<Vec<String>, StoreError> {
        let sql =
            "SELECT project FROM plans UNION SELECT project FROM signals WHERE status = 'pending' ORDER BY 1";
        on!(self.reader(), connection => async {
            connection.run(sql, arguments![]).await?.rows.iter().map(|row| row.text("project")).collect()
        }.await)
    }

    async fn plans(&self, project: Option<&str>) -> Result<Vec<PlanRow>, StoreError> {
        on!(self.reader(), connection => plans::list(connection, project).await)
    }

    async fn plan(&self, project: &str, name: &str) -> Result<Option<PlanRow>, StoreError> {
        on!(self.reader(), connection => plans::find(connection, project, name).await)
    }

    async fn apply(&self, step: &Step) -> Result<Outcome, StoreError> {
        on!(self.writer("the change of the plan"), connection => plans::apply(connection, step).await)
    }

    async fn events(&self, project: &str, plan: &str, after: i64) -> Result<Vec<PlanEvent>, StoreError> {
        on!(self.reader(), connection => plans::events(connection, project, plan, after).await)
    }
}
