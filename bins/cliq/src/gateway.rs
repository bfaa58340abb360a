//! The queue that all projects of a home share, and whose signals and plans a command is about.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::CliqDir;
use cliq_project::internals::SIGNAL_FILES;
use cliq_settings::{DatabaseSettings, Secret, Settings};
use cliq_store::{Location, SqlStore};

use crate::failure::Failure;
use crate::project;

/// Runs what is asynchronous.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}

pub(crate) fn home() -> Result<Utf8PathBuf, Failure> {
    project::host().home.ok_or_else(|| {
        Failure::usage("there is no home directory to keep signals and plans in")
            .hint("set CLIQ_HOME to a directory")
    })
}

/// The database that the variable `CLIQ_DATABASE_URL` or the setting `database.url` names, else `CLIQ_HOME/cliq.db` (docs/signals.md, docs/server.md). A project cannot
/// choose another one: all projects of a home share it.
pub(crate) fn location() -> Result<Location, Failure> {
    let home = home()?;
    let from_environment = std::env::var("CLIQ_DATABASE_URL").ok().filter(|url| !url.is_empty());
    let url = match from_environment {
        Some(url) => Some(Secret::new(url)),
        None => DatabaseSettings::read(&Settings::load(Some(&home), None)?).url,
    };
    let url = url.as_ref().map(Secret::reveal);
    Location::choose(url, &home).map_err(|error| Failure::usage(error.to_string()))
}

/// The database of signals, plans and runs.
pub(crate) async fn open() -> Result<Arc<SqlStore>, Failure> {
    if sends_files() {
        return Err(Failure::failed("signals and plans cannot be read in a container or a sandbox")
            .hint("`cliq signal emit` works: the daemon takes what is emitted from the project's inbox"));
    }
    Ok(Arc::new(SqlStore::open(&location()?).await?))
}

/// The project that signals are of: a directory's real path, or if there is no such directory, the name as it is.
pub(crate) fn project_name(asked: Option<&str>) -> Result<String, Failure> {
    let set = std::env::var("CLIQ_PROJECT").ok().filter(|project| !project.is_empty());
    match asked.map(str::to_owned).or(set) {
        Some(name) if name.trim().is_empty() => Err(Failure::usage("the project's name is empty")),
        Some(name) => Ok(match CliqDir::open(Utf8Path::new(&name)) {
            Ok(dir) => dir.workspace().to_string(),
            Err(_) => Utf8Path::new(&name).canonicalize_utf8().map_or(name, Utf8PathBuf::into_string),
        }),
        None => Ok(project::open()?.dir().workspace().to_string()),
    }
}

/// Whether signals go as files ([`SIGNAL_FILES`]).
pub(crate) fn sends_files() -> bool {
    std::env::var_os(SIGNAL_FILES).is_some_and(|value| !value.is_empty())
}
