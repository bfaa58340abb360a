//! Requests as the specification has them, and requests that are wrong: the codes and what the errors say.

use cliq_testkit::agent::{Caller, machine, machine_with, message};
use serde_json::{Value, json};

#[test]
fn requests_that_are_none() {
    let machine = machine();
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    for (body, code) in [
        ("{", -32700),
        ("", -32700),
        ("\u{0}", -32700),
        ("[]", -32600),
        ("1", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]"#, -32600),
        (r#"{"id":1,"method":"GetTask"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"GetTask"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"NoSuchMethod"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/none"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":5}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x","historyLength":-5}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageSize":0}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageSize":101}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"status":"TASK_STATE_RUNNING"}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageToken":"x"}}"#, -32602),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"statusTimestampAfter":"yesterday"}}"#,
            -32602,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"../../etc/passwd"}}"#, -32001),
    ] {
        let response = caller.send("POST", "/a2a/jsonrpc", &[], Some(body)).expect(200).json();
        assert_eq!(response["error"]["code"], code, "{body}: {response}");
        assert!(!response["error"]["message"].as_str().unwrap().is_empty());
    }
    caller.send("POST", "/a2a/jsonrpc", &[("content-type", "text/plain")], Some("{}")).expect(415);
    caller.send("GET", "/a2a/jsonrpc", &[], None).expect(405);
    let large = format!(r#"{{"x": "{}"}}"#, "x".repeat(5 << 20));
    caller.send("POST", "/a2a/jsonrpc", &[], Some(&large)).expect(413);
}

#[test]
fn versions() {
    let machine = machine();
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let get = |version: &str, method: &str| {
        caller.call(version, method, &json!({"id": "x"}))["error"]["code"].clone()
    };
    assert_eq!(get("1.0", "GetTask"), -32001);
    assert_eq!(get("1.0.1", "GetTask"), -32001);
    assert_eq!(get("0.3", "tasks/get"), -32001);
    // An empty version is 0.3, which has no such method.
    assert_eq!(get("", "tasks/get"), -32001);
    assert_eq!(get("", "GetTask"), -32601);
    assert_eq!(get("1.0", "tasks/get"), -32601);
    for version in ["2.0", "0.5", "1", "x"] {
        let error = caller.call(version, "GetTask", &json!({"id": "x"}))["error"].clone();
        assert_eq!(error["code"], -32009, "{version}");
        assert_eq!(error["data"][0]["reason"], "VERSION_NOT_SUPPORTED");
        let answer = caller.send("GET", "/a2a/rest/tasks/x", &[("a2a-version", version)], None).expect(400);
        assert_eq!(answer.json()["error"]["details"][0]["reason"], "VERSION_NOT_SUPPORTED");
    }
    caller.send("GET", "/a2a/rest/tasks", &[("a2a-version", "0.3")], None).expect(400);
    caller.send("GET", "/a2a/rest/tasks?A2A-Version=2.0", &[], None).expect(400);
    caller.send("GET", "/a2a/rest/tasks?A2A-Version=1.0", &[], None).expect(200);
    // Data of errors: a list in 1.0, an object in 0.3.
    let old = caller.call("0.3", "tasks/get", &json!({"id": "x"}));
    assert_eq!(old["error"]["data"]["reason"], "TASK_NOT_FOUND");
}

#[test]
fn addresses_and_media_types_that_clients_use() {
    let machine = machine();
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "x"}}).to_string();
    let json = [("content-type", "application/json")];
    let answer = caller.send("POST", "/a2a/jsonrpc/", &json, Some(&body)).expect(200);
    assert_eq!(answer.json()["error"]["code"], -32001);
    for (accept, given) in [
        (None, "application/a2a+json"),
        (Some("*/*"), "application/a2a+json"),
        (Some("application/json"), "application/json"),
        (Some("text/html, Application/JSON; q=0.9"), "application/json"),
        (Some("application/a2a+json, application/json"), "application/a2a+json"),
    ] {
        let headers: Vec<(&str, &str)> = accept.map(|accept| ("accept", accept)).into_iter().collect();
        for (path, status) in [("/a2a/rest/tasks", 200), ("/a2a/rest/tasks/x", 404)] {
            let answer = caller.send("GET", path, &headers, None).expect(status);
            assert_eq!(answer.header("content-type"), given, "{path} {accept:?}");
        }
    }
}

#[test]
fn team_of_a_message_that_names_none() {
    let send = |settings: &Value| {
        let machine = machine_with(settings);
        let server = machine.serve();
        let caller = Caller::new(&machine, &server);
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Do it"}]});
        caller.call("1.0", "SendMessage", &json!({"message": message}))
    };
    let only = send(&json!({"advertise": ["@local/steps"]}));
    assert_eq!(only["result"]["task"]["metadata"]["team"], "@local/steps", "{only}");
    let default = send(&json!({"default_team": "@local/steps"}));
    assert_eq!(default["result"]["task"]["metadata"]["team"], "@local/steps", "{default}");
    let several = send(&json!({"advertise": ["@local"]}));
    assert_eq!(several["error"]["code"], -32602);
    assert!(several.to_string().contains("@local/slow, @local/steps"), "{several}");
    let unknown = send(&json!({"advertise": ["@local/slow"], "default_team": "@local/steps"}));
    assert!(unknown.to_string().contains("is not offered by this agent"), "{unknown}");
}

