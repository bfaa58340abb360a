//! Runs, their events and queue, registered projects, tokens.

use std::collections::BTreeMap;
use std::time::Duration;

use cliq_model::{
    Caveat, Change, Instance, Lifecycle, LifecycleEvent, NewRunEvent, NewToken, Outcome, Run, RunChanges,
    RunCursor, RunFilter, RunOrigin, RunOutcome, RunRequest, RunSpec, RunState, RunStore, RunTotals, Scope,
    TokenKind,
};
use cliq_protocol::Timestamp;
use serde_json::json;

use super::test_database::{Place, TestDatabase, at};

pub(crate) fn new_run(team: &str, queued_at: Timestamp) -> Run {
    Run {
        id: cliq_fs::new_run_id(),
        instance: None,
        team: team.parse().unwrap(),
        origin: RunOrigin::Server,
        caller: "ci".to_owned(),
        request: RunRequest {
            spec: RunSpec {
                team: Some(team.to_owned()),
                requirement: Some("Build \u{1f980} it".to_owned()),
                inputs: BTreeMap::from([("branch".to_owned(), "x'; DROP TABLE runs; --".to_owned())]),
                ..RunSpec::default()
            },
            ..RunRequest::default()
        },
        workspace: "/w".into(),
        life: Lifecycle::default(),
        reason: None,
        phase: None,
        queued_at,
        started_at: None,
        ended_at: None,
        totals: RunTotals::default(),
        view: json!({"phases": []}),
        journal_lines: 0,
        last_event: 0,
        version: 0,
        replica: Some("replica-1".to_owned()),
        wake_at: None,
        woken_at: None,
        title: "Build \u{1f980} it".to_owned(),
        phases_done: 0,
        phases_all: 0,
        changed: Some(RunChanges { files: 3, lines_added: 120, lines_removed: 4 }),
        caveats: Vec::new(),
    }
}

fn event(kind: &str) -> NewRunEvent {
    let line = json!({"event": kind}).to_string();
    NewRunEvent::of_journal(at("2026-01-01").into(), kind.into(), line)
}

fn change(run: &Run, kinds: &[&str]) -> Change {
    let mut change = Change::of(run.clone());
    kinds.iter().for_each(|kind| change.push(event(kind)));
    change
}

async fn add(store: &impl RunStore, run: &Run) {
    assert_eq!(store.change(&change(run, &["run_queued"])).await.unwrap(), Outcome::Applied);
}

/// Searches by words, with other conditions, a cursor and text that would be an operator of the search.
pub(crate) async fn runs_are_searched(place: &impl Place) {
    let store = place.store().await;
    let mut ids = Vec::new();
    for n in 0..40 {
        let mut run = new_run(
            if n % 2 == 0 { "@local/even-team" } else { "@local/odd" },
            at(&format!("2026-01-{:02}", 1 + n % 28)),
        );
        run.title = format!("Fix the Übung number{n}");
        if n % 10 == 0 {
            run.reason = Some("phase `x`: it's broken".into());
            run.caller = "other".into();
        }
        add(&store, &run).await;
        ids.push(run.id);
    }
    let search = async |text: &str, change: &dyn Fn(&mut RunFilter)| {
        let mut filter = RunFilter { words: RunFilter::words_of(text), limit: 100, ..RunFilter::default() };
        change(&mut filter);
        let found = store.runs(&filter).await.unwrap();
        found.iter().map(|run| ids.iter().position(|id| *id == run.id).unwrap()).collect::<Vec<_>>()
    };
    let all = |_: &mut RunFilter| {};
    assert_eq!(search("number7", &all).await, [7]);
    assert_eq!(search("numb even", &all).await, (0..40).rev().filter(|n| n % 2 == 0).collect::<Vec<_>>());
    assert_eq!(search("BROKEN übung", &all).await, [30, 20, 10, 0]);
    assert_eq!(search("nothing", &all).await, Vec::<usize>::new());
    // A letter that becomes two in lower case.
    assert_eq!(search("\u{130}stanbul", &all).await, Vec::<usize>::new());
    let id = ids[3].as_str();
    assert_eq!(search(id, &all).await, [3], "by id");
    assert_eq!(search(id.rsplit('-').next().unwrap(), &all).await, [3], "by the end of an id");
    for hostile in ["\" OR 1", "') --", "* NEAR(", "a:*|!b", "'", "title:x", "-", "number1 \u{0}"] {
        search(hostile, &all).await;
    }
    let page = search("fix", &|filter| filter.limit = 5).await;
    assert_eq!(page, [39, 38, 37, 36, 35]);
    let after = RunCursor(ids[35].clone());
    assert_eq!(
        search("fix", &|filter| {
            filter.after = Some(after.clone());
            filter.limit = 2;
        })
        .await,
        [34, 33]
    );
    assert_eq!(search("fix", &|filter| filter.caller = Some("other".into())).await, [30, 20, 10, 0]);
    assert_eq!(search("", &|filter| filter.since = Some(at("2026-01-28"))).await, [27]);
    assert_eq!(
        search("", &|filter| {
            filter.until = Some(at("2026-01-02"));
            filter.team = Some("@local/even-team".into());
        })
        .await,
        [28, 0]
    );
    // A new reason is found, the old one is not; a removed run is not.
    let mut run = store.run(&ids[0]).await.unwrap().unwrap();
    run.reason = Some("mended".into());
    assert_eq!(store.change(&Change::of(run)).await.unwrap(), Outcome::Applied);
    assert_eq!(search("mended", &all).await, [0]);
    assert_eq!(search("broken", &all).await, [30, 20, 10]);
    store.remove_run(&ids[0]).await.unwrap();
    assert_eq!(search("mended", &all).await, Vec::<usize>::new());
}

