//! Parked runs: each decision wakes the run that waits for it, once.

use std::sync::Arc;
use std::time::Duration;

use cliq_model::{Cause, Change, LifecycleEvent, Outcome, Run, RunState, RunStore, park, wake};
use cliq_protocol::Timestamp;
use cliq_review::{Event, Review, ReviewStore, Reviews, StoredReviews};

use super::reviews::{approve, now, review};
use super::runs::new_run;
use super::test_database::{Place, Stores, at};

const UNTIL: Timestamp = Timestamp::from_unix_millis(4_922_985_600_000);
const AT: Timestamp = Timestamp::from_unix_millis(1_767_225_600_000);

/// Stores a run that is running, and a review of it.
async fn running(store: &impl Stores, n: i64) -> (Run, Review) {
    let mut run = new_run("@local/team", AT);
    run.life.step(LifecycleEvent::Dispatched).unwrap();
    run.life.step(LifecycleEvent::Began).unwrap();
    assert_eq!(store.change(&Change::of(run.clone())).await.unwrap(), Outcome::Applied);
    let review = review(run.id.as_str(), &format!("/p{n}"), 1, n);
    assert!(store.add_review(&review, &cliq_review::Content::default()).await.unwrap());
    (store.run(&run.id).await.unwrap().unwrap(), review)
}

fn parked(run: &Run, review: &Review) -> Change {
    let mut change = Change::of(run.clone());
    park(&mut change, &[review.id.to_string()], UNTIL, AT).unwrap();
    change
}

async fn decide(store: &impl Stores, review: &Review) {
    let reviews = StoredReviews::new(Arc::new(store.clone()), now);
    reviews.apply(&review.id, approve("ann")).await.unwrap();
}

async fn events(store: &impl Stores, run: &Run) -> Vec<String> {
    let rows = store.run_events(&run.id, 0, 100).await.unwrap();
    rows.into_iter().map(|row| row.kind).collect()
}

pub(crate) async fn decision_wakes_the_run_that_waits_for_it(place: &impl Place) {
    let store = place.store().await;
    let (run, review) = running(&store, 1).await;
    let (other, other_review) = running(&store, 2).await;
    for change in [parked(&run, &review), parked(&other, &other_review)] {
        assert_eq!(store.change(&change).await.unwrap(), Outcome::Applied);
    }
    let waiting = store.run(&run.id).await.unwrap().unwrap();
    assert_eq!((waiting.life.state, waiting.wake_at), (RunState::Waiting, Some(UNTIL)));
    assert!(store.active().await.unwrap().is_empty());
    let reviews = StoredReviews::new(Arc::new(store.clone()), now);
    reviews.apply(&review.id, Event::Cancel { reason: "enough".into() }).await.unwrap();
    let woken = store.run(&run.id).await.unwrap().unwrap();
    assert_eq!(woken.life.state, RunState::Queued);
    assert!(woken.life.resume && woken.life.parked && woken.woken_at.is_some() && woken.wake_at.is_none());
    assert_eq!(events(&store, &run).await, ["run_waiting", "run_woken"]);
    assert_eq!(store.run(&other.id).await.unwrap().unwrap().life.state, RunState::Waiting);
    store.remove_run(&other.id).await.unwrap();
    decide(&store, &other_review).await;
}

pub(crate) async fn run_that_parks_after_the_decision_is_woken_at_once(place: &impl Place) {
    let store = place.store().await;
    let (run, review) = running(&store, 1).await;
    decide(&store, &review).await;
    assert_eq!(store.change(&parked(&run, &review)).await.unwrap(), Outcome::Applied);
    assert_eq!(store.run(&run.id).await.unwrap().unwrap().life.state, RunState::Queued);
    assert_eq!(events(&store, &run).await, ["run_waiting", "run_woken"]);
    // A review that is not there cannot be waited for.
    let (run, mut gone) = running(&store, 2).await;
    gone.id = cliq_review::ReviewId::random().unwrap();
    assert_eq!(store.change(&parked(&run, &gone)).await.unwrap(), Outcome::Applied);
    assert_eq!(store.run(&run.id).await.unwrap().unwrap().life.state, RunState::Queued);
}

