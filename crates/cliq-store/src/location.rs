//! Location of the database.

use std::fmt;
use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};
use sqlx::postgres::PgConnectOptions;

/// Location of the database. `Display` and `Debug` show no password.
#[derive(Clone)]
pub enum Location {
    /// A SQLite file.
    Sqlite(Utf8PathBuf),
    /// A PostgreSQL database.
    Postgres(Box<PgConnectOptions>),
}

/// The setting `database.url` names no database. The address is not quoted: it may contain a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadDatabaseUrl(String);

impl fmt::Display for BadDatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(why) = self;
        write!(
            f,
            "`database.url` is not an address of a PostgreSQL database ({why}): write postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        )
    }
}

impl std::error::Error for BadDatabaseUrl {}

impl Location {
    /// The database that `database.url` names; without it, `cliq.db` in the cliq home.
    ///
    /// # Errors
    /// The address is not that of a PostgreSQL database.
    pub fn choose(url: Option<&str>, home: &Utf8Path) -> Result<Self, BadDatabaseUrl> {
        let Some(url) = url else { return Ok(Self::Sqlite(home.join("cliq.db"))) };
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(BadDatabaseUrl("it begins with something else than postgresql://".to_owned()));
        }
        let options = PgConnectOptions::from_str(url);
        let options = options.map_err(|_| BadDatabaseUrl("it cannot be read".to_owned()))?;
        Ok(Self::Postgres(Box::new(options.application_name("cliq"))))
    }

    /// Whether several machines can use the database.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{path}"),
            Self::Postgres(options) => {
                let host = options
                    .get_socket()
                    .map_or(options.get_host().to_owned(), |dir| dir.display().to_string());
                let database = options.get_database().unwrap_or_else(|| options.get_username());
                write!(f, "postgresql://{host}:{}/{database}", options.get_port())
            }
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let home = Utf8Path::new("/home/x");
        let location = Location::choose(Some("postgresql://me:hush@db.example:5433/cliq"), home).unwrap();
        assert_eq!(location.to_string(), "postgresql://db.example:5433/cliq");
        assert!(!format!("{location:?}").contains("hush"));
        for wrong in ["mysql://me:hush@db/x", "postgresql://me:hush@db:notaport/x", "hush"] {
            let error = Location::choose(Some(wrong), home).unwrap_err().to_string();
            assert!(error.contains("database.url") && !error.contains("hush"), "{error}");
        }
        assert_eq!(Location::choose(None, home).unwrap().to_string(), "/home/x/cliq.db");
    }
}
