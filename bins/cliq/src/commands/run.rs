//! `cliq run`

use std::process::ExitCode;

use cliq_backends::{BackendKind, PARKED, RunJob, RunMode};
use cliq_fs::{CliqDir, ProjectLock};
use cliq_model::RunSpec;
use cliq_orchestrator::{Journal, Run, RunPlan, StartError};
use cliq_project::{
    Comparison, LauncherKind, OutsideDirection, OutsideEntry, Project, Rerun, RunOptions, RunStart, Settings,
    rerun_rule,
};
use cliq_protocol::{PhaseKind, RunId};
use cliq_server::TaskEventsFile;
use cliq_settings::{PushSettings, RunSettings};
use cliq_workflow::{Phase, ValidatedWorkflow};

use super::execution::{execute_here, exit_code};
use super::{backends, changed};
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::render::{progress::Progress, summary};
use crate::ui::{BOLD, DIM, YELLOW, paint};
use crate::{project, ui};

pub(super) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let workflow = project.workflow()?;
    let settings = project.settings()?;
    let backend = backends::choose(args, &settings)?;
    if let Some(kind) = backend
        && matches!(args.launcher, Some(crate::args::LauncherName::Tmux))
    {
        return Err(Failure::usage(format!("a run in {} has no panes", kind.name()))
            .hint("`cliq run --no-docker --launcher tmux` works on this machine"));
    }
    let command = RunCommand { args, project, settings, backend, spec: args.spec()? };
    command.run(workflow)
}

/// `cliq run` in a project.
struct RunCommand<'a> {
    args: &'a RunArgs,
    project: Project,
    settings: Settings,
    /// Container engine or cluster of the run. `None` for this machine.
    backend: Option<BackendKind>,
    spec: RunSpec,
}

