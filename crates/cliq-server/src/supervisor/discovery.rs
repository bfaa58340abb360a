//! Runs that people start in registered projects by `cliq run`: the server follows them too.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::CliqDir;
use cliq_gateway::{GatewayError, Outcome};
use cliq_orchestrator::Journal;
use cliq_runs::{Change, Instance, Life, LifeEvent, Run, RunId, RunOrigin};

use super::Shared;
use super::follower::{Begin, follow};
use crate::clock;

/// How often registered projects are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// Where on the disk, and how large: a journal that has not changed is not read.
type Seen = (u64, u64);

/// Looks for new runs until the server stops.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut seen: HashMap<Utf8PathBuf, Seen> = HashMap::new();
    loop {
        match shared.store.instances().await {
            Ok(instances) => {
                for instance in &instances {
                    if let Err(error) = look(&shared, instance, &mut seen).await {
                        tracing::warn!(%error, project = %instance.path, "its run cannot be followed; it is tried again");
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "projects cannot be listed; it is tried again"),
        }
        tokio::select! {
            () = shared.stopping.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

async fn look(
    shared: &Arc<Shared>,
    instance: &Instance,
    seen: &mut HashMap<Utf8PathBuf, Seen>,
) -> Result<(), GatewayError> {
    let Ok(dir) = CliqDir::open(&instance.path) else { return Ok(()) };
    let path = dir.journal();
    let Ok(meta) = std::fs::symlink_metadata(&path) else { return Ok(()) };
    let now = (meta.ino(), meta.len());
    if seen.get(&path) == Some(&now) {
        return Ok(());
    }
    let read = {
        let path = path.clone();
        tokio::task::spawn_blocking(move || read(&path)).await.ok().flatten()
    };
    let Some((id, team, lines)) = read else { return Ok(()) };
    if shared.is_followed(&id) {
        return Ok(());
    }
    match shared.store.run(&id).await? {
        // A person resumed it. What the follower has not stored, it stores.
        Some(run) if run.life.state.is_final() && run.journal_lines < lines => {
            follow(shared, run, Begin::TakeUp);
        }
        Some(_) => {}
        None => {
            let mut run = found_run(instance, id, team);
            run.replica = shared.replica();
            let change = Change::of(run);
            if shared.store.change(&change).await? == Outcome::Applied
                && let Some(run) = shared.store.run(&change.run.id).await?
            {
                follow(shared, run, Begin::TakeUp);
            }
        }
    }
    seen.insert(path, now);
    Ok(())
}

/// The run, the team and the number of lines of a journal.
fn read(path: &Utf8Path) -> Option<(RunId, String, u64)> {
    let journal = Journal::read(path).ok()??;
    let id = RunId::parse(journal.run_id()?)?;
    let team = journal.records.iter().find_map(|record| match &record.event {
        cliq_orchestrator::RunEvent::RunStarted { team, .. } => Some(team.clone()),
        _ => None,
    })?;
    Some((id, team, journal.records.len() as u64))
}

fn found_run(instance: &Instance, id: RunId, team: String) -> Run {
    let mut life = Life::default();
    // It has begun without the server.
    let _ = life.step(LifeEvent::Dispatched);
    let _ = life.step(LifeEvent::Began);
    let mut run = Run::new(id, team, RunOrigin::Project, instance.path.clone(), clock::now());
    run.instance = Some(instance.id.clone());
    "cliq run".clone_into(&mut run.caller);
    run.life = life;
    run
}