pub(crate) async fn parking_and_deciding_at_the_same_moment_wakes_the_run_once(place: &impl Place) {
    let (store, second) = (place.store().await, place.store().await);
    for n in 0..40 {
        let (run, review) = running(&store, n).await;
        let change = parked(&run, &review);
        let barrier = Arc::new(tokio::sync::Barrier::new(2));
        let deciding = {
            let (barrier, second, review) = (Arc::clone(&barrier), second.clone(), review.clone());
            tokio::spawn(async move {
                barrier.wait().await;
                decide(&second, &review).await;
            })
        };
        barrier.wait().await;
        assert_eq!(store.change(&change).await.unwrap(), Outcome::Applied);
        deciding.await.unwrap();
        assert_eq!(store.run(&run.id).await.unwrap().unwrap().life.state, RunState::Queued, "{n}");
        assert_eq!(events(&store, &run).await, ["run_waiting", "run_woken"], "{n}");
    }
}

pub(crate) async fn cancelled_run_leaves_no_review_pending(place: &impl Place) {
    let store = place.store().await;
    let (mut run, own) = running(&store, 1).await;
    // Another run of the same project: `running` gives each number a project of its own.
    let (_, other) = running(&store, 1).await;
    assert_eq!(own.project, other.project);
    run.life.step(LifecycleEvent::CancelRequested).unwrap();
    run.life.step(LifecycleEvent::Ended(cliq_model::RunOutcome::Cancelled)).unwrap();
    assert_eq!(store.change(&Change::of(run)).await.unwrap(), Outcome::Applied);
    let state = |id: cliq_review::ReviewId| {
        let store = store.clone();
        async move { store.review(&id).await.unwrap().unwrap().0.state.as_str() }
    };
    assert_eq!((state(own.id).await, state(other.id).await), ("cancelled", "pending"));
}

pub(crate) async fn queue_has_woken_and_new_runs(place: &impl Place) {
    let store = place.store().await;
    let new = new_run("@local/new", at("2020-01-01"));
    assert_eq!(store.change(&Change::of(new)).await.unwrap(), Outcome::Applied);
    let mut woken = Vec::new();
    for (n, day) in [(0, "2026-01-03"), (1, "2026-01-02"), (2, "2026-01-04")] {
        let (run, review) = running(&store, n).await;
        assert_eq!(store.change(&parked(&run, &review)).await.unwrap(), Outcome::Applied);
        let waiting = store.run(&run.id).await.unwrap().unwrap();
        let mut change = wake(waiting, Cause::Time, at(day)).unwrap();
        change.run.life.cancel_requested = n == 2;
        assert_eq!(store.change(&change).await.unwrap(), Outcome::Applied);
        woken.push(run.id);
    }
    let queue = store.queue(10).await.unwrap();
    let ids: Vec<_> = queue.woken.into_iter().map(|run| run.id).collect();
    assert_eq!(ids, [woken[2].clone(), woken[1].clone(), woken[0].clone()], "first those that are cancelled");
    assert_eq!(queue.new.len(), 1);
}

pub(crate) async fn due_runs_are_found_in_order(place: &impl Place) {
    let store = place.store().await;
    assert_eq!(store.next_wake().await.unwrap(), None);
    let (old, older) = (at("2026-01-03"), at("2026-01-02"));
    let now = cliq_fs::now();
    let just_over = now.before(Duration::from_millis(20));
    let soon = now.after(Duration::from_secs(60));
    for (n, until) in (0..).zip([old, older, just_over, soon]) {
        let (run, review) = running(&store, n).await;
        let mut change = parked(&run, &review);
        change.run.wake_at = Some(until);
        assert_eq!(store.change(&change).await.unwrap(), Outcome::Applied);
    }
    assert_eq!(store.next_wake().await.unwrap(), Some(older));
    let due = |limit| {
        let store = store.clone();
        async move {
            let due = store.due(limit).await.unwrap();
            due.into_iter().map(|run| run.wake_at.unwrap()).collect::<Vec<_>>()
        }
    };
    assert_eq!(due(10).await, [older, old, just_over]);
    assert_eq!(due(1).await, [older]);
}
