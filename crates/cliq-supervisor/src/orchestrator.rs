//! Process of a run's orchestrator.

use camino::Utf8Path;
use cliq_backends::internals::request_cancel;
use cliq_backends::{BackendError, ChildProcess, RunMode};
use cliq_model::Run;
use cliq_project::RunStart;
use tokio::process::Child;

use crate::options::SupervisorOptions;

/// Starts the orchestrator of a run. The process outlives the supervisor.
pub(crate) fn start(options: &SupervisorOptions, run: &Run) -> Result<Child, BackendError> {
    let request = &run.request;
    let start = match (run.life.resume, &request.from) {
        (false, _) => RunStart::Fresh,
        (true, from) => RunStart::Resume { from: from.clone() },
    };
    let mut spec = request.spec.clone();
    if run.life.resume {
        spec = spec.for_resumption();
    }
    spec.sandbox = options.sandbox_of(run);
    let instance = options.delegated_instance(run).map(str::to_owned);
    let mode = RunMode::default().with_parking(true).with_instance_id(instance);
    backend(options).spawn(&run.workspace, &run.id, &start, &spec, &mode)
}

/// Starts a process that follows the Job of a run in a cluster.
pub(crate) fn follow_job(options: &SupervisorOptions, run: &Run) -> Result<Child, BackendError> {
    backend(options).spawn_follower(&run.workspace, &run.id)
}

fn backend(options: &SupervisorOptions) -> ChildProcess {
    ChildProcess::new(options.host.clone(), options.logs())
}

/// Asks the orchestrator of a project to stop. A failed request is repeated by the caller.
pub(crate) fn send_cancel(workspace: &Utf8Path) {
    if let Err(error) = request_cancel(workspace) {
        tracing::warn!(%error, "cannot pass on the request to cancel; retrying");
    }
}
