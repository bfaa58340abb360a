//! Supervisor state on a store in memory, for unit tests.

use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_model::{Change, LifecycleEvent, MemoryStore, Outcome, Run, RunOrigin, RunState, RunStore};
use cliq_project::{Environment, Host};
use cliq_protocol::{RunId, Timestamp};
use cliq_settings::Settings;

use crate::options::SupervisorOptions;
use crate::shared::Shared;

/// Time of the requests of a test.
pub(crate) const AT: Timestamp = Timestamp::from_unix_millis(1_767_225_600_000);

/// Supervisor state with its store and a directory for workspaces. Its `cliq` program does not exist.
pub(crate) struct TestSupervisor {
    pub(crate) shared: Arc<Shared>,
    pub(crate) store: MemoryStore,
    dir: tempfile::TempDir,
}

impl TestSupervisor {
    pub(crate) fn new() -> Self {
        Self::on(MemoryStore::default(), |_| {})
    }

    /// Creates the state on a store, which others may share.
    pub(crate) fn on(store: MemoryStore, change: impl FnOnce(&mut SupervisorOptions)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(dir.path()).unwrap();
        let mut host = Host::new(Environment::new([]), home.join("no-such-program"));
        host.home = Some(home.to_owned());
        let mut options = SupervisorOptions::new(host, home, &Settings::default());
        change(&mut options);
        let shared = Shared::new(options, Arc::new(store.clone()));
        Self { shared: Arc::new(shared), store, dir }
    }

    pub(crate) fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.dir.path()).unwrap().join(name)
    }

    /// Returns a queued run in a workspace of its own.
    pub(crate) fn new_run(&self) -> Run {
        let id = cliq_fs::new_run_id();
        let workspace = self.shared.options.workspace_root.join(id.as_str());
        Run::new(id, "@local/team".parse().unwrap(), RunOrigin::Server, workspace, AT)
    }

    /// Returns a run whose orchestrator has begun, followed by the replica.
    pub(crate) fn running(&self, replica: Option<&str>) -> Run {
        let mut run = self.new_run();
        run.life.step(LifecycleEvent::Dispatched).unwrap();
        run.life.step(LifecycleEvent::Began).unwrap();
        run.started_at = Some(AT);
        run.replica = replica.map(str::to_owned);
        run
    }

    pub(crate) async fn add(&self, run: &Run) -> Run {
        self.apply(&Change::of(run.clone())).await;
        self.run(&run.id).await
    }

    pub(crate) async fn apply(&self, change: &Change) {
        assert_eq!(self.store.change(change).await.unwrap(), Outcome::Applied);
    }

    pub(crate) async fn run(&self, id: &RunId) -> Run {
        self.store.run(id).await.unwrap().unwrap()
    }

    /// Returns the kinds of the events of a run.
    pub(crate) async fn events(&self, id: &RunId) -> Vec<String> {
        let rows = self.store.run_events(id, 0, 1000).await.unwrap();
        rows.into_iter().map(|row| row.kind).collect()
    }

    /// Waits until a run is in a state and no follower is at work on it.
    pub(crate) async fn wait(&self, id: &RunId, state: RunState) -> Run {
        for _ in 0..1000 {
            let run = self.run(id).await;
            if run.life.state == state && !self.shared.is_followed(id) {
                return run;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("run {id} is {:?}", self.run(id).await.life.state);
    }
}
