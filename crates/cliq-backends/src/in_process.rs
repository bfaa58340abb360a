//! Backend of runs that work in the calling process.

use async_trait::async_trait;
use cliq_fs::ProjectLock;
use cliq_project::RunOptions;

use crate::backend::{Backend, RunHandle};
use crate::cancellation::Cancellation;
use crate::child_process::request_cancel;
use crate::error::BackendError;
use crate::monitor::{RunEnd, RunMonitor, RunObserver};
use crate::run_job::{RunJob, last_run_id};
use cliq_orchestrator::internals::blocking;

/// Backend of runs that work in the calling process. They end with it; `RunStart::Resume` continues them.
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

#[async_trait]
impl Backend for InProcess {
    async fn find(&self, job: &RunJob) -> Result<bool, BackendError> {
        let (project, run_id) = (job.project.clone(), job.run_id.clone());
        blocking(move || {
            let is_busy = ProjectLock::holder(project.dir())?.is_some();
            Ok(is_busy && last_run_id(&project)? == Some(run_id))
        })
        .await
    }

    async fn start(
        &self,
        _: &RunJob,
        _: &mut dyn RunObserver,
        cancel: &Cancellation,
    ) -> Result<Option<RunHandle>, BackendError> {
        // The run works while it is followed: no other process executes it.
        Ok((!cancel.is_cancelled()).then(RunHandle::default))
    }

    async fn follow(
        &self,
        job: &RunJob,
        _: RunHandle,
        monitor: &mut RunMonitor<'_>,
        cancel: &Cancellation,
    ) -> Result<Option<RunEnd>, BackendError> {
        let planned = job.clone();
        let mut plan = blocking(move || {
            let RunJob { project, workflow, settings, run_id, spec, .. } = planned;
            let options = RunOptions::new().with_spec(spec).with_run_id(run_id);
            project.run_plan_of(workflow, &settings, &options)
        })
        .await?;
        plan.parks = job.mode.parks;
        plan.records_commands = job.mode.instance_id.is_some();
        let host = job.project.host();
        cliq_project::execute(plan, &job.start, host, cancel.cancelled(), |record, _| monitor.record(record))
            .await?;
        Ok(Some(monitor.recorded_end()))
    }

    async fn cancel(&self, job: &RunJob) -> Result<(), BackendError> {
        let workspace = job.dir().workspace().to_owned();
        blocking(move || request_cancel(&workspace)).await
    }
}
