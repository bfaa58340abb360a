//! An editor over pipes: sends lines, and keeps the messages of the agent.
#![expect(clippy::needless_pass_by_value, reason = "arguments are written in place")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use cliq_testkit::env::Env;
use serde_json::{Value, json};

/// `build` waits for `../work/go`, writes a file and completes; `publish` writes `published.txt` after the review.
pub(crate) const TEAM: &str = "workflow:
  phases:
    - {name: build, type: standard, agent: builder}
    - {name: approval, type: hug, depends_on: [build], review: {reviewer: ann, timeout: 1h}}
    - {name: publish, type: exec, depends_on: [approval], commands: [{name: publish, run: 'cp built.txt published.txt'}]}
";
/// As [`TEAM`], without the review.
pub(crate) const PLAIN: &str = "workflow:
  phases:
    - {name: build, type: standard, agent: builder}
    - {name: publish, type: exec, depends_on: [build], commands: [{name: publish, run: 'cp built.txt published.txt'}]}
";
pub(crate) const BUILDER: &str = r#"printf '%s' "$message" > dispatch.json
ok
progress "at work"
touch started
until test -e go; do sleep 0.02; done
date +%s%N > built.txt
say '"status":"complete","result":{"summary":"built it"}'
"#;

/// Time within which a message has to come.
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns a project with a team and its builder.
pub(crate) fn project(team: &str) -> Env {
    let env = Env::new(team, &[("builder", BUILDER)]);
    env.without_models();
    env
}

/// Editor with a running `cliq acp`.
pub(crate) struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// All messages, in the order of their arrival.
    pub(crate) seen: Vec<Value>,
    read: usize,
    last_id: i64,
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Editor {
    /// Starts the agent, without `initialize`.
    pub(crate) fn bare(env: &Env) -> Self {
        let mut child = env
            .command(["acp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, input, lines, seen: Vec::new(), read: 0, last_id: 0 }
    }

    /// Starts the agent and initializes it.
    pub(crate) fn start(env: &Env, capabilities: Value) -> Self {
        let mut editor = Self::bare(env);
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        editor.call("initialize", params);
        editor
    }

    /// Starts the agent and a session in the workspace. Returns the id of the session.
    pub(crate) fn with_session(env: &Env) -> (Self, String) {
        let mut editor = Self::start(env, json!({}));
        let session = editor.call("session/new", json!({ "cwd": env.work(), "mcpServers": [] }));
        let session = session["sessionId"].as_str().unwrap().to_owned();
        (editor, session)
    }

    pub(crate) fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn send(&mut self, method: &str, params: Value) -> i64 {
        self.last_id += 1;
        let id = self.last_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    pub(crate) fn respond(&mut self, request: &Value, result: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string());
    }

    /// Returns the next message that matches, from those that no earlier call has passed.
    #[track_caller]
    pub(crate) fn wait(&mut self, what: &str, matches: impl Fn(&Value) -> bool) -> Value {
        loop {
            while let Some(message) = self.seen.get(self.read) {
                self.read += 1;
                if matches(message) {
                    return message.clone();
                }
            }
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
                    self.seen.push(message);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no {what}; seen: {:#?}", self.seen)
                }
            }
        }
    }

    /// Waits for a response, wherever other messages are.
    #[track_caller]
    pub(crate) fn response(&mut self, id: i64) -> Value {
        let is_it = |message: &Value| message["id"] == id && message.get("method").is_none();
        if let Some(found) = self.seen.iter().find(|message| is_it(message)) {
            return found.clone();
        }
        let read = self.read;
        let found = self.wait(&format!("response {id}"), is_it);
        self.read = read;
        found
    }

    /// Calls a method that succeeds, and returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let response = self.response(id);
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// Calls a method that fails, and returns its error.
    #[track_caller]
    pub(crate) fn fails(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let response = self.response(id);
        assert!(response.get("error").is_some(), "{method}: {response}");
        response["error"].clone()
    }

    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> i64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.send("session/prompt", json!({ "sessionId": session, "prompt": prompt }))
    }

    /// Waits for an update of a kind that matches.
    #[track_caller]
    pub(crate) fn update(&mut self, kind: &str, matches: impl Fn(&Value) -> bool) -> Value {
        let found = self.wait(kind, |message| {
            let update = &message["params"]["update"];
            message["method"] == "session/update" && update["sessionUpdate"] == kind && matches(update)
        });
        found["params"]["update"].clone()
    }

    /// Waits for the permission request of a review.
    #[track_caller]
    pub(crate) fn permission(&mut self) -> Value {
        self.wait("permission request", |message| message["method"] == "session/request_permission")
    }

    /// Text of all messages of the agent.
    pub(crate) fn text(&self) -> String {
        let chunks = self
            .seen
            .iter()
            .filter(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
        chunks.filter_map(|chunk| chunk["params"]["update"]["content"]["text"].as_str()).collect()
    }

    /// Kills the agent with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes the input and waits for the end of the agent. Returns whether it ended well.
    pub(crate) fn close(mut self) -> bool {
        drop(self.input.take());
        self.child.wait().unwrap().success()
    }
}

/// Answer to a permission request.
pub(crate) fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}
