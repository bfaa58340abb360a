//! The machine of an agent for editors.

use std::collections::{BTreeMap, BTreeSet};

use cliq_acp::agent::{
    AgentEffect, AgentEvent, AgentMachine, AgentProfile, CallId, Gate, GateAnswer, OpenMode, OpenedSession,
    Prompt, TurnEnd, TurnId,
};
use cliq_acp::schema::{CreateElicitationRequest, RequestPermissionRequest, StopReason};
use cliq_acp::{Line, Message};
use cliq_protocol::Form;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Machine with a client that numbers its requests.
struct World {
    machine: AgentMachine,
    last: i64,
    /// Number of responses to each request.
    responses: BTreeMap<i64, Vec<Value>>,
    /// Requests to the client, in order.
    asked: Vec<Value>,
    calls: Vec<CallId>,
    turns: Vec<TurnId>,
    answers: Vec<(TurnId, String, GateAnswer)>,
    prompts: Vec<Prompt>,
    cancelled: Vec<TurnId>,
}

impl World {
    fn new(forms: bool) -> Self {
        let machine = AgentMachine::new(AgentProfile::new("test", "1"));
        let mut world = Self {
            machine,
            last: 0,
            responses: BTreeMap::new(),
            asked: Vec::new(),
            calls: Vec::new(),
            turns: Vec::new(),
            answers: Vec::new(),
            prompts: Vec::new(),
            cancelled: Vec::new(),
        };
        let offer = if forms { json!({ "elicitation": { "form": {} } }) } else { json!({}) };
        world.request("initialize", json!({ "protocolVersion": 1, "clientCapabilities": offer }));
        world
    }

    fn request(&mut self, method: &str, params: Value) -> i64 {
        self.last += 1;
        let id = self.last;
        self.responses.insert(id, Vec::new());
        self.line(&Message::request(id.into(), method, params));
        id
    }

    fn line(&mut self, message: &Message) {
        self.step(AgentEvent::Line(Line::Whole(message.to_line().into_bytes())));
    }

    fn step(&mut self, event: AgentEvent) {
        for effect in self.machine.step(event) {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: AgentEffect) {
        match effect {
            AgentEffect::Send(message) => {
                let value: Value = serde_json::from_str(&message.to_line()).expect("JSON");
                match message {
                    Message::Response { .. } => {
                        let id = value["id"].as_i64().expect("requests of this client have numbers");
                        self.responses.get_mut(&id).expect("a request of the client").push(value);
                    }
                    Message::Request { .. } => self.asked.push(value),
                    Message::Notification { .. } => {}
                }
            }
            AgentEffect::Authenticate { call, .. }
            | AgentEffect::List { call, .. }
            | AgentEffect::SetOption { call, .. }
            | AgentEffect::Steer { call, .. } => self.calls.push(call),
            AgentEffect::Open { call, mode, .. } => {
                let id = match mode {
                    OpenMode::New => "s1".to_owned(),
                    OpenMode::Load(id) | OpenMode::Resume(id) => id,
                };
                self.step(AgentEvent::Opened { call, result: Ok(OpenedSession::new(id, Vec::new())) });
            }
            AgentEffect::Start { turn, prompt, .. } => {
                self.turns.push(turn);
                self.prompts.push(prompt);
            }
            AgentEffect::Cancel { turn } => self.cancelled.push(turn),
            AgentEffect::Answer { turn, gate, answer } => self.answers.push((turn, gate.id, answer)),
            AgentEffect::Leave { turn } => self.turns.retain(|open| *open != turn),
        }
    }

    fn open(&mut self) {
        self.request("session/new", json!({ "cwd": "/w", "mcpServers": [] }));
    }

    fn prompt(&mut self, text: &str) -> i64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.request("session/prompt", json!({ "sessionId": "s1", "prompt": prompt }))
    }

    fn answer(&mut self, n: usize, result: Value) {
        let id = self.asked[n]["id"].as_i64().expect("a number");
        self.line(&Message::response(id.into(), Ok(result)));
    }

    fn end(&mut self, turn: TurnId) {
        self.turns.retain(|open| *open != turn);
        self.step(AgentEvent::Ended {
            turn,
            end: TurnEnd::Answered { reason: StopReason::EndTurn, meta: None },
        });
    }

    fn one(&self, id: i64) -> &Value {
        let [response] = self.responses[&id].as_slice() else { panic!("{:?}", self.responses[&id]) };
        response
    }
}

fn gate(id: &str, form: &Value) -> Box<Gate> {
    let form = if form.is_null() {
        Form::default()
    } else {
        Form::from_value(form.clone(), "form").expect("a form")
    };
    let gate = Gate::new(id, "call", "Review of approval").with_targets(vec!["build".to_owned()]);
    Box::new(gate.with_content(vec!["Look.".to_owned().into()], "Elsewhere.").with_form(form))
}

fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

#[test]
fn requests_to_the_client_fit_the_schema() {
    let mut world = World::new(true);
    world.open();
    world.prompt("Build.");
    let turn = world.turns[0];
    let form = json!([
        { "name": "version", "type": "text", "required": true, "help": "As 1.2." },
        { "name": "count", "type": "number", "default": 2 },
        { "name": "loud", "type": "boolean" },
        { "name": "size", "type": "select", "choices": ["s", "m"] },
    ]);
    world.step(AgentEvent::GateOpened { turn, gate: gate("g1", &form) });
    world.answer(0, selected("approve"));
    world.step(AgentEvent::GateOpened { turn, gate: gate("g2", &Value::Null) });
    world.answer(2, selected("changes:build"));
    let [permission, filled, _, words] = world.asked.as_slice() else { panic!("{:#?}", world.asked) };
    serde_json::from_value::<RequestPermissionRequest>(permission["params"].clone()).unwrap();
    for form in [filled, words] {
        let parsed: CreateElicitationRequest = serde_json::from_value(form["params"].clone()).unwrap();
        assert_eq!(serde_json::to_value(&parsed).unwrap()["requestedSchema"]["type"], "object");
    }
    insta::assert_json_snapshot!("gates", [permission, filled, words]);
}

#[test]
fn second_prompts_are_guidance_and_the_first_stays_open() {
    let mut world = World::new(false);
    world.open();
    let first = world.prompt("Build.");
    let second = world.prompt("Faster.");
    let call = world.calls[0];
    world.step(AgentEvent::Done { call, result: Ok("Sent.".into()) });
    assert_eq!(world.one(second)["result"]["stopReason"], "end_turn");
    assert!(world.responses[&first].is_empty());
    world.end(world.turns[0]);
    assert_eq!(world.one(first)["result"]["stopReason"], "end_turn");
}

#[test]
fn a_cancelled_turn_ends_once_and_cancelled() {
    let mut world = World::new(false);
    world.open();
    let first = world.prompt("Build.");
    let guidance = world.prompt("Faster.");
    world.line(&Message::notification("session/cancel", json!({ "sessionId": "s1" })));
    world.line(&Message::notification("session/cancel", json!({ "sessionId": "s1" })));
    assert_eq!(world.cancelled.len(), 1);
    assert_eq!(world.one(guidance)["result"]["stopReason"], "cancelled");
    let late = world.prompt("More.");
    assert_eq!(world.one(late)["error"]["code"], -32602);
    // The run completed before it could be cancelled. The client cancelled the prompt all the same.
    world.end(world.turns[0]);
    assert_eq!(world.one(first)["result"]["stopReason"], "cancelled");
}

#[test]
fn words_of_a_request_for_changes_come_by_the_next_prompt() {
    let mut world = World::new(false);
    world.open();
    let first = world.prompt("Build.");
    let turn = world.turns[0];
    world.step(AgentEvent::GateOpened { turn, gate: gate("g1", &Value::Null) });
    world.answer(0, selected("changes:build"));
    assert_eq!(world.one(first)["result"]["stopReason"], "end_turn");
    assert!(world.turns.is_empty(), "the turn is left");
    world.prompt("Shorter.");
    let answer = GateAnswer::Changes { to: "build".to_owned(), words: "Shorter.".to_owned() };
    assert_eq!(world.prompts[1], Prompt::Answer { gate: "g1".to_owned(), answer });
}

#[test]
fn only_clear_choices_decide() {
    let required = json!([{ "name": "v", "type": "text", "required": true }]);
    for (forms, form, replies) in [
        (false, Value::Null, vec![json!({})]),
        (false, Value::Null, vec![json!({ "outcome": { "outcome": "cancelled" } })]),
        (false, Value::Null, vec![selected("Approve")]),
        (false, Value::Null, vec![selected("changes:publish")]),
        (false, Value::Null, vec![json!({ "outcome": "selected", "optionId": "approve" })]),
        (false, required.clone(), vec![selected("approve")]),
        (true, required.clone(), vec![selected("approve"), json!({ "action": "decline" })]),
        (true, required.clone(), vec![selected("approve"), json!({ "action": "accepted" })]),
        (true, required, vec![selected("approve"), json!({ "action": "accept", "content": [] })]),
        (true, Value::Null, vec![selected("changes:build"), json!({ "action": "accept", "content": {} })]),
    ] {
        let mut world = World::new(forms);
        world.open();
        world.prompt("Build.");
        let turn = world.turns[0];
        world.step(AgentEvent::GateOpened { turn, gate: gate("g1", &form) });
        for (n, reply) in replies.iter().enumerate() {
            world.answer(n, reply.clone());
        }
        assert_eq!(world.answers, [], "{replies:?}");
    }
}

