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
use cliq_telemetry::{RunFollower, RunSegment, SegmentEnd, SpanOptions};

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

    fn segment(&self, run: &Run) -> Result<Option<RunSegment>, String> {
        let dir = CliqDir::at(&run.workspace.join(CliqDir::NAME), &run.workspace);
        let dir = dir.map_err(|error| error.to_string())?;
        let settings = Project::of(dir.clone(), self.host.clone()).settings();
        let settings = settings.map_err(|error| error.to_string())?;
        let options = SpanOptions { prices: PriceSettings::all(&settings), ..SpanOptions::default() };
        RunFollower::last_segment(dir, &run.id, options).map_err(|error| error.to_string())
    }
}

/// Returns the measurements of a run that rests, each once. `segment` is the last one of its journal, or `None` if it has none: it ended
/// before it began. A run that was lost has no end in its journal, and counts by the state that the server gave it.
fn measured(run: &Run, segment: Option<RunSegment>, has_news: bool) -> Vec<Measurement> {
    let end = segment.as_ref().map_or(SegmentEnd::Open, |segment| segment.end);
    let mut all = match (end, has_news) {
        // Counted when it ended: an attempt to resume it has failed.
        (SegmentEnd::Finished, false) => return Vec::new(),
        // Counted when it was parked.
        (SegmentEnd::Parked, false) => Vec::new(),
        (SegmentEnd::Open, _) | (SegmentEnd::Finished | SegmentEnd::Parked, true) => {
            segment.map(|segment| segment.measurements).unwrap_or_default()
        }
    };
    let has_end = all.iter().any(|measurement| measurement.metric == &RUNS_FINISHED);
    if run.life.state.is_final() && !has_end {
        let outcome = (own::RUN_OUTCOME, run.life.state.as_str().to_owned());
        all.push(Measurement::new(&RUNS_FINISHED, 1.0, [outcome, (key::WORKFLOW, run.team.to_string())]));
    }
    all
}

impl ProcessObserver for RunFigures {
    fn starts(&self, _: &Run, waited: Duration) {
        self.metrics.waited(waited);
    }

    fn rests(&self, run: &Run, has_news: bool) {
        // Trials are not runs of the server: `cliq_runs` leaves them out too.
        if run.origin == RunOrigin::Evaluation {
            return;
        }
        match self.segment(run) {
            Ok(segment) => self.metrics.run_rests(&measured(run, segment, has_news)),
            Err(error) => tracing::warn!(run = %run.id, error, "the figures of a run cannot be read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use cliq_model::{RunOrigin, RunState};
    use cliq_protocol::{RunId, Timestamp};
    use cliq_telemetry::metrics::GATE_ROUNDS;

    use super::*;

    #[test]
    fn each_part_of_a_run_counts_once() {
        use RunState::{Completed, Failed, Waiting};
        use SegmentEnd::{Finished, Open, Parked};
        let finished = || Measurement::new(&RUNS_FINISHED, 1.0, []);
        let gate = || Measurement::new(&GATE_ROUNDS, 1.0, []);
        let rows = [
            (Waiting, Some((Parked, vec![gate()])), true, vec!["cliq.gate.rounds"]),
            (Completed, Some((Finished, vec![finished()])), true, vec!["cliq.runs.finished"]),
            // An attempt to resume it failed, and a woken run that was lost before it went on.
            (Completed, Some((Finished, vec![finished()])), false, vec![]),
            (Failed, Some((Parked, vec![gate()])), false, vec!["cliq.runs.finished"]),
            // Lost at work, with news and without; and before it began.
            (Failed, Some((Open, vec![gate()])), true, vec!["cliq.gate.rounds", "cliq.runs.finished"]),
            (Failed, Some((Open, vec![gate()])), false, vec!["cliq.gate.rounds", "cliq.runs.finished"]),
            (Failed, None, false, vec!["cliq.runs.finished"]),
        ];
        for (state, segment, has_news, expected) in rows {
            let id = RunId::parse("r").expect("an id");
            let team = "@local/x".parse().expect("a name");
            let mut run = Run::new(id, team, RunOrigin::Server, "/w".into(), Timestamp::UNIX_EPOCH);
            run.life.state = state;
            let shown = format!("{state:?} {segment:?} {has_news}");
            let segment = segment.map(|(end, measurements)| RunSegment { measurements, end });
            let all = measured(&run, segment, has_news);
            let names: Vec<&str> = all.iter().map(|measurement| measurement.metric.name).collect();
            assert_eq!(names, expected, "{shown}");
        }
    }
}