pub(crate) async fn a_run_is_stored_as_it_is(place: &impl Place) {
    let store = place.store().await;
    let mut run = new_run("@local/a", at("2026-01-01"));
    add(&store, &run).await;
    let stored = store.run(&run.id).await.unwrap().expect("it is there");
    (run.version, run.last_event) = (1, 1);
    assert_eq!(stored, run);
    run.life.step(LifecycleEvent::Dispatched).unwrap();
    run.life.step(LifecycleEvent::CancelRequested).unwrap();
    run.life.step(LifecycleEvent::Began).unwrap();
    run.instance = Some("cliq-abc".into());
    run.reason = Some("why".into());
    run.phase = Some("build".into());
    run.started_at = Some(at("2026-01-01T00:00:01.000Z"));
    run.ended_at = Some(at("2026-01-01T00:00:02.000Z"));
    run.totals = RunTotals { tokens_in: 1 << 40, tokens_out: 7, cost_usd: Some(0.25) };
    run.view = json!({"phases": [{"name": "a"}]});
    run.journal_lines = 12;
    assert_eq!(store.change(&change(&run, &["a", "b"])).await.unwrap(), Outcome::Applied);
    (run.version, run.last_event) = (2, 3);
    assert_eq!(store.run(&run.id).await.unwrap().expect("it is there"), run);
    let events = store.run_events(&run.id, 1, 10).await.unwrap();
    assert_eq!(events.iter().map(|e| (e.id, e.kind.as_str())).collect::<Vec<_>>(), [(2, "a"), (3, "b")]);
    assert_eq!(events[0].data, r#"{"event":"a"}"#);
    assert_eq!(store.run_events(&run.id, 0, 2).await.unwrap().len(), 2);
    // Any number at once.
    let kinds: Vec<String> = (0..37).map(|n| format!("k{n}")).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    assert_eq!(store.change(&change(&run, &kinds)).await.unwrap(), Outcome::Applied);
    let events = store.run_events(&run.id, 3, 100).await.unwrap();
    assert_eq!(
        events.iter().map(|e| (e.id, e.kind.as_str())).collect::<Vec<_>>(),
        (4..).zip(kinds).collect::<Vec<_>>()
    );
    store.remove_run(&run.id).await.unwrap();
    assert!(store.run(&run.id).await.unwrap().is_none());
    assert!(store.run_events(&run.id, 0, 10).await.unwrap().is_empty());
}

pub(crate) async fn a_change_from_an_old_version_is_refused_with_its_events(place: &impl Place) {
    let store = place.store().await;
    let run = new_run("@local/a", at("2026-01-01"));
    add(&store, &run).await;
    assert_eq!(store.change(&change(&run, &["twice"])).await.unwrap(), Outcome::Stale);
    let stored = store.run(&run.id).await.unwrap().unwrap();
    assert_eq!(store.change(&change(&stored, &["one"])).await.unwrap(), Outcome::Applied);
    assert_eq!(store.change(&change(&stored, &["other"])).await.unwrap(), Outcome::Stale);
    let kinds: Vec<String> =
        store.run_events(&run.id, 0, 10).await.unwrap().into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, ["run_queued", "one"]);
}

