//! Discovery of runs that people start in registered projects with `cliq run`.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::CliqDir;
use cliq_model::{
    Change, Instance, Lifecycle, LifecycleEvent, Outcome, Run, RunOrigin, RunState, StoreError,
};
use cliq_orchestrator::Journal;
use cliq_protocol::{RunId, TeamName, TraceContext};

use crate::clock;
use crate::follower::{StartMode, follow};
use crate::shared::Shared;

/// Interval between two scans of the registered projects.
const EVERY: Duration = Duration::from_secs(1);

/// Inode and size of a journal. An unchanged journal is not read again.
type FileState = (u64, u64);

/// Looks for new runs until the supervisor stops.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut seen: HashMap<Utf8PathBuf, FileState> = HashMap::new();
    loop {
        match shared.store.instances().await {
            Ok(instances) => {
                for instance in &instances {
                    if let Err(error) = scan(&shared, instance, &mut seen).await {
                        tracing::warn!(%error, project = %instance.path, "cannot follow the run of a project; retrying");
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "cannot list projects; retrying"),
        }
        tokio::select! {
            () = shared.stopping.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

async fn scan(
    shared: &Arc<Shared>,
    instance: &Instance,
    seen: &mut HashMap<Utf8PathBuf, FileState>,
) -> Result<(), StoreError> {
    let opened = instance.path.clone();
    let found = shared.io.probe(&instance.path, move || {
        let path = CliqDir::open(&opened).ok()?.journal();
        let meta = std::fs::symlink_metadata(&path).ok()?;
        Some((path, (meta.ino(), meta.len())))
    });
    // A project whose files do not respond is looked at again in the next round.
    let Some((path, now)) = found.await.ok().flatten() else { return Ok(()) };
    if seen.get(&path) == Some(&now) {
        return Ok(());
    }
    let read = {
        let path = path.clone();
        shared.io.run(&instance.path, move || read(&path)).await.ok().flatten()
    };
    let Some(found) = read else { return Ok(()) };
    let id = found.id.clone();
    if shared.is_followed(&id) {
        return Ok(());
    }
    match shared.store.run(&id).await? {
        // Resumed by a person: follow it again to store the new events.
        Some(run)
            if (run.life.state.is_final() || run.life.state == RunState::Waiting)
                && run.journal_lines < found.records =>
        {
            follow(shared, run, StartMode::Adopt);
        }
        Some(_) => {}
        None => {
            let mut run = found_run(RunOrigin::Project, &instance.path, found);
            run.instance = Some(instance.id.clone());
            adopt(shared, run).await?;
        }
    }
    seen.insert(path, now);
    Ok(())
}

/// Stores a run that was started without the supervisor, and follows it.
async fn adopt(shared: &Arc<Shared>, mut run: Run) -> Result<(), StoreError> {
    run.replica = shared.replica();
    let change = Change::of(run);
    if shared.store.change(&change).await? == Outcome::Applied
        && let Some(run) = shared.store.run(&change.run.id).await?
    {
        follow(shared, run, StartMode::Adopt);
    }
    Ok(())
}

/// Stores and follows the run of a trial, unless it is stored already. Returns its id, or `None` if the workspace has no journal.
pub(crate) async fn adopt_trial(
    shared: &Arc<Shared>,
    workspace: &Utf8Path,
) -> Result<Option<RunId>, StoreError> {
    let opened = workspace.to_owned();
    let read = shared.io.run(workspace, move || read(&CliqDir::open(&opened).ok()?.journal()));
    let read = read.await.ok().flatten();
    let Some(found) = read else { return Ok(None) };
    let id = found.id.clone();
    if !shared.is_followed(&id) && shared.store.run(&id).await?.is_none() {
        let mut run = found_run(RunOrigin::Evaluation, workspace, found);
        "cliq eval".clone_into(&mut run.caller);
        adopt(shared, run).await?;
    }
    Ok(Some(id))
}

/// Run whose journal was found.
struct FoundRun {
    id: RunId,
    team: TeamName,
    trace: Option<TraceContext>,
    /// Number of records.
    records: u64,
}

/// Reads a journal.
fn read(path: &Utf8Path) -> Option<FoundRun> {
    let journal = Journal::read(path).ok()??;
    let id = RunId::parse_uuid(journal.run_id()?.as_str())?;
    let (team, trace) = journal.records.iter().find_map(|record| match &record.event {
        cliq_orchestrator::RunEvent::RunStarted { team, trace, .. } => Some((TeamName::parse(team), *trace)),
        _ => None,
    })?;
    // Only a run of a checked team has a journal.
    let team = team.map_err(|error| tracing::debug!(%path, %error, "the journal names no team")).ok()?;
    Some(FoundRun { id, team, trace, records: journal.records.len() as u64 })
}

fn found_run(origin: RunOrigin, workspace: &Utf8Path, found: FoundRun) -> Run {
    let mut life = Lifecycle::default();
    // Started without the supervisor.
    let _ = life.step(LifecycleEvent::Dispatched);
    let _ = life.step(LifecycleEvent::Began);
    let FoundRun { id, team, trace, .. } = found;
    let mut run = Run::new(id, team, origin, workspace.to_owned(), clock::now());
    run.request.spec.trace = trace;
    "cliq run".clone_into(&mut run.caller);
    run.life = life;
    run
}
