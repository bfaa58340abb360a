//! Tasks of A2A and receivers of push notifications.

use cliq_model::{
    Change, LifecycleEvent, NewRunEvent, Outcome, PushRow, PushState, Run, RunOrigin, RunState, RunStore,
    TaskFilter, TaskRow, TaskStore,
};
use cliq_protocol::{RunId, Timestamp};

use super::runs::new_run;
use super::test_database::Place;

fn event(ts: Timestamp, kind: &str) -> NewRunEvent {
    NewRunEvent::of_journal(ts.into(), kind.into(), "{}".into())
}

fn time(second: u32) -> Timestamp {
    Timestamp::from_unix_millis(i64::from(second) * 1000)
}

/// A new task of an owner, stored with the run.
async fn add(
    store: &(impl RunStore + TaskStore),
    owner: &str,
    context: &str,
    message: &str,
    second: u32,
) -> (Outcome, Run) {
    let mut run = new_run("@local/a", time(second));
    run.origin = RunOrigin::Delegated;
    let mut change = Change::of(run);
    change.push(event(time(second), "run_queued"));
    change.task = Some(TaskRow {
        owner: owner.into(),
        context_id: context.into(),
        message_id: message.into(),
        messages: "[]".into(),
        updated_at: Timestamp::UNIX_EPOCH,
    });
    change.push = Some(push(&change.run.id, "p"));
    let outcome = store.change(&change).await.unwrap();
    let mut run = change.run;
    run.version += 1;
    (outcome, run)
}

fn push(task: &RunId, id: &str) -> PushRow {
    PushRow {
        task_id: task.clone(),
        id: id.into(),
        protocol: "1.0".into(),
        url: "https://h/".into(),
        token: Some("t".into()),
        scheme: None,
        credentials: None,
        event: 0,
        part: 0,
        state: PushState::Active,
        attempts: 0,
        failing_since: None,
        next_at: time(0),
        reason: None,
        version: 0,
    }
}

fn filter(owner: &str) -> TaskFilter {
    TaskFilter { owner: owner.into(), limit: 100, ..TaskFilter::default() }
}

pub(crate) async fn a_message_makes_one_task_of_its_owner(place: &impl Place) {
    let store = place.store().await;
    let (outcome, run) = add(&store, "alice", "talk", "m1", 1).await;
    assert_eq!(outcome, Outcome::Applied);
    // The same message again: no task, no run, no receiver.
    let (outcome, second) = add(&store, "alice", "talk", "m1", 2).await;
    assert_eq!(outcome, Outcome::Stale);
    assert!(store.run(&second.id).await.unwrap().is_none());
    assert!(store.pushes(&second.id).await.unwrap().is_empty());
    // That of another owner is another message.
    let (outcome, other) = add(&store, "bob", "talk", "m1", 3).await;
    assert_eq!(outcome, Outcome::Applied);
    let found = store.task_of_message("alice", "m1").await.unwrap().expect("it is there");
    assert_eq!((found.run.id.as_str(), found.task.updated_at), (run.id.as_str(), time(1)));
    assert!(store.task("alice", &other.id).await.unwrap().is_none());
    assert!(store.task("alice", &run.id).await.unwrap().is_some());
    assert_eq!(store.task_of_run(&other.id).await.unwrap().map(|task| task.owner), Some("bob".to_owned()));
    // What the run's removal takes with it.
    store.remove_run(&run.id).await.unwrap();
    assert!(store.task("alice", &run.id).await.unwrap().is_none());
    assert!(store.pushes(&run.id).await.unwrap().is_empty());
}

