//! The queue of signals, plans, and the bridge of files.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use cliq_gateway::{Filter, Finish, Inbox, NewEvent, PlanRow, Signal, SignalStatus, Step, Store};
use cliq_model::Outcome;
use proptest::prelude::*;

use super::test_database::{Place, TestDatabase, at, signal};

pub(crate) fn done() -> Finish {
    Finish::Done("ok".to_owned())
}

async fn all(store: &impl Store) -> Vec<Signal> {
    store.signals(&Filter::default()).await.expect("listed")
}

pub(crate) async fn a_signal_is_claimed_once_and_finished_once(place: &impl Place) {
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
    let mut counts = store.signal_counts().await.unwrap();
    counts.by_status.retain(|(_, number)| *number > 0);
    counts.by_status.sort_by_key(|(status, _)| status.as_str());
    assert_eq!(
        counts.by_status,
        [(SignalStatus::Done, 1), (SignalStatus::Pending, 1), (SignalStatus::Processing, 1)]
    );
    let other = store.signal(second + 1).await.unwrap().expect("it is there");
    assert_eq!(counts.oldest_pending.expect("one is pending").to_string(), other.created_at);
}

/// A claim that was reset and claimed by another worker cannot be finished by the first (docs/signals.md).
pub(crate) async fn a_stale_worker_cannot_finish_what_was_claimed_anew(place: &impl Place) {
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

pub(crate) async fn a_worker_that_begins_again_takes_back_its_own_claims(place: &impl Place) {
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
        created_at: at("2026-01-01"),
        updated_at: at("2026-01-01"),
    };
    let event = NewEvent {
        kind: "added".into(),
        from: String::new(),
        to: "ready".into(),
        detail: "{\"a\":1}".into(),
    };
    Step { plan, events: vec![event], finish, emit: vec![signal("plan_start", "")] }
}

