//! Numbers of updates, items of streams, requests, numbers and flags of parameters.

use cliq_a2a::{
    Call, EventNumber, Message, Part, PipelineRequest, Role, SigningKey, Status, StreamItem, TaskState,
    Version,
};
use serde_json::{Value, json};

#[test]
fn numbers_of_updates_are_read_and_ordered() {
    let number = |text: &str| EventNumber::parse(text);
    let right = EventNumber { event: 12, index: 3 };
    assert_eq!((number("12.3"), right.to_string()), (Some(right), "12.3".to_owned()));
    assert_eq!(number("0.0"), Some(EventNumber::default()));
    assert!(number("2.0") > number("1.9") && number("1.1") > number("1.0"));
    for wrong in
        ["", "1", "1.", ".1", ".", "1.x", "x.1", "-1.0", "1.-1", "1.2.3", " 1.0", "99999999999999999999.0"]
    {
        assert_eq!(number(wrong), None, "{wrong}");
    }
}

#[test]
fn items_that_ask_and_items_that_end() {
    for state in TaskState::ALL {
        let status = Status { state, message: None, timestamp: None };
        let item = StreamItem::Status { task_id: "t".into(), context_id: "c".into(), status, metadata: None };
        assert_eq!(
            item.asks(),
            [TaskState::InputRequired, TaskState::AuthRequired].contains(&state),
            "{state:?}"
        );
        let ends = [TaskState::Completed, TaskState::Failed, TaskState::Canceled, TaskState::Rejected];
        assert_eq!((item.is_last(), state.is_terminal()), (ends.contains(&state), ends.contains(&state)));
    }
    let said = StreamItem::Message(message(vec![Part::text("x")]));
    assert!(said.is_last() && !said.asks());
}

fn message(parts: Vec<Part>) -> Message {
    Message {
        message_id: "m".into(),
        context_id: None,
        task_id: None,
        role: Role::User,
        parts,
        metadata: None,
        extensions: Vec::new(),
        reference_task_ids: Vec::new(),
    }
}

#[test]
fn data_parts_are_one_object() {
    let parts = vec![Part::data(json!({"a": 1})), Part::text("x"), Part::data(json!({"b": 2, "a": 3}))];
    let data = PipelineRequest::data_of(&message(parts)).unwrap();
    assert_eq!(Value::Object(data), json!({"a": 3, "b": 2}));
    let wrong =
        PipelineRequest::data_of(&message(vec![Part::text("x"), Part::data(json!([1]))])).unwrap_err();
    assert_eq!(wrong.violations[0].field, "message.parts[1].data");
}

#[test]
fn repositories_are_a_list_or_a_text() {
    let repos = |value: Value| PipelineRequest::read(&message(vec![Part::data(json!({"repos": value}))]));
    assert_eq!(repos(json!(" a , b,, ")).unwrap().repos, ["a", "b"]);
    assert_eq!(repos(json!(["a ", "b"])).unwrap().repos, ["a", "b"]);
    for wrong in [json!(["a", 5]), json!(5), json!({})] {
        assert_eq!(repos(wrong).unwrap_err().violations[0].field, "data.repos");
    }
}

#[test]
fn numbers_and_flags_have_several_forms() {
    let size = |value: Value| match Call::parse(Version::V1_0, "ListTasks", &json!({"pageSize": value})) {
        Ok(Call::List(listing)) => Some(listing.page_size),
        _ => None,
    };
    for right in [json!(7), json!("7"), json!(7.0)] {
        assert_eq!(size(right.clone()), Some(7), "{right}");
    }
    for wrong in [json!(7.5), json!("7.5"), json!(true), json!(1e300), json!(-1), json!([7])] {
        assert_eq!(size(wrong.clone()), None, "{wrong}");
    }
    let flag =
        |value: Value| match Call::parse(Version::V1_0, "ListTasks", &json!({"includeArtifacts": value})) {
            Ok(Call::List(listing)) => Some(listing.include_artifacts),
            _ => None,
        };
    for (right, expected) in [
        (json!(true), true),
        (json!(false), false),
        (json!("true"), true),
        (json!("false"), false),
        (Value::Null, false),
    ] {
        assert_eq!(flag(right.clone()), Some(expected), "{right}");
    }
    for wrong in [json!("yes"), json!(1), json!("")] {
        assert_eq!(flag(wrong.clone()), None, "{wrong}");
    }
    // Names of the Protocol Buffers are taken in 1.0 only.
    let snake = json!({"include_artifacts": true});
    let included = |version, method| match Call::parse(version, method, &snake) {
        Ok(Call::List(listing)) => listing.include_artifacts,
        other => panic!("{other:?}"),
    };
    assert!(included(Version::V1_0, "ListTasks") && !included(Version::V0_3, "tasks/list"));
    let id =
        |length: usize| Call::parse(Version::V1_0, "GetTask", &json!({"id": "x".repeat(length)})).is_ok();
    assert_eq!((id(512), id(513)), (true, false));
}

#[test]
fn key_set_has_the_point_of_the_key() {
    let random = ring::rand::SystemRandom::new();
    let algorithm = &ring::signature::ECDSA_P256_SHA256_FIXED_SIGNING;
    let der = ring::signature::EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    let key = SigningKey::from_pkcs8(der.as_ref()).unwrap();
    let set = key.key_set();
    let own = &set["keys"][0];
    assert_eq!((&own["kty"], &own["crv"], &own["alg"]), (&json!("EC"), &json!("P-256"), &json!("ES256")));
    assert_eq!((own["x"].as_str().unwrap().len(), own["y"].as_str().unwrap().len()), (43, 43));
    assert_eq!(format!("{key:?}"), format!("SigningKey({})", own["kid"].as_str().unwrap()));
    assert!(SigningKey::from_pkcs8(b"no key").is_err());
}

#[test]
fn receivers_of_push_notifications_are_checked() {
    let set = |more: Value| {
        let mut params = json!({"taskId": "t", "url": "https://a.example"});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Call::parse(Version::V1_0, "CreateTaskPushNotificationConfig", &params)
    };
    let config = |more: Value| match set(more) {
        Ok(Call::SetPush { config, .. }) => config,
        other => panic!("{other:?}"),
    };
    let given =
        config(json!({"token": "abc", "authentication": {"scheme": "Bearer", "credentials": "x y~"}}));
    let authentication = given.authentication.unwrap();
    assert_eq!((given.token.as_deref(), authentication.scheme.as_str()), (Some("abc"), "Bearer"));
    assert_eq!(authentication.credentials.as_deref(), Some("x y~"));
    assert_eq!(config(json!({"token": "x".repeat(8192)})).token.map(|token| token.len()), Some(8192));
    for wrong in [
        json!({"token": "a\nb"}),
        json!({"token": "é"}),
        json!({"token": "x".repeat(8193)}),
        json!({"authentication": {"credentials": "x"}}),
        json!({"authentication": {"scheme": "two words"}}),
        json!({"authentication": {"scheme": "Bearer", "credentials": "a\r\nX: y"}}),
        json!({"url": null}),
    ] {
        assert!(set(wrong.clone()).is_err(), "{wrong}");
    }
}
