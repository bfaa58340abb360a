//! The queue with real processes: emitted once, processed once, with any process killed.

#[path = "queue/database_failures.rs"]
mod database_failures;
#[path = "queue/processes.rs"]
mod processes;

use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_gateway::{
    Filter, Finish, NewEvent, NewSignal, Outcome, PlanRow, SignalStatus, SqliteStore, Step, Store,
};
use proptest::prelude::*;

pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory") }
    }

    pub(crate) fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.dir.path().join(name)).expect("UTF-8")
    }

    pub(crate) fn database(&self) -> Utf8PathBuf {
        self.path("home/cliq.db")
    }

    pub(crate) async fn store(&self) -> SqliteStore {
        SqliteStore::open(&self.database()).await.expect("a database")
    }
}

pub(crate) fn signal(kind: &str, payload: &str) -> NewSignal {
    NewSignal::parse(kind, "plan", payload).expect("a signal")
}

fn done() -> Finish {
    Finish::Done("ok".to_owned())
}

#[tokio::test]
async fn a_signal_is_claimed_once_and_finished_once() {
    let place = Place::new();
    let store = place.store().await;
    let first = store.create("p", &signal("planner_finished", "")).await.unwrap();
    let second = store.create("p", &signal("review-changes", "fix it")).await.unwrap();
    store.create("other", &signal("planner_finished", "")).await.unwrap();
    let (claim, claimed) = store.claim("p", "w").await.unwrap().expect("the oldest");
    assert_eq!(
        (claimed.id, claimed.status, claimed.kind.as_str()),
        (first, SignalStatus::Processing, "planner_finished")
    );
    assert!(
        claimed.claimed_by.starts_with("w#")
            && claimed.created_at.ends_with('Z')
            && claimed.created_at.len() == 24
    );
    let (next, claimed) = store.claim("p", "w").await.unwrap().expect("the next");
    assert_eq!((claimed.id, claimed.payload.as_str()), (second, "{\"body\":\"fix it\"}"));
    assert!(store.claim("p", "w").await.unwrap().is_none(), "the other project's is not ours");
    assert_eq!(store.finish(&claim, &done()).await.unwrap(), Outcome::Applied);
    assert_eq!(store.finish(&claim, &done()).await.unwrap(), Outcome::Stale);
    assert_eq!(store.finish(&next, &Finish::Failed("no such plan".into())).await.unwrap(), Outcome::Applied);
    let failed = store.signal(second).await.unwrap().expect("it is there");
    assert_eq!((failed.status, failed.result.as_str()), (SignalStatus::Failed, "no such plan"));
    assert!(
        store.retry(second).await.unwrap()
            && !store.retry(second).await.unwrap()
            && !store.retry(first).await.unwrap()
    );
    let again = store.claim("p", "w").await.unwrap().expect("it is pending again");
    assert_eq!((again.1.id, again.1.result.as_str()), (second, ""));
    let listed = store
        .signals(&Filter { project: Some("p".into()), limit: Some(1), ..Filter::default() })
        .await
        .unwrap();
    assert_eq!(listed.iter().map(|signal| signal.id).collect::<Vec<_>>(), [second]);
}

/// The hole that the seed leaves (SPEC section 12).
#[tokio::test]
async fn a_stale_worker_cannot_finish_what_was_claimed_anew() {
    let place = Place::new();
    let store = place.store().await;
    let id = store.create("p", &signal("planner_finished", "")).await.unwrap();
    let (stale, _) = store.claim("p", "w").await.unwrap().expect("one");
    assert_eq!(store.reset_stuck(Duration::from_secs(60)).await.unwrap(), [0_i64; 0], "it is not stuck yet");
    assert_eq!(store.reset_stuck(Duration::ZERO).await.unwrap(), [id]);
    assert_eq!(store.finish(&stale, &done()).await.unwrap(), Outcome::Stale, "it is pending again");
    // By the same worker, in the same millisecond perhaps.
    let (fresh, _) = store.claim("p", "w").await.unwrap().expect("the same");
    assert_eq!(store.finish(&stale, &Finish::Failed("too late".into())).await.unwrap(), Outcome::Stale);
    let step = plan_step(0, Some((stale, done())));
    assert_eq!(store.apply(&step).await.unwrap(), Outcome::Stale);
    assert!(store.plan("p", "plan").await.unwrap().is_none(), "nothing of the step happened");
    assert_eq!(store.finish(&fresh, &done()).await.unwrap(), Outcome::Applied);
}

#[tokio::test]
async fn a_worker_that_begins_again_takes_back_its_own_claims() {
    let place = Place::new();
    let store = place.store().await;
    for _ in 0..3 {
        store.create("p", &signal("planner_finished", "")).await.unwrap();
    }
    let (stale, _) = store.claim("p", "daemon").await.unwrap().expect("one");
    store.claim("p", "daemon-2").await.unwrap().expect("one");
    assert_eq!(store.reset_claims("daemon").await.unwrap(), [1]);
    assert_eq!(store.finish(&stale, &done()).await.unwrap(), Outcome::Stale);
    assert_eq!(store.claim("p", "daemon").await.unwrap().expect("the same").1.id, 1);
}