#[test]
fn messages_that_ask_for_nothing_that_can_be_done() {
    let machine = machine_with(&json!({"advertise": ["@", "!@local/slow"]}));
    machine.team(
        "typed",
        "inputs:\n  - {name: branch, description: The branch, required: true}\n  - {name: count, required: true}\n  - {name: note, default: none}\nworkflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: c, run: echo $(inputs.branch) $(inputs.count) $(inputs.note)}]}\n",
    );
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let send = |data: Value| {
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"data": data}]});
        caller.error("SendMessage", &json!({"message": message}))
    };
    for (data, text) in [
        (json!({}), "@local/steps"),
        (json!({"team": "@local/none"}), "is not offered by this agent"),
        (json!({"team": "@local/slow"}), "is not offered by this agent"),
        (json!({"team": "../../etc"}), "is not offered by this agent"),
        (json!({"team": "/etc"}), "is not offered by this agent"),
        (json!({"team": 5}), "data.team"),
        (json!({"team": "@local/typed"}), "data.inputs.branch: is missing"),
        (json!({"team": "@local/typed", "inputs": {"branch": "b"}}), "data.inputs.count: is missing"),
        (json!({"team": "@local/steps", "inputs": "x"}), "data.inputs"),
        (json!({"team": "@local/steps", "inputs": {"a": {}}}), "data.inputs.a"),
        (json!({"team": "@local/steps", "repos": "file:///etc"}), "data.repos"),
        (json!({"team": "@local/steps", "repos": "--upload-pack=touch /tmp/x"}), "data.repos"),
        (json!({"team": "@local/steps", "repos": "https://u:hush@host.example/a"}), "data.repos"),
        (json!({"team": "@local/steps", "repos": 5}), "data.repos"),
    ] {
        let error = send(data.clone());
        assert_eq!(error["code"], -32602, "{data}: {error}");
        assert!(error["message"].as_str().unwrap().contains(text), "{data}: {error}");
        assert!(error["data"][0]["fieldViolations"].is_array(), "{error}");
        assert!(!error.to_string().contains("hush"));
    }
    // Both missing inputs are listed.
    let error = send(json!({"team": "@local/typed"}));
    assert_eq!(error["data"][0]["fieldViolations"].as_array().unwrap().len(), 2, "{error}");
    // Messages of the wrong form.
    for (message, field) in [
        (json!({"role": "ROLE_USER", "parts": [{"text": "x"}]}), "message.messageId"),
        (json!({"messageId": "m", "parts": [{"text": "x"}]}), "message.role"),
        (json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}), "message.role"),
        (json!({"messageId": "m", "role": "ROLE_USER"}), "message.parts"),
        (json!({"messageId": "m", "role": "ROLE_USER", "parts": []}), "message.parts"),
        (json!({"messageId": "m", "role": "ROLE_USER", "parts": [{}]}), "message.parts[0]"),
        (
            json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x", "url": "y"}]}),
            "message.parts[0]",
        ),
        (json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": 5}]}), "message.parts[0].text"),
    ] {
        let error = caller.error("SendMessage", &json!({"message": message}));
        let fields: Vec<&Value> =
            error["data"][0]["fieldViolations"].as_array().unwrap().iter().map(|v| &v["field"]).collect();
        assert_eq!(fields, [field], "{message}: {error}");
    }
    let file = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"raw": "eA==", "mediaType": "image/png"}, {"data": {"team": "@local/steps"}}]});
    assert_eq!(caller.error("SendMessage", &json!({"message": file}))["code"], -32005);
    let modes = json!({"message": message("m", "@local/steps"), "configuration": {"acceptedOutputModes": ["video/mp4"]}});
    assert_eq!(caller.error("SendMessage", &modes)["code"], -32005);
    // Nothing was stored for any of them.
    assert_eq!(caller.ok("ListTasks", &json!({}))["totalSize"], 0);
}

#[test]
fn unknown_inputs_are_refused_where_that_is_set() {
    let machine = machine();
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let params = |id: &str| {
        let data = json!({"team": "@local/steps", "inputs": {"nosuch": "1"}});
        json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"data": data}]}, "configuration": {"returnImmediately": true}})
    };
    let id = caller.ok("SendMessage", &params("m1"))["task"]["id"].as_str().unwrap().to_owned();
    assert_eq!(caller.ended(&id)["status"]["state"], "TASK_STATE_COMPLETED");
    let token = caller.token;
    drop(server);
    let settings: Value =
        serde_json::from_slice(&std::fs::read(machine.home.join("settings.json")).unwrap()).unwrap();
    let mut settings = settings;
    settings["strict_input_validation"] = true.into();
    std::fs::write(machine.home.join("settings.json"), settings.to_string()).unwrap();
    let server = machine.serve();
    let caller = Caller { server: &server, token };
    let error = caller.error("SendMessage", &params("m2"));
    assert!(error["message"].as_str().unwrap().contains("data.inputs.nosuch"), "{error}");
}

