//! Executing a plan from start to end.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use cliq_orchestrator::internals::blocking;
use cliq_orchestrator::{Record, Run, RunPlan, RunView};

use crate::fingerprints::Recorder;
use crate::run_team::RunTeam;
use crate::{Host, Project, ProjectError};

/// Start of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunStart {
    /// From the beginning. The last run moves to `.cliq/history/`.
    Fresh,
    /// From the beginning, with the phases of [`RunPlan::kept`] kept from the last run.
    Changed,
    /// From where the last run stopped.
    Resume {
        /// A phase that runs again, with all phases that depend on it.
        from: Option<String>,
    },
}

/// Executes a plan from start to end and gives the run as it ended. `on_event` gets each event, with the state after it.
/// The run is cancelled when `cancelled` resolves; it is polled before the run starts, so that signals which it waits for are received from the first phase on. Needs a tokio runtime with IO and time. Files are read and written on threads for
/// blocking work: a project on a file system that does not respond delays its own run, and nothing else of the runtime.
///
/// ```no_run
/// # async fn example() -> Result<(), cliq_project::ProjectError> {
/// use cliq_project::{Environment, Host, Project, RunOptions, RunStart, execute};
///
/// let host = Host::new(Environment::of_process(), "/usr/local/bin/cliq".into());
/// let plan = Project::open("/home/ada/shop".into(), host.clone())?.run_plan(&RunOptions::new())?;
/// // A run that never is cancelled: pass the future of a signal or a time limit instead.
/// let never = std::future::pending();
/// let view = execute(plan, &RunStart::Fresh, &host, never, |record, _| {
///     println!("{}", record.event.describe());
/// });
/// assert!(view.await?.completed());
/// # Ok(()) }
/// ```
///
/// # Errors
/// The run cannot start. Once it has started, a failure is a state of the run, not an error.
pub async fn execute(
    plan: RunPlan,
    start: &RunStart,
    host: &Host,
    cancelled: impl Future<Output = ()>,
    mut on_event: impl FnMut(&Record, &RunView),
) -> Result<RunView, ProjectError> {
    let (start, host) = (start.clone(), host.clone());
    let mut cancelled = pin!(cancelled);
    let mut asked = poll_fn(|context| Poll::Ready(cancelled.as_mut().poll(context).is_ready())).await;
    let Started { mut run, mut view, recorder } = blocking(move || begin(plan, &start, &host)).await?;
    if asked {
        run.cancel();
    }
    loop {
        let record = tokio::select! {
            record = run.next() => record,
            () = &mut cancelled, if !asked => {
                asked = true;
                run.cancel();
                continue;
            }
        };
        let Some(record) = record else { break };
        view.apply(&record);
        on_event(&record, &view);
    }
    let view = run.finish().await;
    blocking(move || recorder.ended()).await;
    Ok(view)
}

/// Run that has started.
struct Started {
    run: Run,
    view: RunView,
    recorder: Recorder,
}

/// Takes the fingerprints of a plan and starts its run. Blocks.
fn begin(plan: RunPlan, start: &RunStart, host: &Host) -> Result<Started, ProjectError> {
    let has_variable = |name: &str| host.has_variable(name);
    let fresh = RunView::new(&plan.workflow);
    let mut recorder = Recorder::new(&plan);
    // The next run may have another team. Teams of team phases are part of their own directory.
    let is_new = matches!(start, RunStart::Fresh | RunStart::Changed) && plan.parent.is_none();
    let team = is_new.then(|| (plan.dir.clone(), Arc::clone(&plan.workflow.texts)));
    let (run, view) = match start {
        RunStart::Fresh | RunStart::Changed => (Run::start(plan, &has_variable)?, fresh),
        RunStart::Resume { from } => {
            let project = Project::of(plan.dir.clone(), host.clone());
            let last = project.last_run(&plan.workflow)?.map_or(fresh, |(_, view)| view);
            recorder.keep(&last, from.as_deref());
            (Run::resume(plan, from.as_deref(), &has_variable)?, last)
        }
    };
    recorder.started(run.id());
    // Without it, pages say later that the team was not kept.
    if let Some((dir, texts)) = team {
        let _ = RunTeam::new(run.id(), &texts).write(&dir);
    }
    Ok(Started { run, view, recorder })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use camino::Utf8Path;

    use super::*;
    use crate::{Environment, RunOptions};

    const TEAM: &str = "name: \"@local/one\"\nphases:\n  - {name: a, type: exec, commands: [{name: t, run: 'touch made'}]}\n";

    #[tokio::test]
    async fn cancellation_is_waited_for_before_anything_starts() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = Utf8Path::from_path(place.path()).expect("text");
        std::fs::create_dir(dir.join("team")).expect("made");
        std::fs::write(dir.join("team/team.yml"), TEAM).expect("written");
        let host = Host::new(Environment::of_process(), "cliq".into());
        let project = Project::init(dir, host.clone()).expect("a project");
        project.assemble(dir.join("team").as_str()).expect("assembled");
        project.set_requirement("Do it.").expect("written");
        // There is no run to go on with, so nothing starts.
        let is_polled = Cell::new(false);
        let cancelled = poll_fn(|_| {
            is_polled.set(true);
            Poll::Pending
        });
        let plan = project.run_plan(&RunOptions::new()).expect("a plan");
        let resume = RunStart::Resume { from: None };
        assert!(execute(plan, &resume, &host, cancelled, |_, _| {}).await.is_err());
        assert!(is_polled.get(), "a signal that came before the start was not waited for");
        // A run that is cancelled already ends so.
        let plan = project.run_plan(&RunOptions::new()).expect("a plan");
        let view =
            execute(plan, &RunStart::Fresh, &host, std::future::ready(()), |_, _| {}).await.expect("a run");
        assert_eq!(view.status.as_deref(), Some("CANCELLED"));
    }
}