pub(crate) async fn a_plan_changes_with_all_that_belongs_to_it_or_not_at_all(place: &impl Place) {
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
enum QueueOperation {
    Create,
    Claim,
    Finish(usize, bool),
    Reset,
    Retry(usize),
}

fn op() -> impl Strategy<Value = QueueOperation> {
    prop_oneof![
        3 => Just(QueueOperation::Create),
        3 => Just(QueueOperation::Claim),
        3 => (0_usize..8, any::<bool>()).prop_map(|(at, fine)| QueueOperation::Finish(at, fine)),
        1 => Just(QueueOperation::Reset),
        1 => (0_usize..8).prop_map(QueueOperation::Retry),
    ]
}

pub(crate) async fn files_come_in_whole_and_in_order(place: &impl Place) {
    let store = place.store().await;
    let inbox = Inbox::new(place.path("w/.cliq/signals/inbox"));
    assert_eq!(inbox.bridge(&store, "p").await.unwrap().signals, [0_i64; 0], "there is none yet");
    inbox.put("verify-failed-a", "no").unwrap();
    // The clock of a file system is coarse.
    tokio::time::sleep(Duration::from_millis(20)).await;
    inbox.put("planner-finished-a.md", "").unwrap();
    fs::write(inbox.root().join("staging/review-approved-a"), "half").unwrap();
    fs::write(inbox.root().join(".review-approved-a.swp"), "an editor's").unwrap();
    fs::write(inbox.root().join("notes"), "what is this").unwrap();
    fs::write(inbox.root().join("implement-wave-0-a"), "").unwrap();
    fs::write(inbox.root().join("review-changes-a"), [0xff, 0xfe]).unwrap();
    // The longest name that a file can have, and two that are not text.
    fs::write(inbox.root().join("é".repeat(127)), "long").unwrap();
    for name in [b"verify-\xff", b"verify-\xfe"] {
        fs::write(inbox.root().as_std_path().join(OsStr::from_bytes(name)), name).unwrap();
    }
    let bridged = inbox.bridge(&store, "p").await.unwrap();
    assert_eq!(bridged.signals.len(), 3);
    let kinds: Vec<_> =
        all(&store).await.iter().map(|s| (s.kind.clone(), s.plan.clone(), s.payload.clone())).collect();
    let row = |kind: &str, payload: &str| (kind.to_owned(), "a".to_owned(), payload.to_owned());
    // Text that is not Unicode is read with U+FFFD.
    let replaced = row("review_changes_requested", "{\"body\":\"\u{fffd}\u{fffd}\"}");
    assert_eq!(kinds, [row("verify_failed", "{\"body\":\"no\"}"), row("planner_finished", ""), replaced]);
    let failed = |name: &str| inbox.root().join("failed").join(name);
    assert_eq!(fs::read_to_string(failed("notes")).unwrap(), "what is this");
    let reason = fs::read_to_string(failed("notes.reason")).unwrap();
    assert!(reason.contains("Z \"notes\" is not the name of a signal file"), "{reason}");
    assert!(fs::read_to_string(failed("implement-wave-0-a.reason")).unwrap().contains("whole number"));
    assert_eq!(fs::read_to_string(failed(&"é".repeat(100))).unwrap(), "long");
    assert!(failed(&format!("{}.reason", "é".repeat(100))).exists());
    // The second of them came when the first had gone.
    inbox.bridge(&store, "p").await.unwrap();
    assert!(failed("verify-\u{fffd}.reason").exists());
    let both = ["verify-\u{fffd}", "verify-\u{fffd}.2"].map(|name| fs::read(failed(name)).unwrap());
    assert!(both.contains(&b"verify-\xff".to_vec()) && both.contains(&b"verify-\xfe".to_vec()));
    // The same again: what failed before stays.
    fs::write(inbox.root().join("notes"), "and this").unwrap();
    inbox.bridge(&store, "p").await.unwrap();
    assert_eq!(fs::read_to_string(failed("notes.2")).unwrap(), "and this");
    assert!(
        inbox.root().join("staging/review-approved-a").exists()
            && inbox.root().join(".review-approved-a.swp").exists()
    );
}

/// Each is a signal, however alike and however soon after one another.
pub(crate) async fn files_that_are_alike(place: &impl Place) {
    let store = place.store().await;
    let inbox = Inbox::new(place.path("inbox"));
    for n in 1..=200 {
        inbox.put("review-changes-a", "same").unwrap();
        assert_eq!(inbox.bridge(&store, "p").await.unwrap().signals, [n]);
    }
}

pub(crate) async fn a_newer_file_replaces_what_a_crash_left(place: &impl Place) {
    let store = place.store().await;
    let inbox = Inbox::new(place.path("inbox"));
    inbox.ensure().unwrap();
    fs::write(inbox.root().join("processing/review-changes-a"), "old").unwrap();
    fs::write(inbox.root().join("processing/review-approved-a"), "").unwrap();
    inbox.put("review-changes-a", "new").unwrap();
    let recovered = inbox.recover().unwrap();
    assert_eq!(
        (recovered.moved, recovered.discarded),
        (vec!["review-approved-a".to_owned()], vec!["review-changes-a".to_owned()])
    );
    inbox.bridge(&store, "p").await.unwrap();
    let mut bodies: Vec<String> = all(&store).await.into_iter().map(|signal| signal.payload).collect();
    bodies.sort();
    assert_eq!(bodies, ["", "{\"body\":\"new\"}"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any operations in any order the store agrees with a plain list.
    #[test]
    fn the_store_is_a_list(ops in prop::collection::vec(op(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let place = TestDatabase::sqlite();
            let store = place.store().await;
            // Status of each signal, and the claim that holds it.
            let mut model: Vec<(SignalStatus, Option<usize>)> = Vec::new();
            let mut claims = Vec::new();
            for op in ops {
                match op {
                    QueueOperation::Create => {
                        let id = store.create("p", &signal("plan_start", "")).await.expect("created");
                        model.push((SignalStatus::Pending, None));
                        assert_eq!(usize::try_from(id), Ok(model.len()));
                    }
                    QueueOperation::Claim => {
                        let oldest = model.iter().position(|(status, _)| *status == SignalStatus::Pending);
                        let claimed = store.claim("p", "w").await.expect("asked");
                        assert_eq!(claimed.as_ref().map(|(_, s)| usize::try_from(s.id).expect("small") - 1), oldest);
                        if let (Some((claim, _)), Some(at)) = (claimed, oldest) {
                            model[at] = (SignalStatus::Processing, Some(claims.len()));
                            claims.push((at, claim));
                        }
                    }
                    QueueOperation::Finish(at, fine) => {
                        let Some((signal, claim)) = claims.get(at) else { continue };
                        let how = if fine { done() } else { Finish::Failed("no".into()) };
                        let holds = model[*signal] == (SignalStatus::Processing, Some(at));
                        let outcome = store.finish(claim, &how).await.expect("finished");
                        assert_eq!(outcome == Outcome::Applied, holds);
                        if holds {
                            model[*signal] = (if fine { SignalStatus::Done } else { SignalStatus::Failed }, None);
                        }
                    }
                    QueueOperation::Reset => {
                        let stuck = model.iter().filter(|(status, _)| *status == SignalStatus::Processing).count();
                        assert_eq!(store.reset_stuck(Duration::ZERO).await.expect("reset").len(), stuck);
                        for entry in model.iter_mut().filter(|(status, _)| *status == SignalStatus::Processing) {
                            *entry = (SignalStatus::Pending, None);
                        }
                    }
                    QueueOperation::Retry(at) => {
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
