//! Export of a run in a program without OTLP: none, and a warning where one is asked for.

use cliq_orchestrator::{RunPlan, TraceSource};
use cliq_project::{Host, Project};
use cliq_settings::Settings;

use crate::ui;

/// Export that this program does not have.
pub(crate) struct RunExport;

impl RunExport {
    pub(crate) fn of(_: &Host, plan: &RunPlan) -> Option<Self> {
        // The trace of a caller goes on without an export.
        matches!(plan.trace, TraceSource::Own { .. }).then_some(Self)
    }

    pub(crate) fn run_begun(&mut self) {}

    pub(crate) fn run_ended(&mut self) {}

    pub(crate) fn finish(self) {
        ui::warning("telemetry: this cliq was built without OTLP, and nothing is exported");
    }
}

/// Does nothing: the run said that nothing is exported.
pub(crate) fn send_rest_from_here(_: &Project, _: &Settings) {}
