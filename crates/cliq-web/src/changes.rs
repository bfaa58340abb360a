//! Changes that activations of a run made in the workspace, from its checkpoints (docs/checkpoints.md).

use cliq_project::{ActivationChanges, Checkpoint, CheckpointStore, Moment, Project, ProjectError};
use cliq_protocol::RunId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;

/// Maximum length of a patch, in bytes. The rest is left out.
const MAX_PATCH: usize = 1 << 20;

/// A file that an activation changed.
#[derive(Debug, Serialize, ToSchema)]
pub struct FileChange {
    /// Path within the workspace.
    pub path: String,
    /// `added`, `modified` or `deleted`.
    pub kind: String,
}

/// Changes of an activation, or of the whole run.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActivationDiff {
    /// Phase or item; `run` for the whole run.
    pub phase: String,
    /// Number of the activation; `null` for the whole run.
    pub activation: Option<u32>,
    /// Number of the checkpoint before.
    pub from: u64,
    /// Number of the checkpoint after.
    pub to: u64,
    /// Changed files.
    pub changes: Vec<FileChange>,
    /// Differences as a patch, if asked for. Patches above 1 MiB are cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}

/// A checkpoint of a run.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunCheckpoint {
    /// Number in the project.
    pub id: u64,
    /// Time, in ISO-8601.
    pub ts: String,
    /// Phase or item.
    pub phase: String,
    /// Number of the activation, 1-based.
    pub activation: u32,
    /// `before` or `after` the activation, or before a `restore`.
    pub moment: String,
    /// Files that are too large to be stored.
    pub large: Vec<String>,
}

/// Returns the changes of a run: of the whole run, of a phase with its items, of an item, or of one activation. Blocks.
///
/// # Errors
/// Returns a problem if there are no checkpoints that fit, or the store cannot be read.
pub fn changes_of(
    project: &Project,
    run_id: &RunId,
    of: Option<&str>,
    with_patch: bool,
) -> Result<Vec<ActivationDiff>, Problem> {
    let store = store_of(project)?;
    let activations = project.activation_changes(&store, run_id, of).map_err(problem)?;
    activations.iter().map(|activation| diff(&store, activation, with_patch)).collect()
}

/// Returns the checkpoints of a run, oldest first. Blocks.
///
/// # Errors
/// Returns a problem if no checkpoints are taken, or the store cannot be read.
pub fn checkpoints_of(project: &Project, run_id: &RunId) -> Result<Vec<RunCheckpoint>, Problem> {
    let store = store_of(project)?;
    let all = store.list().map_err(|error| problem(error.into()))?;
    Ok(all.into_iter().filter(|checkpoint| *run_id == checkpoint.label.run.as_str()).map(row).collect())
}

pub(crate) fn store_of(project: &Project) -> Result<CheckpointStore, Problem> {
    project.checkpoint_store(&project.settings()?).map_err(problem)
}

pub(crate) fn problem(error: ProjectError) -> Problem {
    match error {
        ProjectError::NoCheckpoints(_) | ProjectError::NoCheckpoint(_) => {
            Problem::not_found(error.to_string())
        }
        ProjectError::Checkpoint(_) => {
            tracing::error!(%error, "cannot use the store of checkpoints");
            Problem::unavailable(
                "the store of checkpoints cannot be used at the moment; the server's log says why",
            )
        }
        other => other.into(),
    }
}

fn row(checkpoint: Checkpoint) -> RunCheckpoint {
    let moment = match checkpoint.label.moment {
        Moment::Before => "before",
        Moment::After => "after",
        Moment::Restore => "restore",
    };
    RunCheckpoint {
        id: checkpoint.id,
        ts: checkpoint.ts,
        phase: checkpoint.label.phase,
        activation: checkpoint.label.activation,
        moment: moment.to_owned(),
        large: checkpoint.large.into_iter().map(|large| large.path).collect(),
    }
}

fn diff(
    store: &CheckpointStore,
    activation: &ActivationChanges,
    with_patch: bool,
) -> Result<ActivationDiff, Problem> {
    let (from, to) = (&activation.from, &activation.to);
    let changes = store.changes(from, to).map_err(|error| problem(error.into()))?;
    let change = |change: cliq_project::Change| FileChange {
        path: change.path,
        kind: match change.kind.letter() {
            'A' => "added",
            'D' => "deleted",
            _ => "modified",
        }
        .to_owned(),
    };
    let patch = if with_patch {
        let bytes = store.diff(from, to, false, false).map_err(|error| problem(error.into()))?;
        let cut = &bytes[..bytes.len().min(MAX_PATCH)];
        Some(String::from_utf8_lossy(cut).into_owned())
    } else {
        None
    };
    Ok(ActivationDiff {
        phase: activation.phase.clone(),
        activation: activation.activation,
        from: from.id,
        to: to.id,
        changes: changes.into_iter().map(change).collect(),
        patch,
    })
}
