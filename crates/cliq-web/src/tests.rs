//! Documents, callers and problems on stores in memory.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::{Request, StatusCode, header};
use axum::response::IntoResponse;
use camino::Utf8Path;
use cliq_model::{
    AuditFilter, AuditStore, Change, FiringState, MemoryStore, NewFiring, NewRunEvent, Outcome, Person, Run,
    RunCursor, RunFilter, RunOrigin, RunOutcome, RunState, RunStore, Scope, TokenKind, TriggerStore,
};
use cliq_project::{Environment, Host};
use cliq_protocol::{ReviewSpec, RunId, Timestamp};
use cliq_review::{Content, NewReview, Review, ReviewId, Reviews, StoredReviews};
use cliq_settings::Settings;
use cliq_supervisor::{ChangeError, Supervisor, SupervisorOptions};
use cliq_triggers::{Engine, EngineOptions};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    Admin, Caller, CallerAction, Core, People, Problem, Reader, Reviewer, RunSummary, Runner, Via,
    create_token, find_review, find_run, find_trigger, list_firings, list_runs, record, set_trigger_paused,
};

const AT: Timestamp = Timestamp::from_unix_millis(1_767_225_600_000);
const TRIGGERS: &str =
    "triggers:\n  - name: nightly\n    schedule: { cron: \"0 0 1 1 *\" }\n    team: \"@cliq/hello-world\"\n";

/// Core on a store in memory. Its runs stay queued.
struct TestCore {
    core: Arc<Core>,
    store: MemoryStore,
    _dir: tempfile::TempDir,
}

impl TestCore {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Utf8Path::from_path(dir.path()).unwrap();
        std::fs::write(home.join("triggers.yml"), TRIGGERS).unwrap();
        let mut host = Host::new(Environment::new([]), home.join("no-such-program"));
        host.home = Some(home.to_owned());
        let mut options = SupervisorOptions::new(host, home, &Settings::default());
        options.max_runs = 0;
        let store = MemoryStore::default();
        let stopping = CancellationToken::new();
        let supervisor = Supervisor::start(options, Arc::new(store.clone())).await.unwrap();
        let triggers = Engine::start(
            EngineOptions { home: home.to_owned() },
            Arc::new(store.clone()),
            Arc::new(store.clone()),
            supervisor.clone(),
            stopping.clone(),
        );
        let core = Core {
            runs: Arc::new(store.clone()),
            signals: Arc::new(store.clone()),
            evaluations: Arc::new(store.clone()),
            audit: Arc::new(store.clone()),
            sign_ins: Arc::new(store.clone()),
            triggers: triggers.await.unwrap(),
            people: People::default(),
            reviews: Arc::new(StoredReviews::new(supervisor.reviews(Arc::new(store.clone())), || AT)),
            supervisor,
            trace_url: None,
            stopping,
        };
        Self { core: Arc::new(core), store, _dir: dir }
    }

    async fn add(&self, team: &str, change: impl FnOnce(&mut Run)) -> RunId {
        let mut run =
            Run::new(cliq_fs::new_run_id(), team.parse().unwrap(), RunOrigin::Server, "/w".into(), AT);
        change(&mut run);
        let id = run.id.clone();
        assert_eq!(self.store.change(&Change::of(run)).await.unwrap(), Outcome::Applied);
        id
    }
}

impl Drop for TestCore {
    fn drop(&mut self) {
        self.core.supervisor.begin_stop();
        self.core.stopping.cancel();
    }
}

fn caller(scope: Scope, mail: Option<&str>) -> Caller {
    let person = mail.map(|mail| Person {
        issuer: "https://id.example".into(),
        subject: "7".into(),
        mail: Some(mail.into()),
        name: "Ann".into(),
        id_token: None,
    });
    Caller { token: "t".into(), label: "ci".into(), scope, via: Via::Token, person }
}

