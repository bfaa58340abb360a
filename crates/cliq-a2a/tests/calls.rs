//! Methods and their parameters, in both versions.

use cliq_a2a::{A2aError, Call, Content, ErrorKind, Listing, SendRequest, TaskState, Version};
use serde_json::{Value, json};

const NEW: Version = Version::V1_0;
const OLD: Version = Version::V0_3;

fn call(version: Version, method: &str, params: &Value) -> Call {
    Call::parse(version, method, params).unwrap_or_else(|error| panic!("{method} {params}: {error:?}"))
}

fn refused(version: Version, method: &str, params: &Value) -> A2aError {
    Call::parse(version, method, params).expect_err(method)
}

fn fields(error: &A2aError) -> Vec<&str> {
    error.violations.iter().map(|violation| violation.field.as_str()).collect()
}

fn new_message() -> Value {
    json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Do it"}]})
}

fn old_message() -> Value {
    json!({"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "Do it"}]})
}

fn sent(version: Version, params: &Value) -> SendRequest {
    let method = if version == NEW { "SendMessage" } else { "message/send" };
    match call(version, method, params) {
        Call::Send(request) => request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_method_has_its_call() {
    let (id, task) = ("t".to_owned(), "t".to_owned());
    for (version, method) in [(NEW, "GetTask"), (OLD, "tasks/get")] {
        let got = call(version, method, &json!({"id": "t", "historyLength": 3}));
        assert_eq!(got, Call::Get { id: id.clone(), history_length: Some(3) });
        let all = call(version, method, &json!({"id": "t"}));
        assert_eq!(all, Call::Get { id: id.clone(), history_length: None });
    }
    for (version, method) in [(NEW, "CancelTask"), (OLD, "tasks/cancel")] {
        let reason_of =
            |metadata: Value| match call(version, method, &json!({"id": "t", "metadata": metadata})) {
                Call::Cancel { id: got, reason } if got == id => reason,
                other => panic!("{other:?}"),
            };
        assert_eq!(reason_of(json!({"reason": " no\nlonger needed "})).as_deref(), Some("no longer needed"));
        assert_eq!(reason_of(json!({"reason": "x".repeat(9000)})).map(|reason| reason.len()), Some(500));
        for none in [json!({}), json!({"reason": " "}), json!({"reason": 1})] {
            assert_eq!(reason_of(none), None);
        }
        assert_eq!(call(version, method, &json!({"id": "t"})), Call::Cancel { id: id.clone(), reason: None });
    }
    for (version, method) in [(NEW, "SubscribeToTask"), (OLD, "tasks/resubscribe")] {
        assert_eq!(call(version, method, &json!({"id": "t"})), Call::Subscribe { id: id.clone() });
    }
    for (version, method) in [(NEW, "ListTasks"), (OLD, "tasks/list")] {
        assert!(matches!(call(version, method, &json!({})), Call::List(_)));
    }
    for (version, method) in [(NEW, "GetExtendedAgentCard"), (OLD, "agent/getAuthenticatedExtendedCard")] {
        assert_eq!(call(version, method, &Value::Null), Call::ExtendedCard);
    }
    for method in ["message/stream", "message/sendSubscribe"] {
        assert!(matches!(call(OLD, method, &json!({"message": old_message()})), Call::Stream(_)));
    }
    assert!(matches!(call(NEW, "SendStreamingMessage", &json!({"message": new_message()})), Call::Stream(_)));
    let get = |id: Option<&str>| Call::GetPush { task_id: task.clone(), id: id.map(str::to_owned) };
    assert_eq!(call(OLD, "tasks/pushNotificationConfig/get", &json!({"id": "t"})), get(None));
    let both = json!({"id": "t", "pushNotificationConfigId": "p"});
    assert_eq!(call(OLD, "tasks/pushNotificationConfig/get", &both), get(Some("p")));
    assert_eq!(
        call(NEW, "GetTaskPushNotificationConfig", &json!({"taskId": "t", "id": "p"})),
        get(Some("p"))
    );
    let list = Call::ListPush { task_id: task.clone() };
    assert_eq!(call(OLD, "tasks/pushNotificationConfig/list", &json!({"id": "t"})), list);
    assert_eq!(call(NEW, "ListTaskPushNotificationConfigs", &json!({"taskId": "t"})), list);
    let delete = Call::DeletePush { task_id: task.clone(), id: "p".to_owned() };
    assert_eq!(call(OLD, "tasks/pushNotificationConfig/delete", &both), delete);
    assert_eq!(call(NEW, "DeleteTaskPushNotificationConfig", &json!({"taskId": "t", "id": "p"})), delete);
    let old = json!({"taskId": "t", "pushNotificationConfig": {"id": "p", "url": "https://a.example"}});
    let new = json!({"taskId": "t", "id": "p", "url": "https://a.example"});
    for (version, method, params) in
        [(OLD, "tasks/pushNotificationConfig/set", old), (NEW, "CreateTaskPushNotificationConfig", new)]
    {
        let Call::SetPush { task_id, config } = call(version, method, &params) else { panic!("{method}") };
        assert_eq!(
            (task_id.as_str(), config.id.as_deref(), config.url.as_str()),
            ("t", Some("p"), "https://a.example")
        );
    }
}

#[test]
fn methods_are_of_their_version() {
    for (version, method) in [(NEW, "tasks/get"), (OLD, "GetTask"), (NEW, "gettask"), (OLD, "")] {
        let error = refused(version, method, &json!({"id": "t"}));
        assert_eq!(error.kind, ErrorKind::MethodNotFound, "{method}");
    }
}

#[test]
fn calls_that_change_and_calls_that_stream() {
    let id = json!({"id": "t"});
    let push = json!({"taskId": "t", "id": "p", "url": "https://a.example"});
    for (method, params, changes, streams) in [
        ("SendMessage", json!({"message": new_message()}), true, false),
        ("SendStreamingMessage", json!({"message": new_message()}), true, true),
        ("GetTask", id.clone(), false, false),
        ("ListTasks", json!({}), false, false),
        ("CancelTask", id.clone(), true, false),
        ("SubscribeToTask", id, false, true),
        ("CreateTaskPushNotificationConfig", push.clone(), true, false),
        ("GetTaskPushNotificationConfig", push.clone(), false, false),
        ("ListTaskPushNotificationConfigs", push.clone(), false, false),
        ("DeleteTaskPushNotificationConfig", push, true, false),
        ("GetExtendedAgentCard", json!({}), false, false),
    ] {
        let call = call(NEW, method, &params);
        assert_eq!((call.changes(), call.streams()), (changes, streams), "{method}");
    }
}

#[test]
fn missing_and_wrong_parameters_are_all_named() {
    assert_eq!(fields(&refused(NEW, "GetTask", &json!({}))), ["id"]);
    assert_eq!(fields(&refused(NEW, "GetTask", &json!({"id": ""}))), ["id"]);
    assert_eq!(
        fields(&refused(NEW, "GetTask", &json!({"id": 5, "historyLength": -1}))),
        ["historyLength", "id"]
    );
    assert_eq!(fields(&refused(NEW, "GetTask", &json!({"id": "x".repeat(513)}))), ["id"]);
    assert_eq!(fields(&refused(NEW, "GetTask", &json!({"id": "a\nb"}))), ["id"]);
    assert_eq!(fields(&refused(NEW, "GetTask", &json!([1]))), ["params", "id"]);
    assert_eq!(fields(&refused(NEW, "GetTaskPushNotificationConfig", &json!({}))), ["taskId", "id"]);
    assert_eq!(fields(&refused(NEW, "SendMessage", &json!({}))), ["message"]);
    assert_eq!(fields(&refused(NEW, "SendMessage", &json!({"message": 5}))), ["message"]);
    let wrong = json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}});
    assert_eq!(fields(&refused(NEW, "SendMessage", &wrong)), ["message.role"]);
    let wrong = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": 5}, {}]}});
    assert_eq!(fields(&refused(NEW, "SendMessage", &wrong)), ["message.parts[0].text", "message.parts[1]"]);
    let wrong = json!({"message": new_message(), "configuration": {"returnImmediately": "perhaps"}});
    assert_eq!(fields(&refused(NEW, "SendMessage", &wrong)), ["configuration.returnImmediately"]);
    let error = refused(NEW, "SendMessage", &wrong);
    assert_eq!(
        (error.kind, error.to_string()),
        (
            ErrorKind::InvalidParams,
            "invalid parameters: configuration.returnImmediately: must be true or false".to_owned()
        )
    );
}

#[test]
fn messages_block_by_the_rule_of_their_version() {
    let old =
        |configuration: Value| sent(OLD, &json!({"message": old_message(), "configuration": configuration}));
    let new =
        |configuration: Value| sent(NEW, &json!({"message": new_message(), "configuration": configuration}));
    assert!(!sent(OLD, &json!({"message": old_message()})).blocking);
    assert!(sent(NEW, &json!({"message": new_message()})).blocking);
    assert!(old(json!({"blocking": true})).blocking && !old(json!({"blocking": false})).blocking);
    assert!(
        !new(json!({"returnImmediately": true})).blocking
            && new(json!({"returnImmediately": false})).blocking
    );
    let request = new(json!({"historyLength": 2, "acceptedOutputModes": ["text/plain"]}));
    assert_eq!(
        (request.history_length, request.accepted_output_modes),
        (Some(2), vec!["text/plain".to_owned()])
    );
    for (version, request) in [
        (NEW, new(json!({"taskPushNotificationConfig": {"url": "https://a.example"}}))),
        (OLD, old(json!({"pushNotificationConfig": {"url": "https://a.example"}}))),
    ] {
        assert_eq!(request.push.unwrap().url, "https://a.example", "{version:?}");
    }
}

fn listed(version: Version, params: &Value) -> Listing {
    let method = if version == NEW { "ListTasks" } else { "tasks/list" };
    match call(version, method, params) {
        Call::List(listing) => listing,
        other => panic!("{other:?}"),
    }
}

#[test]
fn lists_have_filters() {
    let all = listed(NEW, &json!({}));
    assert_eq!((all.context_id, all.state, all.after, all.page_token), (None, None, None, None));
    assert_eq!((all.page_size, all.history_length, all.include_artifacts), (50, None, false));
    let some = listed(
        NEW,
        &json!({"contextId": "c", "status": "TASK_STATE_WORKING", "pageSize": "7", "pageToken": "p",
        "statusTimestampAfter": "2026-01-31T10:30:00.000Z", "historyLength": 1, "includeArtifacts": "true"}),
    );
    assert_eq!((some.context_id.as_deref(), some.page_token.as_deref()), (Some("c"), Some("p")));
    assert_eq!((some.state, some.page_size, some.history_length), (Some(TaskState::Working), 7, Some(1)));
    assert!(some.include_artifacts && some.after.is_some());
    assert_eq!(listed(NEW, &json!({"status": "TASK_STATE_UNSPECIFIED"})).state, None);
    assert_eq!(listed(OLD, &json!({"status": "input-required"})).state, Some(TaskState::InputRequired));
    let wrong = refused(NEW, "ListTasks", &json!({"status": "working"}));
    assert!(wrong.to_string().contains("must be one of: TASK_STATE_SUBMITTED"), "{wrong}");
    for (name, value) in [("pageSize", json!(0)), ("pageSize", json!(101)), ("pageSize", json!("x"))] {
        assert_eq!(fields(&refused(NEW, "ListTasks", &json!({name: value}))), [name]);
    }
    assert_eq!(listed(NEW, &json!({"pageSize": 100})).page_size, 100);
}

#[test]
fn times_of_lists_are_in_utc() {
    for right in ["2026-01-31T10:30:00Z", "2026-01-31T10:30:00.1Z", "2026-01-31T10:30:00.123456789Z"] {
        let after = listed(NEW, &json!({"statusTimestampAfter": right})).after;
        assert_eq!(after, cliq_protocol::Timestamp::parse(right).ok());
    }
    for wrong in [
        "2026-02-30T10:30:00Z",
        "2026-01-31T10:30:00",
        "2026-01-31T10:30:00+01:00",
        "2026-01-31 10:30:00Z",
        "2026-01-31T10:30Z",
        "yesterday",
        "2026-01-31T10:30:00.Z",
        "2026-01-31T10:30:00.1234567890Z",
        "2026-01-31T10:30:00.x1Z",
        "2o26-01-31T10:30:00Z",
        "2026-01-31T10:30:000Z",
        "Z",
    ] {
        assert_eq!(
            fields(&refused(NEW, "ListTasks", &json!({"statusTimestampAfter": wrong}))),
            ["statusTimestampAfter"],
            "{wrong}"
        );
    }
}

#[test]
fn files_and_foreign_media_types_are_refused() {
    let request = |part: Value, modes: Value| {
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [part]});
        sent(NEW, &json!({"message": message, "configuration": {"acceptedOutputModes": modes}}))
    };
    let text = json!({"text": "x"});
    for modes in [
        json!([]),
        json!(["text/plain"]),
        json!(["image/png", "Application/JSON; charset=utf-8"]),
        json!(["*/*"]),
        json!(["data"]),
    ] {
        assert_eq!(request(text.clone(), modes.clone()).check_content(), Ok(()), "{modes}");
    }
    let error = request(text, json!(["image/png", "audio/*"])).check_content().unwrap_err();
    assert_eq!(error.kind, ErrorKind::ContentTypeNotSupported);
    for file in [json!({"raw": "eA==", "mediaType": "image/png"}), json!({"url": "https://a.example/x.png"})]
    {
        let request = request(file, json!([]));
        assert!(matches!(request.message.parts[0].content, Content::Bytes(_) | Content::Url(_)));
        assert_eq!(request.check_content().unwrap_err().kind, ErrorKind::ContentTypeNotSupported);
    }
}

