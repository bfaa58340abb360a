//! Tasks of A2A: what a run has beside it when a caller of A2A asked for it.

use async_trait::async_trait;
use cliq_model::{Change, PushRow, Run, RunState, StoreError, StoredTask, TaskFilter, TaskRow, TaskStore};
use cliq_protocol::{RunId, Timestamp};

use crate::connection::{Connection, Target, Tx};
use crate::error::DatabaseError;
use crate::pushes;
use crate::rows::{run, task};
use crate::statement::{Row, arguments};
use crate::store::{SqlStore, on};

/// A task with all columns of its run.
macro_rules! with_run {
    ($rest:literal) => {
        concat!(
            "SELECT t.owner, t.context_id, t.message_id, t.messages, t.updated_at, r.* FROM a2a_tasks t JOIN runs r ON r.id = t.id ",
            $rest
        )
    };
}

/// The same without the large one: a list does not show it.
macro_rules! listed {
    ($rest:literal) => {
        concat!(
            "SELECT t.owner, t.context_id, t.message_id, t.messages, t.updated_at, r.id, r.instance, r.team, r.origin, r.caller, ",
            "r.request, r.workspace, r.state, r.cancel_requested, r.began, r.resume, r.recoveries, r.reason, r.phase, r.queued_at, ",
            "r.started_at, r.ended_at, r.tokens_in, r.tokens_out, r.cost_usd, 'null' AS view, r.journal_lines, r.last_event, r.replica, r.title, r.phases_done, r.phases_all, r.former, r.caveats, r.changed_files, r.lines_added, r.lines_removed, ",
            "r.version, r.parked, r.wake_at, r.woken_at FROM a2a_tasks t JOIN runs r ON r.id = t.id ",
            $rest
        )
    };
}

/// Stores a new task, or the change of its run. `false` where its message has made a task before.
pub(crate) async fn follow(transaction: &mut Tx<'_>, change: &Change) -> Result<bool, DatabaseError> {
    let run = &change.run;
    let (id, state) = (run.id.as_str(), task_state(run));
    let changed_at = change.events.last().and_then(|event| event.ts().time());
    let Some(task) = &change.task else {
        let sql = "UPDATE a2a_tasks SET task_state = $2, updated_at = COALESCE($3, updated_at) WHERE id = $1";
        transaction.run(sql, arguments![id, state, changed_at]).await?;
        return Ok(true);
    };
    let sql = "INSERT INTO a2a_tasks (id, owner, context_id, message_id, messages, task_state, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING";
    let updated_at = changed_at.unwrap_or(run.queued_at);
    let arguments =
        arguments![id, &task.owner, &task.context_id, &task.message_id, &task.messages, state, updated_at];
    if transaction.run(sql, arguments).await?.changed != 1 {
        return Ok(false);
    }
    if let Some(push) = &change.push {
        pushes::insert(transaction, push).await?;
    }
    Ok(true)
}

/// The state of a run by which its task is found. A run that was woken works, for its caller.
fn task_state(run: &Run) -> &'static str {
    let is_woken = run.life.state == RunState::Queued && run.life.parked;
    if is_woken { RunState::Starting.as_str() } else { run.life.state.as_str() }
}

fn stored(row: &Row) -> Result<StoredTask, DatabaseError> {
    Ok(StoredTask { task: task(row)?, run: run(row)? })
}

async fn find(
    connection: &mut Connection,
    owner: &str,
    id: &str,
) -> Result<Option<StoredTask>, DatabaseError> {
    let sql = with_run!("WHERE t.id = $1 AND t.owner = $2");
    connection.run(sql, arguments![id, owner]).await?.rows.first().map(stored).transpose()
}

async fn find_by_message(
    connection: &mut Connection,
    owner: &str,
    message_id: &str,
) -> Result<Option<StoredTask>, DatabaseError> {
    let sql = with_run!("WHERE t.owner = $1 AND t.message_id = $2");
    connection.run(sql, arguments![owner, message_id]).await?.rows.first().map(stored).transpose()
}

async fn find_row(connection: &mut Connection, id: &RunId) -> Result<Option<TaskRow>, DatabaseError> {
    let sql = "SELECT * FROM a2a_tasks WHERE id = $1";
    connection.run(sql, arguments![id.as_str()]).await?.rows.first().map(task).transpose()
}

async fn put_messages(
    connection: &mut Connection,
    id: &RunId,
    known: &str,
    messages: &str,
) -> Result<bool, DatabaseError> {
    let sql = "UPDATE a2a_tasks SET messages = $3 WHERE id = $1 AND messages = $2";
    Ok(connection.run(sql, arguments![id.as_str(), known, messages]).await?.changed == 1)
}

fn states(filter: &TaskFilter) -> Option<[&'static str; 3]> {
    filter.states.map(|states| states.map(cliq_model::RunState::as_str))
}

