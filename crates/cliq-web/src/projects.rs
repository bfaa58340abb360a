//! Registered projects.

use camino::Utf8Path;
use cliq_model::Instance;

use crate::core::Core;
use crate::problem::Problem;

/// Registers the project in a directory.
///
/// # Errors
/// Returns a problem if the directory is not a project, or the store fails.
pub async fn register_project(core: &Core, path: &str) -> Result<Instance, Problem> {
    let no_project = || Problem::conflict("the directory is not a project: `cliq init` makes it one");
    let path = Utf8Path::new(path);
    if !path.is_absolute() || path.as_str().contains('\0') {
        return Err(Problem::unprocessable("`path` is an absolute path", Vec::new()));
    }
    core.supervisor.register_project(path).await?.ok_or_else(no_project)
}

/// Finds a registered project by its id.
///
/// # Errors
/// Returns a problem if there is no such project, or the store fails.
pub async fn find_project(core: &Core, id: &str) -> Result<Instance, Problem> {
    let found = core.runs.instance(id).await?;
    found.ok_or_else(|| Problem::not_found("there is no registered project of this id"))
}
