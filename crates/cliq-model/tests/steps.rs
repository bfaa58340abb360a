//! Single steps of the life cycle, events of a change, and the words of stored values.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use cliq_model::{
    Change, Death, LastRun, Lifecycle, LifecycleEffect, LifecycleEvent, MAX_RECOVERIES, NewRunEvent,
    NewToken, PushRow, PushState, RecordedRun, Recovery, Run, RunOrigin, RunOutcome, RunState, Scope,
    TokenKind,
};
use cliq_protocol::{RunId, Timestamp, WireTime};

fn after(events: &[LifecycleEvent]) -> Lifecycle {
    let mut life = Lifecycle::default();
    for event in events {
        life.step(*event).unwrap_or_else(|refused| panic!("{event:?}: {refused}"));
    }
    life
}

fn lost(death: Death) -> LifecycleEvent {
    LifecycleEvent::Lost(death, Recovery::Fail)
}

const STARTING: &[LifecycleEvent] = &[LifecycleEvent::Dispatched];
const RUNNING: &[LifecycleEvent] = &[LifecycleEvent::Dispatched, LifecycleEvent::Began];

#[test]
fn cancel_ends_a_queued_run_at_once() {
    let mut life = Lifecycle::default();
    assert_eq!(life.step(LifecycleEvent::CancelRequested), Ok(vec![]));
    assert_eq!(
        life,
        Lifecycle { state: RunState::Cancelled, cancel_requested: true, ..Lifecycle::default() }
    );
}

#[test]
fn cancel_reaches_only_an_orchestrator_that_runs() {
    let mut starting = after(STARTING);
    assert_eq!(starting.step(LifecycleEvent::CancelRequested), Ok(vec![]));
    assert_eq!(starting.state, RunState::Starting);
    assert_eq!(starting.step(LifecycleEvent::Began), Ok(vec![LifecycleEffect::SendCancel]));
    assert_eq!(after(RUNNING).step(LifecycleEvent::CancelRequested), Ok(vec![LifecycleEffect::SendCancel]));
}

fn resumed() -> LifecycleEvent {
    LifecycleEvent::Resumed(LastRun::check(&run(RunOrigin::Server), RecordedRun::None, None).unwrap())
}

#[test]
fn each_outcome_ends_a_running_run() {
    for outcome in RunOutcome::ALL {
        let life = after(&[RUNNING, &[LifecycleEvent::Ended(outcome)]].concat());
        assert_eq!((life.state, life.state.outcome()), (outcome.into(), Some(outcome)));
        assert_eq!(RunOutcome::parse(outcome.as_str()), Some(outcome));
    }
    assert_eq!(RunOutcome::parse("running"), None);
}

#[test]
fn resume_and_adoption_need_a_finished_run() {
    for event in [resumed(), LifecycleEvent::TakenUp] {
        for unfinished in [&[][..], STARTING, RUNNING] {
            let mut life = after(unfinished);
            let state = life.state;
            let refused = life.step(event).unwrap_err();
            assert_eq!(refused.state, state);
            assert_eq!(refused.to_string(), format!("the run is {}", state.as_str()));
        }
    }
    let mut ended = after(&[RUNNING, &[LifecycleEvent::Ended(RunOutcome::Failed)]].concat());
    ended.step(resumed()).unwrap();
    let former = Some(RunOutcome::Failed);
    assert_eq!(ended, Lifecycle { resume: true, began: true, former, ..Lifecycle::default() });
    let mut never_started = after(&[STARTING, &[lost(Death::NeverBegan)]].concat());
    never_started.step(resumed()).unwrap();
    assert_eq!(
        never_started,
        Lifecycle { former, ..Lifecycle::default() },
        "it has no journal to resume from"
    );
    let mut adopted = after(&[LifecycleEvent::CancelRequested]);
    adopted.step(LifecycleEvent::TakenUp).unwrap();
    assert_eq!(adopted, Lifecycle { state: RunState::Running, began: true, ..Lifecycle::default() });
}

