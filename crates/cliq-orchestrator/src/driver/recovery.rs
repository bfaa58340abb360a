//! Recovery after an orchestrator died: messages of agents that it did not process (an agent may have completed just
//! before or after), and the files of an earlier run.

use std::fs;
use std::time::Duration;

use cliq_fs::{CliqDir, FsError, read_command_results};
use cliq_gate::GateState;
use cliq_protocol::{ChannelBody, PhaseKind};
use cliq_workflow::PhaseId;

use super::channel::{Follower, Odd, Terminal};
use super::shared::Shared;
use crate::engine::Pipeline;
use crate::events::RunEvent;
use crate::journal::Journal;

/// The events in the signal channels of phases that were active, which no orchestrator has processed. Signal channels are cleared before a phase's start is in
/// the journal, so all their messages belong to that start.
pub(super) fn unprocessed(shared: &Shared, pipeline: &Pipeline) -> Result<Vec<RunEvent>, FsError> {
    let mut events = Vec::new();
    for id in pipeline.working() {
        events.extend(unprocessed_of(shared, pipeline, id)?);
    }
    Ok(events)
}

fn unprocessed_of(shared: &Shared, pipeline: &Pipeline, id: PhaseId) -> Result<Vec<RunEvent>, FsError> {
    let phase = &*shared.phase_of(id);
    if pipeline.gate(id).is_some_and(|gate| *gate.state() != GateState::Judging) {
        return Ok(Vec::new());
    }
    let mut usage = None;
    let each = |body| {
        if let ChannelBody::Progress { usage: Some(reported), .. } = body {
            usage = Some(*reported);
        }
    };
    let mut late_error = None;
    let odd = |odd| match odd {
        Odd::ErrorAfterComplete(error) => late_error = Some(error),
        // No warning: the lines may have been read before.
        Odd::NoEffect(_) => {}
    };
    // A channel that cannot be read tells nothing: the phase starts anew.
    let terminal = Follower::new(&shared.dir().signal_file(&phase.name)).read(each, odd).ok().flatten();
    let usage = terminal.as_ref().and_then(|terminal| terminal.usage().ok().flatten()).or(usage);
    let mut events: Vec<RunEvent> = usage
        .filter(|_| pipeline.takes_usage(id))
        .map(|usage| RunEvent::UsageReported {
            phase: phase.name.clone(),
            usage: shared.priced(usage),
            is_final: true,
        })
        .into_iter()
        .collect();
    let Some(Terminal::Complete(result)) = terminal else { return Ok(events) };
    if phase.kind != PhaseKind::Exec {
        events.push(RunEvent::AgentCompleted { phase: phase.name.clone(), result });
        events.extend(late_error.map(|error| RunEvent::CompletionContradicted {
            phase: phase.name.clone(),
            reason: format!("its agent completed and then reported: {error}"),
        }));
        return Ok(events);
    }
    let results = read_command_results(shared.dir(), &phase.name)?;
    let iteration = pipeline.activations(id);
    events.extend(results.map(|results| RunEvent::CommandsFinished {
        phase: phase.name.clone(),
        iteration,
        results,
        max_iterations: None,
        reported: shared.plan.records_commands,
    }));
    Ok(events)
}

/// Archives what an earlier run left, if there was one, so that the next starts clean.
pub(crate) fn put_earlier_run_aside(dir: &CliqDir) -> Result<(), FsError> {
    if !dir.journal().exists() {
        return Ok(());
    }
    let run_id = Journal::read(&dir.journal()).ok().flatten();
    let run_id = run_id.as_ref().and_then(|journal| journal.run_id().cloned());
    if let Some(run_id) = &run_id {
        // Nothing of a run whose orchestrator died lives on beside the next.
        crate::dead_run::end_dead_run(dir, run_id, Duration::from_secs(2));
    }
    let fallback = || cliq_fs::now().to_string().replace(':', "-");
    cliq_fs::archive_run(dir, &run_id.map_or_else(fallback, |id| id.to_string()))?;
    let _ = fs::remove_file(dir.pipeline_status());
    Ok(())
}
