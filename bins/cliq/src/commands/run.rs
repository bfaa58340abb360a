//! `cliq run`

use std::process::ExitCode;

use cliq_fs::{CliqDir, ProjectLock};
use cliq_orchestrator::{PhaseStatus, PipelineStatus, Record, Run, RunPlan, RunView, StartError};
use cliq_protocol::PhaseKind;
use cliq_workflow::ValidatedWorkflow;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{LauncherName, RunArgs};
use crate::failure::Failure;
use crate::render::{progress::Progress, summary};
use crate::{launchers, project, settings, ui};

pub(super) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let dir = project::open()?;
    let workflow = project::team(&dir)?;
    let settings = settings::load(Some(&dir))?;
    // Whoever is refused because somebody else runs should hear that, and not questions about the last run.
    drop(ProjectLock::acquire(&dir)?);
    let begin = match (args.from.clone(), args.resume) {
        (None, false) => {
            may_run_again(&dir, &workflow, args)?;
            Begin::Anew
        }
        (from, _) => Begin::Resume { from },
    };
    check_tools(&workflow)?;
    if !dir.requirement().exists() && workflow.phases().any(|(_, phase)| phase.kind == PhaseKind::Standard) {
        ui::warning("there is no requirement: `cliq req -m TEXT` says what the team is to do");
    }
    let mut plan = project::plan(&dir, workflow, &settings);
    if let Some(agent) = &args.agent {
        project::set_default_agent(&mut plan, agent);
    }
    plan.inputs = args.inputs.iter().cloned().collect();
    if let Some(n) = args.max_parallel {
        plan.max_parallel = Some(n as usize);
    }
    plan.notifications = settings::notifications(&settings);
    project::check_sub_teams(&plan, &settings)?;
    if args.detach {
        // What can be known to fail is told here, where somebody reads it.
        match &begin {
            Begin::Anew => plan.check(&project::has_env).map_err(StartError::from)?,
            Begin::Resume { from } => Run::check_resume(&mut plan, from.as_deref(), &project::has_env)?,
        }
        return super::detach::run(&dir, args, settings.flag("tmux.keep_session"));
    }
    let launcher = launchers::choose(args.launcher, args.headless || args.json, &settings)?;
    plan.launcher = launchers::make(launcher, &dir, &settings)?;
    plan.adopts_orphans = launcher == LauncherName::Process && cliq_orchestrator::adopt_orphans();
    if launcher == LauncherName::Tmux && launchers::own_pane(&dir).is_none() && !args.json {
        ui::hint("`cliq attach` in another terminal shows the panes");
    }
    let view = execute(plan, &begin, Progress::new(args.json, args.headless))?;
    if !args.json {
        summary::show(&view, &dir)?;
    }
    Ok(exit_code(&view))
}

/// How a run begins.
pub(super) enum Begin {
    /// With nothing done.
    Anew,
    /// Where the last one stopped, or from a phase on.
    Resume { from: Option<String> },
}

/// Runs a plan to its end, shows it, and lets signals cancel it.
pub(super) fn execute(plan: RunPlan, begin: &Begin, mut progress: Progress) -> Result<RunView, Failure> {
    execute_with(plan, begin, |record, view| progress.show(record, view))
}

/// As [`execute`], with whatever is done with each event.
pub(super) fn execute_with(
    plan: RunPlan,
    begin: &Begin,
    mut show: impl FnMut(&Record, &RunView) -> std::io::Result<()>,
) -> Result<RunView, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut view = match begin {
        Begin::Anew => RunView::new(&plan.workflow),
        Begin::Resume { .. } => project::last_run(&plan.dir, &plan.workflow)?
            .map_or_else(|| RunView::new(&plan.workflow), |(_, view)| view),
    };
    runtime.block_on(async {
        let mut run = match begin {
            Begin::Anew => Run::start(plan, &project::has_env)?,
            Begin::Resume { from } => Run::resume(plan, from.as_deref(), &project::has_env)?,
        };
        let cancel = run.canceller();
        let mut signals =
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        let [interrupt, terminate, hangup] = &mut signals;
        let mut broken = None;
        loop {
            let record = tokio::select! {
                record = run.next() => record,
                () = received(interrupt) => { cancel(); continue }
                () = received(terminate) => { cancel(); continue }
                () = received(hangup) => { cancel(); continue }
            };
            let Some(record) = record else { break };
            view.apply(&record);
            // Whoever watched may have gone; the run goes on.
            if broken.is_none()
                && let Err(error) = show(&record, &view)
            {
                broken = Some(error);
            }
        }
        Ok::<_, Failure>(run.finish().await)
    })
}

async fn received(signal: &mut std::io::Result<tokio::signal::unix::Signal>) {
    match signal {
        Ok(signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    }
}

/// SPEC section 7.
pub(super) fn exit_code(view: &RunView) -> ExitCode {
    ExitCode::from(match view.pipeline_status() {
        Some(PipelineStatus::Completed) => 0,
        Some(PipelineStatus::Failed) | None => 1,
        Some(PipelineStatus::Escalated) => 3,
        Some(PipelineStatus::Cancelled) => 130,
    })
}

/// The re-run rules of seed 003: a completed run is not run again, work that agents have done is not thrown away
/// unasked, and what never got anywhere is simply started anew.
fn may_run_again(dir: &CliqDir, workflow: &ValidatedWorkflow, args: &RunArgs) -> Result<(), Failure> {
    if args.force {
        return Ok(());
    }
    let Some((_, last)) = project::last_run(dir, workflow)? else { return Ok(()) };
    if last.completed() {
        return Err(Failure::refused("the last run completed; there is nothing left to do")
            .hint("`cliq req -m TEXT` starts a new task, `cliq run -f` runs the same one again, `cliq run --from PHASE` a part of it"));
    }
    let done: Vec<&str> = last
        .phases
        .iter()
        .filter(|p| {
            matches!(p.kind, PhaseKind::Standard | PhaseKind::Team) && p.status == PhaseStatus::Completed
        })
        .map(|p| p.name.as_str())
        .collect();
    if done.is_empty() {
        return Ok(());
    }
    let message =
        format!("the last run ended before it was complete, after agents had completed: {}", done.join(", "));
    if args.headless || args.json || !ui::can_ask() {
        return Err(Failure::refused(message)
            .hint("`cliq run --resume` goes on where it stopped, `cliq run -f` runs all phases again"));
    }
    ui::warning(&message);
    ui::hint("`cliq run --resume` goes on where it stopped");
    if ui::confirm("Run all phases again?")? { Ok(()) } else { Err(Failure::refused("nothing was started")) }
}

/// The programs that the team says it needs.
fn check_tools(workflow: &ValidatedWorkflow) -> Result<(), Failure> {
    let missing: Vec<&str> =
        workflow.tools.iter().map(String::as_str).filter(|tool| !super::doctor::on_path(tool)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} needs programs that are not on the PATH: {}",
        workflow.name,
        missing.join(", ")
    ))
    .hint("install them, or take them out of `tools:` in team.yml"))
}
