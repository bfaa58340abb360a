//! Workspaces that a server left when it died: after it had stored the end of a run, and before it removed the workspace.

use std::sync::Arc;

use camino::Utf8Path;
use cliq_fs::CliqDir;
use cliq_model::{Run, RunState, StoreError};
use cliq_orchestrator::{Journal, RunView};
use cliq_protocol::RunId;

use crate::shared::Shared;
use crate::workspace;

/// Removes them, once, when a supervisor starts.
pub(super) async fn remove(shared: Arc<Shared>) {
    for root in shared.options.workspace_roots() {
        let path = root.to_owned();
        let listed = shared.io.run(root, move || names(&path)).await;
        let ids = match listed {
            Ok(Ok(ids)) => ids,
            Ok(Err(error)) => {
                tracing::warn!(%error, %root, "cannot list the workspaces of runs");
                continue;
            }
            Err(error) => {
                tracing::warn!(%error, %root, "cannot list the workspaces of runs");
                continue;
            }
        };
        for id in ids {
            if shared.stopping.is_cancelled() {
                return;
            }
            if let Err(error) = remove_of(&shared, &id).await {
                tracing::warn!(%error, run = %id, "cannot look for a workspace that was left");
            }
        }
    }
}

/// Names of the workspaces below a directory.
fn names(root: &Utf8Path) -> std::io::Result<Vec<RunId>> {
    let entries = match root.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut ids = Vec::new();
    for entry in entries {
        ids.extend(RunId::parse_uuid(entry?.file_name()));
    }
    Ok(ids)
}

async fn remove_of(shared: &Shared, id: &RunId) -> Result<(), StoreError> {
    let Some(run) = shared.store.run(id).await? else { return Ok(()) };
    if !run.has_own_workspace() || !run.life.state.is_final() || shared.is_followed(id) {
        return Ok(());
    }
    let place = run.workspace.clone();
    let work = move || {
        // A run that was resumed meanwhile is at work in it.
        if !is_left(&run) || cliq_backends::internals::is_project_busy(&run.workspace) {
            return Ok(false);
        }
        workspace::remove(&run.workspace).map(|()| true)
    };
    match shared.io.run(&place, work).await {
        Ok(Ok(true)) => tracing::info!(run = %id, "removed the workspace of a run that a server had left"),
        Ok(Ok(false)) => {}
        Ok(Err(error)) => {
            tracing::warn!(run = %id, %error, "cannot remove the workspace that a server had left")
        }
        Err(error) => tracing::warn!(run = %id, %error, "cannot remove the workspace that a server had left"),
    }
    Ok(())
}

/// Whether the workspace of a final run should be gone: it is temporary, or the orchestrator of the run died, so that its journal
/// has no end.
fn is_left(run: &Run) -> bool {
    if workspace::is_temporary(run) {
        return true;
    }
    if run.life.state != RunState::Failed || !run.life.began {
        return false;
    }
    let journal = run.workspace.join(CliqDir::NAME).join(CliqDir::JOURNAL);
    // A journal that cannot be read says nothing.
    matches!(Journal::read(&journal), Ok(Some(journal)) if RunView::of(&journal).status.is_none())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cliq_model::{Death, LifecycleEvent, MemoryStore, Recovery, RunOrigin, RunOutcome};

    use super::*;
    use crate::test_support::{AT, TestSupervisor};

    /// Makes a workspace whose journal begins the run, and ends it if `end` says so.
    fn make_workspace(run: &Run, end: Option<&str>) {
        let dir = run.workspace.join(CliqDir::NAME);
        fs::create_dir_all(&dir).unwrap();
        let began = format!(
            r#"{{"event":"run_started","version":1,"run_id":"{}","team":"@local/team","cliq_version":"0.1.0","pid":1,"max_parallel":1,"ts":"{AT}"}}"#,
            run.id
        );
        let end = end.map(|status| format!(r#"{{"event":"run_finished","status":"{status}","ts":"{AT}"}}"#));
        let lines = [Some(began), end].into_iter().flatten().map(|line| line + "\n");
        fs::write(dir.join(CliqDir::JOURNAL), lines.collect::<String>()).unwrap();
    }

    #[tokio::test]
    async fn workspaces_that_go_with_their_run_are_removed_and_others_stay() {
        let test = TestSupervisor::on(MemoryStore::default(), |_| {});
        let ended = |origin: RunOrigin, event: LifecycleEvent, keeps: bool| {
            let mut run = test.running(None);
            run.origin = origin;
            run.request.keep_workspace = keeps;
            run.life.step(event).unwrap();
            run
        };
        let died = LifecycleEvent::Lost(Death::Died, Recovery::Fail);
        let end = LifecycleEvent::Ended;
        let mut expected = Vec::new();
        for (run, journal, stays) in [
            (ended(RunOrigin::Server, died, false), None, false),
            (ended(RunOrigin::Server, end(RunOutcome::Failed), false), Some("FAILED"), true),
            (ended(RunOrigin::Server, end(RunOutcome::Completed), false), Some("COMPLETED"), true),
            (ended(RunOrigin::Delegated, end(RunOutcome::Completed), false), Some("COMPLETED"), false),
            (ended(RunOrigin::Delegated, end(RunOutcome::Completed), true), Some("COMPLETED"), true),
            (ended(RunOrigin::Evaluation, died, false), None, true),
            // It still works.
            (test.running(None), None, true),
        ] {
            make_workspace(&run, journal);
            let run = test.add(&run).await;
            expected.push((run.workspace.clone(), stays));
        }
        // No run of the store: it may belong to another one.
        let foreign = test.new_run();
        make_workspace(&foreign, None);
        expected.push((foreign.workspace.clone(), true));
        remove(Arc::clone(&test.shared)).await;
        for (workspace, stays) in expected {
            assert_eq!(workspace.exists(), stays, "{workspace}");
        }
    }

    #[tokio::test]
    async fn directory_of_workspaces_that_is_not_there_is_no_fault() {
        let test = TestSupervisor::new();
        assert!(names(&test.path("none")).unwrap().is_empty());
        remove(Arc::clone(&test.shared)).await;
    }
}
