//! `cliq ci`

use std::process::ExitCode;

use cliq_orchestrator::RunView;
use cliq_project::{PhaseRow, RunState, RunStatus};

use super::explain;
use crate::failure::Failure;
use crate::render::report::Report;
use crate::{project, ui};

/// Prints what a run did as markdown.
pub(super) fn run(run: Option<&str>, link: Option<&str>) -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let recorded = project.recorded_run(run)?;
    let timeline = recorded.timeline(cliq_fs::now());
    let view = RunView::of(&recorded.journal);
    let rows = if recorded.place == *project.dir().root() {
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