async fn list(connection: &mut Connection, filter: &TaskFilter) -> Result<Vec<StoredTask>, DatabaseError> {
    let (owner, limit, after) = (&filter.owner, i64::from(filter.limit), filter.after);
    let (time, id) = filter.cursor.as_ref().map(|(time, id)| (*time, id.as_str())).unzip();
    // One statement for each index: a condition that may be absent would keep the database from using it.
    let answer = match (filter.context_id.as_deref(), states(filter)) {
        (None, None) => {
            let sql = listed!(
                "WHERE t.owner = $1 AND ($3 IS NULL OR t.updated_at > $3) AND ($4 IS NULL OR t.updated_at < $4 OR (t.updated_at = $4 AND t.id < $5)) ORDER BY t.updated_at DESC, t.id DESC LIMIT $2"
            );
            connection.run(sql, arguments![owner, limit, after, time, id]).await?
        }
        (None, Some([a, b, c])) => {
            let sql = listed!(
                "WHERE t.owner = $1 AND t.task_state IN ($6, $7, $8) AND ($3 IS NULL OR t.updated_at > $3) AND ($4 IS NULL OR t.updated_at < $4 OR (t.updated_at = $4 AND t.id < $5)) ORDER BY t.updated_at DESC, t.id DESC LIMIT $2"
            );
            connection.run(sql, arguments![owner, limit, after, time, id, a, b, c]).await?
        }
        (Some(context), None) => {
            let sql = listed!(
                "WHERE t.owner = $1 AND t.context_id = $6 AND ($3 IS NULL OR t.updated_at > $3) AND ($4 IS NULL OR t.updated_at < $4 OR (t.updated_at = $4 AND t.id < $5)) ORDER BY t.updated_at DESC, t.id DESC LIMIT $2"
            );
            connection.run(sql, arguments![owner, limit, after, time, id, context]).await?
        }
        (Some(context), Some([a, b, c])) => {
            let sql = listed!(
                "WHERE t.owner = $1 AND t.context_id = $6 AND t.task_state IN ($7, $8, $9) AND ($3 IS NULL OR t.updated_at > $3) AND ($4 IS NULL OR t.updated_at < $4 OR (t.updated_at = $4 AND t.id < $5)) ORDER BY t.updated_at DESC, t.id DESC LIMIT $2"
            );
            connection.run(sql, arguments![owner, limit, after, time, id, context, a, b, c]).await?
        }
    };
    answer.rows.iter().map(stored).collect()
}

async fn count(connection: &mut Connection, filter: &TaskFilter) -> Result<u64, DatabaseError> {
    let (owner, after, context) = (&filter.owner, filter.after, filter.context_id.as_deref());
    let answer = match states(filter) {
        None => {
            let sql = "SELECT COUNT(*) AS number FROM a2a_tasks WHERE owner = $1 AND ($2 IS NULL OR updated_at > $2) AND ($3 IS NULL OR context_id = $3)";
            connection.run(sql, arguments![owner, after, context]).await?
        }
        Some([a, b, c]) => {
            let sql = "SELECT COUNT(*) AS number FROM a2a_tasks WHERE owner = $1 AND task_state IN ($4, $5, $6) AND ($2 IS NULL OR updated_at > $2) AND ($3 IS NULL OR context_id = $3)";
            connection.run(sql, arguments![owner, after, context, a, b, c]).await?
        }
    };
    answer.rows.first().map_or(Ok(0), |row| row.count("number"))
}

#[async_trait]
impl TaskStore for SqlStore {
    async fn task(&self, owner: &str, id: &RunId) -> Result<Option<StoredTask>, StoreError> {
        on!(self.reader(), connection => find(connection, owner, id.as_str()).await)
    }

    async fn task_of_message(&self, owner: &str, message_id: &str) -> Result<Option<StoredTask>, StoreError> {
        on!(self.reader(), connection => find_by_message(connection, owner, message_id).await)
    }

    async fn task_of_run(&self, id: &RunId) -> Result<Option<TaskRow>, StoreError> {
        on!(self.reader(), connection => find_row(connection, id).await)
    }

    async fn put_messages(&self, id: &RunId, known: &str, messages: &str) -> Result<bool, StoreError> {
        on!(self.writer("the task"), connection => put_messages(connection, id, known, messages).await)
    }

    async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<StoredTask>, StoreError> {
        on!(self.reader(), connection => list(connection, filter).await)
    }

    async fn count_tasks(&self, filter: &TaskFilter) -> Result<u64, StoreError> {
        on!(self.reader(), connection => count(connection, filter).await)
    }

    async fn put_push(&self, push: &PushRow) -> Result<bool, StoreError> {
        on!(self.writer("the push notification"), connection => pushes::put(connection, push).await)
    }

    async fn pushes(&self, task_id: &RunId) -> Result<Vec<PushRow>, StoreError> {
        on!(self.reader(), connection => pushes::list(connection, task_id).await)
    }

    async fn remove_push(&self, task_id: &RunId, id: &str) -> Result<(), StoreError> {
        on!(self.writer("the push notification"), connection => pushes::remove(connection, task_id, id).await)
    }

    async fn due_pushes(&self, now: Timestamp, limit: u32) -> Result<Vec<PushRow>, StoreError> {
        on!(self.reader(), connection => pushes::due(connection, now, limit).await)
    }
}