impl RunCommand<'_> {
    fn run(&self, workflow: ValidatedWorkflow) -> Result<ExitCode, Failure> {
        let args = self.args;
        if let Some(kind) = self.backend
            && let Some(active) = find_active(&self.project, &self.settings, args, kind)?
        {
            let start = RunStart::Resume { from: None };
            return self.run_in(kind, workflow, start, None, Some(active));
        }
        // The lock first, so that an error names a run under way and not the state of the last run.
        ProjectLock::check(self.project.dir())?;
        let start = self.start_mode(&workflow)?;
        self.warn_without_requirement(&workflow);
        let options = self.options(&workflow)?;
        let remote = self.backend.map(|kind| (kind, workflow.clone()));
        let mut plan = self.project.run_plan_of(workflow, &self.settings, &options)?;
        let comparison = args.changed.then(|| changed::compare(&self.project, &mut plan)).transpose()?;
        if args.dry_run {
            return dry_run(&self.project, &plan, comparison.as_ref(), args.json);
        }
        if let Some(comparison) = &comparison {
            if comparison.is_unchanged() {
                ui::hint("nothing has changed since the last run; `cliq run -f` runs it again");
                return Ok(ExitCode::SUCCESS);
            }
            if !args.json {
                changed::show(comparison)?;
            }
        }
        self.confirm(&plan)?;
        if args.detach {
            return self.detach(&mut plan, &start);
        }
        match remote {
            Some((kind, workflow)) => {
                cancel_reviews(&self.project, &start)?;
                self.run_in(kind, workflow, start, args.run_id.clone(), None)
            }
            None => self.run_here(plan, &start),
        }
    }

    /// Returns whether the run is new or goes on, and applies the re-run rules to a new one.
    fn start_mode(&self, workflow: &ValidatedWorkflow) -> Result<RunStart, Failure> {
        let args = self.args;
        let start = match (args.from.clone(), args.resume) {
            (None, false) if args.changed => RunStart::Changed,
            (None, false) if args.dry_run => RunStart::Fresh,
            (None, false) => {
                check_rerun(&self.project, workflow, args)?;
                RunStart::Fresh
            }
            (from, _) => RunStart::Resume { from },
        };
        if matches!(start, RunStart::Fresh | RunStart::Changed)
            && let Some(id) = &args.run_id
            && has_run(self.project.dir(), id)?
        {
            return Err(Failure::refused(format!("the run {id} was started here before"))
                .hint("`cliq run --resume` goes on with the last run"));
        }
        Ok(start)
    }

    fn warn_without_requirement(&self, workflow: &ValidatedWorkflow) {
        let has_reader = |phase: &Phase| {
            phase.kind == PhaseKind::Standard
                && !phase.agent.as_deref().is_some_and(cliq_workflow::is_connector)
        };
        if !self.project.dir().requirement().exists() && workflow.phases().any(|(_, phase)| has_reader(phase))
        {
            ui::warning("no requirement is set: `cliq req -m TEXT` sets it");
        }
    }

    fn options(&self, workflow: &ValidatedWorkflow) -> Result<RunOptions, Failure> {
        let mut options = RunOptions::default();
        options.spec.clone_from(&self.spec);
        options.run_id.clone_from(&self.args.run_id);
        options.is_elsewhere = self.backend.is_some();
        if self.args.changed {
            let given = std::mem::take(&mut options.spec.inputs);
            options.spec.inputs = changed::inputs(&self.project, workflow, given)?;
        }
        Ok(options)
    }

    /// Asks a person before the team publishes, and restores files for `--restore`.
    fn confirm(&self, plan: &RunPlan) -> Result<(), Failure> {
        let args = self.args;
        let may_ask = !args.yes && !args.headless && !args.json && ui::can_ask();
        if may_ask && PushSettings::read(&self.settings).confirm {
            confirm_publishing(&self.project, plan)?;
        }
        if args.restore
            && let Some(from) = &args.from
        {
            super::checkpoint::restore_before(&self.project, &self.settings, from, args.yes)?;
        }
        Ok(())
    }

    /// Starts the run in the background.
    fn detach(&self, plan: &mut RunPlan, start: &RunStart) -> Result<ExitCode, Failure> {
        // Failures that can be foreseen are reported here, where a person reads them.
        let has_variable = |name: &str| self.project.host().has_variable(name);
        match start {
            _ if self.backend.is_some() => {}
            RunStart::Fresh | RunStart::Changed => plan.check(&has_variable).map_err(StartError::from)?,
            RunStart::Resume { from } => Run::check_resume(plan, from.as_deref(), &has_variable)?,
        }
        let keeps_session = RunSettings::read(&self.settings).keep_session;
        super::detach::run(self.project.dir(), self.args, &self.spec, self.backend, keeps_session)
    }

    /// Runs in a container or a cluster.
    fn run_in(
        &self,
        kind: BackendKind,
        workflow: ValidatedWorkflow,
        start: RunStart,
        run_id: Option<RunId>,
        active: Option<RunId>,
    ) -> Result<ExitCode, Failure> {
        let job = RunJob::builder(&self.project)
            .with_team(workflow, self.settings.clone())
            .with_start(start)
            .with_spec(self.spec.clone())
            .with_mode(mode(self.args))
            .with_run_id(run_id)
            .with_active(active)
            .build()?;
        backends::run(kind, &job, self.args.json, self.args.headless)
    }

    /// Runs in this process.
    fn run_here(&self, mut plan: RunPlan, start: &RunStart) -> Result<ExitCode, Failure> {
        let (args, project) = (self.args, &self.project);
        cliq_orchestrator::internals::raise_descriptor_limit();
        let requested = match args.launcher {
            Some(name) => Some(name.into()),
            None => (args.headless || args.json).then_some(LauncherKind::Process),
        };
        let launcher = LauncherKind::choose(requested, ui::is_watched(), &self.settings)?;
        plan.launcher = project.launcher(launcher, &self.settings);
        plan.parks = args.park;
        plan.records_commands = args.a2a_events.is_some();
        plan.adopts_orphans = launcher == LauncherKind::Process && cliq_orchestrator::adopt_orphans();
        if launcher == LauncherKind::Tmux && project.host().own_pane(project.dir()).is_none() && !args.json {
            ui::hint("`cliq attach` in another terminal shows the panes");
        }
        cancel_reviews(project, start)?;
        let mut progress = Progress::new(args.json, args.headless);
        let mut events_file =
            args.a2a_events.as_ref().map(|id| TaskEventsFile::open(project, id)).transpose()?;
        let view = execute_here(project.host(), plan, start, |record, view| {
            // The file is a copy for others: a run does not end because it cannot be written.
            if events_file.as_mut().is_some_and(|file| file.write(record, view).is_err()) {
                events_file = None;
            }
            progress.show(record, view)
        })?;
        if !args.json {
            summary::show(&view, project)?;
        }
        Ok(if view.waiting.is_some() { ExitCode::from(PARKED) } else { exit_code(view.pipeline_status()) })
    }
}

/// Returns the behaviour of the process in a container or Job.
fn mode(args: &RunArgs) -> RunMode {
    RunMode::default().with_parking(args.park).with_instance_id(args.a2a_events.clone())
}

/// Whether a run has begun in the project: a server that slept since it gave the run its place starts it once more.
fn has_run(dir: &CliqDir, id: &RunId) -> Result<bool, Failure> {
    let is_last = Journal::read(&dir.journal())?.is_some_and(|journal| journal.run_id() == Some(id));
    Ok(is_last || dir.history().join(id.as_str()).exists())
}

/// Cancels reviews that an earlier run has left open.
fn cancel_reviews(project: &Project, start: &RunStart) -> Result<(), Failure> {
    if matches!(start, RunStart::Fresh | RunStart::Changed)
        && let Some(home) = &project.host().home
    {
        crate::reviews::cancel_left_over(home, project.dir().workspace())?;
    }
    Ok(())
}

