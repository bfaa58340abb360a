//! Workspace of a run: a directory that is created for it, or a registered project.

use std::fs;
use std::io::ErrorKind;
use std::time::Duration;

use camino::Utf8Path;
use cliq_fs::IoContext;
use cliq_git::{Git, init_with_commit};
use cliq_http::Guard;
use cliq_model::{Run, RunOrigin};
use cliq_project::internals::{demo_files, write_files};
use cliq_project::{Host, Project, ProjectError};

use crate::repositories::clone;

/// Whether the workspace needs preparation before the start.
pub(crate) fn needs_preparation(run: &Run) -> bool {
    run.has_own_workspace() || run.request.spec.team.is_some() || run.request.spec.requirement.is_some()
}

/// Prepares the workspace of a new run: init, repositories, team, requirement. Replaces the remains of an earlier attempt.
///
/// `guard` lists the repository hosts that may have private addresses.
pub(crate) fn prepare(host: &Host, guard: &Guard, run: &Run) -> Result<(), ProjectError> {
    let request = &run.request.spec;
    let project = if run.has_own_workspace() {
        remove(&run.workspace)?;
        fs::create_dir_all(&run.workspace).at("create", &run.workspace)?;
        let project = Project::init_for_run(&run.workspace, host.clone())?;
        clone(host, guard, &request.repos, &run.workspace)?;
        if request.repos.is_empty() {
            write_demo(run)?;
        }
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

/// Writes the files that a demonstration works on, as the first commit of a repository: so its changes can be seen.
fn write_demo(run: &Run) -> Result<(), ProjectError> {
    let files = demo_files(run.team.as_str());
    if files.is_empty() {
        return Ok(());
    }
    write_files(&run.workspace, files)?;
    // Without git the run has no changes to show, and works all the same.
    let git = Git::new(&run.workspace);
    if let Err(error) = init_with_commit(&git, ("cliq", "cliq@localhost"), "Files of the demonstration") {
        tracing::debug!(run = %run.id, %error, "the files of a demonstration are in no repository");
    }
    Ok(())
}

/// Whether the workspace goes with the end of its run: that of a delegated run, unless its caller asked to keep it. The event log
/// contains all results.
pub(crate) fn is_temporary(run: &Run) -> bool {
    run.origin == RunOrigin::Delegated && !run.request.keep_workspace
}

/// Removes the workspace that was created for a run. Blocks for up to two seconds while processes of the run that are terminating
/// still create files in it.
pub(crate) fn remove(workspace: &Utf8Path) -> Result<(), ProjectError> {
    let mut pauses = [10, 40, 150, 600, 1200].into_iter().map(Duration::from_millis);
    loop {
        match fs::remove_dir_all(workspace) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => match pauses.next() {
                Some(pause) if error.kind() == ErrorKind::DirectoryNotEmpty => std::thread::sleep(pause),
                Some(_) | None => return Err(error).at("remove", workspace).map_err(ProjectError::from),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn workspace_in_which_a_process_still_writes_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let workspace = Utf8Path::from_path(place.path()).unwrap().join("w");
        fs::create_dir_all(workspace.join("a")).unwrap();
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let dir = workspace.join("a");
                scope.spawn(move || {
                    let end = Instant::now() + Duration::from_millis(100);
                    for n in 0_u64.. {
                        if Instant::now() > end || fs::write(dir.join(format!("{writer}-{n}")), "").is_err() {
                            break;
                        }
                    }
                });
            }
            while fs::read_dir(workspace.join("a")).unwrap().next().is_none() {
                std::thread::yield_now();
            }
            remove(&workspace).unwrap();
        });
        assert!(!workspace.exists());
    }
}
