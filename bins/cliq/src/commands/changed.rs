//! `cliq run --changed`

use std::collections::BTreeMap;

use cliq_orchestrator::RunPlan;
use cliq_project::{Comparison, Project, ProjectError};
use cliq_workflow::ValidatedWorkflow;

use crate::failure::Failure;
use crate::ui;
use crate::ui::{BOLD, DIM, GREEN, paint};

/// Returns the inputs of the run: those of the last run that the team still has, and `given` ones in their place.
pub(super) fn inputs(
    project: &Project,
    workflow: &ValidatedWorkflow,
    given: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut inputs = project.last_inputs().map_err(no_last_run)?;
    inputs.retain(|name, _| workflow.inputs.iter().any(|input| input.name == *name));
    inputs.extend(given);
    Ok(inputs)
}

/// Compares a plan with the last run, and makes it keep what did not change.
pub(super) fn compare(project: &Project, plan: &mut RunPlan) -> Result<Comparison, Failure> {
    let comparison = project.compare_with_last_run(plan).map_err(no_last_run)?;
    plan.kept = Some(comparison.kept()).filter(|kept| !kept.phases.is_empty());
    Ok(comparison)
}

fn no_last_run(error: ProjectError) -> Failure {
    match error {
        ProjectError::NothingRan => {
            Failure::refused("nothing has run here yet, so there is nothing to compare with")
                .hint("`cliq run` runs all phases")
        }
        error => error.into(),
    }
}

/// Shows which phases run, and why.
pub(super) fn show(comparison: &Comparison) -> std::io::Result<()> {
    let width = comparison.phases.iter().map(|phase| phase.phase.as_str().len()).max().unwrap_or(0);
    for phase in &comparison.phases {
        let name = format!("{:<width$}", phase.phase.as_str());
        if phase.runs {
            ui::line(format!(
                "{}  {}  {}",
                paint(BOLD, name),
                paint(GREEN, "runs"),
                phase.reasons.join("; ")
            ))?;
        } else {
            ui::line(paint(DIM, format!("{name}  kept")))?;
        }
    }
    Ok(())
}