pub(crate) async fn many_events_of_one_change_keep_their_order(place: &impl Place) {
    let store = place.store().await;
    for number in [1, 16, 17, 50] {
        let run = new_run("@local/many", at("2026-01-01"));
        let kinds: Vec<String> = (1..=number).map(|n| format!("event {n}")).collect();
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        assert_eq!(store.change(&change(&run, &kinds)).await.unwrap(), Outcome::Applied);
        let rows = store.run_events(&run.id, 0, 100).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.kind.as_str()).collect::<Vec<_>>(), kinds);
        assert!(rows.iter().zip(1..).all(|(row, n)| row.id == n));
    }
}

/// A caller of the server may close its connection at any moment. Its change is then there as a whole or not at all, and others
/// do not wait for it.
pub(crate) async fn a_caller_that_goes_away_keeps_nobody_out(place: &TestDatabase) {
    let (store, other) = (place.store().await, place.store().await);
    let (mut made, mut left) = (0, 0);
    for round in 0..120_u64 {
        let run = new_run("@local/gone", at("2026-01-01"));
        let kinds = ["a"; 40];
        let patience = Duration::from_micros(round * 25);
        let outcome = tokio::time::timeout(patience, store.change(&change(&run, &kinds))).await;
        let beside = new_run("@local/beside", at("2026-01-01"));
        let others =
            tokio::time::timeout(Duration::from_secs(8), other.change(&change(&beside, &["a"]))).await;
        assert_eq!(others.expect("nobody holds the database").unwrap(), Outcome::Applied);
        // What was sent before the caller went may be committed between two reads.
        let (rows, is_there) = loop {
            let before = other.run(&run.id).await.unwrap().is_some();
            let rows = other.run_events(&run.id, 0, 100).await.unwrap().len();
            if other.run(&run.id).await.unwrap().is_some() == before {
                break (rows, before);
            }
        };
        assert_eq!(rows, if is_there { kinds.len() } else { 0 }, "after {patience:?}");
        if let Ok(outcome) = outcome {
            assert_eq!((outcome.unwrap(), is_there), (Outcome::Applied, true));
            made += 1;
        } else {
            left += 1;
        }
    }
    // A change of a file is made in one go: nobody can leave before its end.
    assert_eq!(left > 0, place.url().is_some(), "{made} were served, {left} went away");
    let last = new_run("@local/last", at("2026-01-01"));
    add(&store, &last).await;
}

pub(crate) async fn lists_have_each_run_once(place: &impl Place) {
    let store = place.store().await;
    let mut ids = Vec::new();
    for n in 0..25 {
        let mut run = new_run(if n % 2 == 0 { "@local/a" } else { "@local/b" }, at("2026-01-01"));
        if n % 5 == 0 {
            run.life.step(LifecycleEvent::CancelRequested).unwrap();
        }
        run.instance = (n % 3 == 0).then(|| "cliq-x".to_owned());
        add(&store, &run).await;
        ids.push(run.id);
    }
    ids.reverse();
    let all = async |filter: RunFilter| {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let filter = RunFilter { after: after.clone(), limit: 4, ..filter.clone() };
            let page = store.runs(&filter).await.unwrap();
            let Some(last) = page.last() else { return found };
            after = Some(RunCursor(last.id.clone()));
            found.extend(page.into_iter().map(|run| run.id));
        }
    };
    assert_eq!(all(RunFilter::default()).await, ids);
    let team = |team: &str| RunFilter { team: Some(team.to_owned()), ..RunFilter::default() };
    assert_eq!(all(team("@local/b")).await.len(), 12);
    assert_eq!(all(team("@local/c")).await.len(), 0);
    let states = |states: &[RunState]| RunFilter { states: states.to_vec(), ..RunFilter::default() };
    assert_eq!(all(states(&[RunState::Cancelled])).await.len(), 5);
    assert_eq!(all(states(&[RunState::Cancelled, RunState::Queued])).await, ids);
    let mut both = team("@local/a");
    both.states = vec![RunState::Cancelled];
    assert_eq!(all(both.clone()).await.len(), 3);
    both.instance = Some("cliq-x".into());
    assert_eq!(all(both).await.len(), 1);
    let instance = RunFilter { instance: Some("cliq-x".into()), ..states(&[RunState::Queued]) };
    assert_eq!(all(instance).await.len(), 7);
    let counts = store.counts().await.unwrap();
    assert!(counts.contains(&(RunState::Queued, 20)) && counts.contains(&(RunState::Cancelled, 5)));
    assert!(counts.contains(&(RunState::Failed, 0)));
}

