//! Cells that another program has changed: an error that names table, column and row, never a guess.

use cliq_gateway::{Filter, NewEvent, PlanRow, Step, Store};
use cliq_model::{
    AuditStore, Change, EvaluationRow, EvaluationStore, Instance, NewFiring, NewToken, NewTrigger, Outcome,
    Person, PushRow, PushState, RunFilter, RunOrigin, RunStore, Scope, SignInAttempt, SignInStore,
    SourceKind, StoreError, TaskRow, TaskStore, TokenKind, TrialRow, TrialState, TriggerStore,
};
use cliq_protocol::RunId;
use cliq_review::ReviewStore;
use cliq_store::SqlStore;

use super::reviews::review;
use super::runs::new_run;
use super::test_database::{TestDatabase, at, signal};

/// Statement that changes one cell, and the place and the reason that the error names.
struct Case {
    table: &'static str,
    column: &'static str,
    value: &'static str,
    reason: &'static str,
}

fn case(table: &'static str, column: &'static str, value: &'static str, reason: &'static str) -> Case {
    Case { table, column, value, reason }
}

/// Reads everything of a table that has one row.
async fn read(store: &SqlStore, table: &str, run: &RunId) -> Result<(), StoreError> {
    match table {
        "runs" => store.runs(&RunFilter { limit: 9, ..RunFilter::default() }).await.map(drop),
        "instances" => store.instances().await.map(drop),
        "tokens" => store.sessions(at("2026-01-01")).await.map(drop),
        "sign_ins" => store.take_sign_in("s").await.map(drop),
        "a2a_tasks" => store.task("me", run).await.map(drop),
        "a2a_push" => store.pushes(run).await.map(drop),
        "evaluations" => store.evaluations(9).await.map(drop),
        "trials" => store.trials("e").await.map(drop),
        "triggers" => store.trigger_rows().await.map(drop),
        "firings" => store.pending_firings(0, 9).await.map(drop),
        "plans" => store.plans(None).await.map(drop),
        "plan_events" => store.events("p", "plan", 0).await.map(drop),
        "signals" => store.signals(&Filter::default()).await.map(drop),
        "reviews" => store.reviews(&cliq_review::ReviewFilter::default()).await.map(drop),
        other => panic!("no reader of {other}"),
    }
}

