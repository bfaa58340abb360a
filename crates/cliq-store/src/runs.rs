//! Runs and their queue (docs/server.md).

use std::time::Duration;

use async_trait::async_trait;
use cliq_model::{
    Change, Instance, NewToken, Outcome, Queue, Run, RunCounts, RunEventRow, RunFilter, RunOrigin, RunState,
    RunStore, StoreError, Token, UsageTotals,
};
use cliq_protocol::{RunId, Timestamp};

use crate::cells::Cells;
use crate::connection::{Connection, Target};
use crate::error::DatabaseError;
use crate::rows::{run, run_id, runs_of};
use crate::run_change::write;
use crate::select::Select;
use crate::statement::arguments;
use crate::store::{SqlStore, on};
use crate::{instances, leases, parking, reviews, run_events, tokens, usage};

/// All columns, with the large one left out: a list does not show it.
macro_rules! without_view {
    ($rest:literal) => {
        concat!(
            "SELECT runs.id, instance, runs.team, origin, caller, request, workspace, state, cancel_requested, began, resume, recoveries, ",
            "runs.reason, phase, queued_at, started_at, ended_at, tokens_in, tokens_out, cost_usd, 'null' AS view, journal_lines, ",
            "last_event, version, replica, parked, wake_at, woken_at, runs.title, phases_done, phases_all, former, caveats, changed_files, lines_added, lines_removed FROM ",
            $rest
        )
    };
}

async fn change(connection: &mut Connection, change: &Change) -> Result<Outcome, DatabaseError> {
    let mut transaction = connection.begin().await?;
    // Before the run: a change that ends a review locks the review first, too.
    let over = parking::review_that_is_over(&mut transaction, &change.parked_on).await?;
    if change.run.life.state == RunState::Cancelled {
        let now = cliq_fs::now();
        reviews::cancel_pending(&mut transaction, change.id().as_str(), now).await?;
    }
    if !write(&mut transaction, change).await? {
        return Ok(Outcome::Stale);
    }
    if !change.parked_on.is_empty() {
        parking::set_reviews(&mut transaction, change.id(), &change.parked_on).await?;
    }
    if let Some(review) = over {
        parking::wake(&mut transaction, &review).await?;
    }
    transaction.commit().await?;
    Ok(Outcome::Applied)
}

async fn list(connection: &mut Connection, filter: &RunFilter) -> Result<Vec<Run>, DatabaseError> {
    let is_postgres = connection.is_postgres();
    let words = search_of(&filter.words, is_postgres);
    let is_ranked_by_number = words.is_some() && !is_postgres;
    // The search gives its rows in the order of their numbers, newest first, without sorting them: the joins must not come first.
    let mut select = if is_ranked_by_number {
        Select::new(without_view!(
            "run_search CROSS JOIN run_words ON run_words.number = run_search.rowid CROSS JOIN runs ON runs.id = run_words.run_id"
        ))
    } else {
        Select::new(without_view!("runs"))
    };
    if let Some(words) = &words {
        let condition = if is_postgres { "search @@ CAST(? AS tsquery)" } else { "run_search MATCH ?" };
        select.filter(condition, [words]);
    }
    if !filter.with_trials {
        select.filter("origin <> ?", [RunOrigin::Evaluation.as_str()]);
    }
    match filter.states.as_slice() {
        [] => {}
        [state] => select.filter("state = ?", [state.as_str()]),
        // SQLite would read all runs of these states and sort them.
        several => select.filter_in(
            if is_postgres { "state" } else { "+state" },
            several.iter().map(|state| state.as_str()),
        ),
    }
    for (condition, value) in
        [("runs.team = ?", &filter.team), ("instance = ?", &filter.instance), ("caller = ?", &filter.caller)]
    {
        if let Some(value) = value {
            select.filter(condition, [value]);
        }
    }
    for (condition, time) in [("queued_at >= ?", filter.since), ("queued_at < ?", filter.until)] {
        if let Some(time) = time {
            select.filter(condition, [time]);
        }
    }
    if let Some(after) = &filter.after {
        let condition = if is_ranked_by_number {
            "run_search.rowid < (SELECT number FROM run_words WHERE run_id = ?)"
        } else {
            "runs.id < ?"
        };
        select.filter(condition, [after.0.as_str()]);
    }
    let limit = [i64::from(filter.limit)];
    if is_ranked_by_number {
        select.add(" ORDER BY run_search.rowid DESC LIMIT ?", limit);
    } else {
        select.add(" ORDER BY runs.id DESC LIMIT ?", limit);
    }
    runs_of(&connection.select(&select).await?)
}

