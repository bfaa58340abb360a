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

/// Backend of runs that work in the calling process. They end with it; `RunStart::Resume` continues them.
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess;

#[async_trait]
impl Backend for InProcess {
    async fn find(&self, job: &RunJob) -> Result<bool, BackendError> {
        let is_busy = ProjectLock::holder(job.dir())?.is_some();
        Ok(is_busy && last_run_id(&job.project)?.as_ref() == Some(&job.run_id))
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
        let options = RunOptions::new().with_spec(job.spec.clone()).with_run_id(job.run_id.clone());
        let mut plan = job.project.run_plan_of(job.workflow.clone(), &job.settings, &options)?;
        plan.parks = job.mode.parks;
        plan.records_commands = job.mode.instance_id.is_some();
        let host = job.project.host();
        cliq_project::execute(plan, &job.start, host, cancel.cancelled(), |record, _| monitor.record(record))
            .await?;
        Ok(Some(monitor.recorded_end()))
    }

    async fn cancel(&self, job: &RunJob) -> Result<(), BackendError> {
        request_cancel(job.dir().workspace())
    }
}
