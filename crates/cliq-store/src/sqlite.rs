//! SQLite: the database is a file of this process, so a statement runs on the thread that asks for it. To hand it to another
//! thread and to wait for the answer would cost more than most statements do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{OpenFlags, ToSql};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::error::{DatabaseError, is_locked};
use crate::sqlite_row::SqliteRow;
use crate::statement::{Answer, Argument, Row};

/// Delay before another attempt to open a database that another process opens.
const LOCKED: Duration = Duration::from_millis(10);
/// Number of cached prepared statements.
const STATEMENTS: usize = 100;

/// A connection to a file.
#[derive(Debug)]
pub(crate) struct SqliteConnection(rusqlite::Connection);

/// A transaction. Dropped without a commit, it is rolled back.
#[derive(Debug)]
pub(crate) struct SqliteTransaction<'c> {
    connection: &'c mut SqliteConnection,
}

impl SqliteConnection {
    /// Opens a database, and makes it if there is none.
    pub(crate) async fn open(path: &Utf8Path, patience: Duration) -> Result<Self, DatabaseError> {
        // A new database first switches to a write-ahead log. SQLite does not apply the busy timeout there: of two processes that open it
        // at the same moment one is refused at once.
        let deadline = Instant::now() + patience;
        loop {
            match aside(|| connect(path, patience)).map_err(DatabaseError::from) {
                Ok(connection) => return Ok(Self(connection)),
                Err(error) if is_locked(&error) && Instant::now() < deadline => {
                    tokio::time::sleep(LOCKED).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Runs a statement to its end.
    pub(crate) fn run(&mut self, sql: &str, arguments: &[Argument<'_>]) -> Result<Answer, DatabaseError> {
        Ok(aside(|| run(&self.0, sql, arguments))?)
    }

    /// Runs a script of several statements without arguments.
    pub(crate) fn script(&mut self, sql: &str) -> Result<(), DatabaseError> {
        Ok(aside(|| self.0.execute_batch(sql))?)
    }

    /// Begins a transaction that is going to write.
    pub(crate) fn begin(&mut self) -> Result<SqliteTransaction<'_>, DatabaseError> {
        // Immediate: a transaction that reads first and then writes would fail where another wrote in between.
        self.run("BEGIN IMMEDIATE", &[])?;
        Ok(SqliteTransaction { connection: self })
    }
}

impl SqliteTransaction<'_> {
    pub(crate) fn connection(&mut self) -> &mut SqliteConnection {
        self.connection
    }

    pub(crate) fn commit(self) -> Result<(), DatabaseError> {
        self.connection.run("COMMIT", &[]).map(drop)
    }
}

impl Drop for SqliteTransaction<'_> {
    fn drop(&mut self) {
        // A commit has ended it, and so have some errors.
        if !self.connection.0.is_autocommit() {
            let _ = self.connection.run("ROLLBACK", &[]);
        }
    }
}

/// Runs work that may wait for the disk, or for a program that holds the database. Other tasks of the thread go on elsewhere meanwhile, where
/// the runtime has several threads.
fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

fn connect(path: &Utf8Path, patience: Duration) -> rusqlite::Result<rusqlite::Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = rusqlite::Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(patience)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

fn run(connection: &rusqlite::Connection, sql: &str, arguments: &[Argument<'_>]) -> rusqlite::Result<Answer> {
    let mut statement = connection.prepare_cached(sql)?;
    // SQLite numbers parameters as they appear in the text: `$2` is the first one where it comes first.
    for place in 1..=statement.parameter_count() {
        let number =
            statement.parameter_name(place).and_then(|name| name.strip_prefix('$')?.parse::<usize>().ok());
        let argument = number.and_then(|number| arguments.get(number.checked_sub(1)?));
        let argument = argument.ok_or(rusqlite::Error::InvalidParameterCount(place, arguments.len()))?;
        statement.raw_bind_parameter(place, argument)?;
    }
    let columns: Arc<[String]> = statement.column_names().into_iter().map(str::to_owned).collect();
    let mut answer = Answer::default();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        let values = (0..columns.len()).map(|place| row.get::<_, Value>(place));
        answer
            .rows
            .push(Row::Sqlite(SqliteRow::new(Arc::clone(&columns), values.collect::<Result<_, _>>()?)));
    }
    drop(rows);
    answer.changed = connection.changes();
    answer.inserted = connection.last_insert_rowid();
    Ok(answer)
}

impl ToSql for Argument<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match *self {
            Argument::Text(given) | Argument::OptionalText(Some(given)) => ValueRef::Text(given.as_bytes()),
            Argument::Integer(number) | Argument::OptionalInteger(Some(number)) => ValueRef::Integer(number),
            Argument::OptionalReal(Some(number)) => ValueRef::Real(number),
            Argument::OptionalTime(Some(time)) => {
                return Ok(ToSqlOutput::Owned(Value::Text(time.to_string())));
            }
            Argument::OptionalText(None)
            | Argument::OptionalTime(None)
            | Argument::OptionalInteger(None)
            | Argument::OptionalReal(None) => ValueRef::Null,
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}
