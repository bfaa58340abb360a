//! Environment of this process, mended once at its start: all that it starts inherits the result.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::{project, ui};

/// The variable that names the cliq home.
const HOME: &str = "CLIQ_HOME";

/// Replaces this process by one with a mended environment, if something has to be mended: a relative `CLIQ_HOME` becomes absolute,
/// against the directory in which the command started, and the variables that git sets for hooks are removed.
///
/// Returns the exit code of a failed attempt, or `None` if there is nothing to mend.
pub(crate) fn restart_if_unsuitable() -> Option<ExitCode> {
    let home = std::env::var_os(HOME).filter(|home| !home.is_empty() && !Path::new(home).is_absolute());
    let is_in_hook = cliq_git::LOCAL_VARIABLES.iter().any(|name| std::env::var_os(name).is_some());
    if home.is_none() && !is_in_hook {
        return None;
    }
    let restart = || -> io::Result<io::Error> {
        let mut arguments = std::env::args_os();
        let mut command = Command::new(project::own_program()?);
        if let Some(name) = arguments.next() {
            command.arg0(name);
        }
        if let Some(home) = &home {
            command.env(HOME, std::env::current_dir()?.join(home));
        }
        cliq_git::remove_local_variables(&mut command);
        Ok(command.args(arguments).exec())
    };
    let error = restart().unwrap_or_else(|error| error);
    let Some(home) = home else {
        // The variables of git are also removed wherever an agent or a command is started.
        return None;
    };
    ui::error(&format!("cannot make CLIQ_HOME ({}) absolute: {error}", home.to_string_lossy()));
    ui::hint("set CLIQ_HOME to an absolute path");
    Some(ExitCode::FAILURE)
}
