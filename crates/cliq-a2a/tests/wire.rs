//! The wire formats: what is written is read back, in both versions, and each form is pinned.

use cliq_a2a::{
    A2aError, AgentCard, Artifact, Authentication, Call, Content, ErrorKind, Message, Part, Provider,
    PushConfig, Role, Skill, Status, StreamItem, Task, TaskState, Version, wire,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const VERSIONS: [Version; 2] = [Version::V0_3, Version::V1_0];

fn id() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9._:-]{1,20}"
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    vec(("[a-z]{1,6}", any::<i32>()), 0..3)
        .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key, value.into())).collect())
}

fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        ".{0,20}".prop_map(Content::Text),
        object().prop_map(|object| Content::Data(Value::Object(object))),
        "[A-Za-z0-9+/]{1,8}".prop_map(Content::Bytes),
        "https://[a-z]{1,8}/".prop_map(Content::Url),
    ];
    (content, option::of(object()), option::of("[a-z.]{1,8}"), option::of("[a-z]{1,5}/[a-z]{1,5}")).prop_map(
        |(content, metadata, filename, media_type)| {
            // Beside a name, empty metadata and none are the same in 0.3.
            let is_named = filename.is_some() || media_type.is_some();
            let metadata =
                metadata.filter(|metadata: &serde_json::Map<_, _>| !(is_named && metadata.is_empty()));
            Part { content, metadata, filename, media_type }
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    (
        id(),
        option::of(id()),
        option::of(id()),
        any::<bool>(),
        vec(part(), 1..4),
        option::of(object()),
        vec(id(), 0..3),
        vec(id(), 0..3),
    )
        .prop_map(
            |(message_id, context_id, task_id, user, parts, metadata, extensions, reference_task_ids)| {
                Message {
                    message_id,
                    context_id,
                    task_id,
                    role: if user { Role::User } else { Role::Agent },
                    parts,
                    metadata,
                    extensions,
                    reference_task_ids,
                }
            },
        )
}

fn status() -> impl Strategy<Value = Status> {
    (
        proptest::sample::select(&TaskState::ALL[..]),
        option::of(message()),
        option::of("2026-0[1-9]-01T00:00:00.000Z"),
    )
        .prop_map(|(state, message, timestamp)| Status { state, message, timestamp })
}

fn artifact() -> impl Strategy<Value = Artifact> {
    (id(), option::of("[a-z]{1,9}"), option::of("[a-z]{1,9}"), vec(part(), 1..3)).prop_map(
        |(artifact_id, name, description, parts)| Artifact { artifact_id, name, description, parts },
    )
}

fn task() -> impl Strategy<Value = Task> {
    (
        id(),
        id(),
        status(),
        option::of(vec(artifact(), 0..3)),
        option::of(vec(message(), 0..3)),
        option::of(object()),
    )
        .prop_map(|(id, context_id, status, artifacts, history, metadata)| Task {
            id,
            context_id,
            status,
            artifacts,
            history,
            metadata,
        })
}

fn item() -> impl Strategy<Value = StreamItem> {
    prop_oneof![
        task().prop_map(StreamItem::Task),
        message().prop_map(StreamItem::Message),
        (id(), id(), status(), option::of(object())).prop_map(|(task_id, context_id, status, metadata)| {
            StreamItem::Status { task_id, context_id, status, metadata }
        }),
        (id(), id(), artifact(), option::of(object())).prop_map(
            |(task_id, context_id, artifact, metadata)| {
                StreamItem::Artifact { task_id, context_id, artifact, metadata }
            }
        ),
    ]
}

fn push() -> impl Strategy<Value = PushConfig> {
    let authentication = ("[A-Za-z]{1,8}", option::of("[a-z0-9]{1,9}"))
        .prop_map(|(scheme, credentials)| Authentication { scheme, credentials });
    (option::of(id()), "https://[a-z]{1,9}/", option::of("[a-z0-9]{1,9}"), option::of(authentication))
        .prop_map(|(id, url, token, authentication)| PushConfig { id, url, token, authentication })
}

/// Any JSON, with the names of fields among its keys.
fn any_json() -> impl Strategy<Value = Value> {
    let key = proptest::sample::select(
        &[
            "id",
            "message",
            "parts",
            "text",
            "kind",
            "role",
            "data",
            "file",
            "status",
            "state",
            "taskId",
            "url",
            "configuration",
            "x",
        ][..],
    );
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((key.clone(), inner), 0..5).prop_map(|pairs| Value::Object(
                pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

const METHODS: [&str; 23] = [
    "message/send",
    "message/stream",
    "message/sendSubscribe",
    "tasks/get",
    "tasks/list",
    "tasks/cancel",
    "tasks/resubscribe",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list",
    "tasks/pushNotificationConfig/delete",
    "agent/getAuthenticatedExtendedCard",
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
];

proptest! {
    #[test]
    fn wire_types_round_trip(item in item(), task in task(), push in push(), id in id()) {
        for version in VERSIONS {
            prop_assert_eq!(&wire::read_stream_item(version, &wire::write_stream_item(version, &item)).unwrap(), &item);
            prop_assert_eq!(&wire::read_task(version, &wire::write_task(version, &task)).unwrap(), &task);
            let sent = wire::read_send_response(version, &wire::write_send_response(version, &task)).unwrap();
            prop_assert_eq!(sent, StreamItem::Task(task.clone()));
            let read = wire::read_push(version, &wire::write_push(version, &id, &push)).unwrap();
            prop_assert_eq!(read, (id.clone(), push.clone()));
        }
    }

    #[test]
    fn no_json_makes_it_panic(value in any_json(), method in proptest::sample::select(&METHODS[..])) {
        for version in VERSIONS {
            let _ = wire::read_stream_item(version, &value);
            let _ = wire::read_task(version, &value);
            match Call::parse(version, method, &value) {
                // What is wrong is named.
                Err(error) if error.kind == ErrorKind::InvalidParams => prop_assert!(!error.violations.is_empty()),
                _ => {}
            }
        }
    }
}

#[test]
fn both_forms_are_pinned() {
    let part = |content, filename: Option<&str>| Part {
        content,
        metadata: None,
        filename: filename.map(str::to_owned),
        media_type: filename.map(|_| "text/markdown".to_owned()),
    };
    let message = Message {
        message_id: "m1".into(),
        context_id: Some("context-1".into()),
        task_id: Some("task-1".into()),
        role: Role::User,
        parts: vec![
            part(Content::Text("Write it".into()), None),
            part(Content::Data(json!({"team": "@local/blog"})), None),
            part(Content::Url("https://example.com/a".into()), Some("a.md")),
        ],
        metadata: None,
        extensions: vec!["https://example.com/ext".into()],
        reference_task_ids: vec!["task-0".into()],
    };
    let artifact = Artifact {
        artifact_id: "a1".into(),
        name: Some("report".into()),
        description: None,
        parts: vec![part(Content::Bytes("eA==".into()), Some("report.md"))],
    };
    let status = Status {
        state: TaskState::InputRequired,
        message: None,
        timestamp: Some("2026-01-01T00:00:00.000Z".into()),
    };
    let task = Task {
        id: "task-1".into(),
        context_id: "context-1".into(),
        status: status.clone(),
        artifacts: Some(vec![artifact.clone()]),
        history: Some(vec![message]),
        metadata: None,
    };
    let metadata = Some(Map::from_iter([("eventId".to_owned(), "3.0".into())]));
    let (task_id, context_id) = ("task-1".to_owned(), "context-1".to_owned());
    let items = [
        StreamItem::Task(task),
        StreamItem::Status {
            task_id: task_id.clone(),
            context_id: context_id.clone(),
            status,
            metadata: metadata.clone(),
        },
        StreamItem::Artifact { task_id, context_id, artifact, metadata },
    ];
    let push = PushConfig {
        id: Some("p".into()),
        url: "https://example.com/hook".into(),
        token: Some("t".into()),
        authentication: Some(Authentication { scheme: "Bearer".into(), credentials: Some("c".into()) }),
    };
    for version in VERSIONS {
        let written: Vec<Value> = items.iter().map(|item| wire::write_stream_item(version, item)).collect();
        let all = json!({"items": written, "push": wire::write_push(version, "task-1", &push)});
        insta::assert_json_snapshot!(format!("wire_{}", version.as_str()), all);
    }
}

#[test]
fn errors_are_pinned() {
    let errors: Vec<Value> = ErrorKind::ALL
        .into_iter()
        .map(|kind| {
            let error = A2aError::new(kind, "what happened").with("taskId", "t");
            json!({"1.0": error.to_json_rpc(Version::V1_0), "0.3": error.to_json_rpc(Version::V0_3), "http": error.to_http_json()})
        })
        .collect();
    insta::assert_json_snapshot!("errors", errors);
    insta::assert_json_snapshot!(
        "invalid",
        A2aError::wrong("message.parts", "must have at least one part").to_http_json()
    );
}

#[test]
fn the_card_is_pinned() {
    let card = AgentCard {
        name: "cliq".into(),
        description: "Runs teams".into(),
        version: "1.2.3".into(),
        base_url: "https://cliq.example".into(),
        provider: Provider { organization: "cliq".into(), url: "https://cliq.example".into() },
        skills: vec![Skill::of_team("@local/blog", Some("Writes"), &[], &[], &["text".into()], &[])],
        versions: vec![Version::V0_3, Version::V1_0],
    };
    insta::assert_json_snapshot!("card", card.to_json(None));
    let of = |version| AgentCard { versions: vec![version], ..card.clone() }.to_json(None);
    insta::assert_json_snapshot!("card_0_3", of(Version::V0_3));
    insta::assert_json_snapshot!("card_1_0", of(Version::V1_0));
}
