//! Removal of old runs with their workspaces and logs (setting `server.retention`).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cliq_model::StoreError;
use cliq_protocol::RunId;

use crate::replicas::Duty;
use crate::shared::Shared;
use crate::{clock, workspace};

/// Interval between two removals.
const EVERY: Duration = Duration::from_secs(600);
/// Delay of the first removal after the start.
const FIRST: Duration = Duration::from_secs(5);
/// Number of runs removed per query.
const BATCH: u32 = 200;
/// Time limit of the last removal, while the supervisor stops.
const LAST: Duration = Duration::from_secs(2);

/// Removes old runs until the supervisor stops.
pub(super) async fn run(shared: Arc<Shared>) {
    let (mut wait, mut duty) = (FIRST, Duty::new("retention"));
    loop {
        tokio::select! {
            () = shared.stopping.cancelled() => return remove_at_end(&shared, &mut duty).await,
            () = tokio::time::sleep(wait) => {}
        }
        wait = EVERY.min(shared.options.retention);
        // One of several replicas does it.
        match duty.is_own(shared.store.as_ref(), &shared.options).await {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) => {
                tracing::error!(%error, "cannot remove old runs; retrying");
                continue;
            }
        }
        match remove_old(&shared, || shared.stopping.is_cancelled()).await {
            Ok(0) => {}
            Ok(runs) => tracing::info!(runs, "removed old runs"),
            Err(error) => tracing::error!(%error, "cannot remove old runs; retrying"),
        }
    }
}

/// Removes old runs once more while the supervisor stops, so that short-lived servers remove them too.
async fn remove_at_end(shared: &Shared, duty: &mut Duty) {
    if !duty.is_own(shared.store.as_ref(), &shared.options).await.unwrap_or(false) {
        return;
    }
    let start = Instant::now();
    match remove_old(shared, || start.elapsed() > LAST).await {
        Ok(runs) => tracing::debug!(runs, "removed old runs before the end"),
        Err(error) => tracing::warn!(%error, "cannot remove old runs; the next server does"),
    }
}

/// Removes runs that ended before the retention time, until `has_to_stop`.
async fn remove_old(shared: &Shared, has_to_stop: impl Fn() -> bool) -> Result<usize, StoreError> {
    shared.store.remove_expired_tokens(clock::now()).await?;
    let before = clock::ago(shared.options.retention);
    let mut removed = 0;
    loop {
        let old = shared.store.ended_before(before, BATCH).await?;
        if old.is_empty() || has_to_stop() {
            break;
        }
        for run in &old {
            if has_to_stop() {
                return Ok(removed);
            }
            // The row last: after a crash it still names the files.
            if run.has_own_workspace() {
                let path = run.workspace.clone();
                let done = shared.io.run(&run.workspace, move || workspace::remove(&path)).await;
                if let Ok(Err(error)) = done {
                    tracing::warn!(%error, "cannot remove a workspace");
                }
            }
            let _ = std::fs::remove_file(shared.options.log_file(&run.id));
            shared.store.remove_run(&run.id).await?;
            removed += 1;
        }
    }
    remove_abandoned(shared).await?;
    let active: HashSet<RunId> = shared.store.active().await?.into_iter().map(|run| run.id).collect();
    shared.hub.retain(|id| active.contains(id));
    Ok(removed)
}

/// Removes workspaces without a stored run that have not changed for the retention time. They may belong to another database that
/// was in use before, so an active one is kept.
async fn remove_abandoned(shared: &Shared) -> Result<(), StoreError> {
    let roots = shared.options.workspace_roots();
    let entries = roots.into_iter().flat_map(|root| root.read_dir_utf8().into_iter().flatten());
    for entry in entries.filter_map(Result::ok) {
        let Some(id) = RunId::parse_uuid(entry.file_name()) else { continue };
        let changed = entry.metadata().and_then(|meta| meta.modified()).ok();
        let is_old =
            changed.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > shared.options.retention);
        let path = entry.into_path();
        if is_old && shared.store.run(&id).await?.is_none() {
            let remove = {
                let path = path.clone();
                move || {
                    if cliq_backends::internals::is_project_busy(&path) {
                        Ok(())
                    } else {
                        workspace::remove(&path)
                    }
                }
            };
            let _ = shared.io.run(&path, remove).await;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cliq_model::{MemoryStore, NewToken, Run, RunState, RunStore, Scope, TokenKind};
    use cliq_protocol::Timestamp;

    use super::*;
    use crate::test_support::{AT, TestSupervisor};

    async fn ended(test: &TestSupervisor, ended_at: &str) -> Run {
        let mut run = test.new_run();
        fs::create_dir_all(&run.workspace).unwrap();
        run.life.state = RunState::Completed;
        run.ended_at = Some(ended_at.parse().unwrap());
        test.add(&run).await
    }

    #[tokio::test]
    async fn old_runs_go_with_workspace_and_log() {
        let test = TestSupervisor::new();
        let (old, new) =
            (ended(&test, "2020-01-01T00:00:01.000Z").await, ended(&test, "2999-01-01T00:00:00.000Z").await);
        let log = test.shared.options.log_file(&old.id);
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        fs::write(&log, "").unwrap();
        assert_eq!(remove_old(&test.shared, || false).await.unwrap(), 1);
        assert!(test.store.run(&old.id).await.unwrap().is_none() && !old.workspace.exists() && !log.exists());
        assert!(test.store.run(&new.id).await.unwrap().is_some() && new.workspace.exists());
    }

    #[tokio::test]
    async fn run_of_a_project_goes_and_its_project_stays() {
        let test = TestSupervisor::new();
        let mut run = ended(&test, "2020-01-01T00:00:01.000Z").await;
        run.instance = Some("cliq-abc".to_owned());
        test.add(&run).await;
        assert_eq!(remove_old(&test.shared, || false).await.unwrap(), 1);
        assert!(run.workspace.exists());
    }

    #[tokio::test]
    async fn removal_stops_when_it_has_to() {
        let test = TestSupervisor::new();
        let run = ended(&test, "2020-01-01T00:00:01.000Z").await;
        assert_eq!(remove_old(&test.shared, || true).await.unwrap(), 0);
        assert!(test.store.run(&run.id).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn expired_tokens_are_removed() {
        let test = TestSupervisor::new();
        let make = |expires: Option<Timestamp>| {
            NewToken::generate(TokenKind::Api, "ci", Scope::Run, AT, expires).unwrap().1
        };
        let (expired, valid) = (make(Some(AT.after(Duration::from_secs(1)))), make(None));
        for token in [&expired, &valid] {
            test.store.add_token(token).await.unwrap();
        }
        remove_old(&test.shared, || false).await.unwrap();
        assert!(test.store.token(&expired.id).await.unwrap().is_none());
        assert!(test.store.token(&valid.id).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn supervisor_that_stops_leaves_removal_to_the_replica_with_the_duty() {
        let store = MemoryStore::default();
        store.share();
        let tests = [TestSupervisor::on(store.clone(), |_| {}), TestSupervisor::on(store, |_| {})];
        let old = ended(&tests[1], "2020-01-01T00:00:01.000Z").await;
        let (mut held, mut other) = (Duty::new("retention"), Duty::new("retention"));
        assert!(held.is_own(&tests[0].store, &tests[0].shared.options).await.unwrap());
        remove_at_end(&tests[1].shared, &mut other).await;
        assert!(tests[1].store.run(&old.id).await.unwrap().is_some());
        remove_at_end(&tests[0].shared, &mut held).await;
        assert!(tests[1].store.run(&old.id).await.unwrap().is_none());
    }
}
