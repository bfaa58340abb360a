//! Changed files of a run for people: a list with numbers of lines, and the lines of each file when it is opened (docs/dashboard.md).

use std::collections::HashMap;

use cliq_project::{ActivationChanges, Checkpoint, CheckpointStore, DifferenceForm, Project};
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
    let read = |repo: &str, form| {
        store.differences(from, to, repo, &[], form).map_err(|error| problem(error.into()))
    };
    let mut diffs = Vec::new();
    for (repo, names) in store.names(from, to).map_err(|error| problem(error.into()))? {
        let mut files = numstat(&String::from_utf8_lossy(&read(&repo, DifferenceForm::Counts)?));
        let names = String::from_utf8_lossy(&names);
        let kinds = kinds_of(&names);
        for file in &mut files {
            if let Some((kind, _)) = kinds.get(file.path.as_str()) {
                file.change = word_of(*kind).to_owned();
            }
        }
        if !files.is_empty() {
            diffs.push((repo, files));
        }
    }
    let files = || diffs.iter().flat_map(|(_, files)| files);
    let lines: u64 = files().map(|file| file.added + file.removed).sum();
    if lines <= WHOLE_LINES && files().count() <= WHOLE_FILES {
        for (repo, files) in &mut diffs {
            fill_in(files, &String::from_utf8_lossy(&read(repo, DifferenceForm::Patch)?));
        }
    }
    let diff = |(repo, files): (String, _)| {
        let repo = if repo.is_empty() { ".".to_owned() } else { repo };
        Diff { repo, files, more_files: 0 }
    };
    Ok(diffs.into_iter().map(diff).collect())
}

/// One file with its lines. Reads the names of the others only, so that the time does not grow with their content.
fn file_between(
    store: &CheckpointStore,
    from: &Checkpoint,
    to: &Checkpoint,
    path: &str,
) -> Result<Option<FileDiff>, Problem> {
    for (repo, names) in store.names(from, to).map_err(|error| problem(error.into()))? {
        let inner = if repo.is_empty() {
            Some(path)
        } else {
            path.strip_prefix(&repo).and_then(|path| path.strip_prefix('/'))
        };
        let names = String::from_utf8_lossy(&names);
        let kinds = kinds_of(&names);
        let Some((inner, (kind, old))) = inner.and_then(|inner| Some((inner, kinds.get(inner)?))) else {
            continue;
        };
        let paths: Vec<&str> = std::iter::once(inner).chain(*old).collect();
        let read = |form| {
            let read = store.differences(from, to, &repo, &paths, form);
            read.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .map_err(|error| problem(error.into()))
        };
        let mut files = numstat(&read(DifferenceForm::Counts)?);
        fill_in(&mut files, &read(DifferenceForm::Patch)?);
        let Some(mut file) = files.into_iter().find(|file| file.path == inner) else { continue };
        if matches!(kind, 'A' | 'D') {
            file.change = word_of(*kind).to_owned();
        }
        return Ok(Some(file));
    }
    Ok(None)
}

fn word_of(kind: char) -> &'static str {
    match kind {
        'A' => "added",
        'D' => "deleted",
        'R' => "renamed",
        _ => "modified",
    }
}

/// Kinds of changes by path, from `--name-status -z`, with the previous path of a renamed file.
fn kinds_of(text: &str) -> HashMap<&str, (char, Option<&str>)> {
    let mut kinds = HashMap::new();
    let mut parts = text.split('\0');
    while let Some(kind) = parts.next().and_then(|kind| kind.chars().next()) {
        let Some(path) = parts.next() else { break };
        // A renamed file has two paths, the new one last.
        if matches!(kind, 'R' | 'C') {
            kinds.extend(parts.next().map(|new| (new, (kind, Some(path)))));
        } else {
            kinds.insert(path, (kind, None));
        }
    }
    kinds
}
