//! What earlier orchestrators left: what happened while nobody listened (an agent may have completed just before or after its
//! orchestrator died), and the files of a run that another one follows.

use std::fs;
use std::time::Duration;

use cliq_fs::{CliqDir, FsError, read_command_results};
use cliq_gate::GateState;
use cliq_protocol::{PhaseKind, Timestamp};
use cliq_workflow::PhaseId;

use super::agent::{Follower, Terminal};
use super::shared::Shared;
use crate::engine::{PhaseState, Pipeline};
use crate::events::RunEvent;
use crate::journal::Journal;

/// What the signal channels tell of phases that were at work. Signal channels are cleared before a phase's start is in
/// the journal, so whatever they hold is of that start.
pub(super) fn unheard(shared: &Shared, pipeline: &Pipeline) -> Result<Vec<RunEvent>, FsError> {
    let mut events = Vec::new();
    for (id, _) in shared.workflow().phases() {
        if *pipeline.state(id) == PhaseState::Working {
            events.extend(unheard_of(shared, pipeline, id)?);
        }
    }
    Ok(events)
}

fn unheard_of(shared: &Shared, pipeline: &Pipeline, id: PhaseId) -> Result<Option<RunEvent>, FsError> {
    let phase = shared.workflow().phase(id);
    if pipeline.gate(id).is_some_and(|gate| *gate.state() != GateState::Judging) {
        return Ok(None);
    }
    // A channel that cannot be read tells nothing: the phase starts anew.
    let read = Follower::new(&shared.dir().signal_file(&phase.name)).read(|_| (), |_| ());
    let Ok(Some(Terminal::Complete(result))) = read else { return Ok(None) };
    if phase.kind != PhaseKind::Exec {
        return Ok(Some(RunEvent::AgentCompleted { phase: phase.name.clone(), result }));
    }
    let results = read_command_results(shared.dir(), &phase.name)?;
    let iteration = pipeline.activations(id);
    Ok(results.map(|results| RunEvent::CommandsFinished { phase: phase.name.clone(), iteration, results }))
}

/// Archives what an earlier run left, if there was one, so that the next starts clean.
pub(crate) fn put_earlier_run_aside(dir: &CliqDir) -> Result<(), FsError> {
    if !dir.journal().exists() {
        return Ok(());
    }
    let run_id = Journal::read(&dir.journal()).ok().flatten();
    let run_id = run_id.as_ref().and_then(|journal| journal.run_id().map(str::to_owned));
    if let Some(run_id) = &run_id {
        // Nothing of a run whose orchestrator died lives on beside the next.
        crate::sweep::end_dead_run(dir, run_id, Duration::from_secs(2));
    }
    let fallback = || Timestamp::from_unix_millis(cliq_fs::now_millis()).as_str().replace(':', "-");
    cliq_fs::archive_run(dir, &run_id.unwrap_or_else(fallback))?;
    let _ = fs::remove_file(dir.pipeline_status());
    Ok(())
}
