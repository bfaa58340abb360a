//! A caller sees and touches its own tasks only.

use cliq_testkit::agent::{Caller, machine, token};
use serde_json::{Value, json};

#[test]
fn another_callers_task_is_not_found() {
    let machine = machine();
    let server = machine.serve();
    let (alice, bob) = (Caller::new(&machine, &server), Caller::new(&machine, &server));
    let id = alice.start("m1", "@local/slow");
    alice.works(&id);
    alice.ok(
        "CreateTaskPushNotificationConfig",
        &json!({"taskId": id, "id": "a", "url": "http://127.0.0.1:9/"}),
    );
    let unknown = "01a00000-0000-7000-8000-000000000000";
    for (method, own, other) in [
        ("GetTask", json!({"id": id}), json!({"id": unknown})),
        ("CancelTask", json!({"id": id}), json!({"id": unknown})),
        ("SubscribeToTask", json!({"id": id}), json!({"id": unknown})),
        ("ListTaskPushNotificationConfigs", json!({"taskId": id}), json!({"taskId": unknown})),
        (
            "GetTaskPushNotificationConfig",
            json!({"taskId": id, "id": "a"}),
            json!({"taskId": unknown, "id": "a"}),
        ),
        (
            "DeleteTaskPushNotificationConfig",
            json!({"taskId": id, "id": "a"}),
            json!({"taskId": unknown, "id": "a"}),
        ),
        (
            "CreateTaskPushNotificationConfig",
            json!({"taskId": id, "id": "b", "url": "http://127.0.0.1:9/"}),
            json!({"taskId": unknown, "id": "b", "url": "http://127.0.0.1:9/"}),
        ),
    ] {
        let (mut mine, theirs) = (bob.error(method, &own), bob.error(method, &other));
        assert_eq!(mine["code"], -32001, "{method}: {mine}");
        // The response does not differ from that for a task that does not exist.
        mine["data"][0]["metadata"]["taskId"] = unknown.into();
        assert_eq!(mine, theirs, "{method}");
    }
    let mut message = cliq_testkit::agent::message("m2", "@local/steps");
    message["taskId"] = json!(id);
    assert_eq!(bob.error("SendMessage", &json!({"message": message}))["code"], -32001);
    let mut message = cliq_testkit::agent::message("m3", "@local/steps");
    message["referenceTaskIds"] = json!([id]);
    assert_eq!(bob.error("SendMessage", &json!({"message": message}))["code"], -32001);
    assert_eq!(bob.ok("ListTasks", &json!({}))["totalSize"], 0);
    assert_eq!(alice.ok("ListTasks", &json!({}))["totalSize"], 1);
    // The same id of a message is another message of another caller.
    assert_ne!(bob.start("m1", "@local/steps"), id);
    alice.ok("CancelTask", &json!({"id": id}));
}

#[test]
fn scopes_and_tokens() {
    let machine = machine();
    let server = machine.serve();
    let reader = Caller { server: &server, token: token(&machine, "reader", "read") };
    assert_eq!(reader.ok("ListTasks", &json!({}))["tasks"], json!([]));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": cliq_testkit::agent::message("m", "@local/steps")}});
    let answer = reader.send("POST", "/a2a/jsonrpc", &[], Some(&body.to_string()));
    assert!(answer.expect(403).body.contains("`run`"));
    let params = body["params"].to_string();
    reader.send("POST", "/a2a/rest/message:send", &[], Some(&params)).expect(403);
    // No token, a wrong one, one that was revoked.
    let json_type = [("content-type", "application/json")];
    let answer = server.send("POST", "/a2a/jsonrpc", &json_type, Some(&body.to_string())).expect(401);
    assert_eq!(answer.header("www-authenticate"), "Bearer");
    let wrong = Caller { server: &server, token: "cliq_000000000000_00".to_owned() };
    wrong.send("GET", "/a2a/rest/tasks", &[], None).expect(401);
    let list = machine.ok(&["server", "token", "list", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let id =
        list.as_array().or_else(|| list["tokens"].as_array()).unwrap()[0]["id"].as_str().unwrap().to_owned();
    machine.ok(&["server", "token", "revoke", &id]);
    reader.send("GET", "/a2a/rest/tasks", &[], None).expect(401);
}
