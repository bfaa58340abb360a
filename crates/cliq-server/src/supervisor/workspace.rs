//! Where a run works: a fresh workspace that is made for it, or a registered project.

use std::fs;

use camino::Utf8Path;
use cliq_fs::IoContext;
use cliq_http::Guard;
use cliq_project::{Host, Project, ProjectError};
use cliq_runs::Run;

use super::repositories::clone;

/// Whether there is anything to prepare.
pub(super) fn needs_preparation(run: &Run) -> bool {
    run.has_own_workspace() || run.request.team.is_some() || run.request.requirement.is_some()
}

/// Prepares the place of a run that begins: init, repositories, team, requirement. What an earlier attempt left is replaced.
///
/// `guard` says which hosts of repositories may have private addresses.
pub(super) fn prepare(host: &Host, guard: &Guard, run: &Run) -> Result<(), ProjectError> {
    let request = &run.request;
    let project = if run.has_own_workspace() {
        remove(&run.workspace)?;
        fs::create_dir_all(&run.workspace).at("create", &run.workspace)?;
        let project = Project::init_for_run(&run.workspace, host.clone())?;
        clone(host, guard, &request.repos, &run.workspace)?;
        project
    } else {
        Project::open(&run.workspace, host.clone())?
    };
    if let Some(team) = &request.team {
        project.assemble(team)?;
    }
    match &request.requirement {
        Some(requirement) if !requirement.trim().is_empty() => project.set_requirement(requirement),
        _ => Ok(()),
    }
}

/// Removes a workspace that was made for a run.
pub(super) fn remove(workspace: &Utf8Path) -> Result<(), ProjectError> {
    match fs::remove_dir_all(workspace) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).at("remove", workspace).map_err(ProjectError::from)
        }
        _ => Ok(()),
    }
}
