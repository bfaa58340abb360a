//! Execution of a run plan in this process.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use std::process::ExitCode;

use cliq_orchestrator::{PipelineStatus, Record, RunEvent, RunPlan, RunView};
use cliq_project::{Host, RunStart};

use super::signals::interrupted;
use crate::failure::Failure;
use crate::gateway::block_on;

/// Variable that lets a signal end a run like a crash instead of cancelling it: for a run whose machine may be taken away.
const DIE_BY_SIGNALS: &str = "CLIQ_DIE_BY_SIGNALS";

/// As [`execute_until`]: signals cancel it, where they are not to end it as a crash does ([`DIE_BY_SIGNALS`]).
pub(super) fn execute_here(
    host: &Host,
    plan: RunPlan,
    start: &RunStart,
    show: impl FnMut(&Record, &RunView) -> std::io::Result<()>,
) -> Result<RunView, Failure> {
    let cancel = async {
        if std::env::var_os(DIE_BY_SIGNALS).is_some() {
            std::future::pending::<()>().await;
        }
        interrupted().await;
    };
    execute_until(host, plan, start, cancel, show)
}

/// As [`execute_until`]: signals cancel it.
pub(super) fn execute(
    host: &Host,
    plan: RunPlan,
    start: &RunStart,
    show: impl FnMut(&Record, &RunView) -> std::io::Result<()>,
) -> Result<RunView, Failure> {
    execute_until(host, plan, start, interrupted(), show)
}

/// Executes a plan to its end, or until `cancel` is over. `show` gets each event, until it fails: the run goes on without a reader.
pub(super) fn execute_until(
    host: &Host,
    plan: RunPlan,
    start: &RunStart,
    cancel: impl Future<Output = ()>,
    mut show: impl FnMut(&Record, &RunView) -> std::io::Result<()>,
) -> Result<RunView, Failure> {
    let mut reader_is_gone = false;
    let mut export = crate::run_export::RunExport::of(host, &plan);
    let view = block_on(async {
        let on_event = |record: &Record, view: &RunView| {
            if let Some(export) = &mut export {
                export.run_begun();
                if matches!(record.event, RunEvent::RunFinished { .. } | RunEvent::RunParked { .. }) {
                    export.run_ended();
                }
            }
            reader_is_gone = reader_is_gone || show(record, view).is_err();
        };
        Ok::<_, Failure>(cliq_project::execute(plan, start, host, cancel, on_event).await?)
    })?;
    if let Some(export) = export {
        export.finish();
    }
    Ok(view)
}

/// Exit code of a run by its end (docs/exit-codes.md).
pub(super) fn exit_code(end: Option<PipelineStatus>) -> ExitCode {
    ExitCode::from(exit_status(end))
}

fn exit_status(end: Option<PipelineStatus>) -> u8 {
    match end {
        Some(PipelineStatus::Completed) => 0,
        Some(PipelineStatus::Failed) | None => 1,
        Some(PipelineStatus::Escalated) => 3,
        Some(PipelineStatus::Cancelled) => 130,
    }
}
