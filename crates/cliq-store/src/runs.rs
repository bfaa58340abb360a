//! Runs and their queue (SPEC section 15).

use std::time::Duration;

use async_trait::async_trait;
use cliq_gateway::{GatewayError, Outcome};
use cliq_runs::{
    Change, Instance, NewToken, Queue, Run, RunCounts, RunEventRow, RunFilter, RunId, RunState, RunStore,
    RunTotals, Token,
};

use crate::connection::{Connection, Target};
use crate::error::DatabaseError;
use crate::rows::{run, runs_of, totals};
use crate::run_change::write;
use crate::statement::arguments;
use crate::store::{SqlStore, on};
use crate::{instances, leases, parking, reviews, run_events, time, tokens};

/// All columns, with the large one left out: a list does not show it.
macro_rules! without_view {
    ($rest:literal) => {
        concat!(
            "SELECT id, instance, team, origin, caller, request, workspace, state, cancel_requested, began, resume, recoveries, ",
            "reason, phase, queued_at, started_at, ended_at, tokens_in, tokens_out, cost_usd, 'null' AS view, journal_lines, ",
            "last_event, version, replica, parked, wake_at, woken_at FROM runs ",
            $rest
        )
    };
}

async fn change(connection: &mut Connection, change: &Change) -> Result<Outcome, DatabaseError> {
    let mut transaction = connection.begin().await?;
    // Before the run: a change that ends a review locks the review first, too.
    let over = parking::review_that_is_over(&mut transaction, &change.parked_on).await?;
    if change.run.life.state == RunState::Cancelled {
        let now = cliq_review::Time::from_millis(time::now_millis());
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
    // The states as one text, `,queued,running,`, so that any number of them is one argument.
    let states = filter.states.iter().fold(String::from(","), |text, state| text + state.as_str() + ",");
    let after = filter.after.as_ref().map(|cursor| cursor.0.as_str());
    let (team, instance, limit) =
        (filter.team.as_deref(), filter.instance.as_deref(), i64::from(filter.limit));
    let answer = match (&filter.states[..], team, instance) {
        // One statement for each index: a condition that may be absent would keep the database from using it.
        ([], None, None) => {
            let sql = without_view!("WHERE ($1 IS NULL OR id < $1) ORDER BY id DESC LIMIT $2");
            connection.run(sql, arguments![after, limit]).await?
        }
        ([state], None, None) => {
            let sql = without_view!("WHERE state = $3 AND ($1 IS NULL OR id < $1) ORDER BY id DESC LIMIT $2");
            connection.run(sql, arguments![after, limit, state.as_str()]).await?
        }
        (_, Some(team), _) => {
            let sql = without_view!(
                "WHERE team = $3 AND ($4 = ',' OR instr($4, ',' || state || ',') > 0) AND ($5 IS NULL OR instance = $5) AND ($1 IS NULL OR id < $1) ORDER BY id DESC LIMIT $2"
            );
            let postgres = without_view!(
                "WHERE team = $3 AND ($4 = ',' OR strpos($4, ',' || state || ',') > 0) AND ($5 IS NULL OR instance = $5) AND ($1 IS NULL OR id < $1) ORDER BY id DESC LIMIT $2"
            );
            let sql = if connection.is_postgres() { postgres } else { sql };
            connection.run(sql, arguments![after, limit, team, &states, instance]).await?
        }
        (_, None, Some(instance)) => {
            let sql = without_view!(
                "WHERE instance = $3 AND ($4 = ',' OR instr($4, ',' || state || ',') > 0) AND ($1 IS NULL OR id < $1) ORDER BY id DESC LIMIT $2"
            );
            let postgres = without_view!(
                "WHERE instance = $3 AND ($4 = ',' OR strpos($4, ',' || state || ',') > 0) AND ($1 IS NULL OR id < $1) ORDER BY id DESC LIMIT $2"
            );
            let sql = if connection.is_postgres() { postgres } else { sql };
            connection.run(sql, arguments![after, limit, instance, &states]).await?
        }
        (_, None, None) => {
            let sql = without_view!(
                "WHERE instr($3, ',' || state || ',') > 0 AND ($1 IS NULL OR id < $1) ORDER BY id DESC LIMIT $2"
            );
            let postgres = without_view!(
                "WHERE strpos($3, ',' || state || ',') > 0 AND ($1 IS NULL OR id < $1) ORDER BY id DESC LIMIT $2"
            );
            let sql = if connection.is_postgres() { postgres } else { sql };
            connection.run(sql, arguments![after, limit, &states]).await?
        }
    };
    runs_of(&answer)
}

async fn find(connection: &mut Connection, id: &RunId) -> Result<Option<Run>, DatabaseError> {
    let sql = "SELECT * FROM runs WHERE id = $1";
    connection.run(sql, arguments![id.as_str()]).await?.rows.first().map(run).transpose()
}

async fn counts(connection: &mut Connection) -> Result<RunCounts, DatabaseError> {
    let sql = "SELECT state, COUNT(*) AS number FROM runs GROUP BY state";
    let answer = connection.run(sql, arguments![]).await?;
    let count = |state: RunState| {
        let row = answer.rows.iter().find(|row| row.text("state").is_ok_and(|text| text == state.as_str()));
        Ok((state, row.map_or(Ok(0), |row| row.count("number"))?))
    };
    RunState::ALL.into_iter().map(count).collect()
}

async fn sum(
    connection: &mut Connection,
    since: &str,
) -> Result<Vec<(String, u64, RunTotals)>, DatabaseError> {
    let sql = "SELECT team, COUNT(*) AS number, CAST(SUM(tokens_in) AS BIGINT) AS tokens_in, CAST(SUM(tokens_out) AS BIGINT) AS tokens_out, SUM(cost_usd) AS cost_usd FROM runs WHERE queued_at >= $1 GROUP BY team ORDER BY team";
    let answer = connection.run(sql, arguments![since]).await?;
    answer.rows.iter().map(|row| Ok((row.text("team")?, row.count("number")?, totals(row)?))).collect()
}

async fn remove(connection: &mut Connection, id: &RunId) -> Result<(), DatabaseError> {
    let mut transaction = connection.begin().await?;
    transaction.run("DELETE FROM run_events WHERE run_id = $1", arguments![id.as_str()]).await?;
    transaction.run("DELETE FROM a2a_push WHERE task_id = $1", arguments![id.as_str()]).await?;
    transaction.run("DELETE FROM a2a_tasks WHERE id = $1", arguments![id.as_str()]).await?;
    transaction.run("DELETE FROM run_waits WHERE run_id = $1", arguments![id.as_str()]).await?;
    transaction.run("DELETE FROM runs WHERE id = $1", arguments![id.as_str()]).await?;
    transaction.commit().await
}

#[async_trait]
impl RunStore for SqlStore {
    async fn add_instance(&self, instance: &Instance) -> Result<Instance, GatewayError> {
        on!(self.writer(), connection => instances::add(connection, instance).await)
    }

    async fn instances(&self) -> Result<Vec<Instance>, GatewayError> {
        on!(self.reader(), connection => instances::list(connection).await)
    }

    async fn instance(&self, id: &str) -> Result<Option<Instance>, GatewayError> {
        on!(self.reader(), connection => instances::find(connection, id).await)
    }

    async fn forget_instance(&self, id: &str) -> Result<bool, GatewayError> {
        on!(self.writer(), connection => instances::remove(connection, id).await)
    }

    async fn change(&self, new: &Change) -> Result<Outcome, GatewayError> {
        on!(self.writer(), connection => change(connection, new).await)
    }

    async fn run(&self, id: &RunId) -> Result<Option<Run>, GatewayError> {
        on!(self.reader(), connection => find(connection, id).await)
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>, GatewayError> {
        on!(self.reader(), connection => list(connection, filter).await)
    }

    async fn queue(&self, limit: u32) -> Result<Queue, GatewayError> {
        on!(self.reader(), connection => parking::queue(connection, limit).await)
    }

    async fn due(&self, limit: u32) -> Result<Vec<Run>, GatewayError> {
        on!(self.reader(), connection => parking::due(connection, limit).await)
    }

    async fn next_wake(&self) -> Result<Option<String>, GatewayError> {
        on!(self.reader(), connection => parking::next_wake(connection).await)
    }

    async fn active(&self) -> Result<Vec<Run>, GatewayError> {
        let sql = "SELECT * FROM runs WHERE state IN ('starting', 'running') ORDER BY id";
        on!(self.reader(), connection => async { runs_of(&connection.run(sql, arguments![]).await?) }.await)
    }

    async fn counts(&self) -> Result<RunCounts, GatewayError> {
        on!(self.reader(), connection => counts(connection).await)
    }

    async fn totals(&self, since: &str) -> Result<Vec<(String, u64, RunTotals)>, GatewayError> {
        on!(self.reader(), connection => sum(connection, since).await)
    }

    async fn run_events(&self, id: &RunId, after: i64, limit: u32) -> Result<Vec<RunEventRow>, GatewayError> {
        on!(self.reader(), connection => run_events::list(connection, id, after, limit).await)
    }

    async fn remove_run(&self, id: &RunId) -> Result<(), GatewayError> {
        on!(self.writer(), connection => remove(connection, id).await)
    }

    async fn ended_before(&self, before: &str, limit: u32) -> Result<Vec<Run>, GatewayError> {
        let sql = without_view!(
            "WHERE state IN ('completed', 'escalated', 'failed', 'cancelled') AND ended_at < $1 ORDER BY ended_at LIMIT $2"
        );
        on!(self.reader(), connection => async {
            runs_of(&connection.run(sql, arguments![before, i64::from(limit)]).await?)
        }.await)
    }

    fn is_shared(&self) -> bool {
        self.location().is_shared()
    }

    async fn take_lease(&self, name: &str, holder: &str, time: Duration) -> Result<bool, GatewayError> {
        on!(self.writer(), connection => leases::take(connection, name, holder, time).await)
    }

    async fn give_lease(&self, name: &str, holder: &str) -> Result<(), GatewayError> {
        on!(self.writer(), connection => leases::give(connection, name, holder).await)
    }

    async fn lease_holders(&self, prefix: &str) -> Result<Vec<String>, GatewayError> {
        on!(self.reader(), connection => leases::holders(connection, prefix).await)
    }

    async fn add_token(&self, token: &NewToken) -> Result<(), GatewayError> {
        on!(self.writer(), connection => tokens::add(connection, token).await)
    }

    async fn token(&self, id: &str) -> Result<Option<Token>, GatewayError> {
        on!(self.reader(), connection => tokens::find(connection, id).await)
    }

    async fn tokens(&self) -> Result<Vec<Token>, GatewayError> {
        on!(self.reader(), connection => tokens::list(connection).await)
    }

    async fn revoke_token(&self, id: &str) -> Result<bool, GatewayError> {
        on!(self.writer(), connection => tokens::remove(connection, id).await)
    }

    async fn remove_expired_tokens(&self, now: &str) -> Result<(), GatewayError> {
        on!(self.writer(), connection => tokens::remove_expired(connection, now).await)
    }
}
