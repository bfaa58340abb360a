//! The host and the project that a command works on.

use std::io;

use camino::Utf8PathBuf;
use cliq_project::{Environment, Host, Project, Settings};

use crate::failure::Failure;

/// The path of this program. Where an upgrade replaced it while it runs, the path of the new one.
pub(crate) fn own_program() -> io::Result<Utf8PathBuf> {
    let path = std::env::current_exe()?;
    let path = Utf8PathBuf::from_path_buf(path)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the path of cliq itself is not UTF-8"))?;
    let replaced = path.as_str().strip_suffix(" (deleted)").map(Utf8PathBuf::from);
    Ok(replaced.filter(|path| path.is_file()).unwrap_or(path))
}

/// The host: the environment of this process, and this program.
pub(crate) fn host() -> Host {
    Host::new(Environment::of_process(), own_program().unwrap_or_else(|_| "cliq".into()))
}

/// The directory that the command was started in.
pub(crate) fn here() -> Result<Utf8PathBuf, Failure> {
    let dir = std::env::current_dir()?;
    Utf8PathBuf::from_path_buf(dir).map_err(|path| {
        Failure::failed(format!("{} is not UTF-8, which cliq needs of paths", path.display()))
    })
}

/// The project of this directory or of the nearest directory above it.
pub(crate) fn open() -> Result<Project, Failure> {
    Ok(Project::discover(&here()?, host())?)
}

/// The settings of the project of this directory; without a project, those of the user.
pub(crate) fn settings() -> Result<Settings, Failure> {
    let host = host();
    Ok(match Project::discover(&here()?, host.clone()) {
        Ok(project) => project.settings()?,
        Err(_) => Settings::load(host.home.as_deref(), None)?,
    })
}