pub(crate) async fn the_queue_is_first_in_first_out(place: &impl Place) {
    let store = place.store().await;
    let late = new_run("@local/late", at("2026-01-01T00:00:02.000Z"));
    let early = new_run("@local/early", at("2026-01-01T00:00:01.000Z"));
    let mut active = new_run("@local/active", at("2026-01-01"));
    active.life.step(LifecycleEvent::Dispatched).unwrap();
    for run in [&late, &early, &active] {
        add(&store, run).await;
    }
    let teams = |runs: Vec<Run>| runs.into_iter().map(|run| run.team).collect::<Vec<_>>();
    assert_eq!(teams(store.queue(10).await.unwrap().new.into()), ["@local/early", "@local/late"]);
    assert_eq!(teams(store.queue(1).await.unwrap().new.into()), ["@local/early"]);
    assert_eq!(teams(store.active().await.unwrap()), ["@local/active"]);
    let mut ended = store.run(&early.id).await.unwrap().unwrap();
    ended.life.step(LifecycleEvent::CancelRequested).unwrap();
    ended.ended_at = Some(at("2026-01-02"));
    assert_eq!(store.change(&Change::of(ended)).await.unwrap(), Outcome::Applied);
    assert_eq!(store.ended_before(at("2026-01-02"), 9).await.unwrap().len(), 0);
    assert_eq!(store.ended_before(at("2026-01-03"), 9).await.unwrap().len(), 1);
}

pub(crate) async fn a_project_is_registered_once(place: &impl Place) {
    let store = place.store().await;
    let instance =
        |path: &str| Instance { id: "cliq-abc".into(), path: path.into(), registered_at: at("2026-01-01") };
    let first = store.add_instance(&instance("/b")).await.unwrap();
    assert_eq!(store.add_instance(&instance("/b")).await.unwrap(), first);
    let copy = store.add_instance(&instance("/a")).await.unwrap();
    assert_eq!(copy.id, "cliq-abc-2", "a copy of a project has the same id file");
    assert_eq!(store.instances().await.unwrap(), [copy, first.clone()]);
    assert_eq!(store.instance("cliq-abc").await.unwrap(), Some(first));
    assert!(store.forget_instance("cliq-abc").await.unwrap());
    assert!(!store.forget_instance("cliq-abc").await.unwrap());
}

pub(crate) async fn a_revoked_token_is_gone(place: &impl Place) {
    let store = place.store().await;
    let make = |kind, label: &str, expires: Option<&str>| {
        let now = at("2026-01-01");
        NewToken::generate(kind, label, Scope::Run, now, expires.map(at)).expect("random numbers")
    };
    let (secret, token) = make(TokenKind::Api, "ci", None);
    let (_, session) = make(TokenKind::Session, "browser", Some("2026-01-02"));
    store.add_token(&token).await.unwrap();
    store.add_token(&session).await.unwrap();
    let found = store.token(secret.id()).await.unwrap().expect("it is there");
    assert!(found.accepts(&secret, at("2027-01-01")));
    assert_eq!(store.tokens().await.unwrap(), [found], "sessions are not listed");
    store.remove_expired_tokens(at("2026-01-03")).await.unwrap();
    assert!(store.token(&session.id).await.unwrap().is_none());
    assert!(store.revoke_token(secret.id()).await.unwrap());
    assert!(!store.revoke_token(secret.id()).await.unwrap());
    assert!(store.token(secret.id()).await.unwrap().is_none());
}

pub(crate) async fn usage_is_summed_by_team(place: &impl Place) {
    let store = place.store().await;
    for (team, tokens_in, cost_usd) in
        [("@local/a", 5, Some(0.5)), ("@local/a", 6, None), ("@local/b", 1, None)]
    {
        let mut run = new_run(team, at("2026-01-02"));
        run.totals = RunTotals { tokens_in, tokens_out: 1, cost_usd };
        add(&store, &run).await;
    }
    add(&store, &new_run("@local/old", at("2026-01-01"))).await;
    let totals = store.usage(at("2026-01-02")).await.unwrap().by_team();
    let a = RunTotals { tokens_in: 11, tokens_out: 2, cost_usd: Some(0.5) };
    let b = RunTotals { tokens_in: 1, tokens_out: 1, cost_usd: None };
    assert_eq!(totals, [("@local/a".to_owned(), 2, a), ("@local/b".to_owned(), 1, b)]);
}

