//! `cliq plan attach`

use std::process::ExitCode;

use cliq_fs::CliqDir;
use cliq_lifecycle::{Purpose, WorkId, job_dir};
use cliq_orchestrator::TmuxServer;
use cliq_project::LauncherKind;

use super::{here, name_of, plans};
use crate::commands::attach::enter;
use crate::failure::Failure;

/// An agent that works in a pane.
struct PaneAgent {
    /// Task of the agent.
    task: String,
    server: TmuxServer,
}

pub(super) async fn run(plan: &str, task: Option<&str>) -> Result<ExitCode, Failure> {
    let (here, name) = (here()?, name_of(plan)?);
    let dir = here.dir();
    let (stored, _) = plans().await?.load(dir.workspace().as_str(), name.as_str()).await?;
    LauncherKind::require_tmux()?;
    let jobs: Vec<_> = stored.jobs.iter().filter(|job| job.role.is_some()).collect();
    let shown = jobs.iter().filter_map(|job| {
        let place = job_dir(dir.workspace(), name.as_str(), job.id);
        let server = TmuxServer::of(&CliqDir::at(&place, dir.workspace()).ok()?);
        let work = match job.purpose {
            Purpose::Work(work) | Purpose::Advise(work) => work,
            Purpose::Infrastructure | Purpose::Merge { .. } => WorkId::Plan,
        };
        server.is_running().then(|| PaneAgent { task: work.to_string(), server })
    });
    let shown: Vec<PaneAgent> = shown.collect();
    let logs = format!(
        "what agents print is in {}",
        dir.relative(&job_dir(dir.workspace(), name.as_str(), 0).with_file_name("N/logs"))
    );
    if shown.is_empty() {
        return Err(match jobs.len() {
            0 => Failure::failed(format!("no agent works on plan {name}"))
                .hint(format!("`cliq plan status {name}` shows how it stands")),
            _ => Failure::failed(format!("the agents of plan {name} have no panes, or not yet")).hint(
                format!("they get some where the setting `launcher` is `tmux` when they begin; {logs}"),
            ),
        });
    }
    let tasks: Vec<&str> = shown.iter().map(|one| one.task.as_str()).collect();
    let found = match (task, shown.as_slice()) {
        (None, [one]) => one,
        (None, _) => {
            return Err(Failure::usage(format!(
                "several agents are at work: name one of {}",
                tasks.join(", ")
            )));
        }
        (Some(task), _) => shown.iter().find(|one| one.task == task).ok_or_else(|| {
            Failure::usage(format!("no agent with a pane works on {task}: there is {}", tasks.join(", ")))
        })?,
    };
    enter(&found.server, &logs)
}
