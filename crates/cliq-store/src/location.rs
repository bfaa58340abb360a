//! Location of the database.

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};

use crate::postgres::PostgresAddress;

/// Location of the database. `Display` and `Debug` show no password.
#[derive(Clone)]
#[non_exhaustive]
pub enum Location {
    /// A SQLite file.
    Sqlite(Utf8PathBuf),
    /// A PostgreSQL database.
    Postgres(PostgresAddress),
}

/// Reason why the setting `database.url` cannot be used. The address is not quoted: it may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadDatabaseUrl {
    /// The setting is not the address of a database.
    #[error(
        "`database.url` is not an address of a PostgreSQL database ({0}): write postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
    )]
    Malformed(String),
    /// The program is built without PostgreSQL.
    #[error(
        "`database.url` names a PostgreSQL database, and this program knows SQLite only: build it with the feature `postgres` of cliq-store"
    )]
    Unsupported,
}

impl BadDatabaseUrl {
    pub(crate) fn malformed(reason: &str) -> Self {
        Self::Malformed(reason.to_owned())
    }
}

impl Location {
    /// The database that `database.url` names; without it, `cliq.db` in the cliq home.
    ///
    /// # Errors
    /// The address is not that of a PostgreSQL database, or the program is built without the feature `postgres`.
    pub fn choose(url: Option<&str>, home: &Utf8Path) -> Result<Self, BadDatabaseUrl> {
        let Some(url) = url else { return Ok(Self::Sqlite(home.join("cliq.db"))) };
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(BadDatabaseUrl::malformed("it begins with something else than postgresql://"));
        }
        PostgresAddress::parse(url).map(Self::Postgres)
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
            Self::Postgres(address) => write!(f, "{address}"),
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
    #[cfg(not(feature = "postgres"))]
    fn postgres_needs_its_feature() {
        let error =
            Location::choose(Some("postgresql://me:hush@db/cliq"), Utf8Path::new("/home/x")).unwrap_err();
        assert_eq!(error, BadDatabaseUrl::Unsupported);
    }

    #[test]
    #[cfg(feature = "postgres")]
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
