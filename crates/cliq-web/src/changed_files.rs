//! Changed files of a run for people: a list with numbers of lines, and the lines of each file when it is opened (docs/dashboard.md).

use std::collections::HashMap;

use cliq_project::{ActivationChanges, Checkpoint, CheckpointStore, Project};
use cliq_protocol::RunId;
use cliq_review::{Diff, FileDiff, fill_in, numstat};

use crate::changes::{problem, store_of};
use crate::problem::Problem;

/// Changes with more lines or files than this come without their lines.
const WHOLE_LINES: u64 = 1500;
const WHOLE_FILES: usize = 60;

/// Changed files of an activation, or of the whole run.
#[derive(Debug)]
#[non_exhaustive]
pub struct ChangedFiles {
    /// Phase or item; `run` for the whole run.
    pub phase: String,
    /// Number of the activation; `None` for the whole run.
    pub activation: Option<u32>,
    /// Changed files by repository. Large changes come without their lines.
    pub diffs: Vec<Diff>,
}

/// Returns the changed files of a run: of the whole run, of a phase with its items, of an item, or of one activation. Blocks.
///
/// # Errors
/// Returns a problem if there are no checkpoints that fit, or the store cannot be read.
pub fn changed_files(
    project: &Project,
    run_id: &RunId,
    of: Option<&str>,
) -> Result<Vec<ChangedFiles>, Problem> {
    let store = store_of(project)?;
    let activations = project.activation_changes(&store, run_id, of).map_err(problem)?;
    let files = |activation: ActivationChanges| {
        let diffs = diffs_between(&store, &activation.from, &activation.to)?;
        Ok(ChangedFiles { phase: activation.phase, activation: activation.activation, diffs })
    };
    activations.into_iter().map(files).collect()
}

/// Returns a changed file with its lines; `path` is relative to the workspace. Of several activations, the last one that changed the file
/// counts. Blocks.
///
/// # Errors
/// Returns a problem if there is no such file among the changes, or the store cannot be read.
pub fn changed_file(
    project: &Project,
    run_id: &RunId,
    of: Option<&str>,
    path: &str,
) -> Result<FileDiff, Problem> {
    let store = store_of(project)?;
    let activations = project.activation_changes(&store, run_id, of).map_err(problem)?;
    for activation in activations.iter().rev() {
        if let Some(file) = file_between(&store, &activation.from, &activation.to, path)? {
            return Ok(file);
        }
    }
    Err(Problem::not_found("the file is not among these changes"))
}

/// Returns the files that differ between the ends of two runs of a project. Blocks.
///
/// # Errors
/// Returns a problem if a run has no checkpoints, or the store cannot be read.
pub fn file_differences(project: &Project, from: &RunId, to: &RunId) -> Result<Vec<Diff>, Problem> {
    let store = store_of(project)?;
    let (from, to) = (end_of(project, &store, from)?, end_of(project, &store, to)?);
    diffs_between(&store, &from, &to)
}

/// Returns a file that differs between the ends of two runs of a project, with its lines. Blocks.
///
/// # Errors
/// Returns a problem if the file does not differ, or the store cannot be read.
pub fn file_difference(project: &Project, from: &RunId, to: &RunId, path: &str) -> Result<FileDiff, Problem> {
    let store = store_of(project)?;
    let (from, to) = (end_of(project, &store, from)?, end_of(project, &store, to)?);
    let found = file_between(&store, &from, &to, path)?;
    found.ok_or_else(|| Problem::not_found("the file does not differ"))
}

/// Returns the last checkpoint of a run.
fn end_of(project: &Project, store: &CheckpointStore, run_id: &RunId) -> Result<Checkpoint, Problem> {
    let whole = project.activation_changes(store, run_id, None).map_err(problem)?;
    let last = whole.into_iter().next().map(|whole| whole.to);
    last.ok_or_else(|| Problem::not_found("the run has no checkpoints"))
}

fn diffs_between(store: &CheckpointStore, from: &Checkpoint, to: &Checkpoint) -> Result<Vec<Diff>, Problem> {
    let mut diffs = list(store, from, to)?;
    let files = || diffs.iter().flat_map(|diff| &diff.files);
    let lines: u64 = files().map(|file| file.added + file.removed).sum();
    if lines <= WHOLE_LINES && files().count() <= WHOLE_FILES {
        for diff in &mut diffs {
            let patch = store.patch(from, to, repo_of(diff), &[]).map_err(|error| problem(error.into()))?;
            fill_in(&mut diff.files, &String::from_utf8_lossy(&patch));
        }
    }
    Ok(diffs)
}

fn file_between(
    store: &CheckpointStore,
    from: &Checkpoint,
    to: &Checkpoint,
    path: &str,
) -> Result<Option<FileDiff>, Problem> {
    for diff in list(store, from, to)? {
        let Some(file) = diff.files.iter().find(|file| diff.path_of(file) == path) else { continue };
        let mut file = file.clone();
        let paths: Vec<&str> = std::iter::once(file.path.as_str()).chain(file.old_path.as_deref()).collect();
        let patch = store.patch(from, to, repo_of(&diff), &paths).map_err(|error| problem(error.into()))?;
        fill_in(std::slice::from_mut(&mut file), &String::from_utf8_lossy(&patch));
        return Ok(Some(file));
    }
    Ok(None)
}

fn repo_of(diff: &Diff) -> &str {
    if diff.repo == "." { "" } else { &diff.repo }
}

/// Lists the files without their lines.
fn list(store: &CheckpointStore, from: &Checkpoint, to: &Checkpoint) -> Result<Vec<Diff>, Problem> {
    let stats = store.stats(from, to).map_err(|error| problem(error.into()))?;
    let diff = |stats: cliq_project::RepositoryStats| {
        let mut files = numstat(&String::from_utf8_lossy(&stats.numstat));
        let kinds = String::from_utf8_lossy(&stats.name_status);
        let kinds = kinds_of(&kinds);
        for file in &mut files {
            match kinds.get(file.path.as_str()) {
                Some('A') => "added".clone_into(&mut file.change),
                Some('D') => "deleted".clone_into(&mut file.change),
                _ => {}
            }
        }
        let repo = if stats.repo.is_empty() { ".".to_owned() } else { stats.repo };
        Diff { repo, files, more_files: 0 }
    };
    Ok(stats.into_iter().map(diff).filter(|diff| !diff.files.is_empty()).collect())
}

/// Kinds of changes by path, from `--name-status -z`.
fn kinds_of(text: &str) -> HashMap<&str, char> {
    let mut kinds = HashMap::new();
    let mut parts = text.split('\0');
    while let Some(kind) = parts.next().and_then(|kind| kind.chars().next()) {
        let path = parts.next();
        // A renamed file has two paths, the new one last.
        let path = if matches!(kind, 'R' | 'C') { parts.next() } else { path };
        kinds.extend(path.map(|path| (path, kind)));
    }
    kinds
}