pub(crate) async fn tasks_are_listed_last_changed_first(place: &impl Place) {
    let store = place.store().await;
    let mut runs = Vec::new();
    for n in 0..7 {
        runs.push(add(&store, "alice", if n % 2 == 0 { "even" } else { "odd" }, &format!("m{n}"), n).await.1);
    }
    assert_eq!(add(&store, "bob", "even", "m", 50).await.0, Outcome::Applied);
    // The third changes: it comes first.
    let mut change = Change::of(runs[2].clone());
    change.run.life.step(LifecycleEvent::Dispatched).unwrap();
    change.push(event(time(60), "run_dispatched"));
    assert_eq!(store.change(&change).await.unwrap(), Outcome::Applied);
    let order = |found: &[cliq_model::StoredTask]| -> Vec<usize> {
        found.iter().map(|task| runs.iter().position(|run| run.id == task.run.id).unwrap()).collect()
    };
    let all = store.tasks(&filter("alice")).await.unwrap();
    assert_eq!(order(&all), [2, 6, 5, 4, 3, 1, 0]);
    // By pages.
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let page =
            store.tasks(&TaskFilter { limit: 2, cursor: cursor.clone(), ..filter("alice") }).await.unwrap();
        let Some(last) = page.last() else { break };
        cursor = Some((last.task.updated_at, last.run.id.clone()));
        pages.extend(order(&page));
    }
    assert_eq!(pages, order(&all));
    for (given, expected) in [
        (TaskFilter { context_id: Some("odd".into()), ..filter("alice") }, vec![5, 3, 1]),
        (
            TaskFilter {
                states: Some([RunState::Starting, RunState::Running, RunState::Waiting]),
                ..filter("alice")
            },
            vec![2],
        ),
        (
            TaskFilter {
                states: Some([RunState::Queued; 3]),
                context_id: Some("even".into()),
                ..filter("alice")
            },
            vec![6, 4, 0],
        ),
        (TaskFilter { after: Some(time(4)), ..filter("alice") }, vec![2, 6, 5]),
        (TaskFilter { states: Some([RunState::Failed; 3]), ..filter("alice") }, vec![]),
    ] {
        assert_eq!(order(&store.tasks(&given).await.unwrap()), expected, "{given:?}");
        assert_eq!(store.count_tasks(&given).await.unwrap(), expected.len() as u64, "{given:?}");
    }
    assert!(store.tasks(&filter("nobody")).await.unwrap().is_empty());
}

pub(crate) async fn receivers_are_due_while_events_are_left(place: &impl Place) {
    let store = place.store().await;
    let (_, run) = add(&store, "alice", "talk", "m1", 1).await;
    let due = || async { store.due_pushes(time(30), 10).await.unwrap() };
    let mut first = due().await.remove(0);
    assert_eq!((first.id.as_str(), first.token.as_deref(), first.version), ("p", Some("t"), 1));
    // Everything is delivered.
    first.event = 1;
    assert!(store.put_push(&first).await.unwrap());
    assert!(due().await.is_empty());
    // From an old version nothing is stored.
    first.event = 0;
    assert!(!store.put_push(&first).await.unwrap());
    assert!(due().await.is_empty());
    // A new event makes it due again; not before its time.
    let mut change = Change::of(run.clone());
    change.push(event(time(2), "x"));
    assert_eq!(store.change(&change).await.unwrap(), Outcome::Applied);
    let [found] = &due().await[..] else { panic!("one is due") };
    let mut waiting = PushRow {
        attempts: 1,
        next_at: time(40),
        reason: Some("500".into()),
        failing_since: Some(time(20)),
        ..found.clone()
    };
    assert!(store.put_push(&waiting).await.unwrap());
    assert!(due().await.is_empty());
    assert_eq!(store.due_pushes(time(41), 10).await.unwrap().len(), 1);
    // One that was given up is due no more, until it is set anew: it goes on where it was.
    waiting = store.pushes(&run.id).await.unwrap().remove(0);
    assert_eq!((waiting.reason.as_deref(), waiting.attempts), (Some("500"), 1));
    waiting.state = PushState::Dead;
    assert!(store.put_push(&waiting).await.unwrap());
    assert!(store.due_pushes(time(99), 10).await.unwrap().is_empty());
    assert!(
        store
            .put_push(&PushRow { url: "https://other/".into(), event: 2, ..push(&run.id, "p") })
            .await
            .unwrap()
    );
    let [set] = &store.pushes(&run.id).await.unwrap()[..] else { panic!("one receiver") };
    assert_eq!(
        (set.url.as_str(), set.event, set.attempts, set.state),
        ("https://other/", 1, 0, PushState::Active)
    );
    store.remove_push(&run.id, "p").await.unwrap();
    store.remove_push(&run.id, "p").await.unwrap();
    assert!(store.pushes(&run.id).await.unwrap().is_empty());
}