#[test]
fn a_resumption_that_comes_to_nothing_restores_the_outcome() {
    let queued = [RUNNING, &[LifecycleEvent::Ended(RunOutcome::Completed), resumed()]].concat();
    let starting = [&queued[..], STARTING].concat();
    for (before, event) in [
        (&queued, LifecycleEvent::CancelRequested),
        (&starting, lost(Death::NeverBegan)),
        (&starting, lost(Death::Died)),
    ] {
        let mut life = after(before);
        let effects = life.step(event).unwrap();
        assert!(!effects.contains(&LifecycleEffect::RemoveWorkspace), "{event:?}");
        let expected = Lifecycle { state: RunState::Completed, began: true, ..Lifecycle::default() };
        assert_eq!(life, expected, "{event:?}");
    }
    let mut life = after(&starting);
    life.step(LifecycleEvent::Began).unwrap();
    assert_eq!(life.former, None, "it goes on: its next end is its own");
}

#[test]
fn a_run_that_never_started_fails_unless_it_was_cancelled() {
    let mut life = after(STARTING);
    assert_eq!(life.step(lost(Death::NeverBegan)), Ok(vec![]));
    assert_eq!(life.state, RunState::Failed);
    let mut life = after(&[LifecycleEvent::Dispatched, LifecycleEvent::CancelRequested]);
    life.step(lost(Death::NeverBegan)).unwrap();
    assert_eq!(life.state, RunState::Cancelled);
}

#[test]
fn a_busy_project_requeues_unless_the_run_was_cancelled() {
    let mut life = after(RUNNING);
    assert_eq!(life.step(lost(Death::ProjectBusy)), Ok(vec![]));
    assert_eq!((life.state, life.resume), (RunState::Queued, true));
    let mut life = after(STARTING);
    life.step(lost(Death::ProjectBusy)).unwrap();
    assert_eq!((life.state, life.resume), (RunState::Queued, false));
    let mut life = after(&[LifecycleEvent::Dispatched, LifecycleEvent::CancelRequested]);
    life.step(lost(Death::ProjectBusy)).unwrap();
    assert_eq!(life.state, RunState::Cancelled);
}

#[test]
fn a_dead_orchestrator_is_restarted_as_often_as_allowed() {
    let died = LifecycleEvent::Lost(Death::Died, Recovery::Resume);
    let mut life = after(RUNNING);
    for n in 1..=MAX_RECOVERIES {
        assert_eq!(life.step(died), Ok(vec![LifecycleEffect::EndLeftovers, LifecycleEffect::Start]));
        assert_eq!((life.state, life.recoveries, life.resume), (RunState::Starting, n, true));
    }
    assert_eq!(life.step(died), Ok(vec![LifecycleEffect::EndLeftovers, LifecycleEffect::RemoveWorkspace]));
    assert_eq!((life.state, life.recoveries), (RunState::Failed, MAX_RECOVERIES));
}

#[test]
fn a_dead_orchestrator_fails_the_run_without_recovery() {
    let mut life = after(RUNNING);
    let effects = life.step(lost(Death::Died)).unwrap();
    assert_eq!(effects, [LifecycleEffect::EndLeftovers, LifecycleEffect::RemoveWorkspace]);
    assert_eq!((life.state, life.recoveries), (RunState::Failed, 0));
}

#[test]
fn a_dead_orchestrator_of_a_cancelled_run_is_not_restarted() {
    let mut life = after(&[RUNNING, &[LifecycleEvent::CancelRequested]].concat());
    let effects = life.step(LifecycleEvent::Lost(Death::Died, Recovery::Resume)).unwrap();
    assert_eq!(effects, [LifecycleEffect::EndLeftovers]);
    assert_eq!(life.state, RunState::Cancelled);
}

fn run(origin: RunOrigin) -> Run {
    let id = RunId::parse_uuid("0190c8a0-7e9b-7cc0-8000-000000000001").unwrap();
    Run::new(id, "@a/b".parse().unwrap(), origin, "/w".into(), Timestamp::UNIX_EPOCH)
}

#[test]
fn events_of_a_change_continue_the_numbers_of_the_run() {
    let mut stored = run(RunOrigin::Server);
    stored.last_event = 7;
    let mut change = Change::of(stored);
    assert_eq!(change.rows(), []);
    for kind in ["a", "b", "c"] {
        change.push(NewRunEvent::of_journal(WireTime::from_text("t"), kind.into(), "{}".into()));
    }
    assert_eq!(change.run.last_event, 10);
    let rows: Vec<(i64, String)> = change.rows().into_iter().map(|row| (row.id, row.kind)).collect();
    assert_eq!(rows, [(8, "a".to_owned()), (9, "b".to_owned()), (10, "c".to_owned())]);
}