/// Extracts the caller of a request as a handler does.
async fn extract<T: FromRequestParts<(), Rejection = Problem>>(caller: Option<Caller>) -> Result<T, Problem> {
    let mut request = Request::new(());
    if let Some(caller) = caller {
        request.extensions_mut().insert(caller);
    }
    let (mut parts, ()) = request.into_parts();
    T::from_request_parts(&mut parts, &()).await
}

fn filter(limit: u32) -> RunFilter {
    RunFilter { limit, ..RunFilter::default() }
}

#[tokio::test]
async fn pages_of_runs_have_each_run_once() {
    let test = TestCore::new().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.insert(0, test.add("@a/b", |_| {}).await);
    }
    let (mut seen, mut after, mut sizes) = (Vec::new(), None, Vec::new());
    loop {
        let (runs, next) = list_runs(&test.core, RunFilter { after, ..filter(2) }).await.unwrap();
        sizes.push(runs.len());
        seen.extend(runs.into_iter().map(|run| run.id));
        match next {
            Some(next) => after = RunId::parse_uuid(&next).map(RunCursor),
            None => break,
        }
    }
    assert_eq!((seen, sizes), (ids, vec![2, 2, 1]));
    // A page that ends with the last run has no next one.
    let (runs, next) = list_runs(&test.core, filter(5)).await.unwrap();
    assert_eq!((runs.len(), next), (5, None));
}

#[tokio::test]
async fn filters_of_runs_are_combined() {
    let test = TestCore::new().await;
    let failed = test.add("@a/one", |run| run.life.state = RunState::Failed).await;
    test.add("@a/two", |run| run.life.state = RunState::Failed).await;
    test.add("@a/one", |run| run.caller = "ci".into()).await;
    test.add("@a/one", |run| run.origin = RunOrigin::Evaluation).await;
    let of_one = RunFilter { team: Some("@a/one".into()), ..filter(9) };
    assert_eq!(list_runs(&test.core, of_one.clone()).await.unwrap().0.len(), 2, "trials are left out");
    let (runs, _) =
        list_runs(&test.core, RunFilter { states: vec![RunState::Failed], ..of_one.clone() }).await.unwrap();
    assert_eq!(runs.iter().map(|run| &run.id).collect::<Vec<_>>(), [&failed]);
    for none in [
        RunFilter { since: Some(Timestamp::MAX), ..of_one.clone() },
        RunFilter { until: Some(AT), ..of_one.clone() },
        RunFilter { team: Some("no name of a team".into()), ..filter(9) },
    ] {
        assert!(list_runs(&test.core, none).await.unwrap().0.is_empty());
    }
}

#[tokio::test]
async fn run_is_shown_with_what_the_store_has() {
    let test = TestCore::new().await;
    let id = test
        .add("@a/b", |run| {
            run.life.state = RunState::Completed;
            run.view = json!({"phases": [{"name": "build", "status": "completed"}]});
            run.request.spec.requirement = Some("Build it".into());
            run.ended_at = Some(AT);
        })
        .await;
    let (run, document) = find_run(&test.core, id.as_str()).await.unwrap();
    assert_eq!((run.id, document.phases[0]["name"].as_str()), (id, Some("build")));
    assert_eq!(document.requirement.as_deref(), Some("Build it"));
    assert!(document.workspace_responds, "it was not needed");
    let json = serde_json::to_value(&document).unwrap();
    assert_eq!((&json["team"], &json["ended_at"]), (&json!("@a/b"), &json!("2026-01-01T00:00:00.000Z")));
}

#[tokio::test]
async fn unknown_runs_are_not_found() {
    let test = TestCore::new().await;
    for id in ["", "x", "../../etc", cliq_fs::new_run_id().as_str()] {
        let problem = find_run(&test.core, id).await.map(drop).unwrap_err();
        assert_eq!(problem.status(), StatusCode::NOT_FOUND, "{id}");
    }
}