fn plan_step(version: i64, finish: Option<(cliq_gateway::Claim, Finish)>) -> Step {
    let plan = PlanRow {
        project: "p".into(),
        name: "plan".into(),
        state: "ready".into(),
        document: "{}".into(),
        version,
        created_at: String::new(),
        updated_at: String::new(),
    };
    let event = NewEvent {
        kind: "added".into(),
        from: String::new(),
        to: "ready".into(),
        detail: "{\"a\":1}".into(),
    };
    Step { plan, events: vec![event], finish, emit: vec![signal("plan_start", "")] }
}

#[tokio::test]
async fn a_plan_changes_with_all_that_belongs_to_it_or_not_at_all() {
    let place = Place::new();
    let store = place.store().await;
    assert_eq!(store.apply(&plan_step(0, None)).await.unwrap(), Outcome::Applied);
    assert_eq!(store.apply(&plan_step(0, None)).await.unwrap(), Outcome::Stale, "it is there already");
    let (claim, _) = store.claim("p", "w").await.unwrap().expect("what was emitted");
    assert_eq!(store.apply(&plan_step(1, Some((claim, done())))).await.unwrap(), Outcome::Applied);
    assert_eq!(store.apply(&plan_step(1, None)).await.unwrap(), Outcome::Stale, "it was changed since");
    assert_eq!(store.plan("p", "plan").await.unwrap().expect("it is there").version, 2);
    let events = store.events("p", "plan", 0).await.unwrap();
    assert_eq!(events.iter().map(|event| event.signal).collect::<Vec<_>>(), [None, Some(1)]);
    assert_eq!(events[0].detail["a"], 1);
    assert_eq!(store.events("p", "plan", events[0].id).await.unwrap().len(), 1);
    assert_eq!(store.projects().await.unwrap(), ["p"]);
}

#[derive(Debug, Clone)]
enum Op {
    Create,
    Claim,
    Finish(usize, bool),
    Reset,
    Retry(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => Just(Op::Create),
        3 => Just(Op::Claim),
        3 => (0_usize..8, any::<bool>()).prop_map(|(at, fine)| Op::Finish(at, fine)),
        1 => Just(Op::Reset),
        1 => (0_usize..8).prop_map(Op::Retry),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any operations in any order the store agrees with a plain list.
    #[test]
    fn the_store_is_a_list(ops in prop::collection::vec(op(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let place = Place::new();
            let store = place.store().await;
            // Status of each signal, and the claim that holds it.
            let mut model: Vec<(SignalStatus, Option<usize>)> = Vec::new();
            let mut claims = Vec::new();
            for op in ops {
                match op {
                    Op::Create => {
                        let id = store.create("p", &signal("plan_start", "")).await.expect("created");
                        model.push((SignalStatus::Pending, None));
                        assert_eq!(usize::try_from(id), Ok(model.len()));
                    }
                    Op::Claim => {
                        let oldest = model.iter().position(|(status, _)| *status == SignalStatus::Pending);
                        let claimed = store.claim("p", "w").await.expect("asked");
                        assert_eq!(claimed.as_ref().map(|(_, s)| usize::try_from(s.id).expect("small") - 1), oldest);
                        if let (Some((claim, _)), Some(at)) = (claimed, oldest) {
                            model[at] = (SignalStatus::Processing, Some(claims.len()));
                            claims.push((at, claim));
                        }
                    }
                    Op::Finish(at, fine) => {
                        let Some((signal, claim)) = claims.get(at) else { continue };
                        let how = if fine { done() } else { Finish::Failed("no".into()) };
                        let holds = model[*signal] == (SignalStatus::Processing, Some(at));
                        let outcome = store.finish(claim, &how).await.expect("finished");
                        assert_eq!(outcome == Outcome::Applied, holds);
                        if holds {
                            model[*signal] = (if fine { SignalStatus::Done } else { SignalStatus::Failed }, None);
                        }
                    }
                    Op::Reset => {
                        let stuck = model.iter().filter(|(status, _)| *status == SignalStatus::Processing).count();
                        assert_eq!(store.reset_stuck(Duration::ZERO).await.expect("reset").len(), stuck);
                        for entry in model.iter_mut().filter(|(status, _)| *status == SignalStatus::Processing) {
                            *entry = (SignalStatus::Pending, None);
                        }
                    }
                    Op::Retry(at) => {
                        let failed = model.get(at).is_some_and(|(status, _)| *status == SignalStatus::Failed);
                        let id = i64::try_from(at + 1).expect("small");
                        assert_eq!(store.retry(id).await.expect("retried"), failed);
                        if failed {
                            model[at].0 = SignalStatus::Pending;
                        }
                    }
                }
            }
            let stored = store.signals(&Filter::default()).await.expect("listed");
            assert_eq!(
                stored.iter().map(|signal| signal.status).collect::<Vec<_>>(),
                model.iter().map(|(status, _)| *status).collect::<Vec<_>>()
            );
        });
    }
}