#[test]
fn run_ids_are_hyphenated_lower_case_uuids() {
    let text = "0190c8a0-7e9b-7cc0-8000-00000000abcd";
    let id = RunId::parse_uuid(text).unwrap();
    assert_eq!((id.as_str(), id.to_string()), (text, text.to_owned()));
    for wrong in ["", "x", &text.to_uppercase(), &text.replace('-', ""), &format!("{{{text}}}"), &text[1..]] {
        assert_eq!(RunId::parse_uuid(wrong), None, "{wrong}");
    }
    assert_ne!(cliq_fs::new_run_id(), cliq_fs::new_run_id());
    assert!(RunId::parse_uuid(cliq_fs::new_run_id().as_str()).is_some());
}

#[test]
fn runs_of_people_belong_to_their_project() {
    assert!(RunOrigin::Server.is_started_by_server() && RunOrigin::Delegated.is_started_by_server());
    assert!(!RunOrigin::Project.is_started_by_server());
    let mut run = run(RunOrigin::Project);
    assert!(run.has_own_workspace());
    run.instance = Some("p".into());
    assert!(!run.has_own_workspace());
}

#[test]
fn only_starting_and_running_are_active() {
    let active: Vec<_> = RunState::ALL.into_iter().filter(|state| state.is_active()).collect();
    assert_eq!(active, [RunState::Starting, RunState::Running]);
}

/// Words in the database and in the API: a change of one breaks stored rows and clients.
#[test]
fn words_of_stored_values_are_fixed() {
    fn check<T: Copy + PartialEq + std::fmt::Debug>(
        words: &[(T, &str)],
        to: impl Fn(T) -> &'static str,
        from: impl Fn(&str) -> Option<T>,
    ) {
        for (value, word) in words {
            assert_eq!(to(*value), *word);
            assert_eq!(from(word), Some(*value));
        }
        for wrong in ["", "xyzzy", "QUEUED", "queued "] {
            assert_eq!(from(wrong), None, "{wrong}");
        }
    }
    let states =
        ["queued", "starting", "running", "waiting", "completed", "escalated", "failed", "cancelled"];
    let states: Vec<_> = RunState::ALL.into_iter().zip(states).collect();
    check(&states, RunState::as_str, RunState::parse);
    let origins = [
        (RunOrigin::Server, "server"),
        (RunOrigin::Project, "project"),
        (RunOrigin::Delegated, "a2a"),
        (RunOrigin::Evaluation, "evaluation"),
    ];
    check(&origins, RunOrigin::as_str, RunOrigin::parse);
    let scopes = [(Scope::Read, "read"), (Scope::Run, "run"), (Scope::Admin, "admin")];
    check(&scopes, Scope::as_str, Scope::parse);
    let kinds = [(TokenKind::Api, "api"), (TokenKind::Session, "session"), (TokenKind::SignIn, "sign_in")];
    check(&kinds, TokenKind::as_str, TokenKind::parse);
    let pushes = [(PushState::Active, "active"), (PushState::Done, "done"), (PushState::Dead, "dead")];
    check(&pushes, PushState::as_str, PushState::parse);
}

#[test]
fn secrets_show_their_id_and_nothing_else() {
    let (secret, token) =
        NewToken::generate(TokenKind::Api, "ci", Scope::Read, Timestamp::UNIX_EPOCH, None).unwrap();
    assert_eq!(secret.id(), token.id);
    assert_eq!(secret.reveal().split('_').nth(1), Some(secret.id()));
    assert_eq!(format!("{secret:?}"), format!("Secret({})", secret.id()));
    let push = PushRow {
        task_id: cliq_fs::new_run_id(),
        id: "config".into(),
        protocol: "1.0".into(),
        url: "https://hush.example".into(),
        token: Some("hush".into()),
        scheme: Some("Bearer".into()),
        credentials: Some("hush".into()),
        event: 3,
        part: 0,
        state: PushState::Active,
        attempts: 2,
        failing_since: None,
        next_at: Timestamp::UNIX_EPOCH,
        reason: None,
        version: 0,
    };
    let shown = format!("{push:?}");
    assert!(shown.contains("attempts: 2") && shown.contains("config"), "{shown}");
    assert!(!shown.contains("hush"), "{shown}");
}
