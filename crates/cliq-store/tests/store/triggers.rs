//! Triggers, firings, concurrency groups: each cause once, with many connections at the same moment.

use cliq_model::{
    Added, Change, FiringDecision, FiringFilter, FiringStart, FiringState, GroupState, LifecycleEvent,
    MarkStep, NewFiring, NewRunEvent, NewTrigger, Outcome, Run, RunOrigin, RunOutcome, RunState, RunStore,
    RunTrigger, SourceKind, TriggerStore,
};
use cliq_protocol::Timestamp;
use futures_util::future::join_all;

use super::runs::new_run;
use super::test_database::{Place, at};

const MARK: &str = "2026-11-25T06:00:00Z";
const AT: Timestamp = Timestamp::from_unix_millis(1_795_586_400_000);

fn trigger(name: &str, kind: SourceKind) -> NewTrigger {
    NewTrigger { name: name.to_owned(), kind, mark: "2026-01-01T00:00:00Z".to_owned() }
}

fn firing(key: &str) -> NewFiring {
    NewFiring {
        trigger: "a".to_owned(),
        at: AT,
        cause: format!("cause {key}"),
        key: key.to_owned(),
        content_key: None,
        digest: "d".repeat(64),
        payload: "{\"body\": \"x'; DROP TABLE firings; --\"}".to_owned(),
        depth: 1,
        skipped: None,
    }
}

async fn stores<P: Place>(place: &P) -> Vec<P::Store> {
    let mut stores = Vec::new();
    for _ in 0..8 {
        stores.push(place.store().await);
    }
    stores
}

async fn all(store: &impl TriggerStore) -> Vec<cliq_model::Firing> {
    store.firings(&FiringFilter { limit: 100, ..FiringFilter::default() }).await.unwrap()
}

pub(crate) async fn mark_moves_once_with_its_firings(place: &impl Place) {
    let stores = stores(place).await;
    let store = &stores[0];
    store.sync_triggers(&[trigger("a", SourceKind::Schedule)]).await.unwrap();
    // Again: the mark stays.
    let later = NewTrigger { mark: "2030".to_owned(), ..trigger("a", SourceKind::Schedule) };
    store.sync_triggers(&[later]).await.unwrap();
    let row = store.trigger_row("a").await.unwrap().unwrap();
    assert_eq!((row.mark.as_str(), row.version, row.is_paused), ("2026-01-01T00:00:00Z", 1, false));
    let step = MarkStep { trigger: "a".to_owned(), version: 1, mark: MARK.to_owned() };
    let firings = [firing("tick:1"), firing("tick:2")];
    let moved = join_all(stores.iter().map(|store| store.advance(&step, &firings))).await;
    assert_eq!(moved.into_iter().filter(|moved| *moved.as_ref().unwrap() == Outcome::Applied).count(), 1);
    let found = all(store).await;
    assert_eq!(found.iter().map(|f| f.cause.as_str()).collect::<Vec<_>>(), ["cause tick:2", "cause tick:1"]);
    assert!(found.iter().all(|f| f.state == FiringState::Pending && f.payload.is_empty()));
    // A known key has no second firing, regardless of the mark.
    let step = MarkStep { version: 2, ..step };
    assert_eq!(store.advance(&step, &[firing("tick:2"), firing("tick:3")]).await.unwrap(), Outcome::Applied);
    assert_eq!(all(store).await.len(), 3);
    assert_eq!(store.last_firings().await.unwrap()[0].cause, "cause tick:3");
    // A trigger of another kind is another one, and one that is not in the file goes.
    store.sync_triggers(&[trigger("a", SourceKind::Webhook), trigger("b", SourceKind::After)]).await.unwrap();
    assert_eq!(store.trigger_row("a").await.unwrap().unwrap().version, 1);
    store.sync_triggers(&[]).await.unwrap();
    assert!(store.trigger_rows().await.unwrap().is_empty());
}

