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

/// Triggers after completed runs, with more fields.
fn after(more: &str) -> String {
    format!(
        "triggers:\n  - name: chain\n    after: {{ state: completed }}\n    team: \"@cliq/hello-world\"\n{more}"
    )
}

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

#[tokio::test]
async fn false_condition_skips_with_its_text() {
    let engine = TestEngine::new(&after("    when: run.title == \"deploy\"\n")).await;
    engine.complete("test", None).await;
    engine.complete("deploy", None).await;
    engine.work().await;
    let firings = engine.firings().await;
    assert_eq!((firings[0].state, firings[1].state), (FiringState::Skipped, FiringState::Started));
    assert!(firings[0].reason.as_ref().unwrap().contains("run.title"), "{:?}", firings[0].reason);
    assert_eq!(engine.started().await.len(), 1);
}

#[tokio::test]
async fn value_that_is_not_there_fails_the_firing() {
    let engine = TestEngine::new(&after("    title: \"of $(run.no_such_field)\"\n")).await;
    engine.complete("the first", None).await;
    engine.work().await;
    let firings = engine.firings().await;
    assert_eq!(firings[0].state, FiringState::Failed);
    assert!(firings[0].reason.as_ref().unwrap().contains("`title`"), "{:?}", firings[0].reason);
    assert!(engine.started().await.is_empty());
}

#[tokio::test]
async fn end_of_another_team_is_no_cause() {
    let triggers = "triggers:\n  - name: chain\n    after: { team: \"@local/other\", state: completed }\n    team: \"@cliq/hello-world\"\n";
    let engine = TestEngine::new(triggers).await;
    engine.complete("of @local/first", None).await;
    engine.work().await;
    assert!(engine.firings().await.is_empty());
    assert!(engine.store.ended_runs(9).await.unwrap().is_empty(), "the end was looked at");
}

#[tokio::test]
async fn skip_policy_drops_causes_while_a_run_is_active() {
    let engine = TestEngine::new(&after("    concurrency: { group: one, policy: skip }\n")).await;
    for title in ["one", "two"] {
        engine.complete(title, None).await;
    }
    engine.work().await;
    let (firings, runs) = (engine.firings().await, engine.started().await);
    assert_eq!(
        (firings[0].state, firings[1].state, runs.len()),
        (FiringState::Started, FiringState::Skipped, 1)
    );
    assert!(firings[1].reason.as_ref().unwrap().contains(runs[0].id.as_str()), "{:?}", firings[1].reason);
}

#[tokio::test]
async fn cancel_policy_ends_the_active_run_for_the_newest_cause() {
    let engine = TestEngine::new(&after("    concurrency: { group: one, policy: cancel }\n")).await;
    engine.complete("one", None).await;
    engine.work().await;
    let first = engine.started().await.remove(0);
    for title in ["two", "three"] {
        engine.complete(title, None).await;
    }
    for _ in 0..3 {
        engine.work().await;
    }
    let firings = engine.firings().await;
    assert_eq!(firings.last().map(|firing| firing.state), Some(FiringState::Started));
    let first = engine.store.run(&first.id).await.unwrap().unwrap();
    assert_eq!(first.life.state, RunState::Cancelled);
    assert_eq!(engine.started().await.iter().filter(|run| !run.life.state.is_final()).count(), 1);
}

#[tokio::test]
async fn cause_survives_a_store_that_fails() {
    let engine = TestEngine::new(AFTER).await;
    engine.complete("the first", None).await;
    engine.store.fail(1);
    assert!(ends::look(&engine.inner, &engine.triggers()).await.is_err());
    engine.work().await;
    assert_eq!(engine.started().await.len(), 1);
    engine.complete("the second", None).await;
    ends::look(&engine.inner, &engine.triggers()).await.unwrap();
    engine.store.fail(1);
    assert!(firings::pass(&engine.inner).await.is_err());
    engine.work().await;
    assert_eq!(engine.started().await.len(), 2, "undecided firings are decided later");
}
