//! `cliq ci`

use std::process::ExitCode;

use cliq_orchestrator::{PhaseStatus, PhaseView, RunView};
use cliq_project::{OutputTail, PhaseRow, Project, ProjectError, RunState, RunStatus};
use cliq_protocol::PhaseKind;

use super::explain;
use crate::failure::Failure;
use crate::render::report::Report;
use crate::{project, ui};

/// Prints what a run did as markdown.
pub(super) fn run(run: Option<&str>, link: Option<&str>) -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let recorded = project.recorded_run(run)?;
    let mut timeline = recorded.timeline(cliq_fs::now());
    let view = RunView::of(&recorded.journal);
    // Only the last run has the records of the runs within its phases.
    let rows = if recorded.place == *project.dir().root() {
        timeline.outputs.extend(outputs_within(&project, &view));
        RunStatus::new(&view, &project).rows()
    } else {
        view.phases.iter().map(|phase| PhaseRow::new(0, phase.clone())).collect()
    };
    let caveats = explain::caveats(&recorded, &project);
    let state = RunState::of(Some(&view), recorded.running);
    let report = Report { timeline: &timeline, view: &view, state, rows: &rows, caveats: &caveats, link };
    ui::raw(report.markdown().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The last outputs of what failed in the teams of team phases that did not complete.
fn outputs_within(project: &Project, view: &RunView) -> Vec<OutputTail> {
    let mut found = Vec::new();
    let is_open = |phase: &&PhaseView| {
        phase.kind == PhaseKind::Team && phase.iterations > 0 && phase.status != PhaseStatus::Completed
    };
    for phase in view.phases.iter().filter(is_open) {
        let inner = project.team_phase(&phase.name);
        let recorded = match inner.recorded_run(None) {
            Ok(recorded) => recorded,
            // The phase ended before its team began.
            Err(ProjectError::NoRun) => continue,
            Err(error) => {
                ui::warning(&format!("the report lacks outputs of the team in {}: {error}", phase.name));
                continue;
            }
        };
        found.extend(recorded.timeline(cliq_fs::now()).outputs);
        found.extend(outputs_within(&inner, &RunView::of(&recorded.journal)));
    }
    found
}