#[test]
fn millions_of_malformed_parts_give_a_short_error() {
    // 4 MB gave an error of 222 MB, and took 3.7 GB.
    for (part, size) in
        [("0", 4_000_000), ("{}", 600_000), ("[]", 600_000), ("{\"text\":1}", 600_000), ("null", 600_000)]
    {
        let text = format!(
            "{{\"message\":{{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{}]}}}}",
            vec![part; size / (part.len() + 1)].join(",")
        );
        let params: Value = serde_json::from_str(&text).expect("JSON");
        let error = refused(NEW, "SendMessage", &params);
        assert_eq!((error.violations.len(), error.kind), (21, ErrorKind::InvalidParams), "{part}");
        let last = &error.violations[20];
        assert!(last.field == "params" && last.description.ends_with(" more"), "{last:?}");
        assert!(error.to_json_rpc(NEW).to_string().len() < 10_000, "{part}");
        assert!(
            error.message.contains("message.parts[19]") && !error.message.contains("parts[20]"),
            "{}",
            error.message
        );
    }
}

#[test]
fn names_from_outside_are_cut_in_errors() {
    let inputs: serde_json::Map<String, Value> =
        (0..100_000).map(|n| (format!("{n}-{}", "x".repeat(400)), json!([]))).collect();
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"inputs": inputs}}]});
    let request = sent(NEW, &json!({"message": message}));
    let error = cliq_a2a::PipelineRequest::read(&request.message).unwrap_err();
    assert!(error.violations.len() == 21 && error.to_json_rpc(NEW).to_string().len() < 20_000);
}