pub(crate) async fn delivery_has_one_firing_and_replays_are_refused(place: &impl Place) {
    let stores = stores(place).await;
    let new = NewFiring { content_key: Some("body:c".to_owned()), ..firing("delivery:1") };
    let added = join_all(stores.iter().map(|store| store.add_firing(&new))).await;
    let added: Vec<Added> = added.into_iter().map(Result::unwrap).collect();
    let ids: Vec<i64> =
        added.iter().filter_map(|a| if let Added::New(id) = a { Some(*id) } else { None }).collect();
    assert_eq!(ids.len(), 1, "{added:?}");
    assert!(
        added.iter().all(|a| matches!(a, Added::New(id) | Added::Known(id) if *id == ids[0])),
        "{added:?}"
    );
    let store = &stores[0];
    let replay = NewFiring { key: "delivery:2".to_owned(), ..new.clone() };
    assert_eq!(store.add_firing(&replay).await.unwrap(), Added::Replayed);
    // The refused id is free for other content, and the same content of another trigger is its own.
    let fresh = NewFiring { content_key: Some("body:d".to_owned()), ..replay.clone() };
    assert!(matches!(store.add_firing(&fresh).await.unwrap(), Added::New(_)));
    let other = NewFiring { trigger: "b".to_owned(), ..replay };
    assert!(matches!(store.add_firing(&other).await.unwrap(), Added::New(_)));
    let pending = store.pending_firings(0, 10).await.unwrap();
    assert_eq!(pending.len(), 3);
    assert_eq!(pending[0].payload, new.payload);
    assert_eq!(store.pending_firings(pending[1].id, 10).await.unwrap().len(), 1);
}

fn start(firing: i64, group: Option<(&str, i64)>) -> Change {
    let mut run = new_run("@t/t", AT);
    run.origin = RunOrigin::Trigger;
    run.request.trigger = Some(RunTrigger { name: "a".to_owned(), firing, depth: 1, sandbox: None });
    let mut change = Change::of(run);
    change.firing =
        Some(FiringStart { firing, group: group.map(|(name, version)| (name.to_owned(), version)) });
    change
}

