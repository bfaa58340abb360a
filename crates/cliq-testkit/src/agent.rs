//! A server that is an A2A agent, and a caller of it.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::machine::{Answer, Machine, Running, wait_for};

/// A machine whose server offers all teams, with two to call: `@local/steps` takes a moment, `@local/slow` a minute.
pub fn machine() -> Machine {
    machine_with(&json!({}))
}

/// The same with more settings of `server.a2a`.
pub fn machine_with(more: &Value) -> Machine {
    let mut a2a = json!({"advertise": ["@"], "allow_private_push": true, "instance_id": "cliq-test"});
    a2a.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let settings = json!({"server": {"a2a": a2a, "max_runs": 8, "rate_limit": 100_000}});
    let machine = Machine::new().settings(&settings).arguments(&["--a2a"]);
    machine.team(
        "steps",
        r#"description: Three steps
outputs: [{name: report.md, description: The report}]
workflow:
  phases:
    - {name: p0, type: exec, commands: [{name: c, run: "sleep 0.1"}]}
    - {name: p1, type: exec, depends_on: [p0], commands: [{name: c, run: "sleep 0.2"}]}
    - {name: p2, type: exec, depends_on: [p1], commands: [{name: c, run: "echo '# Done' > report.md"}]}
"#,
    );
    machine.chain("slow", &["sleep 60"]);
    machine
}

/// A new token of a caller.
pub fn token(machine: &Machine, label: &str, scope: &str) -> String {
    let made = machine.ok(&["server", "token", "create", "--label", label, "--scope", scope, "--json"]);
    serde_json::from_str::<Value>(&made).unwrap()["token"].as_str().unwrap().to_owned()
}

/// A caller with a token of its own.
pub struct Caller<'a> {
    /// The server.
    pub server: &'a Running,
    /// Token of the caller.
    pub token: String,
}

/// A message of 1.0 that names a team.
pub fn message(id: &str, team: &str) -> Value {
    json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": "Do it"}, {"data": {"team": team}}]})
}

/// An update of a stream: its number and the item.
pub type Numbered = (Option<String>, Value);

impl<'a> Caller<'a> {
    /// Creates a caller with the scope `run`.
    pub fn new(machine: &Machine, server: &'a Running) -> Self {
        Self { server, token: token(machine, "caller", "run") }
    }

    /// A request with headers beside the token.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Answer {
        let authorization = format!("Bearer {}", self.token);
        let mut all = vec![("authorization", authorization.as_str())];
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            all.push(("content-type", "application/json"));
        }
        all.extend(headers);
        self.server.send(method, path, &all, body)
    }

    /// A call by JSON-RPC: the whole response.
    pub fn call(&self, version: &str, method: &str, params: &Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.send("POST", "/a2a/jsonrpc", &[("a2a-version", version)], Some(&body.to_string()));
        let response = answer.expect(200).json();
        assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!(1)), "{response}");
        response
    }

    /// A call of 1.0 that succeeds.
    #[track_caller]
    pub fn ok(&self, method: &str, params: &Value) -> Value {
        let response = self.call("1.0", method, params);
        assert!(response["error"].is_null(), "{response}");
        response["result"].clone()
    }

    /// A call of 1.0 that fails: its error.
    #[track_caller]
    pub fn error(&self, method: &str, params: &Value) -> Value {
        let response = self.call("1.0", method, params);
        assert!(response["result"].is_null(), "{response}");
        response["error"].clone()
    }

    /// Starts a task of a team and does not wait.
    #[track_caller]
    pub fn start(&self, id: &str, team: &str) -> String {
        let params = json!({"message": message(id, team), "configuration": {"returnImmediately": true}});
        self.ok("SendMessage", &params)["task"]["id"].as_str().unwrap().to_owned()
    }

    /// Returns a task.
    #[track_caller]
    pub fn task(&self, id: &str) -> Value {
        self.ok("GetTask", &json!({"id": id}))
    }

    /// Waits until a task is over, and gives it.
    #[track_caller]
    pub fn ended(&self, id: &str) -> Value {
        wait_for("the task ends", || {
            let task = self.task(id);
            let state = task["status"]["state"].as_str().unwrap();
            let over = ["COMPLETED", "FAILED", "CANCELED"].iter().any(|end| state.ends_with(end));
            over.then_some(task)
        })
    }

    /// Waits until a task works.
    #[track_caller]
    pub fn works(&self, id: &str) {
        wait_for("the task works", || {
            let run = self.server.run(id);
            (run["state"] == "running").then_some(())
        });
    }
}

/// Follows a task by a stream, after the update `last`, and gives each update to `each` until that gives `false` or the stream ends.
/// The server may not be there.
pub fn follow(url: &str, token: &str, id: &str, last: Option<&str>, mut each: impl FnMut(Numbered) -> bool) {
    let mut request = ureq::get(format!("{url}/a2a/rest/tasks/{id}:subscribe"))
        .header("authorization", format!("Bearer {token}"))
        .header("a2a-version", "1.0");
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let Ok(response) = request.call() else { return };
    let mut id = None;
    for line in BufReader::new(response.into_body().into_reader()).lines().map_while(Result::ok) {
        if let Some(text) = line.strip_prefix("id: ") {
            id = Some(text.to_owned());
        } else if let Some(data) = line.strip_prefix("data: ") {
            let Ok(item) = serde_json::from_str(data) else { return };
            if !each((id.take(), item)) {
                return;
            }
        }
    }
}

/// Whether an item of a stream ends the task.
pub fn is_last(item: &Value) -> bool {
    let state = item["statusUpdate"]["status"]["state"].as_str().unwrap_or_default();
    ["COMPLETED", "FAILED", "CANCELED"].iter().any(|end| state.ends_with(end))
}
