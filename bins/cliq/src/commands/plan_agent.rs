//! `cliq agent plan`: an agent of a plan that works in a container or a cluster. The daemon starts one here, which follows another one there.

use std::io::Read;
use std::process::ExitCode;

use camino::Utf8Path;
use cliq_backends::{BackendKind, RunJob};
use cliq_lifecycle::Assignment;
use cliq_project::RunStart;
use cliq_project::internals::{PlanAgent, SIGNAL_FILES};
use cliq_protocol::RunId;

use super::backends;
use super::execution::{execute_here, exit_code};
use crate::failure::Failure;
use crate::project;
use crate::render::progress::Progress;

/// Runs the agent with the assignment in a job's directory here, in a run with an id; or without these, what the daemon asks for, where the settings say.
pub(super) fn run(here: Option<(&Utf8Path, &RunId)>) -> Result<ExitCode, Failure> {
    let hint = "`cliq agent plan` is for what the daemon starts, where `docker.enabled` or `kubernetes.enabled` is set";
    let failed = |why: String| Failure::usage(why).hint(hint);
    let Some((dir, run_id)) = here else {
        let assignment = Assignment::receive(std::io::stdin().lock()).map_err(failed)?;
        return follow(&PlanAgent::new(&project::host(), &assignment)?, &assignment);
    };
    let assignment = Assignment::read(dir).map_err(failed)?;
    work(PlanAgent::new(&project::host(), &assignment)?, run_id)
}

fn work(agent: PlanAgent, run_id: &RunId) -> Result<ExitCode, Failure> {
    let host = agent.project().host().clone();
    let mut plan = agent.run_plan()?;
    plan.run_id = Some(run_id.clone());
    plan.env.insert(SIGNAL_FILES.to_owned(), "1".to_owned());
    let mut progress = Progress::new(true, true);
    let view = execute_here(&host, plan, &RunStart::Fresh, |record, view| progress.show(record, view))?;
    Ok(exit_code(view.pipeline_status()))
}

fn follow(agent: &PlanAgent, assignment: &Assignment) -> Result<ExitCode, Failure> {
    end_with_input();
    let (project, settings) = (agent.project(), agent.settings());
    let kind = backends::available(BackendKind::of_settings(settings))?.ok_or_else(|| {
        Failure::refused("agents of plans work on this machine")
            .hint("the settings changed since the daemon started this one")
    })?;
    let active = backends::find_active(kind, project, settings, None)?;
    // The agent that a dead daemon had followed may have ended at this moment.
    if active.is_none() && assignment.is_over() {
        return Ok(ExitCode::SUCCESS);
    }
    let dir = project.dir().root().to_string();
    let job = RunJob::of_command(
        project,
        agent.workflow().clone(),
        settings,
        |run_id| ["agent", "plan", "--here", &dir, "--run-id", run_id.as_str()].map(str::to_owned).into(),
        agent.variables_for_container()?,
        agent.paths_for_container(),
        active,
    );
    backends::run(kind, &job, false, true)
}

/// Ends this process with the daemon, whose end of the pipe closes however it dies. What works elsewhere goes on, and the next daemon has it
/// followed.
#[expect(
    clippy::exit,
    reason = "as where it is killed: nothing of what works elsewhere depends on this process"
)]
fn end_with_input() {
    std::thread::spawn(|| {
        let mut input = std::io::stdin().lock();
        while input.read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
        std::process::exit(1);
    });
}
