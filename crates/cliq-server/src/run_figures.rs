//! Figures of runs for `/metrics`: each run exports them itself, and the server counts those of the runs that it follows (docs/telemetry.md).

use std::sync::Arc;
use std::time::Duration;

use cliq_fs::CliqDir;
use cliq_model::{Run, RunOrigin};
use cliq_project::{Host, Project};
use cliq_settings::PriceSettings;
use cliq_supervisor::ProcessObserver;
use cliq_telemetry::conventions::{key, own};
use cliq_telemetry::metrics::{Measurement, RUNS_FINISHED};
use cliq_telemetry::{RunFollower, SpanOptions};

use crate::metrics::Metrics;

/// Counter of the figures of runs.
#[derive(Debug)]
pub(crate) struct RunFigures {
    host: Host,
    metrics: Arc<Metrics>,
}

impl RunFigures {
    /// Returns a counter that records into the figures of a server.
    pub(crate) fn new(host: Host, metrics: Arc<Metrics>) -> Self {
        Self { host, metrics }
    }

    fn measurements(&self, run: &Run) -> Result<Vec<Measurement>, String> {
        let dir = CliqDir::at(&run.workspace.join(CliqDir::NAME), &run.workspace);
        let dir = dir.map_err(|error| error.to_string())?;
        let settings = Project::of(dir.clone(), self.host.clone()).settings();
        let settings = settings.map_err(|error| error.to_string())?;
        let options = SpanOptions { prices: PriceSettings::all(&settings), ..SpanOptions::default() };
        let measured = RunFollower::last_measurements(dir, &run.id, options);
        measured.map(|measured| measured.unwrap_or_else(|| not_begun(run))).map_err(|error| error.to_string())
    }
}

/// Measurements of a run without a journal: it ended before it began.
fn not_begun(run: &Run) -> Vec<Measurement> {
    if !run.life.state.is_final() {
        return Vec::new();
    }
    let labels =
        [(own::RUN_OUTCOME, run.life.state.as_str().to_owned()), (key::WORKFLOW, run.team.to_string())];
    vec![Measurement::new(&RUNS_FINISHED, 1.0, labels)]
}

impl ProcessObserver for RunFigures {
    fn starts(&self, _: &Run, waited: Duration) {
        self.metrics.waited(waited);
    }

    fn rests(&self, run: &Run) {
        // Trials are not runs of the server: `cliq_runs` leaves them out too.
        if run.origin == RunOrigin::Evaluation {
            return;
        }
        match self.measurements(run) {
            Ok(all) => self.metrics.run_rests(&all),
            Err(error) => tracing::warn!(run = %run.id, error, "the figures of a run cannot be read"),
        }
    }
}
