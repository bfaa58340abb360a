//! Documents of runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use cliq_model::{Caveat, Run, RunChanges, RunFilter, RunOrigin, RunState, RunTotals};
use cliq_orchestrator::{Record, RunTrace, RunView};
use cliq_protocol::{RunId, TeamName, Timestamp};
use cliq_supervisor::internals::status_document;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::core::Core;
use crate::problem::Problem;
use crate::steering::SteeringDocument;
use crate::trial::{TrialDocument, trial_of};

/// Run in a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RunSummary {
    /// Id of the run, a UUID.
    #[schema(value_type = String)]
    pub id: RunId,
    /// Title.
    pub title: String,
    /// Name of the team.
    #[schema(value_type = String)]
    pub team: TeamName,
    /// Number of main phases that are done.
    pub phases_done: u64,
    /// Number of main phases; 0 while they are not known.
    pub phases_all: u64,
    /// State.
    pub state: RunState,
    /// Origin.
    pub origin: RunOrigin,
    /// Id of the registered project, or `null` if the run has a workspace of its own.
    pub instance: Option<String>,
    /// Label of the caller.
    pub caller: String,
    /// Reason why the run did not complete.
    pub reason: Option<String>,
    /// Phase to which the reason refers.
    pub phase: Option<String>,
    /// Whether cancellation was requested.
    pub cancel_requested: bool,
    /// Time of the request, UTC.
    #[schema(value_type = String)]
    pub queued_at: Timestamp,
    /// Start time, UTC.
    #[schema(value_type = Option<String>)]
    pub started_at: Option<Timestamp>,
    /// End time, UTC.
    #[schema(value_type = Option<String>)]
    pub ended_at: Option<Timestamp>,
    /// Usage of language models.
    pub usage: RunTotals,
    /// Changes to the workspace so far; `null` if there are no checkpoints, or no activation has ended.
    pub changed: Option<RunChanges>,
    /// Time at which a waiting run continues by itself, UTC: a reminder or a deadline of a review.
    #[schema(value_type = Option<String>)]
    pub wake_at: Option<Timestamp>,
    /// Number of the last event.
    pub last_event: i64,
    /// Reasons why the run is not a plain success, even if it completed: a limit that was reached, a gate that passed with failed
    /// commands, a merge that left out changes, a trial of an evaluation with a failed check.
    pub caveats: Vec<Caveat>,
}

/// Run with its phases.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunDocument {
    /// Fields of the run in a list.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// Requirement for the team.
    pub requirement: Option<String>,
    /// Values of the team's inputs.
    pub inputs: BTreeMap<String, String>,
    /// Workspace directory.
    pub workspace: String,
    /// Number of resumptions after the orchestrator died.
    pub recoveries: u32,
    /// Phases, as in `cliq status --json`; those of a team phase have `run`.
    #[schema(value_type = Vec<Object>)]
    pub phases: Value,
    /// Steering messages, oldest first.
    pub steering: Vec<SteeringDocument>,
    /// Whether the files of the workspace respond. If not, the document contains what the server knows without them: the runs of team
    /// phases are missing from `phases`.
    pub workspace_responds: bool,
    /// Id of the run's trace: 32 hexadecimal digits. It is exported if a receiver is named.
    pub trace_id: String,
    /// Address of the trace's page, if the setting `telemetry.trace_url` names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_url: Option<String>,
    /// Trial of an evaluation, if the run is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialDocument>,
}

impl RunSummary {
    /// Returns the summary of a run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        // A run that is about to go on keeps its former end until it has begun again.
        let is_resumed = run.life.former.is_some();
        Self {
            id: run.id.clone(),
            title: run.title.clone(),
            team: run.team.clone(),
            phases_done: run.phases_done,
            phases_all: run.phases_all,
            state: run.life.state,
            origin: run.origin,
            instance: run.instance.clone(),
            caller: run.caller.clone(),
            reason: run.reason.clone().filter(|_| !is_resumed),
            phase: run.phase.clone().filter(|_| !is_resumed),
            cancel_requested: run.life.cancel_requested,
            queued_at: run.queued_at,
            started_at: run.started_at,
            ended_at: run.ended_at.filter(|_| !is_resumed),
            usage: run.totals,
            changed: run.changed,
            wake_at: run.wake_at,
            last_event: run.last_event,
            caveats: if is_resumed { Vec::new() } else { run.caveats.clone() },
        }
    }
}

