//! SQLite: the database is a file of this process, so a statement runs on the thread that asks for it. To hand it to another
//! thread and to wait for the answer would cost more than most statements do.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{OpenFlags, ToSql};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::error::{DatabaseError, is_locked};
use crate::migrations::{FORMAT, TABLES};
use crate::sqlite_row::SqliteRow;
use crate::statement::{Answer, Argument, Row};

/// Delay before another attempt to open a database that another process opens.
const LOCKED: Duration = Duration::from_millis(10);
/// Number of cached prepared statements.
const STATEMENTS: usize = 100;

/// A connection to a file.
#[derive(Debug)]
pub(crate) struct SqliteConnection {
    connection: rusqlite::Connection,
    /// Format of the database when it was opened.
    format: i64,
}

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
            match aside(|| connect(path, patience)) {
                Ok(connection) => return Ok(connection),
                Err(error) if is_locked(&error) && Instant::now() < deadline => {
                    tokio::time::sleep(LOCKED).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the format of a database without changing anything; `None` if there is none yet.
    pub(crate) fn format_of(path: &Utf8Path, patience: Duration) -> Result<Option<i64>, DatabaseError> {
        if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Ok(None);
        }
        check_is_file(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = rusqlite::Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(patience)?;
        let format = read_format(&connection)?;
        check_tables(&connection, format)?;
        let damage: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if damage != "ok" {
            return Err(DatabaseError::Damaged(damage));
        }
        // Format 0 is a database without tables of cliq.
        Ok(Some(format).filter(|format| *format > 0))
    }

    /// Format of the database when it was opened.
    pub(crate) fn format(&self) -> i64 {
        self.format
    }

    /// Runs a statement to its end.
    pub(crate) fn run(&mut self, sql: &str, arguments: &[Argument<'_>]) -> Result<Answer, DatabaseError> {
        Ok(aside(|| run(&self.connection, sql, arguments))?)
    }

    /// Runs a script of several statements without arguments.
    pub(crate) fn script(&mut self, sql: &str) -> Result<(), DatabaseError> {
        Ok(aside(|| self.connection.execute_batch(sql))?)
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
        if !self.connection.connection.is_autocommit() {
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

/// Opens a database for writing. One that this program cannot use stays as it is: the write-ahead log would change it.
fn connect(path: &Utf8Path, patience: Duration) -> Result<SqliteConnection, DatabaseError> {
    check_is_file(path)?;
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = rusqlite::Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(patience)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    let format = read_format(&connection)?;
    if format != FORMAT {
        check_tables(&connection, format)?;
    }
    if format > FORMAT {
        return Err(DatabaseError::Newer(format));
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(SqliteConnection { connection, format })
}

/// Refuses a path with something else than a regular file. A FIFO would block for good.
fn check_is_file(path: &Utf8Path) -> Result<(), DatabaseError> {
    match path.metadata() {
        Ok(found) if found.is_dir() => Err(DatabaseError::NotAFile("a directory")),
        Ok(found) if !found.is_file() => Err(DatabaseError::NotAFile("no regular file")),
        // What cannot be looked at is refused, with the reason, by the attempt to open it.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Reads the format of a database, which is 0 for a new one, and for one with the queue of signals only.
fn read_format(connection: &rusqlite::Connection) -> Result<i64, DatabaseError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

/// Checks that the tables are those of a format. Others belong to another program, or were changed by one.
fn check_tables(connection: &rusqlite::Connection, format: i64) -> Result<(), DatabaseError> {
    // One statement sees one state: another process may bring the database to a newer format now.
    let sql = "SELECT (SELECT user_version FROM pragma_user_version), name FROM sqlite_master
        WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!'";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let format = rows.first().map_or(format, |(found, _)| *found);
    let has = |table: &str| rows.iter().any(|(_, name)| name == table);
    let fits = match format {
        // The queue may be there before its first use by cliq (docs/signals.md).
        0 => {
            rows.is_empty()
                || (has("signals") && TABLES.iter().all(|(since, table)| *since == 1 || !has(table)))
        }
        // A newer format may lack tables of this one, but not the queue.
        format if format > FORMAT => has("signals"),
        format => TABLES.iter().all(|(since, table)| has(table) == (*since <= format)),
    };
    if fits { Ok(()) } else { Err(DatabaseError::Foreign) }
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