/// Returns the search expression of a database for words, each of which begins a word of a run.
fn search_of(words: &[String], is_postgres: bool) -> Option<String> {
    // In quotes, only these could be operators of the expression.
    let words =
        words.iter().map(|word| word.replace(['"', '\'', '\\', '\0'], "")).filter(|word| !word.is_empty());
    let words: Vec<String> =
        words.map(|word| if is_postgres { format!("'{word}':*") } else { format!("\"{word}\"*") }).collect();
    let and = if is_postgres { " & " } else { " AND " };
    (!words.is_empty()).then(|| words.join(and))
}

async fn find(connection: &mut Connection, id: &RunId) -> Result<Option<Run>, DatabaseError> {
    let sql = "SELECT * FROM runs WHERE id = $1";
    connection.run(sql, arguments![id.as_str()]).await?.rows.first().map(run).transpose()
}

async fn later(connection: &mut Connection, run: &Run) -> Result<Option<RunId>, DatabaseError> {
    let sql = "SELECT id FROM runs WHERE workspace = $1 AND id <> $2 AND (state IN ('queued', 'starting', 'running', 'waiting') OR started_at > $3) ORDER BY started_at IS NULL DESC, started_at DESC, id DESC LIMIT 1";
    let started = run.started_at.unwrap_or(run.queued_at);
    let answer = connection.run(sql, arguments![run.workspace.as_str(), run.id.as_str(), started]).await?;
    answer.rows.first().map(run_id).transpose()
}

async fn counts(connection: &mut Connection) -> Result<RunCounts, DatabaseError> {
    let sql = "SELECT state, CAST(SUM(number) AS BIGINT) AS number FROM (SELECT state, COUNT(*) AS number FROM runs GROUP BY state UNION ALL SELECT state, -COUNT(*) AS number FROM runs WHERE origin = 'evaluation' GROUP BY state) AS counted GROUP BY state";
    let answer = connection.run(sql, arguments![]).await?;
    let mut counts: RunCounts = RunState::ALL.map(|state| (state, 0)).into();
    for row in &answer.rows {
        let state = Cells::new(row, "runs", &["state"]).word("state", RunState::parse)?;
        let number = row.count("number")?;
        counts.iter_mut().filter(|(other, _)| *other == state).for_each(|(_, count)| *count = number);
    }
    Ok(counts)
}

async fn remove(connection: &mut Connection, id: &RunId) -> Result<(), DatabaseError> {
    let mut transaction = connection.begin().await?;
    transaction.run("DELETE FROM run_events WHERE run_id = $1", arguments![id.as_str()]).await?;
    transaction.run("DELETE FROM a2a_push WHERE task_id = $1", arguments![id.as_str()]).await?;
    transaction.run("DELETE FROM a2a_tasks WHERE id = $1", arguments![id.as_str()]).await?;
    transaction.run("DELETE FROM run_waits WHERE run_id = $1", arguments![id.as_str()]).await?;
    transaction.run("DELETE FROM run_ends WHERE run_id = $1", arguments![id.as_str()]).await?;
    transaction.run("DELETE FROM run_models WHERE run_id = $1", arguments![id.as_str()]).await?;
    transaction.run("DELETE FROM runs WHERE id = $1", arguments![id.as_str()]).await?;
    transaction.commit().await
}

#[async_trait]
impl RunStore for SqlStore {
    async fn add_instance(&self, instance: &Instance) -> Result<Instance, StoreError> {
        on!(self.writer("the project"), connection => instances::add(connection, instance).await)
    }

