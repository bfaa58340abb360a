//! Engine on a store in memory: from causes to runs, or to the reason for none.

use std::sync::Arc;

use camino::Utf8Path;
use cliq_model::{
    Change, FiringFilter, FiringState, MemoryStore, NewFiring, NewRunEvent, Run, RunFilter, RunOrigin,
    RunState, RunStore, RunTrigger, TriggerStore,
};
use cliq_project::{Environment, Host};
use cliq_protocol::Timestamp;
use cliq_settings::Settings;
use cliq_supervisor::{Supervisor, SupervisorOptions};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::{Inner, MAX_DEPTH, catalog, ends, firings};
use crate::model::Trigger;

const AT: Timestamp = Timestamp::from_unix_millis(1_767_225_600_000);
const AFTER: &str = "triggers:\n  - name: chain\n    after: { state: completed }\n    team: \"@cliq/hello-world\"\n    title: \"After $(run.title)\"\n";
const GROUP: &str = "triggers:\n  - name: chain\n    after: { state: completed }\n    team: \"@cliq/hello-world\"\n    concurrency: { group: one }\n";
const NO_TEAM: &str =
    "triggers:\n  - name: chain\n    after: { state: completed }\n    team: \"@local/none\"\n";

struct TestEngine {
    inner: Arc<Inner>,
    store: MemoryStore,
    _dir: tempfile::TempDir,
}

impl TestEngine {
    /// Creates an engine whose runs stay queued.
    async fn new(triggers: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(dir.path()).unwrap();
        std::fs::write(home.join("triggers.yml"), triggers).unwrap();
        let store = MemoryStore::default();
        let mut host = Host::new(Environment::new([]), home.join("no-such-program"));
        host.home = Some(home.to_owned());
        let mut options = SupervisorOptions::new(host, home, &Settings::default());
        options.max_runs = 0;
        let stopping = CancellationToken::new();
        let supervisor = Supervisor::start(options, Arc::new(store.clone())).await.unwrap();
        let inner = Inner {
            home: home.to_owned(),
            store: Arc::new(store.clone()),
            runs: Arc::new(store.clone()),
            supervisor,
            catalog: watch::Sender::new(Arc::new(
                catalog::load(home).unwrap_or_else(|error| panic!("{error:?}")),
            )),
            pending: Notify::new(),
            stopping,
        };
        inner.sync().await.unwrap();
        Self { inner: Arc::new(inner), store, _dir: dir }
    }

    fn triggers(&self) -> Vec<Arc<Trigger>> {
        self.inner.catalog().triggers.clone()
    }

    /// Stores a run that has completed. `depth` is that of the trigger that started it.
    async fn complete(&self, title: &str, depth: Option<u32>) -> Run {
        let mut run = Run::new(
            cliq_fs::new_run_id(),
            "@local/first".parse().unwrap(),
            RunOrigin::Server,
            "/w".into(),
            AT,
        );
        title.clone_into(&mut run.title);
        run.life.state = RunState::Completed;
        run.request.trigger =
            depth.map(|depth| RunTrigger { name: "chain".into(), firing: 1, depth, sandbox: None });
        let mut change = Change::of(run);
        change.push(NewRunEvent::of_journal(AT.into(), "run_finished".into(), "{}".into()));
        let _ = self.store.change(&change).await.unwrap();
        change.run
    }

    /// Turns the ends of runs into firings and decides them.
    async fn work(&self) {
        ends::look(&self.inner, &self.triggers()).await.unwrap();
        firings::pass(&self.inner).await.unwrap();
    }

    async fn firings(&self) -> Vec<cliq_model::Firing> {
        let filter = FiringFilter { limit: 100, ..FiringFilter::default() };
        let mut firings = self.store.firings(&filter).await.unwrap();
        firings.reverse();
        firings
    }

    async fn started(&self) -> Vec<Run> {
        let runs = self.store.runs(&RunFilter { limit: 100, ..RunFilter::default() }).await.unwrap();
        runs.into_iter().filter(|run| run.origin == RunOrigin::Trigger).collect()
    }
}

impl Drop for TestEngine {
    fn drop(&mut self) {
        self.inner.stopping.cancel();
        self.inner.supervisor.begin_stop();
    }
}

#[tokio::test]
async fn end_of_a_run_starts_one_run() {
    let engine = TestEngine::new(AFTER).await;
    engine.complete("the first", None).await;
    engine.work().await;
    engine.work().await;
    let (runs, firings) = (engine.started().await, engine.firings().await);
    assert_eq!((runs.len(), firings.len()), (1, 1));
    assert_eq!(runs[0].title, "After the first");
    let trigger = runs[0].request.trigger.as_ref().unwrap();
    assert_eq!((trigger.name.as_str(), trigger.firing, trigger.depth), ("chain", firings[0].id, 1));
    assert_eq!((firings[0].state, firings[0].run.as_ref()), (FiringState::Started, Some(&runs[0].id)));
    assert!(firings[0].payload.is_empty(), "it is of no use any more");
}

#[tokio::test]
async fn paused_trigger_starts_nothing() {
    let engine = TestEngine::new(AFTER).await;
    assert!(engine.store.set_paused("chain", true, None).await.unwrap());
    engine.complete("the first", None).await;
    engine.work().await;
    assert!(engine.started().await.is_empty() && engine.firings().await.is_empty());
}

#[tokio::test]
async fn group_admits_one_run_at_a_time() {
    let engine = TestEngine::new(GROUP).await;
    for title in ["one", "two"] {
        engine.complete(title, None).await;
    }
    engine.work().await;
    let firings = engine.firings().await;
    assert_eq!((firings[0].state, firings[1].state), (FiringState::Started, FiringState::Pending));
    assert!(firings[1].reason.as_ref().unwrap().contains("waits for run"), "{:?}", firings[1].reason);
    let first = engine.started().await.remove(0);
    engine.inner.supervisor.cancel(&first.id, "a test").await.unwrap();
    engine.work().await;
    assert_eq!(engine.started().await.len(), 2, "its turn has come");
    assert_eq!(engine.firings().await[1].state, FiringState::Started);
}

#[tokio::test]
async fn refused_run_fails_its_firing_with_the_reason() {
    let engine = TestEngine::new(NO_TEAM).await;
    engine.complete("the first", None).await;
    engine.work().await;
    let firings = engine.firings().await;
    assert_eq!(firings[0].state, FiringState::Failed);
    assert!(firings[0].reason.as_ref().unwrap().contains("@local/none"), "{:?}", firings[0].reason);
    assert!(engine.started().await.is_empty());
}

#[tokio::test]
async fn chain_of_triggers_ends() {
    let engine = TestEngine::new(AFTER).await;
    engine.complete("deep", Some(MAX_DEPTH)).await;
    engine.work().await;
    let firings = engine.firings().await;
    assert_eq!(firings[0].state, FiringState::Skipped);
    assert!(firings[0].reason.as_ref().unwrap().contains("triggers in a row"));
}

#[tokio::test]
async fn firing_of_a_trigger_that_is_gone_starts_nothing() {
    let engine = TestEngine::new(AFTER).await;
    let firing = NewFiring {
        trigger: "gone".into(),
        at: AT,
        cause: "a tick".into(),
        key: "tick:1".into(),
        content_key: None,
        digest: String::new(),
        payload: "{}".into(),
        depth: 1,
        skipped: None,
    };
    engine.store.add_firing(&firing).await.unwrap();
    engine.work().await;
    let firings = engine.firings().await;
    assert_eq!(firings[0].state, FiringState::Skipped);
    assert!(firings[0].reason.as_ref().unwrap().contains("no longer in triggers.yml"));
}