/// Action of a client or a driver in the simulation.
#[derive(Debug, Clone)]
enum Action {
    Open,
    Prompt(String),
    Steered(bool),
    Cancel,
    Gate(u8),
    GateClosed(u8),
    Reply(u8, Value),
    End,
    Unknown,
    List,
    Noise,
}

fn action() -> impl Strategy<Value = Action> {
    let reply = prop_oneof![
        Just(selected("approve")),
        Just(selected("reject")),
        Just(selected("changes:build")),
        Just(json!({ "outcome": { "outcome": "cancelled" } })),
        Just(json!({ "action": "accept", "content": { "changes": "x" } })),
        Just(json!(null)),
    ];
    prop_oneof![
        Just(Action::Open),
        "[ab]{0,3}".prop_map(Action::Prompt),
        any::<bool>().prop_map(Action::Steered),
        Just(Action::Cancel),
        (0..3u8).prop_map(Action::Gate),
        (0..3u8).prop_map(Action::GateClosed),
        (0..6u8, reply).prop_map(|(n, reply)| Action::Reply(n, reply)),
        Just(Action::End),
        Just(Action::Unknown),
        Just(Action::List),
        Just(Action::Noise),
    ]
}

impl World {
    fn act(&mut self, action: Action) {
        match action {
            Action::Open => self.open(),
            Action::Prompt(text) => drop(self.prompt(&text)),
            Action::Steered(is_fine) => {
                if let Some(call) = self.calls.pop() {
                    let error = cliq_acp::RpcError::new(-32600, "no");
                    self.step(AgentEvent::Done { call, result: is_fine.then(|| json!({})).ok_or(error) });
                }
            }
            Action::Cancel => {
                self.line(&Message::notification("session/cancel", json!({ "sessionId": "s1" })));
            }
            Action::Gate(n) => {
                if let Some(turn) = self.turns.last().copied() {
                    self.step(AgentEvent::GateOpened { turn, gate: gate(&format!("g{n}"), &Value::Null) });
                }
            }
            Action::GateClosed(n) => {
                if let Some(turn) = self.turns.last().copied() {
                    self.step(AgentEvent::GateClosed { turn, gate: format!("g{n}") });
                }
            }
            Action::Reply(n, reply) => {
                if usize::from(n) < self.asked.len() {
                    self.answer(n.into(), reply);
                }
            }
            Action::End => {
                if let Some(turn) = self.turns.first().copied() {
                    self.end(turn);
                }
            }
            Action::Unknown => drop(self.request("session/fork", json!({}))),
            Action::List => drop(self.request("session/list", json!({}))),
            Action::Noise => {
                // The answer has no id of a request.
                let effects = self.machine.step(AgentEvent::Line(Line::Whole(b"[".to_vec())));
                assert_eq!(effects.len(), 1);
            }
        }
    }
}

proptest! {
    #[test]
    fn each_request_has_one_response(forms in any::<bool>(), actions in prop::collection::vec(action(), 0..60)) {
        let mut world = World::new(forms);
        for action in actions {
            world.act(action);
        }
        // The driver carries out what is left.
        while let Some(call) = world.calls.pop() {
            world.step(AgentEvent::Done { call, result: Ok(json!({})) });
        }
        for turn in std::mem::take(&mut world.turns) {
            world.end(turn);
        }
        for (request, responses) in &world.responses {
            prop_assert_eq!(responses.len(), 1, "request {}: {:?}", request, responses);
        }
        // A gate is asked about once in a turn, and answered once at most.
        let permissions = world.asked.iter().filter(|asked| asked["method"] == "session/request_permission");
        let ids: Vec<i64> = permissions.map(|asked| asked["id"].as_i64().unwrap()).collect();
        let distinct: BTreeSet<i64> = ids.iter().copied().collect();
        prop_assert_eq!(ids.len(), distinct.len());
        let mut answered = BTreeSet::new();
        for (turn, gate, _) in &world.answers {
            prop_assert!(answered.insert((*turn, gate.clone())), "{} is answered twice", gate);
        }
        // After its end nothing is sent.
        world.step(AgentEvent::Closed);
        let line = Message::request(1.into(), "session/list", json!({})).to_line();
        let effects = world.machine.step(AgentEvent::Line(Line::Whole(line.into_bytes())));
        prop_assert!(!effects.iter().any(|effect| matches!(effect, AgentEffect::Send(_))));
    }
}