/// Returns the runs that match a filter, with the cursor of the next page.
///
/// # Errors
/// Returns a problem if the store fails.
pub async fn list_runs(
    core: &Core,
    mut filter: RunFilter,
) -> Result<(Vec<RunSummary>, Option<String>), Problem> {
    // One more than requested tells whether there is a next page.
    let limit = filter.limit as usize;
    filter.limit += 1;
    let mut runs = core.runs.runs(&filter).await?;
    let more = runs.len() > limit;
    runs.truncate(limit);
    let next = runs.last().filter(|_| more).map(|run| run.id.to_string());
    Ok((runs.iter().map(RunSummary::of).collect(), next))
}

/// Folds the stored events of a run into a view.
async fn view_of_events(core: &Arc<Core>, run: &Run) -> Result<RunView, Problem> {
    const PAGE: u32 = 1000;
    let (mut view, mut after) = (RunView::empty(), 0);
    loop {
        let rows = core.runs.run_events(&run.id, after, PAGE).await?;
        // Events of the supervisor itself are not journal records.
        rows.iter()
            .filter_map(|row| Record::decode(row.data.as_bytes()).ok())
            .for_each(|record| view.apply(&record));
        match rows.last() {
            Some(last) => after = last.id,
            None => return Ok(view),
        }
    }
}

/// Returns a run with the current state of its phases. Does not wait for a workspace whose file system does not respond.
///
/// # Errors
/// Returns a problem if there is no such run, or the store fails.
pub async fn find_run(core: &Arc<Core>, id: &str) -> Result<(Run, RunDocument), Problem> {
    let run = core.run(id).await?;
    // The view of an active run is not stored.
    let is_final = run.life.state.is_final();
    let view = match core.supervisor.hub().view(&run.id).filter(|_| !is_final) {
        // Another replica owns the run: its events are in the store.
        None if run.life.state.is_active() && core.runs.is_shared() => {
            Some(Arc::new(view_of_events(core, &run).await?))
        }
        view => view,
    };
    let io = core.supervisor.workspace_io();
    let (document, workspace_responds) = match view {
        Some(view) => {
            let (host, of, shown) = (core.host().clone(), run.clone(), Arc::clone(&view));
            match io.probe(&run.workspace, move || status_document(&host, &of, &shown)).await {
                Ok(document) => (document, true),
                Err(error) => {
                    tracing::debug!(run = %run.id, %error, "showing a run without its files");
                    (json!(*view), false)
                }
            }
        }
        None => (run.view.clone(), !io.is_stuck(&run.workspace)),
    };
    let steering = SteeringDocument::all(&run, &document);
    let phases = document.get("phases").cloned().unwrap_or_else(|| json!([]));
    let trial = trial_of(core, &run).await?;
    let mut summary = RunSummary::of(&run);
    // Runs that ended before caveats were stored have them in their phases.
    summary.caveats = Caveat::of_document(&document);
    summary.caveats.extend(trial.as_ref().and_then(TrialDocument::caveat));
    let caller = run.request.spec.trace;
    let trace = RunTrace::new(run.id.clone(), caller).id();
    // A trace that its caller does not record is nowhere.
    let page = core.trace_url.as_ref().filter(|_| caller.is_none_or(|caller| caller.is_sampled));
    let document = RunDocument {
        summary,
        requirement: run.request.spec.requirement.clone(),
        inputs: run.request.spec.inputs.clone(),
        workspace: run.workspace.to_string(),
        recoveries: run.life.recoveries,
        phases,
        steering,
        workspace_responds,
        trace_id: trace.to_string(),
        trace_url: page.map(|url| url.replace("{trace_id}", &trace.to_string())),
        trial,
    };
    Ok((run, document))
}
