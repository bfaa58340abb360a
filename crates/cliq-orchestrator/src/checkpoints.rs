//! Checkpoints of the workspace around activations (docs/checkpoints.md). How they are stored is not known here.

use cliq_protocol::{ChangedLines, PhaseKind, PhaseName, RunId};

/// Activation around which a checkpoint is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointOf {
    /// Id of the run.
    pub run_id: RunId,
    /// Phase or item.
    pub phase: PhaseName,
    /// Number of the activation, 1-based.
    pub activation: u32,
    /// Whether the activation has ended, as opposed to being about to start.
    pub is_end: bool,
}

/// Store of checkpoints.
pub trait Checkpoints: Send + Sync + std::fmt::Debug {
    /// Stores the files of the workspace. Blocks.
    ///
    /// # Errors
    /// Returns the reason for people. The run goes on without the checkpoint.
    fn take(&self, of: &CheckpointOf) -> Result<(), String>;

    /// Returns the size of all changes of the run up to its last checkpoint. `None` if that is not known. Blocks.
    ///
    /// # Errors
    /// Returns the reason for people. The run goes on without it.
    fn changed_so_far(&self, run_id: &RunId) -> Result<Option<ChangedLines>, String> {
        let _ = run_id;
        Ok(None)
    }

    /// Returns the paths that an activation changed, sorted. `None` if there are no checkpoints around it. Blocks.
    ///
    /// # Errors
    /// Returns the reason for people. The run goes on without the list.
    fn changed(&self, of: &CheckpointOf) -> Result<Option<Vec<String>>, String> {
        let _ = of;
        Ok(None)
    }
}

/// Whether phases of a kind may write to the workspace.
pub(crate) fn may_write(kind: PhaseKind) -> bool {
    matches!(kind, PhaseKind::Standard | PhaseKind::Exec | PhaseKind::Team | PhaseKind::Pull)
}
