//! Triggers and their firings (docs/triggers.md).
//!
//! Each cause becomes a firing in one transaction with what makes it unique: the version of a mark, a key, or the row of a run's end.

use async_trait::async_trait;
use cliq_model::{
    Added, Change, EndedRun, Firing, FiringDecision, FiringFilter, FiringStart, FiringState, GroupState,
    MarkStep, NewFiring, NewRunEvent, NewTrigger, Outcome, Run, RunOrigin, StoreError, TriggerRow,
    TriggerStore,
};
use cliq_protocol::Timestamp;

use crate::cells::Cells;
use crate::connection::{Connection, Target, Tx};
use crate::error::DatabaseError;
use crate::rows::{ended_run, firing, trigger};
use crate::select::Select;
use crate::statement::arguments;
use crate::store::{SqlStore, on};
use crate::time::now;

const INSERT_SQLITE: &str = "INSERT INTO firings (trigger_name, at, cause, digest, payload, depth, state, reason, decided_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const INSERT_POSTGRES: &str = "INSERT INTO firings (trigger_name, at, cause, digest, payload, depth, state, reason, decided_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id";
/// Maximum number of runs and firings of a group that are read.
const GROUP: i64 = 200;

/// All columns, with the large one left out: a list does not show it.
macro_rules! without_payload {
    ($rest:literal) => {
        concat!(
            "SELECT id, trigger_name, at, cause, digest, '' AS payload, depth, state, group_name, run_id, reason, decided_at FROM firings",
            $rest
        )
    };
}

/// Decides a firing in the transaction that stores its run. Returns `false` if it was decided before, or its group changed.
pub(crate) async fn claim(
    transaction: &mut Tx<'_>,
    start: &FiringStart,
    run: &Run,
) -> Result<bool, DatabaseError> {
    if let Some((group, version)) = &start.group
        && !move_group(transaction, group, *version).await?
    {
        return Ok(false);
    }
    let sql = "UPDATE firings SET state = 'started', run_id = $2, is_open = 1, reason = NULL, payload = '', decided_at = $3, group_name = $4 WHERE id = $1 AND state = 'pending'";
    let group = start.group.as_ref().map(|(group, _)| group.as_str());
    let arguments = arguments![start.firing, run.id.as_str(), run.queued_at, group];
    Ok(transaction.run(sql, arguments).await?.changed == 1)
}

/// Increments the version of a group, unless another writer did.
async fn move_group(transaction: &mut Tx<'_>, group: &str, version: i64) -> Result<bool, DatabaseError> {
    if version == 0 {
        let sql = "INSERT INTO trigger_groups (name, version) VALUES ($1, 1) ON CONFLICT DO NOTHING";
        return Ok(transaction.run(sql, arguments![group]).await?.changed == 1);
    }
    let sql = "UPDATE trigger_groups SET version = version + 1 WHERE name = $1 AND version = $2";
    Ok(transaction.run(sql, arguments![group, version]).await?.changed == 1)
}

/// Records the end of a run: for triggers that wait for it, and for the group of its own firing.
pub(crate) async fn record_end(transaction: &mut Tx<'_>, change: &Change) -> Result<(), DatabaseError> {
    let run = &change.run;
    if run.request.trigger.is_some() {
        let sql = "UPDATE firings SET is_open = 0 WHERE run_id = $1 AND is_open = 1";
        transaction.run(sql, arguments![run.id.as_str()]).await?;
    }
    // Only with the event that ends it: later changes of a finished run are no ends.
    if !change.events.iter().any(NewRunEvent::ends_run) {
        return Ok(());
    }
    // A trial is stored when somebody looks at it.
    if run.origin == RunOrigin::Evaluation {
        return Ok(());
    }
    let sql = "INSERT INTO run_ends (run_id, event, state, at) SELECT $1, $2, $3, $4 WHERE EXISTS (SELECT 1 FROM triggers WHERE kind = 'after' AND paused = 0) ON CONFLICT DO NOTHING";
    let at = run.ended_at.unwrap_or_else(now);
    let arguments = arguments![run.id.as_str(), run.last_event, run.life.state.as_str(), at];
    transaction.run(sql, arguments).await.map(drop)
}

async fn insert(transaction: &mut Tx<'_>, new: &NewFiring) -> Result<i64, DatabaseError> {
    let state = if new.skipped.is_some() { FiringState::Skipped } else { FiringState::Pending };
    let (payload, now) = (if new.skipped.is_some() { "" } else { new.payload.as_str() }, now());
    let decided_at = new.skipped.as_ref().map(|_| now);
    let arguments = arguments![
        &new.trigger,
        new.at,
        &new.cause,
        &new.digest,
        payload,
        i64::from(new.depth),
        state.as_str(),
        new.skipped.as_deref(),
        decided_at
    ];
    let sql = if transaction.is_postgres() { INSERT_POSTGRES } else { INSERT_SQLITE };
    let answer = transaction.run(sql, arguments).await?;
    answer.rows.first().map_or(Ok(answer.inserted), |row| row.integer("id"))
}

async fn known_key(transaction: &mut Tx<'_>, trigger: &str, key: &str) -> Result<Option<i64>, DatabaseError> {
    let sql = "SELECT firing_id FROM firing_keys WHERE trigger_name = $1 AND key = $2";
    let answer = transaction.run(sql, arguments![trigger, key]).await?;
    answer.rows.first().map(|row| row.integer("firing_id")).transpose()
}

/// Adds a firing with its keys. The rows of keys are locked first, so that two servers with the same cause meet there.
async fn add(transaction: &mut Tx<'_>, new: &NewFiring) -> Result<Added, DatabaseError> {
    let reserve =
        "INSERT INTO firing_keys (trigger_name, key, firing_id) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING";
    for key in [Some(&new.key), new.content_key.as_ref()].into_iter().flatten() {
        if transaction.run(reserve, arguments![&new.trigger, key]).await?.changed == 1 {
            continue;
        }
        if *key != new.key {
            return Ok(Added::Replayed);
        }
        let known = known_key(transaction, &new.trigger, key).await?;
        return Ok(Added::Known(known.unwrap_or_default()));
    }
    let id = insert(transaction, new).await?;
    let sql = "UPDATE firing_keys SET firing_id = $3 WHERE trigger_name = $1 AND key = $2";
    for key in [Some(&new.key), new.content_key.as_ref()].into_iter().flatten() {
        transaction.run(sql, arguments![&new.trigger, key, id]).await?;
    }
    Ok(Added::New(id))
}

async fn add_one(connection: &mut Connection, new: &NewFiring) -> Result<Added, DatabaseError> {
    let mut transaction = connection.begin().await?;
    let added = add(&mut transaction, new).await?;
    // Dropped without a commit, the reserved keys go.
    if matches!(added, Added::New(_)) {
        transaction.commit().await?;
    }
    Ok(added)
}

async fn sync(connection: &mut Connection, triggers: &[NewTrigger]) -> Result<(), DatabaseError> {
    let mut transaction = connection.begin().await?;
    let stored = transaction.run("SELECT * FROM triggers", arguments![]).await?;
    let stored: Vec<TriggerRow> = stored.rows.iter().map(trigger).collect::<Result<_, _>>()?;
    let known: std::collections::HashMap<&str, _> =
        triggers.iter().map(|new| (new.name.as_str(), new)).collect();
    for old in &stored {
        // A trigger with another kind of source is another trigger.
        if known.get(old.name.as_str()).is_none_or(|new| new.kind != old.kind) {
            transaction.run("DELETE FROM triggers WHERE name = $1", arguments![&old.name]).await?;
        }
    }
    let same: std::collections::HashSet<(&str, _)> =
        stored.iter().map(|old| (old.name.as_str(), old.kind)).collect();
    for new in triggers.iter().filter(|new| !same.contains(&(new.name.as_str(), new.kind))) {
        let sql =
            "INSERT INTO triggers (name, kind, mark, version) VALUES ($1, $2, $3, 1) ON CONFLICT DO NOTHING";
        transaction.run(sql, arguments![&new.name, new.kind.as_str(), &new.mark]).await?;
    }
    transaction.commit().await
}

async fn rows(connection: &mut Connection) -> Result<Vec<TriggerRow>, DatabaseError> {
    let sql = "SELECT * FROM triggers ORDER BY name";
    connection.run(sql, arguments![]).await?.rows.iter().map(trigger).collect()
}

async fn row(connection: &mut Connection, name: &str) -> Result<Option<TriggerRow>, DatabaseError> {
    let sql = "SELECT * FROM triggers WHERE name = $1";
    connection.run(sql, arguments![name]).await?.rows.first().map(trigger).transpose()
}

async fn set_paused(
    connection: &mut Connection,
    name: &str,
    is_paused: bool,
    mark: Option<&str>,
) -> Result<bool, DatabaseError> {
    let sql =
        "UPDATE triggers SET paused = $2, mark = COALESCE($3, mark), version = version + 1 WHERE name = $1";
    Ok(connection.run(sql, arguments![name, is_paused, mark]).await?.changed == 1)
}

async fn advance(
    connection: &mut Connection,
    step: &MarkStep,
    firings: &[NewFiring],
) -> Result<Outcome, DatabaseError> {
    let mut transaction = connection.begin().await?;
    let sql = "UPDATE triggers SET mark = $3, version = version + 1 WHERE name = $1 AND version = $2 AND paused = 0";
    let arguments = arguments![&step.trigger, step.version, &step.mark];
    if transaction.run(sql, arguments).await?.changed != 1 {
        return Ok(Outcome::Stale);
    }
    for new in firings {
        add(&mut transaction, new).await?;
    }
    transaction.commit().await?;
    Ok(Outcome::Applied)
}

async fn pending(connection: &mut Connection, after: i64, limit: u32) -> Result<Vec<Firing>, DatabaseError> {
    let sql = "SELECT * FROM firings WHERE state = 'pending' AND id > $1 ORDER BY id LIMIT $2";
    let answer = connection.run(sql, arguments![after, i64::from(limit)]).await?;
    answer.rows.iter().map(firing).collect()
}

async fn decide(
    connection: &mut Connection,
    id: i64,
    decision: &FiringDecision,
    at: Timestamp,
) -> Result<bool, DatabaseError> {
    let answer = match decision {
        FiringDecision::Wait { group, reason } => {
            let sql = "UPDATE firings SET group_name = $2, reason = $3 WHERE id = $1 AND state = 'pending'";
            connection.run(sql, arguments![id, group, reason]).await?
        }
        FiringDecision::Skip(reason) | FiringDecision::Fail(reason) => {
            let state = match decision {
                FiringDecision::Fail(_) => FiringState::Failed,
                _ => FiringState::Skipped,
            };
            let sql = "UPDATE firings SET state = $2, reason = $3, decided_at = $4, payload = '' WHERE id = $1 AND state = 'pending'";
            connection.run(sql, arguments![id, state.as_str(), reason, at]).await?
        }
    };
    Ok(answer.changed == 1)
}

async fn group(connection: &mut Connection, name: &str) -> Result<GroupState, DatabaseError> {
    // The version first: what changes between the statements makes the claim fail.
    let sql = "SELECT version FROM trigger_groups WHERE name = $1";
    let version = connection.run(sql, arguments![name]).await?;
    let version = version.rows.first().map_or(Ok(0), |row| row.integer("version"))?;
    let sql = "SELECT id, run_id FROM firings WHERE group_name = $1 AND is_open = 1 ORDER BY id LIMIT $2";
    let running = connection.run(sql, arguments![name, GROUP]).await?;
    let running = running.rows.iter().map(|row| Cells::new(row, "firings", &["id"]).run_id("run_id"));
    let running = running.collect::<Result<_, _>>()?;
    let sql = "SELECT id FROM firings WHERE group_name = $1 AND state = 'pending' ORDER BY id LIMIT $2";
    let waiting = connection.run(sql, arguments![name, GROUP]).await?;
    let waiting = waiting.rows.iter().map(|row| row.integer("id")).collect::<Result<_, _>>()?;
    Ok(GroupState { version, running, waiting })
}

async fn list(connection: &mut Connection, filter: &FiringFilter) -> Result<Vec<Firing>, DatabaseError> {
    let mut select = Select::new(without_payload!(""));
    if let Some(trigger) = &filter.trigger {
        select.filter("trigger_name = ?", [trigger]);
    }
    if let Some(state) = filter.state {
        select.filter("state = ?", [state.as_str()]);
    }
    if let Some(before) = filter.before {
        select.filter("id < ?", [before]);
    }
    select.add(" ORDER BY id DESC LIMIT ?", [i64::from(filter.limit)]);
    connection.select(&select).await?.rows.iter().map(firing).collect()
}

async fn last(connection: &mut Connection) -> Result<Vec<Firing>, DatabaseError> {
    let sql = without_payload!(
        " WHERE id IN (SELECT (SELECT MAX(id) FROM firings WHERE trigger_name = triggers.name) FROM triggers) ORDER BY trigger_name"
    );
    connection.run(sql, arguments![]).await?.rows.iter().map(firing).collect()
}

async fn ends(connection: &mut Connection, limit: u32) -> Result<Vec<EndedRun>, DatabaseError> {
    let sql = "SELECT * FROM run_ends ORDER BY at, run_id LIMIT $1";
    let answer = connection.run(sql, arguments![i64::from(limit)]).await?;
    answer.rows.iter().map(ended_run).collect()
}

async fn consume(
    connection: &mut Connection,
    end: &EndedRun,
    firings: &[NewFiring],
) -> Result<bool, DatabaseError> {
    let mut transaction = connection.begin().await?;
    let sql = "DELETE FROM run_ends WHERE run_id = $1 AND event = $2";
    if transaction.run(sql, arguments![end.run.as_str(), end.event]).await?.changed != 1 {
        return Ok(false);
    }
    for new in firings {
        add(&mut transaction, new).await?;
    }
    transaction.commit().await?;
    Ok(true)
}

async fn remove(connection: &mut Connection, before: Timestamp) -> Result<u64, DatabaseError> {
    let mut transaction = connection.begin().await?;
    let sql = "DELETE FROM firing_keys WHERE firing_id IN (SELECT id FROM firings WHERE at < $1 AND state <> 'pending' AND is_open = 0)";
    transaction.run(sql, arguments![before]).await?;
    let sql = "DELETE FROM firings WHERE at < $1 AND state <> 'pending' AND is_open = 0";
    let removed = transaction.run(sql, arguments![before]).await?.changed;
    transaction.commit().await?;
    Ok(removed)
}

#[async_trait]
impl TriggerStore for SqlStore {
    async fn sync_triggers(&self, triggers: &[NewTrigger]) -> Result<(), StoreError> {
        on!(self.writer("the trigger"), connection => sync(connection, triggers).await)
    }

    async fn trigger_rows(&self) -> Result<Vec<TriggerRow>, StoreError> {
        on!(self.reader(), connection => rows(connection).await)
    }

    async fn trigger_row(&self, name: &str) -> Result<Option<TriggerRow>, StoreError> {
        on!(self.reader(), connection => row(connection, name).await)
    }

    async fn set_paused(&self, name: &str, is_paused: bool, mark: Option<&str>) -> Result<bool, StoreError> {
        on!(self.writer("the trigger"), connection => set_paused(connection, name, is_paused, mark).await)
    }

    async fn advance(&self, step: &MarkStep, firings: &[NewFiring]) -> Result<Outcome, StoreError> {
        on!(self.writer("the firing"), connection => advance(connection, step, firings).await)
    }

    async fn add_firing(&self, firing: &NewFiring) -> Result<Added, StoreError> {
        on!(self.writer("the firing"), connection => add_one(connection, firing).await)
    }

    async fn pending_firings(&self, after: i64, limit: u32) -> Result<Vec<Firing>, StoreError> {
        on!(self.reader(), connection => pending(connection, after, limit).await)
    }

    async fn decide_firing(
        &self,
        id: i64,
        decision: &FiringDecision,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        on!(self.writer("the decision about the firing"), connection => decide(connection, id, decision, at).await)
    }

    async fn group(&self, name: &str) -> Result<GroupState, StoreError> {
        on!(self.writer("the concurrency group"), connection => group(connection, name).await)
    }

    async fn firings(&self, filter: &FiringFilter) -> Result<Vec<Firing>, StoreError> {
        on!(self.reader(), connection => list(connection, filter).await)
    }

    async fn last_firings(&self) -> Result<Vec<Firing>, StoreError> {
        on!(self.reader(), connection => last(connection).await)
    }

    async fn ended_runs(&self, limit: u32) -> Result<Vec<EndedRun>, StoreError> {
        on!(self.reader(), connection => ends(connection, limit).await)
    }

    async fn consume_end(&self, end: &EndedRun, firings: &[NewFiring]) -> Result<bool, StoreError> {
        on!(self.writer("the firing"), connection => consume(connection, end, firings).await)
    }

    async fn remove_firings(&self, before: Timestamp) -> Result<u64, StoreError> {
        on!(self.writer("the trigger"), connection => remove(connection, before).await)
    }
}