/// Returns the id of the last run if it is active in a container or cluster and is to be followed.
fn find_active(
    project: &Project,
    settings: &Settings,
    args: &RunArgs,
    kind: BackendKind,
) -> Result<Option<RunId>, Failure> {
    // A run in a container holds the project's lock, which is asked for below.
    if args.dry_run || (kind == BackendKind::Docker && !args.resume) {
        return Ok(None);
    }
    match backends::find_active(kind, project, settings, args.run_id.as_ref())? {
        Some(run_id) if !args.resume && args.run_id.is_none() => {
            Err(Failure::refused(format!("the run {run_id} works in the cluster"))
                .hint("`cliq run --resume` follows it, `cliq cancel` stops it"))
        }
        found => Ok(found),
    }
}

/// Applies the re-run rules (docs/exit-codes.md, code 4). A person is asked before the work of agents is done again.
fn check_rerun(project: &Project, workflow: &ValidatedWorkflow, args: &RunArgs) -> Result<(), Failure> {
    let last = project.last_run(workflow)?;
    // A run that works holds the lock, which was asked for.
    if last.as_ref().is_some_and(|(_, view)| view.status.is_none() && view.waiting.is_none()) {
        ui::warning("the last run was interrupted before it ended; this run starts anew");
        ui::hint("`cliq run --resume` goes on with the interrupted run");
    }
    if args.force {
        return Ok(());
    }
    let done = match rerun_rule(last.as_ref().map(|(_, view)| view)) {
        Rerun::Allowed => return Ok(()),
        Rerun::NothingLeft => return Err(Failure::refused("the last run completed; there is nothing left to do")
            .hint("`cliq req -m TEXT` starts a new task, `cliq run -f` runs the same one again, `cliq run --from PHASE` a part of it")),
        Rerun::WorkDone(done) => done,
    };
    let names: Vec<&str> = done.iter().map(cliq_protocol::PhaseName::as_str).collect();
    let message = format!(
        "the last run ended before it was complete, after agents had completed: {}",
        names.join(", ")
    );
    if args.headless || args.json || !ui::can_ask() {
        return Err(Failure::refused(message)
            .hint("`cliq run --resume` goes on where it stopped, `cliq run -f` runs all phases again"));
    }
    ui::warning(&message);
    ui::hint("`cliq run --resume` goes on where it stopped");
    if ui::confirm("Run all phases again?")? { Ok(()) } else { Err(Failure::refused("nothing was started")) }
}

/// Shows which phases would run, and what the run would fetch and publish.
fn dry_run(
    project: &Project,
    plan: &RunPlan,
    comparison: Option<&Comparison>,
    json: bool,
) -> Result<ExitCode, Failure> {
    let mut entries = project.outside(plan)?;
    if let Some(comparison) = comparison {
        entries.retain(|entry| comparison.runs(&entry.phase));
    }
    if json {
        let mut shown = serde_json::json!({"entries": entries});
        if let Some(comparison) = comparison {
            shown["last_run"] = comparison.run_id.as_str().into();
            shown["phases"] = serde_json::json!(comparison.phases);
        }
        ui::json(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(comparison) = comparison {
        changed::show(comparison)?;
    }
    if entries.is_empty() {
        ui::line("the team fetches nothing from outside, and publishes nothing")?;
    }
    for entry in &entries {
        ui::line(outside_line(entry))?;
    }
    ui::line(paint(DIM, "nothing was started"))?;
    Ok(ExitCode::SUCCESS)
}

fn outside_line(entry: &OutsideEntry) -> String {
    let verb = match entry.direction {
        OutsideDirection::Fetch => "fetch  ",
        OutsideDirection::Publish => "publish",
    };
    let arrow = if entry.direction == OutsideDirection::Fetch { "←" } else { "→" };
    let mut facts = vec![entry.by.clone()];
    facts.extend(entry.mode.clone());
    facts.extend(entry.size.map(cliq_http::size));
    if entry.is_there {
        facts.push("published before: nothing to do".to_owned());
    }
    let mut line = format!(
        "{} {verb} {} {arrow} {}  {}",
        paint(BOLD, &entry.phase),
        entry.file,
        entry.place,
        paint(DIM, facts.join(", "))
    );
    if let Some(problem) = &entry.problem {
        line += &["\n  ", &paint(YELLOW, "!"), " ", problem].concat();
    }
    line
}

/// Asks before a team starts that publishes.
fn confirm_publishing(project: &Project, plan: &RunPlan) -> Result<(), Failure> {
    let entries = project.outside(plan)?;
    let published: Vec<&OutsideEntry> = entries
        .iter()
        .filter(|entry| entry.direction == OutsideDirection::Publish && !entry.is_there)
        .collect();
    if published.is_empty() {
        return Ok(());
    }
    ui::warning("this team publishes:");
    for entry in published {
        ui::line(format!("  {} → {}  {}", entry.file, entry.place, paint(DIM, &entry.by)))?;
    }
    ui::hint("`cliq run --yes` does not ask, and `cliq settings set push.confirm false` never does");
    if ui::confirm("Start it?")? { Ok(()) } else { Err(Failure::refused("nothing was started")) }
}
