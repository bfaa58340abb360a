//! A run that records events before it is followed.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use std::fs;

use async_trait::async_trait;
use camino::Utf8Path;
use cliq_backends::{
    Backend, BackendError, Cancellation, RunEnd, RunHandle, RunJob, RunMonitor, RunObserver, run,
};
use cliq_orchestrator::{Record, RunView};
use cliq_project::internals::write_files;
use cliq_project::{Environment, Host, Project};

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
        _: &Cancellation,
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
        _: &Cancellation,
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

#[tokio::test]
async fn events_before_the_follower_are_passed_on() {
    let place = tempfile::tempdir().unwrap();
    let dir = Utf8Path::from_path(place.path()).unwrap();
    let team =
        "name: \"@a/b\"\nworkflow: {phases: [{name: p, type: exec, commands: [{name: c, run: 'true'}]}]}\n";
    write_files(&dir.join("team"), [&("team.yml", team)]).unwrap();
    let project = Project::init_for_run(dir, Host::new(Environment::new([]), "cliq".into())).unwrap();
    project.assemble(dir.join("team").as_str()).unwrap();
    let job = RunJob::builder(&project).build().unwrap();
    let mut seen = 0;
    let mut observer = |_: &Record, _: &RunView| seen += 1;
    run(&Quick, &job, &mut observer, &Cancellation::new()).await.unwrap();
    assert_eq!(seen, 2, "the start and the end of the run");
}
