//! Check that a run is the last of its project.

use cliq_model::{LastRun, RecordedRun, Run, RunOrigin};

use crate::change::ChangeError;
use crate::shared::Shared;

/// Checks that a run is the last of its project and not delegated.
pub(crate) async fn check(shared: &Shared, run: &Run) -> Result<LastRun, ChangeError> {
    if run.origin == RunOrigin::Delegated {
        return Err(ChangeError::DelegationIsOver);
    }
    let later = shared.store.later_run(run).await?;
    let (workspace, is_shared) = (run.workspace.clone(), shared.store.is_shared());
    let recorded = shared.io.run(&run.workspace, move || {
        if is_shared && !workspace.is_dir() {
            return None;
        }
        Some(cliq_project::internals::recorded_run_id(&workspace))
    });
    let recorded = recorded.await?;
    let recorded = match &recorded {
        None => RecordedRun::Elsewhere,
        Some(None) => RecordedRun::None,
        Some(Some(id)) => RecordedRun::Id(id.as_str()),
    };
    Ok(LastRun::check(run, recorded, later.as_ref())?)
}