    async fn instances(&self) -> Result<Vec<Instance>, StoreError> {
        on!(self.reader(), connection => instances::list(connection).await)
    }

    async fn instance(&self, id: &str) -> Result<Option<Instance>, StoreError> {
        on!(self.reader(), connection => instances::find(connection, id).await)
    }

    async fn forget_instance(&self, id: &str) -> Result<bool, StoreError> {
        on!(self.writer("the removal of the run"), connection => instances::remove(connection, id).await)
    }

    async fn change(&self, new: &Change) -> Result<Outcome, StoreError> {
        on!(self.writer("the run"), connection => change(connection, new).await)
    }

    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        on!(self.reader(), connection => find(connection, id).await)
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>, StoreError> {
        on!(self.reader(), connection => list(connection, filter).await)
    }

    async fn queue(&self, limit: u32) -> Result<Queue, StoreError> {
        on!(self.reader(), connection => parking::queue(connection, limit).await)
    }

    async fn due(&self, limit: u32) -> Result<Vec<Run>, StoreError> {
        on!(self.reader(), connection => parking::due(connection, limit).await)
    }

    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError> {
        on!(self.reader(), connection => parking::next_wake(connection).await)
    }

    async fn active(&self) -> Result<Vec<Run>, StoreError> {
        let sql = "SELECT * FROM runs WHERE state IN ('starting', 'running') ORDER BY id";
        on!(self.reader(), connection => async { runs_of(&connection.run(sql, arguments![]).await?) }.await)
    }

    async fn later_run(&self, run: &Run) -> Result<Option<RunId>, StoreError> {
        on!(self.reader(), connection => later(connection, run).await)
    }

    async fn counts(&self) -> Result<RunCounts, StoreError> {
        on!(self.reader(), connection => counts(connection).await)
    }

    async fn usage(&self, since: Timestamp) -> Result<UsageTotals, StoreError> {
        on!(self.reader(), connection => usage::since(connection, since).await)
    }

    async fn run_events(&self, id: &RunId, after: i64, limit: u32) -> Result<Vec<RunEventRow>, StoreError> {
        on!(self.reader(), connection => run_events::list(connection, id, after, limit).await)
    }

    async fn remove_run(&self, id: &RunId) -> Result<(), StoreError> {
        on!(self.writer("the removal of the run"), connection => remove(connection, id).await)
    }

    async fn ended_before(&self, before: Timestamp, limit: u32) -> Result<Vec<Run>, StoreError> {
        let sql = without_view!(
            "runs WHERE state IN ('completed', 'escalated', 'failed', 'cancelled') AND ended_at < $1 ORDER BY ended_at LIMIT $2"
        );
        on!(self.reader(), connection => async {
            runs_of(&connection.run(sql, arguments![before, i64::from(limit)]).await?)
        }.await)
    }

    fn is_shared(&self) -> bool {
        self.location().is_shared()
    }

    async fn take_lease(&self, name: &str, holder: &str, time: Duration) -> Result<bool, StoreError> {
        on!(self.writer("the lease"), connection => leases::take(connection, name, holder, time).await)
    }

    async fn give_lease(&self, name: &str, holder: &str) -> Result<(), StoreError> {
        on!(self.writer("the lease"), connection => leases::give(connection, name, holder).await)
    }

    async fn lease_holders(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        on!(self.reader(), connection => leases::holders(connection, prefix).await)
    }

    async fn add_token(&self, token: &NewToken) -> Result<(), StoreError> {
        on!(self.writer("the token"), connection => tokens::add(connection, token).await)
    }

    async fn token(&self, id: &str) -> Result<Option<Token>, StoreError> {
        on!(self.reader(), connection => tokens::find(connection, id).await)
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        on!(self.reader(), connection => tokens::list(connection).await)
    }

    async fn revoke_token(&self, id: &str) -> Result<bool, StoreError> {
        on!(self.writer("the token"), connection => tokens::remove(connection, id).await)
    }

    async fn remove_expired_tokens(&self, now: Timestamp) -> Result<(), StoreError> {
        on!(self.writer("the token"), connection => tokens::remove_expired(connection, now).await)
    }
}