/// Stores a row in each table. Returns the run, and the ids of the rows by table.
async fn fill(store: &SqlStore) -> (RunId, Vec<(&'static str, String)>) {
    let time = at("2026-01-01");
    let mut run = new_run("@local/a", time);
    run.origin = RunOrigin::Delegated;
    let id = run.id.clone();
    let mut change = Change::of(run);
    change.task = Some(TaskRow {
        owner: "me".into(),
        context_id: "talk".into(),
        message_id: "m".into(),
        messages: "[]".into(),
        updated_at: time,
    });
    change.push = Some(PushRow {
        task_id: id.clone(),
        id: "p".into(),
        protocol: "1.0".into(),
        url: "https://h/".into(),
        token: Some("hush".into()),
        scheme: None,
        credentials: None,
        event: 0,
        part: 0,
        state: PushState::Active,
        attempts: 0,
        failing_since: None,
        next_at: time,
        reason: None,
        version: 0,
    });
    assert_eq!(store.change(&change).await.unwrap(), Outcome::Applied);
    let instance = Instance { id: "cliq-abc".into(), path: "/p".into(), registered_at: time };
    store.add_instance(&instance).await.unwrap();
    let (_, mut token) = NewToken::generate(TokenKind::Session, "Ann", Scope::Run, time, None).unwrap();
    token.person = Some(Person {
        issuer: "https://id.example".into(),
        subject: "7".into(),
        mail: None,
        name: "Ann".into(),
        id_token: Some("hush".into()),
    });
    store.add_token(&token).await.unwrap();
    let attempt = SignInAttempt {
        state: "s".into(),
        browser: "b".into(),
        nonce: "hush".into(),
        verifier: "hush".into(),
        expires_at: at("2026-02-01"),
    };
    store.add_sign_in(&attempt, time).await.unwrap();
    let evaluation = EvaluationRow {
        id: "e".into(),
        name: "suite".into(),
        directory: "/d".into(),
        document: "{}".into(),
        created_at: time,
        ended_at: None,
        trials: 1,
        finished: 0,
    };
    let trial = TrialRow {
        number: 1,
        variant: "v".into(),
        case: "c".into(),
        repeat: 1,
        state: TrialState::Pending,
        attempts: 0,
        run_id: None,
        result: String::new(),
    };
    store.add_evaluation(&evaluation, &[trial]).await.unwrap();
    let trigger = NewTrigger { name: "nightly".into(), kind: SourceKind::Schedule, mark: String::new() };
    store.sync_triggers(&[trigger]).await.unwrap();
    let firing = NewFiring {
        trigger: "nightly".into(),
        at: time,
        cause: "tick".into(),
        key: "k".into(),
        content_key: None,
        digest: String::new(),
        payload: "{}".into(),
        depth: 1,
        skipped: None,
    };
    store.add_firing(&firing).await.unwrap();
    let plan = PlanRow {
        project: "p".into(),
        name: "plan".into(),
        state: "ready".into(),
        document: "{}".into(),
        version: 0,
        created_at: time,
        updated_at: time,
    };
    let event =
        NewEvent { kind: "added".into(), from: String::new(), to: "ready".into(), detail: "{}".into() };
    let emit = vec![signal("plan_start", "")];
    assert_eq!(
        store.apply(&Step { plan, events: vec![event], finish: None, emit }).await.unwrap(),
        Outcome::Applied
    );
    let review = review(id.as_str(), "/p", 1, 1);
    assert!(store.add_review(&review, &cliq_review::Content::default()).await.unwrap());
    let rows = vec![
        ("runs", id.to_string()),
        ("instances", "cliq-abc".into()),
        ("tokens", token.id),
        ("sign_ins", "s".into()),
        ("a2a_tasks", id.to_string()),
        ("a2a_push", format!("{id} p")),
        ("evaluations", "e".into()),
        ("trials", "e 1".into()),
        ("triggers", "nightly".into()),
        ("firings", "1".into()),
        ("plans", "p plan".into()),
        ("plan_events", "1".into()),
        ("signals", "1".into()),
        ("reviews", review.id.to_string()),
    ];
    (id, rows)
}

pub(crate) async fn broken_cell_is_an_error_that_names_it(place: &TestDatabase) {
    const WORD: &str = "is not a value of this column";
    const JSON: &str = "not the JSON of this column (line 1, column";
    let store = place.store().await;
    let (run, rows) = fill(&store).await;
    for Case { table, column, value, reason } in [
        case("runs", "team", "'hello'", "\"hello\" is not the name of a team: write `@scope/name`"),
        case("runs", "state", "'flying'", WORD),
        case("runs", "origin", "''", WORD),
        case("runs", "queued_at", "'soon'", "\"soon\" is not a value of this column"),
        case("runs", "started_at", "'2026-02-30T00:00:00.000Z'", WORD),
        case("runs", "request", "'{\"title\": \"hush\", \"inputs\": 1}'", JSON),
        case("runs", "recoveries", "-1", "-1 is not a number of this column"),
        case("runs", "began", "7", "7 is neither 0 nor 1"),
        case("runs", "former", "'queued'", WORD),
        case("runs", "caveats", "'limit surprise'", "\"surprise\" is not a value of this column"),
        case("instances", "registered_at", "'yesterday'", WORD),
        case("tokens", "scope", "'root'", WORD),
        case("tokens", "created_at", "''", WORD),
        case("tokens", "person", "'{\"name\": \"hush\"}'", JSON),
        case("sign_ins", "expires_at", "'never'", WORD),
        case("a2a_tasks", "updated_at", "'x'", WORD),
        case("a2a_push", "state", "'lost'", WORD),
        case("a2a_push", "next_at", "'x'", WORD),
        case("evaluations", "created_at", "'x'", WORD),
        case("trials", "state", "'lost'", WORD),
        case("trials", "run_id", "'../x'", WORD),
        case("trials", "attempts", "-5", "-5 is not a number of this column"),
        case("triggers", "kind", "'moon'", WORD),
        case("firings", "at", "'x'", WORD),
        case("firings", "run_id", "'x'", WORD),
        case("plans", "updated_at", "'x'", WORD),
        case("plan_events", "detail", "'{'", JSON),
        case("signals", "status", "'x'", WORD),
        case("reviews", "document", "'{}'", JSON),
    ] {
        place.execute(&format!("CREATE TABLE known AS SELECT * FROM {table}")).await.unwrap();
        place.execute(&format!("UPDATE {table} SET {column} = {value}")).await.unwrap();
        let error = read(&store, table, &run).await.expect_err(column);
        let text = error.to_string();
        let StoreError::InvalidRow { table: of, column: at, row, reason: why, .. } = error else {
            panic!("{table}.{column}: {text}")
        };
        let expected = &rows.iter().find(|(name, _)| *name == table).unwrap().1;
        assert_eq!((of, at, &row), (table, column, expected), "{text}");
        assert!(why.contains(reason), "{table}.{column}: {why}");
        assert!(!text.contains("hush"), "{text}");
        for part in [table, column, row.as_str(), "another program"] {
            assert!(text.contains(part), "{text}");
        }
        place.execute(&format!("UPDATE {table} SET {column} = (SELECT {column} FROM known)")).await.unwrap();
        place.execute("DROP TABLE known").await.unwrap();
        read(&store, table, &run).await.unwrap_or_else(|error| panic!("{table}: {error}"));
    }
}

/// A text where a number belongs, which only SQLite permits, and NULL in an old column.
pub(crate) async fn cell_of_another_type_is_an_error(place: &TestDatabase) {
    let store = place.store().await;
    let (run, _) = fill(&store).await;
    if place.url().is_none() {
        for (column, value) in [("last_event", "'many'"), ("cost_usd", "'dear'"), ("title", "x'ff'")] {
            place.execute(&format!("UPDATE runs SET {column} = {value}")).await.unwrap();
            let error = store.run(&run).await.expect_err(column);
            assert!(matches!(&error, StoreError::InvalidRow { column: at, .. } if *at == column), "{error}");
            let mended = if column == "title" { "'t'" } else { "1" };
            place.execute(&format!("UPDATE runs SET {column} = {mended}")).await.unwrap();
        }
    }
    assert!(store.run(&run).await.unwrap().is_some(), "the mended row is read");
    place.execute("UPDATE runs SET state = 'flying'").await.unwrap();
    let error = store.counts().await.expect_err("a state that there is not");
    assert!(matches!(&error, StoreError::InvalidRow { row, .. } if row == "flying"), "{error}");
    assert!(store.audit(&cliq_model::AuditFilter::default()).await.is_ok(), "other tables are read");
}
