//! The agent of team phases: runs the whole team of `.cliq/teams/<phase>/` and hands its result on.

use std::fmt::Write;
use std::fs;
use std::process::ExitCode;

use cliq_fs::{CliqDir, ProjectLock, read_handoff, write_atomic};
use cliq_orchestrator::{Journal, Parent, PipelineStatus, Record, RunEvent, RunPlan, RunView};
use cliq_sdk::{Agent, Handoff, Object, PhaseName, Reporter, TeamContext};
use serde_json::{Value, json};

use super::run::{Begin, execute_with};
use crate::failure::Failure;
use crate::render::progress::Progress;
use crate::{project, settings};

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Answers the message on standard input. `agent` is for phases that name none.
pub(super) fn run(agent: Option<String>) -> ExitCode {
    Agent::new()
        .team(move |ctx| {
            handle(ctx, agent.as_deref()).map_err(|failure| AnyError::from(failure.text().to_owned()))
        })
        .run()
}

fn handle(ctx: &TeamContext, agent: Option<&str>) -> Result<cliq_sdk::Completion, Failure> {
    let outer = CliqDir::at(ctx.cliq_dir(), ctx.workspace())?;
    let dir = outer.team_of(&ctx.phase().name);
    let workflow = project::team(&dir)?;
    let settings = settings::load(Some(&outer))?;
    write_atomic(&dir.requirement(), requirement(ctx)?.as_bytes())?;
    let mut plan = project::plan(&dir, workflow, &settings);
    plan.inputs = ctx.team().map(|team| team.inputs.clone()).unwrap_or_default();
    plan.parent = Some(Parent {
        phase: ctx.phase().name.clone(),
        path: std::env::var("CLIQ_RUN_PATH").unwrap_or_default(),
    });
    if let Some(agent) = agent {
        project::set_default_agent(&mut plan, agent);
    }
    plan.adopts_orphans = cliq_orchestrator::adopt_orphans();
    let results = result_channels(&plan);
    let begin = begin(ctx, &dir, &plan)?;
    let reporter = ctx.reporter().clone();
    let mut progress = Progress::new(false, true);
    let view = execute_with(plan, &begin, |record, view| {
        tell(&reporter, record);
        progress.show(record, view)
    })?;
    if view.pipeline_status() != Some(PipelineStatus::Completed) {
        let status = view.status.as_deref().unwrap_or("FAILED");
        let reason = view.reason.as_deref().unwrap_or("no reason is known");
        return Err(Failure::failed(format!("team {} {status}: {reason}", view.team)));
    }
    let handoff = result(&view, &dir, &results)?;
    ctx.send(&handoff).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(ctx.complete(json!({"team": view.team, "run_id": view.run_id, "status": view.status})))
}

/// What the team is to do: what the phase's role says, if it has one, the requirement around it, and what was handed over.
fn requirement(ctx: &TeamContext) -> Result<String, Failure> {
    let failed = |error: cliq_sdk::SdkError| Failure::failed(error.to_string());
    let parts = [ctx.role().map_err(failed)?, ctx.requirement().map_err(failed)?];
    let parts: Vec<String> = parts.into_iter().flatten().map(|part| part.trim().to_owned()).collect();
    let mut text = parts.join("\n\n");
    for received in ctx.incoming().map_err(failed)? {
        let Some(envelope) = received.envelope else { continue };
        let _ = write!(text, "\n\n## From {}\n", received.from);
        if let Some(said) = &envelope.text {
            let _ = write!(text, "\n{}\n", said.trim());
        }
        if let Some(data) = envelope.data().filter(|data| !data.is_empty()) {
            let _ = write!(text, "\n```json\n{:#}\n```\n", Value::Object(data));
        }
    }
    Ok(text)
}

/// A team that was interrupted within the same run around it goes on; any other begins anew.
fn begin(ctx: &TeamContext, dir: &CliqDir, plan: &RunPlan) -> Result<Begin, Failure> {
    let file = dir.root().join("for-run");
    let same_run = fs::read_to_string(&file).is_ok_and(|run| run.trim() == ctx.run_id());
    // Whoever worked for the outer run, and whose orchestrator died, may not be gone yet.
    drop(ProjectLock::acquire(dir)?);
    let journal = Journal::read(&dir.journal())?;
    let unfinished = journal.is_some_and(|journal| !journal.completed() && journal.fits(plan));
    if same_run && unfinished && ctx.phase().routed_by.is_none() {
        return Ok(Begin::Resume { from: None });
    }
    write_atomic(&file, ctx.run_id().as_bytes())?;
    Ok(Begin::Anew)
}

/// The channels in which the team's last phases hand over its result.
fn result_channels(plan: &RunPlan) -> Vec<(PhaseName, PhaseName)> {
    let phases = plan.workflow.phases().map(|(_, phase)| phase);
    phases.filter_map(|phase| Some((phase.name.clone(), plan.result_channel(phase)?))).collect()
}

/// What the last phases handed over, as one handoff. Where there is only one, its data is that of the whole.
fn result(view: &RunView, dir: &CliqDir, channels: &[(PhaseName, PhaseName)]) -> Result<Handoff, Failure> {
    let (mut results, mut texts) = (Object::new(), Vec::new());
    for (phase, to) in channels {
        let Some(envelope) = read_handoff(&dir.channel(phase, to), phase)
            .map_err(|error| Failure::failed(error.to_string()))?
        else {
            continue;
        };
        let text = envelope.text.clone().unwrap_or_default();
        texts.push(if channels.len() == 1 { text } else { format!("## {phase}\n\n{}", text.trim()) });
        results.insert(phase.to_string(), Value::Object(envelope.data().unwrap_or_default()));
    }
    let mut data = match results.values().next() {
        Some(Value::Object(only)) if results.len() == 1 => only.clone(),
        _ => Object::new(),
    };
    data.insert("team".to_owned(), json!(view.team));
    data.insert("status".to_owned(), json!(view.status));
    data.insert("results".to_owned(), Value::Object(results));
    Ok(Handoff::text(texts.join("\n\n")).with_data(Value::Object(data)))
}

/// The team's progress is the phase's.
fn tell(reporter: &Reporter, record: &Record) {
    let worth = matches!(
        record.event,
        RunEvent::RunResumed { .. }
            | RunEvent::PhaseStarted { .. }
            | RunEvent::PhaseCompleted { .. }
            | RunEvent::PhaseEscalated { .. }
            | RunEvent::Verdict { .. }
            | RunEvent::Progress { .. }
            | RunEvent::Warning { .. }
    );
    if worth {
        // A channel that cannot be written is told of when the phase ends.
        let _ = reporter.progress(record.event.describe());
    }
}