pub(crate) async fn a_lease_has_one_holder_until_it_is_over(place: &impl Place) {
    let (one, other) = (place.store().await, place.store().await);
    let long = Duration::from_secs(60);
    assert!(one.take_lease("replica/a", "a", long).await.unwrap());
    assert!(!other.take_lease("replica/a", "b", long).await.unwrap(), "it is taken");
    assert!(one.take_lease("replica/a", "a", long).await.unwrap(), "its holder makes it longer");
    assert!(other.take_lease("replica/b", "b", Duration::from_millis(20)).await.unwrap());
    assert!(other.take_lease("other/a", "c", long).await.unwrap());
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(one.lease_holders("replica/").await.unwrap(), ["a"], "one is over, one is of another kind");
    assert!(one.take_lease("replica/b", "a", long).await.unwrap(), "it was over");
    one.give_lease("replica/b", "other").await.unwrap();
    one.give_lease("replica/a", "a").await.unwrap();
    assert!(other.take_lease("replica/a", "b", long).await.unwrap(), "it was given back");
    // Of many who want one at the same moment, one gets it.
    let mut wanting = tokio::task::JoinSet::new();
    for n in 0..8 {
        let store = place.store().await;
        wanting.spawn(async move { store.take_lease("duty", &n.to_string(), long).await.unwrap() });
    }
    let got = wanting.join_all().await;
    assert_eq!(got.iter().filter(|got| **got).count(), 1);
}

pub(crate) async fn a_resumed_run_keeps_its_former_outcome_in_its_row(place: &impl Place) {
    let store = place.store().await;
    let mut run = new_run("@t/t", at("2026-01-01"));
    run.life.former = Some(RunOutcome::Escalated);
    run.caveats = vec![Caveat::Limit, Caveat::PassWithFailures];
    add(&store, &run).await;
    let found = store.run(&run.id).await.unwrap().unwrap();
    assert_eq!((found.life.former, found.caveats), (run.life.former, run.caveats.clone()));
    let listed = store.runs(&RunFilter { limit: 9, ..RunFilter::default() }).await.unwrap();
    assert_eq!((listed[0].life.former, &listed[0].caveats), (run.life.former, &run.caveats));
}

pub(crate) async fn later_run_of_a_workspace_is_found(place: &impl Place) {
    let store = place.store().await;
    let started = |start: Option<&str>, state: RunState, workspace: &str| {
        let mut run = new_run("@t/t", at("2026-01-01"));
        run.workspace = workspace.into();
        run.started_at = start.map(at);
        run.life.state = state;
        run
    };
    let first = started(Some("2026-01-01T00:00:01.000Z"), RunState::Completed, "/p");
    let others = [
        started(Some("2026-01-01T00:00:00.500Z"), RunState::Failed, "/p"),
        started(None, RunState::Cancelled, "/p"),
        started(Some("2026-01-01T00:00:09.000Z"), RunState::Completed, "/other"),
    ];
    for run in others.iter().chain([&first]) {
        add(&store, run).await;
    }
    assert_eq!(store.later_run(&first).await.unwrap(), None, "earlier, never begun, elsewhere");
    let later = started(Some("2026-01-01T00:00:02.000Z"), RunState::Completed, "/p");
    add(&store, &later).await;
    assert_eq!(store.later_run(&first).await.unwrap(), Some(later.id.clone()));
    assert_eq!(store.later_run(&later).await.unwrap(), None);
    let queued = started(None, RunState::Queued, "/p");
    add(&store, &queued).await;
    assert_eq!(store.later_run(&later).await.unwrap(), Some(queued.id), "it has not begun, and will");
}

pub(crate) async fn trials_are_not_among_runs_and_usage(place: &impl Place) {
    let store = place.store().await;
    let mut trial = new_run("@t/t", at("2026-01-01"));
    trial.origin = RunOrigin::Evaluation;
    trial.totals.tokens_in = 5;
    add(&store, &trial).await;
    let runs = async |with_trials| {
        let filter = RunFilter { with_trials, limit: 9, ..RunFilter::default() };
        store.runs(&filter).await.unwrap().len()
    };
    assert_eq!((runs(false).await, runs(true).await), (0, 1));
    assert!(store.counts().await.unwrap().iter().all(|(_, n)| *n == 0));
    assert!(store.usage(at("2026-01-01")).await.unwrap().days.is_empty());
    assert_eq!(store.run(&trial.id).await.unwrap().unwrap().id, trial.id, "its page shows it");
}
