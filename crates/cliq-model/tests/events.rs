//! JSON of the events of the server: the format of databases that exist.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use cliq_model::{
    Cause, LogEvent, NewRunEvent, OutputSource, PhaseOutput, QueueRequest, RunState, ServerEvent, Setback,
    TaskOutcome, ToolCheck, WorkspaceCheck,
};
use cliq_protocol::{RunId, Timestamp};
use serde_json::{Value, json};

const ID: &str = "0190c8a0-7e9b-7cc0-8000-000000000001";
const NOW: Timestamp = Timestamp::from_unix_millis(1_767_225_600_000);

fn queued(request: QueueRequest) -> ServerEvent {
    ServerEvent::RunQueued { run_id: RunId::parse_uuid(ID).unwrap(), caller: "me".into(), request }
}

fn setback(state: RunState) -> Setback {
    Setback { reason: "killed".into(), state }
}

fn output(source: Option<OutputSource>, events: Vec<Value>, input_required: bool) -> ServerEvent {
    ServerEvent::PhaseOutput(PhaseOutput {
        phase: "writer".parse().unwrap(),
        activation: 1,
        source,
        offset: 10,
        bytes: 4,
        lines: vec!["a".into()],
        events,
        input_required,
    })
}

/// Each event with its JSON as databases of all versions have it.
fn events() -> Vec<(ServerEvent, &'static str)> {
    let on = vec!["r1".to_owned()];
    let tools = vec![ToolCheck { tool: "git".into(), available: true }];
    vec![
        (
            queued(QueueRequest::New),
            r#"{"event":"run_queued","ts":"T","run_id":"0190c8a0-7e9b-7cc0-8000-000000000001","caller":"me"}"#,
        ),
        (
            queued(QueueRequest::Trigger { trigger: "nightly".into(), firing: 7 }),
            r#"{"event":"run_queued","ts":"T","run_id":"0190c8a0-7e9b-7cc0-8000-000000000001","caller":"me","trigger":"nightly","firing":7}"#,
        ),
        (
            queued(QueueRequest::Resume { from: None }),
            r#"{"event":"run_queued","ts":"T","run_id":"0190c8a0-7e9b-7cc0-8000-000000000001","caller":"me","resume":true,"from":null}"#,
        ),
        (
            queued(QueueRequest::Resume { from: Some("writer".into()) }),
            r#"{"event":"run_queued","ts":"T","run_id":"0190c8a0-7e9b-7cc0-8000-000000000001","caller":"me","resume":true,"from":"writer"}"#,
        ),
        (
            ServerEvent::RunDispatched { workspace: "/w".into() },
            r#"{"event":"run_dispatched","ts":"T","workspace":"/w"}"#,
        ),
        (
            ServerEvent::RunTakenOver { from: None, to: "b".into() },
            r#"{"event":"run_taken_over","ts":"T","from":null,"to":"b"}"#,
        ),
        (
            ServerEvent::RunWaiting { on, until: NOW },
            r#"{"event":"run_waiting","on":["r1"],"until":"2026-01-01T00:00:00.000Z","ts":"T"}"#,
        ),
        (
            ServerEvent::RunWoken { cause: Cause::Review { review: "r1".into() } },
            r#"{"event":"run_woken","by":"review","review":"r1","ts":"T"}"#,
        ),
        (ServerEvent::RunWoken { cause: Cause::Time }, r#"{"event":"run_woken","by":"time","ts":"T"}"#),
        (
            ServerEvent::RunRequeued(setback(RunState::Queued)),
            r#"{"event":"run_requeued","ts":"T","reason":"killed","state":"queued"}"#,
        ),
        (
            ServerEvent::CancelRequestedByCaller { caller: "me".into(), reason: None },
            r#"{"event":"cancel_requested_by_caller","ts":"T","caller":"me"}"#,
        ),
        (
            ServerEvent::CancelRequestedByCaller { caller: "me".into(), reason: Some("late".into()) },
            r#"{"event":"cancel_requested_by_caller","ts":"T","caller":"me","reason":"late"}"#,
        ),
        (
            ServerEvent::OrchestratorDied(setback(RunState::Failed)),
            r#"{"event":"orchestrator_died","ts":"T","reason":"killed","state":"failed"}"#,
        ),
        (
            ServerEvent::RunNotStarted(setback(RunState::Cancelled)),
            r#"{"event":"run_not_started","ts":"T","reason":"killed","state":"cancelled"}"#,
        ),
        (
            ServerEvent::RunNotResumed(setback(RunState::Escalated)),
            r#"{"event":"run_not_resumed","ts":"T","reason":"killed","state":"escalated"}"#,
        ),
        (
            ServerEvent::SteeringStored { id: "m1".into(), from: "me".into() },
            r#"{"event":"steering_stored","ts":"T","id":"m1","from":"me"}"#,
        ),
        (
            ServerEvent::WorkspacePrepared(WorkspaceCheck { req_key: "abc".into(), tools }),
            r#"{"event":"workspace_prepared","ts":"T","req_key":"abc","tools":[{"tool":"git","available":true}]}"#,
        ),
        (
            output(Some(OutputSource::Transcript), vec![json!({"type": "text"})], true),
            r#"{"event":"phase_output","ts":"T","phase":"writer","activation":1,"source":"transcript","offset":10,"bytes":4,"lines":["a"],"events":[{"type":"text"}],"input_required":true}"#,
        ),
        (
            output(Some(OutputSource::Log), Vec::new(), false),
            r#"{"event":"phase_output","ts":"T","phase":"writer","activation":1,"source":"log","offset":10,"bytes":4,"lines":["a"]}"#,
        ),
        (
            output(None, Vec::new(), false),
            r#"{"event":"phase_output","ts":"T","phase":"writer","activation":1,"offset":10,"bytes":4,"lines":["a"]}"#,
        ),
        (
            ServerEvent::TaskFinished {
                status: TaskOutcome::Completed,
                reason: None,
                phase: None,
                artifacts: vec![json!({"artifactId": "a"})],
            },
            r#"{"event":"task_finished","ts":"T","status":"completed","reason":null,"phase":null,"artifacts":[{"artifactId":"a"}]}"#,
        ),
        (
            ServerEvent::TaskFinished {
                status: TaskOutcome::Failed,
                reason: Some("killed".into()),
                phase: Some("writer".into()),
                artifacts: Vec::new(),
            },
            r#"{"event":"task_finished","ts":"T","status":"failed","reason":"killed","phase":"writer","artifacts":[]}"#,
        ),
    ]
}

#[test]
fn server_events_have_the_json_of_existing_databases() {
    for (event, expected) in events() {
        let expected: Value =
            serde_json::from_str(&expected.replace("\"T\"", &format!("\"{NOW}\""))).unwrap();
        assert_eq!(event.to_value(NOW), expected);
        assert_eq!(expected["event"], event.kind());
        let stored = NewRunEvent::of_server(NOW, &event);
        assert_eq!((stored.kind(), stored.ts()), (event.kind(), &NOW.into()));
        assert_eq!(serde_json::from_str::<Value>(stored.data()).unwrap(), expected);
        assert!(!stored.data().contains('\n'));
        assert_eq!(LogEvent::parse(stored.data()), LogEvent::Server(Box::new(event)));
    }
}

#[test]
fn unknown_event_is_no_event_of_the_server() {
    for text in [
        r#"{"event":"run_teleported","ts":"T","to":"mars"}"#,
        r#"{"event":"phase_completed","ts":"T","phase":"a"}"#,
        r#"{"event":"run_dispatched","workspace":1}"#,
        r#"{"no":"event"}"#,
        "[]",
        "{",
    ] {
        assert_eq!(LogEvent::parse(text), LogEvent::Other, "{text}");
    }
    let newer = r#"{"event":"run_woken","by":"time","ts":"T","weather":"fine"}"#;
    let known = ServerEvent::RunWoken { cause: Cause::Time };
    assert_eq!(LogEvent::parse(newer), LogEvent::Server(Box::new(known)), "fields of a newer version");
}