#[test]
fn the_binding_http_json() {
    let machine = machine();
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let version = [("a2a-version", "1.0"), ("content-type", "application/a2a+json")];
    let body = json!({"message": message("m1", "@local/steps")}).to_string();
    let sent = caller.send("POST", "/a2a/rest/message:send", &version, Some(&body)).expect(200);
    assert_eq!(sent.header("content-type"), "application/a2a+json");
    // 1.0 waits for the end.
    let task = sent.json()["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let id = task["id"].as_str().unwrap();
    let get = |path: &str| caller.send("GET", path, &version, None);
    let got = get(&format!("/a2a/rest/tasks/{id}?historyLength=0")).expect(200).json();
    assert!(got["history"].is_null() && got["artifacts"].is_array(), "{got}");
    let list = get("/a2a/rest/tasks?pageSize=10&status=TASK_STATE_COMPLETED").expect(200).json();
    assert_eq!((&list["totalSize"], &list["nextPageToken"]), (&json!(1), &json!("")));
    assert!(list["tasks"][0]["artifacts"].is_null());
    let list = get("/a2a/rest/tasks?includeArtifacts=true&status=TASK_STATE_COMPLETED").expect(200).json();
    assert_eq!(list["tasks"][0]["artifacts"].as_array().unwrap().len(), 2);
    for (method, path, status, reason) in [
        ("GET", "/a2a/rest/tasks/none".to_owned(), 404, "TASK_NOT_FOUND"),
        ("POST", format!("/a2a/rest/tasks/{id}:cancel"), 400, "TASK_NOT_CANCELABLE"),
        ("POST", format!("/a2a/rest/tasks/{id}:subscribe"), 400, "UNSUPPORTED_OPERATION"),
    ] {
        let answer =
            caller.send(method, &path, &version, (method == "POST").then_some("")).expect(status).json();
        let details = &answer["error"]["details"][0];
        assert_eq!(
            (&details["reason"], &details["domain"]),
            (&json!(reason), &json!("a2a-protocol.org")),
            "{answer}"
        );
        assert_eq!(answer["error"]["code"], status);
    }
    get("/a2a/rest/tasks?pageSize=150&historyLength=-5").expect(400);
    get("/a2a/rest/none").expect(404);
    get(&format!("/a2a/rest/tasks/{id}:none")).expect(404);
    caller.send("DELETE", "/a2a/rest/tasks", &version, None).expect(405);
    caller.send("POST", "/a2a/rest/message:send", &version, Some("{")).expect(400);
}

/// Requests of A2A 0.3 without a `messageId`, which callers that predate the field send.
#[test]
fn the_requests_of_the_seed() {
    let machine = machine();
    machine.team(
        "feature",
        "inputs: [{name: target_branch, description: Branch name for the feature}]\nworkflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: c, run: echo $(inputs.target_branch)}]}\n",
    );
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let post =
        |body: &Value| caller.send("POST", "/a2a/jsonrpc", &[], Some(&body.to_string())).expect(200).json();
    let request = |method: &str, parts: Value| json!({"jsonrpc": "2.0", "method": method, "id": "req-1", "params": {"message": {"role": "user", "parts": parts}}});
    let text = json!({"kind": "text", "text": "Write a blog post about the future of AI coordination"});
    let sent =
        post(&request("message/send", json!([text, {"kind": "data", "data": {"team": "@local/steps"}}])));
    assert_eq!((&sent["id"], &sent["result"]["kind"]), (&json!("req-1"), &json!("task")), "{sent}");
    // It is acknowledged as submitted, and its inputs are checked.
    assert_eq!(sent["result"]["status"]["state"], "submitted", "{sent}");
    let data = json!({"team": "@local/feature", "inputs": {"target_branch": "feature/login"}});
    let other = post(&request("message/send", json!([text, {"kind": "data", "data": data}])));
    assert_ne!(sent["result"]["id"], other["result"]["id"]);
    let missing =
        post(&request("message/send", json!([text, {"kind": "data", "data": {"team": "@local/feature"}}])));
    assert!(missing["error"]["message"].as_str().unwrap().contains("target_branch"), "{missing}");
    // The older name of the stream.
    let body =
        request("message/sendSubscribe", json!([text, {"kind": "data", "data": {"team": "@local/steps"}}]));
    let answer = caller.send("POST", "/a2a/jsonrpc", &[], Some(&body.to_string())).expect(200);
    assert!(answer.header("content-type").starts_with("text/event-stream"));
    let items: Vec<Value> = answer
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["result"].clone())
        .collect();
    assert_eq!(items[1]["status"]["message"]["parts"][0]["text"], "Pipeline started — team: @local/steps");
    let last = items.last().unwrap();
    assert_eq!((&last["status"]["state"], &last["final"]), (&json!("completed"), &json!(true)));
    assert_eq!(last["status"]["message"]["parts"][0]["text"], "Pipeline completed");
}