#[tokio::test]
async fn resumed_run_hides_its_former_end() {
    let test = TestCore::new().await;
    let id = test
        .add("@a/b", |run| {
            run.life.former = Some(RunOutcome::Failed);
            run.reason = Some("the disk was full".into());
            run.ended_at = Some(AT);
        })
        .await;
    let run = test.store.run(&id).await.unwrap().unwrap();
    let summary = RunSummary::of(&run);
    assert_eq!((summary.reason, summary.ended_at, summary.state), (None, None, RunState::Queued));
}

#[tokio::test]
async fn failing_store_is_a_temporary_problem_without_details() {
    let test = TestCore::new().await;
    test.store.fail(1);
    let problem = list_runs(&test.core, filter(2)).await.map(drop).unwrap_err();
    let response = problem.into_response();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
    assert_eq!(response.headers()[header::RETRY_AFTER], "2");
    let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&body["type"], &body["status"]), (&json!("urn:cliq:problem:unavailable"), &json!(503)));
    assert!(!body["detail"].as_str().unwrap().contains("memory"), "the log has the details: {body}");
}

#[tokio::test]
async fn handlers_get_callers_of_their_scope_only() {
    let read = || Some(caller(Scope::Read, None));
    let missing = extract::<Reader>(None).await.unwrap_err().into_response();
    assert_eq!(missing.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(missing.headers()[header::WWW_AUTHENTICATE], "Bearer");
    assert!(extract::<Reader>(read()).await.is_ok());
    let refused = extract::<Runner>(read()).await.unwrap_err();
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert!(refused.detail.contains("`read`") && refused.detail.contains("`run`"), "{}", refused.detail);
    assert!(extract::<Admin>(Some(caller(Scope::Run, None))).await.is_err());
    assert!(extract::<Admin>(Some(caller(Scope::Admin, None))).await.is_ok());
    // A person with a verified address answers reviews without the scope.
    assert!(extract::<Reviewer>(read()).await.is_err());
    assert!(extract::<Reviewer>(Some(caller(Scope::Read, Some("ann@example.com")))).await.is_ok());
}

#[tokio::test]
async fn person_answers_reviews_in_their_own_name() {
    let test = TestCore::new().await;
    let spec = ReviewSpec::from_value(json!({"reviewer": ["ann@example.com", "bob@example.com"]})).unwrap();
    let review = Review::new(NewReview {
        id: ReviewId::random().unwrap(),
        project: "/p".into(),
        team: "@a/b".parse().unwrap(),
        title: None,
        run_id: cliq_fs::new_run_id(),
        phase: "approval".parse().unwrap(),
        iteration: 1,
        max_iterations: 3,
        evaluation: 1,
        attempt: 1,
        reviewers: spec.reviewers.clone(),
        spec,
        route_targets: Vec::new(),
        channels: Vec::new(),
        links: Vec::new(),
        now: AT,
    });
    test.core.reviews.create(&review, &Content::default()).await.unwrap();
    let found = find_review(test.core.reviews.as_ref(), review.id.as_str()).await.unwrap();
    let ann = caller(Scope::Read, Some("ann@example.com"));
    let people = &test.core.people;
    assert_eq!(people.reviewer_for(&found, &ann, None).unwrap(), "ann@example.com");
    let other = people.reviewer_for(&found, &ann, Some("bob@example.com")).unwrap_err();
    assert_eq!(other.status(), StatusCode::FORBIDDEN);
    let stranger = caller(Scope::Admin, Some("eve@example.com"));
    assert_eq!(people.reviewer_for(&found, &stranger, None).unwrap_err().status(), StatusCode::FORBIDDEN);
    for unknown in ["", "x", ReviewId::random().unwrap().as_str()] {
        let problem = find_review(test.core.reviews.as_ref(), unknown).await.map(drop).unwrap_err();
        assert_eq!(problem.status(), StatusCode::NOT_FOUND, "{unknown}");
    }
}

#[tokio::test]
async fn new_token_is_stored_as_a_hash_with_its_end() {
    let test = TestCore::new().await;
    let secret = create_token(&test.core, " ci ", Scope::Run, Some(1)).await.unwrap();
    let token = test.store.token(secret.id()).await.unwrap().unwrap();
    assert_eq!((token.label.as_str(), token.scope, token.kind), ("ci", Scope::Run, TokenKind::Api));
    assert!(token.accepts(&secret, cliq_fs::now()) && !token.accepts(&secret, Timestamp::MAX));
    assert!(!format!("{token:?}").contains(secret.reveal()));
    for (label, days) in [("", None), ("a\nb", None), ("x", Some(0)), ("x", Some(4000))] {
        let problem = create_token(&test.core, label, Scope::Read, days).await.map(drop).unwrap_err();
        assert_eq!(problem.status(), StatusCode::UNPROCESSABLE_ENTITY, "{label:?} {days:?}");
    }
}

#[tokio::test]
async fn pages_of_firings_go_on_where_they_ended() {
    let test = TestCore::new().await;
    for n in 0..3 {
        let firing = NewFiring {
            trigger: "nightly".into(),
            at: AT,
            cause: format!("tick {n}"),
            key: n.to_string(),
            content_key: None,
            digest: String::new(),
            payload: "{}".into(),
            depth: 1,
            skipped: Some("a test".into()),
        };
        test.store.add_firing(&firing).await.unwrap();
    }
    let page = async |before, limit| list_firings(&test.core, None, None, before, limit).await.unwrap();
    let (first, next) = page(None, 2).await;
    assert_eq!(first.iter().map(|firing| firing.cause.as_str()).collect::<Vec<_>>(), ["tick 2", "tick 1"]);
    let (second, end) = page(next, 2).await;
    assert_eq!((second.len(), second[0].cause.as_str(), end), (1, "tick 0", None));
    let pending = list_firings(&test.core, None, Some(FiringState::Pending), None, 9).await.unwrap();
    assert!(pending.0.is_empty());
}

#[tokio::test]
async fn trigger_is_paused_by_its_name() {
    let test = TestCore::new().await;
    assert!(!find_trigger(&test.core, "nightly").await.unwrap().paused);
    assert!(set_trigger_paused(&test.core, "nightly", true).await.unwrap().paused);
    assert!(find_trigger(&test.core, "nightly").await.unwrap().paused);
    let problem = set_trigger_paused(&test.core, "weekly", true).await.map(drop).unwrap_err();
    assert_eq!(problem.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn actions_are_recorded_with_the_person_behind_them() {
    let test = TestCore::new().await;
    let done = |is_done| CallerAction { via: "mcp", action: "cancel", target: "run", is_done };
    record(&test.core, &caller(Scope::Run, None), done(true)).await;
    record(&test.core, &caller(Scope::Run, Some("ann@example.com")), done(false)).await;
    let entries = test.store.audit(&AuditFilter { limit: 9, ..AuditFilter::default() }).await.unwrap();
    let rows: Vec<_> = entries
        .iter()
        .map(|entry| {
            (entry.action.actor.as_str(), entry.action.person.as_deref(), entry.action.outcome.as_str())
        })
        .collect();
    assert_eq!(rows, [("ann@example.com", Some("ann@example.com"), "failed"), ("ci", None, "ok")]);
}

#[tokio::test]
async fn refused_changes_are_conflicts_with_the_state() {
    let test = TestCore::new().await;
    let id = test.add("@a/b", |run| run.life.state = RunState::Completed).await;
    let refused = test.core.supervisor.cancel(&id, "ci").await.map(drop).unwrap_err();
    let problem = Problem::of_change(refused, "cancelled");
    assert_eq!(problem.status(), StatusCode::CONFLICT);
    assert!(problem.detail.contains("completed") && problem.detail.contains("cannot be cancelled"));
    let gone = Problem::of_change(ChangeError::NoRun, "cancelled");
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    let mut change = Change::of(test.store.run(&id).await.unwrap().unwrap());
    change.push(NewRunEvent::of_journal(AT.into(), "x".into(), "{}".into()));
    assert_eq!(test.store.change(&change).await.unwrap(), Outcome::Applied, "nothing was changed");
}