async fn add(store: &impl TriggerStore, key: &str) -> i64 {
    match store.add_firing(&firing(key)).await.unwrap() {
        Added::New(id) => id,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn firing_starts_one_run(place: &impl Place) {
    let stores = stores(place).await;
    let store = &stores[0];
    let id = add(store, "k").await;
    let changes: Vec<Change> = (0..8).map(|_| start(id, None)).collect();
    let stored = join_all(stores.iter().zip(&changes).map(|(store, change)| store.change(change))).await;
    let applied: Vec<&Change> = changes
        .iter()
        .zip(&stored)
        .filter(|(_, stored)| *stored.as_ref().unwrap() == Outcome::Applied)
        .map(|(change, _)| change)
        .collect();
    assert_eq!(applied.len(), 1);
    let runs = store.runs(&cliq_model::RunFilter { limit: 10, ..Default::default() }).await.unwrap();
    assert_eq!(runs.len(), 1, "no run without its firing");
    assert_eq!(runs[0].request.trigger, applied[0].run.request.trigger);
    let found = &all(store).await[0];
    assert_eq!((found.state, found.run.as_ref()), (FiringState::Started, Some(applied[0].id())));
    assert!(found.decided_at.is_some());
    assert!(!store.decide_firing(id, &FiringDecision::Skip("late".to_owned()), AT).await.unwrap());
    let other = add(store, "l").await;
    assert!(store.decide_firing(other, &FiringDecision::Fail("no team".to_owned()), AT).await.unwrap());
    assert_eq!(store.change(&start(other, None)).await.unwrap(), Outcome::Stale);
    let failed = &all(store).await[0];
    assert_eq!((failed.state, failed.reason.as_deref()), (FiringState::Failed, Some("no team")));
}

async fn store_run(store: &impl RunStore, change: &Change) {
    assert_eq!(store.change(change).await.unwrap(), Outcome::Applied);
}

fn ended(mut run: Run, outcome: RunOutcome) -> Change {
    run.version += 1;
    for event in [LifecycleEvent::Dispatched, LifecycleEvent::Began, LifecycleEvent::Ended(outcome)] {
        run.life.step(event).unwrap();
    }
    run.ended_at = Some(AT);
    let mut change = Change::of(run);
    change.push(NewRunEvent::of_journal(AT.into(), "run_finished".to_owned(), "{}".to_owned()));
    change
}

pub(crate) async fn group_admits_one_run_at_a_time(place: &impl Place) {
    let stores = stores(place).await;
    let store = &stores[0];
    assert_eq!(store.group("g").await.unwrap(), GroupState::default());
    let mut ids = Vec::new();
    for n in 0..8 {
        ids.push(add(store, &n.to_string()).await);
    }
    // Eight servers decide eight firings of a free group at the same moment.
    let changes: Vec<Change> = ids.iter().map(|id| start(*id, Some(("g", 0)))).collect();
    let stored = join_all(stores.iter().zip(&changes).map(|(store, change)| store.change(change))).await;
    let winner = stored.iter().position(|stored| *stored.as_ref().unwrap() == Outcome::Applied).unwrap();
    assert_eq!(stored.iter().filter(|stored| *stored.as_ref().unwrap() == Outcome::Applied).count(), 1);
    let waiting: Vec<i64> = ids.iter().copied().filter(|id| *id != ids[winner]).collect();
    for id in &waiting {
        let decision = FiringDecision::Wait { group: "g".to_owned(), reason: "waits".to_owned() };
        assert!(store.decide_firing(*id, &decision, AT).await.unwrap());
    }
    let run = changes[winner].run.clone();
    let state = store.group("g").await.unwrap();
    assert_eq!(state, GroupState { version: 1, running: vec![run.id.clone()], waiting: waiting.clone() });
    assert_eq!(store.change(&ended(run, RunOutcome::Failed)).await.unwrap(), Outcome::Applied);
    let state = store.group("g").await.unwrap();
    assert_eq!((state.version, state.running.len(), state.waiting.len()), (1, 0, 7));
    let next = start(waiting[0], Some(("g", state.version)));
    assert_eq!(store.change(&next).await.unwrap(), Outcome::Applied);
    assert_eq!(store.change(&start(waiting[1], Some(("g", state.version)))).await.unwrap(), Outcome::Stale);
}

pub(crate) async fn end_of_a_run_is_consumed_once(place: &impl Place) {
    let stores = stores(place).await;
    let store = &stores[0];
    let run = new_run("@t/t", AT);
    store_run(store, &Change::of(run.clone())).await;
    // No trigger waits for ends: none is recorded.
    store_run(store, &ended(run, RunOutcome::Completed)).await;
    assert!(store.ended_runs(10).await.unwrap().is_empty());
    store.sync_triggers(&[trigger("a", SourceKind::After)]).await.unwrap();
    let run = new_run("@t/t", AT);
    store_run(store, &Change::of(run.clone())).await;
    let mut change = ended(run, RunOutcome::Completed);
    store_run(store, &change).await;
    // The end of a trial, which is stored when somebody looks at it, is none either.
    let trial = Run { origin: RunOrigin::Evaluation, ..new_run("@t/t", AT) };
    store_run(store, &Change::of(trial.clone())).await;
    store_run(store, &ended(trial, RunOutcome::Completed)).await;
    // A later change of the finished run is no end.
    change.run.version += 1;
    change.events.clear();
    assert_eq!(store.change(&change).await.unwrap(), Outcome::Applied);
    let ends = store.ended_runs(10).await.unwrap();
    assert_eq!(ends.len(), 1);
    assert_eq!((&ends[0].run, ends[0].state), (change.id(), RunState::Completed));
    let firings = [firing("run:1")];
    let consumed = join_all(stores.iter().map(|store| store.consume_end(&ends[0], &firings))).await;
    assert_eq!(consumed.into_iter().filter(|consumed| *consumed.as_ref().unwrap()).count(), 1);
    assert_eq!(all(store).await.len(), 1);
    assert!(store.ended_runs(10).await.unwrap().is_empty());
}

pub(crate) async fn old_firings_are_removed_with_their_keys(place: &impl Place) {
    let store = place.store().await;
    let old = NewFiring { at: at("2026-01-01"), ..firing("old") };
    let Added::New(decided) = store.add_firing(&old).await.unwrap() else { panic!("known") };
    let undecided = NewFiring { key: "undecided".to_owned(), ..old.clone() };
    store.add_firing(&undecided).await.unwrap();
    store.decide_firing(decided, &FiringDecision::Skip("no".to_owned()), AT).await.unwrap();
    add(&store, "new").await;
    assert_eq!(store.remove_firings(at("2026-06-01")).await.unwrap(), 1);
    assert_eq!(all(&store).await.len(), 2);
    assert!(
        matches!(store.add_firing(&old).await.unwrap(), Added::New(id) if id > decided),
        "its key is free"
    );
    assert!(matches!(store.add_firing(&undecided).await.unwrap(), Added::Known(_)));
}

pub(crate) async fn paused_trigger_keeps_its_mark(place: &impl Place) {
    let store = place.store().await;
    store.sync_triggers(&[trigger("a", SourceKind::Schedule)]).await.unwrap();
    assert!(!store.set_paused("b", true, None).await.unwrap());
    assert!(store.set_paused("a", true, None).await.unwrap());
    let row = store.trigger_row("a").await.unwrap().unwrap();
    assert!(row.is_paused && row.version == 2);
    let step = MarkStep { trigger: "a".to_owned(), version: 2, mark: MARK.to_owned() };
    assert_eq!(store.advance(&step, &[firing("k")]).await.unwrap(), Outcome::Stale);
    store.set_paused("a", false, Some(MARK)).await.unwrap();
    let row = store.trigger_row("a").await.unwrap().unwrap();
    assert_eq!((row.is_paused, row.mark.as_str(), row.version), (false, MARK, 3));
    assert!(all(&store).await.is_empty());
}
