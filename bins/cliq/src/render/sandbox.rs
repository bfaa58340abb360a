//! Sandboxes of a team's phases by the settings.

use camino::Utf8Path;
use cliq_workflow::ValidatedWorkflow;

use crate::failure::Failure;
use crate::{project, ui};

/// Prints a line for each phase that works in a sandbox.
pub(crate) fn show(workflow: &ValidatedWorkflow, workspace: &Utf8Path) -> Result<(), Failure> {
    // Settings that cannot be read are reported by the commands that depend on them.
    let Ok(settings) = project::settings() else { return Ok(()) };
    for (phase, sandbox) in project::host().sandboxes(workflow, &settings, workspace)? {
        ui::line(format!("{phase}: sandbox {sandbox}"))?;
    }
    Ok(())
}
