//! A run that records events before it is followed.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use std::fs;

use async_trait::async_trait;
use camino::Utf8Path;
use cliq_backends::{Backend, BackendError, RunEnd, RunHandle, RunJob, RunMonitor, RunObserver, run};
use cliq_orchestrator::{Record, RunView};
use cliq_project::{Environment, Host, Project, RunSpec, RunStart, write_files};
use tokio_util::sync::CancellationToken;

const LINES: [&str; 2] = [
    r#"{"ts":"2026-01-01T00:00:00.000Z","event":"run_started","version":1,"run_id":"RUN","team":"@a/b","cliq_version":"0","pid":1}"#,
    r#"{"ts":"2026-01-01T00:00:01.000Z","event":"run_finished","status":"COMPLETED"}"#,
];

/// Backend whose run has written its whole journal when the start returns.
struct Quick;

#[async_trait]
impl Backend for Quick {
    async fn find(&self, _: &RunJob) -> Result<bool, BackendError> {
        Ok(false)
    }

    async fn start(
        &self,
        job: &RunJob,
        _: &mut dyn RunObserver,
        _: &CancellationToken,
    ) -> Result<Option<RunHandle>, BackendError> {
        let text = LINES.map(|line| line.replace("RUN", job.run_id.as_str()) + "\n").concat();
        fs::write(job.dir().journal(), text).unwrap();
        Ok(Some(RunHandle::default()))
    }

    async fn follow(
        &self,
        job: &RunJob,
        _: RunHandle,
        monitor: &mut RunMonitor<'_>,
        _: &CancellationToken,
    ) -> Result<Option<RunEnd>, BackendError> {
        for line in fs::read_to_string(job.dir().journal()).unwrap().lines() {
            monitor.line(true, line);
        }
        Ok(None)
    }

    async fn cancel(&self, _: &RunJob) -> Result<(), BackendError> {
        Ok(())
    }
}

#[derive(Default)]
struct Seen(usize);

impl RunObserver for Seen {
    fn record(&mut self, _: &Record, _: &RunView) {
        self.0 += 1;
    }
    fn output(&mut self, _: &str) {}
    fn notice(&mut self, _: &str) {}
    fn warning(&mut self, _: &str) {}
}

#[tokio::test]
async fn events_before_the_follower_are_passed_on() {
    let place = tempfile::tempdir().unwrap();
    let dir = Utf8Path::from_path(place.path()).unwrap();
    let team =
        "name: \"@a/b\"\nworkflow: {phases: [{name: p, type: exec, commands: [{name: c, run: 'true'}]}]}\n";
    write_files(&dir.join("team"), [&("team.yml", team)]).unwrap();
    let project = Project::init_for_run(dir, Host::new(Environment::new([]), "cliq".into())).unwrap();
    project.assemble(dir.join("team").as_str()).unwrap();
    let (workflow, settings) = (project.workflow().unwrap(), project.settings().unwrap());
    let (start, spec) = (RunStart::Fresh, RunSpec::default());
    let job = RunJob::new(&project, workflow, &settings, start, spec, None, None).unwrap();
    let mut seen = Seen::default();
    run(&Quick, &job, &mut seen, &CancellationToken::new()).await.unwrap();
    assert_eq!(seen.0, 2, "the start and the end of the run");
}
