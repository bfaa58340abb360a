//! Properties of the machine: any order of lines, decisions, deadlines and ends.

#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use std::collections::{BTreeMap, BTreeSet};

use cliq_acp::client::{
    AgentEnd, AgentExit, AskId, Effect, Event, Failure, Machine, Outcome, PermissionDecision,
    QuestionDecision, SessionRequest, SteerId, Timer, UsageMeaning,
};
use cliq_acp::schema::ContentBlock;
use cliq_acp::{Id, Incoming, InvalidReason, Line, Message, RpcError};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Something that an agent, a caller or the clock does.
#[derive(Debug, Clone)]
enum Act {
    /// The agent answers its oldest open call well.
    Answer,
    /// The agent answers a call, open or not, with anything.
    AnswerAny(u8, Result<Value, RpcError>),
    /// The agent asks with an id of its own.
    Ask(bool, u8),
    Update(Value),
    Line(Incoming),
    Prompt,
    Steer,
    Cancel,
    Decide(u8, PermissionDecision),
    AnswerQuestion(u8),
    Timer(Timer),
    End(AgentEnd),
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!("text")),
        Just(json!([1])),
        Just(json!({})),
        Just(
            json!({ "protocolVersion": 1, "agentCapabilities": { "loadSession": true, "sessionCapabilities": { "resume": {} } } })
        ),
        Just(
            json!({ "sessionId": "s", "configOptions": [{ "id": "mode", "currentValue": "a", "options": [{ "value": "b" }] }] })
        ),
        Just(json!({ "stopReason": "end_turn" })),
        Just(json!({ "stopReason": "paused" })),
        Just(json!({ "stopReason": 4, "usage": { "inputTokens": 1 } })),
        Just(json!({ "outcome": "injected" })),
    ]
}

fn any_act() -> impl Strategy<Value = Act> {
    let decision = prop_oneof![
        Just(PermissionDecision::Allow),
        Just(PermissionDecision::Reject),
        Just(PermissionDecision::Cancel)
    ];
    let timer = prop_oneof![
        Just(Timer::Start),
        Just(Timer::Replay),
        Just(Timer::Silence),
        Just(Timer::Cancel),
        Just(Timer::Usage)
    ];
    let end = prop_oneof![
        Just(AgentEnd::Exited { exit: AgentExit::Code(0), errors: String::new() }),
        Just(AgentEnd::OutputClosed),
        Just(AgentEnd::InputStuck { bytes: 9 }),
    ];
    let update = prop_oneof![
        Just(json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "x" } })),
        Just(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t" })),
        Just(json!({ "sessionUpdate": "mood" })),
    ];
    let line = prop_oneof![
        Just(Incoming::Blank),
        Just(Incoming::Noise("noise".into())),
        Just(Incoming::Half { bytes: 3 }),
        Just(Incoming::Invalid { reason: InvalidReason::NoKind, id: Some(2.into()) }),
        Just(Incoming::Message(Message::notification("$/cancel_request", json!({ "requestId": 1001 })))),
        Just(Incoming::Message(Message::request(Id::Text("r".into()), "fs/read_text_file", Value::Null))),
    ];
    prop_oneof![
        12 => Just(Act::Answer),
        2 => (0_u8..8, prop_oneof![any_value().prop_map(Ok), Just(Err(RpcError::new(-32601, "no"))), Just(Err(RpcError::new(-32000, "sign in")))])
            .prop_map(|(id, result)| Act::AnswerAny(id, result)),
        6 => (any::<bool>(), 0_u8..4).prop_map(|(is_permission, id)| Act::Ask(is_permission, id)),
        4 => update.prop_map(Act::Update),
        3 => line.prop_map(Act::Line),
        8 => Just(Act::Prompt),
        3 => Just(Act::Steer),
        2 => Just(Act::Cancel),
        6 => (0_u8..6, decision).prop_map(|(id, decision)| Act::Decide(id, decision)),
        2 => (0_u8..6).prop_map(Act::AnswerQuestion),
        6 => timer.prop_map(Act::Timer),
        1 => end.prop_map(Act::End),
    ]
}

/// World around a machine that counts.
#[derive(Default)]
struct World {
    /// Calls of the machine that are not answered yet.
    open: BTreeMap<i64, String>,
    armed: BTreeSet<Timer>,
    /// Requests of the agent by id: how many are made, how many are answered.
    asked: BTreeMap<String, (u32, u32)>,
    /// Open permissions (`true`) and questions.
    open_asks: BTreeMap<AskId, bool>,
    steers: BTreeMap<SteerId, u32>,
    prompts_accepted: u32,
    prompts_sent: u32,
    starts: u32,
    turns: Vec<Outcome>,
    ended: bool,
}

impl World {
    fn step(&mut self, machine: &mut Machine, event: Event) {
        let was_ended = self.ended;
        let is_prompt = matches!(event, Event::Prompt(_));
        let mut is_refused = false;
        for effect in machine.step(event) {
            match effect {
                Effect::Send(Message::Request { id, method, .. }) => {
                    assert!(!was_ended, "a call after the end");
                    let Id::Number(number) = id else { panic!("calls have numbers") };
                    let id = number.as_i64().unwrap();
                    assert!(!self.open.contains_key(&id), "an id is used twice");
                    self.prompts_sent += u32::from(method == "session/prompt");
                    self.open.insert(id, method);
                }
                Effect::Send(Message::Response { id, .. }) => {
                    let asked = self.asked.get_mut(&id.to_string()).expect("a response belongs to a request");
                    asked.1 += 1;
                    assert!(asked.1 <= asked.0, "a request is answered twice");
                }
                Effect::Send(Message::Notification { method, .. }) => assert_eq!(method, "session/cancel"),
                Effect::Arm(timer) => {
                    self.armed.insert(timer);
                }
                Effect::Disarm(timer) => {
                    self.armed.remove(&timer);
                }
                Effect::Started | Effect::StartFailed(_) => self.starts += 1,
                Effect::AskPermission(request) => assert_eq!(self.open_asks.insert(request.id, true), None),
                Effect::AskQuestion(request) => assert_eq!(self.open_asks.insert(request.id, false), None),
                Effect::Withdraw(id) => assert!(self.open_asks.remove(&id).is_some(), "nobody was asked"),
                Effect::Steered(id, _) => *self.steers.get_mut(&id).expect("a steering message") += 1,
                Effect::TurnEnded(report) => self.turns.push(report.outcome),
                Effect::PromptRefused(_) => is_refused = true,
                Effect::Update(..) | Effect::Report(_) => {}
                Effect::End => self.ended = true,
            }
        }
        self.prompts_accepted += u32::from(is_prompt && !is_refused);
        assert_eq!(self.ended, machine.is_ended());
        assert_eq!(self.prompts_sent, self.prompts_accepted, "each accepted prompt is sent once");
        assert!(self.turns.len() <= self.prompts_accepted as usize, "a turn ended twice");
        assert!(self.starts <= 1);
        if self.ended {
            assert!(self.armed.is_empty() && self.open_asks.is_empty());
        }
    }

    /// A decision of the wrong kind changes nothing.
    fn close(&mut self, id: AskId, is_permission: bool) {
        if self.open_asks.get(&id) == Some(&is_permission) {
            self.open_asks.remove(&id);
        }
    }

    fn act(&mut self, machine: &mut Machine, act: Act) {
        let message = |message| Event::Line(Incoming::Message(message));
        let event = match act {
            Act::Answer => {
                let Some((id, method)) = self.open.pop_first() else { return };
                let result = match method.as_str() {
                    "initialize" => {
                        json!({ "protocolVersion": 1, "agentCapabilities": { "sessionCapabilities": { "resume": {} } }, "_meta": { "steering": { "supported": true } } })
                    }
                    "session/prompt" => json!({ "stopReason": "end_turn" }),
                    "_session/steering" => json!({ "outcome": "injected" }),
                    _ => json!({ "sessionId": "s", "modes": { "availableModes": [{ "id": "b" }] } }),
                };
                message(Message::response(id.into(), Ok(result)))
            }
            Act::AnswerAny(id, result) => {
                self.open.remove(&i64::from(id));
                message(Message::response(i64::from(id).into(), result))
            }
            Act::Ask(is_permission, id) => {
                let id = Id::from(1000 + i64::from(id));
                self.asked.entry(id.to_string()).or_default().0 += 1;
                let (method, params) = match is_permission {
                    true => (
                        "session/request_permission",
                        json!({ "sessionId": "s", "toolCall": { "toolCallId": "t" }, "options": [{ "optionId": "o", "kind": "allow_once" }] }),
                    ),
                    false => ("elicitation/create", json!({ "message": "m", "requestedSchema": {} })),
                };
                message(Message::request(id, method, params))
            }
            Act::Update(update) => message(Message::notification(
                "session/update",
                json!({ "sessionId": "s", "update": update }),
            )),
            Act::Line(line) => {
                if let Incoming::Message(Message::Request { id, .. }) = &line {
                    self.asked.entry(id.to_string()).or_default().0 += 1;
                }
                if let Incoming::Invalid { .. } = &line {
                    self.open.remove(&2);
                }
                Event::Line(line)
            }
            Act::Prompt => Event::Prompt(vec![ContentBlock::from("Work.")]),
            Act::Steer => {
                let id = SteerId(self.steers.len() as u64);
                self.steers.insert(id, 0);
                Event::Steer { id, text: "And?".into() }
            }
            Act::Cancel => Event::Cancel,
            Act::Decide(id, decision) => {
                let id = AskId(u64::from(id));
                self.close(id, true);
                Event::PermissionDecided(id, decision)
            }
            Act::AnswerQuestion(id) => {
                let id = AskId(u64::from(id));
                self.close(id, false);
                Event::QuestionAnswered(id, QuestionDecision::Decline)
            }

            Act::Timer(timer) => {
                self.armed.remove(&timer);
                Event::Timer(timer)
            }
            Act::End(end) => Event::Ended(end),
        };
        self.step(machine, event);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_start_prompt_permission_and_message_has_one_end(
        acts in proptest::collection::vec(any_act(), 0..60),
        resume in any::<bool>(),
        mode in any::<bool>(),
        begins_well in any::<bool>(),
    ) {
        let request = SessionRequest {
            cwd: "/w".into(),
            resume: resume.then(|| "s".into()),
            mode: mode.then(|| "b".into()),
            usage: UsageMeaning::Chunks,
            answers_questions: true,
            ..SessionRequest::default()
        };
        let mut machine = Machine::new(request);
        let mut world = World::default();
        world.step(&mut machine, Event::Start);
        if begins_well {
            for act in [Act::Answer, Act::Answer, Act::Answer, Act::Timer(Timer::Replay), Act::Prompt] {
                world.act(&mut machine, act);
            }
        }
        for act in acts {
            world.act(&mut machine, act);
        }
        let end = AgentEnd::Exited { exit: AgentExit::Signal(9), errors: String::new() };
        world.step(&mut machine, Event::Ended(end));
        prop_assert!(machine.is_ended());
        prop_assert_eq!(world.starts, 1);
        prop_assert_eq!(world.turns.len(), world.prompts_accepted as usize);
        prop_assert!(world.steers.values().all(|answered| *answered == 1), "{:?}", world.steers);
    }

    #[test]
    fn only_an_answer_of_the_agent_makes_a_success(acts in proptest::collection::vec(any_act(), 0..40)) {
        let mut machine = Machine::new(SessionRequest::default());
        let mut world = World::default();
        world.step(&mut machine, Event::Start);
        for act in [Act::Answer, Act::Answer, Act::Prompt] {
            world.act(&mut machine, act);
        }
        for act in acts.into_iter().filter(|act| !matches!(act, Act::Answer | Act::AnswerAny(..))) {
            world.act(&mut machine, act);
        }
        world.step(&mut machine, Event::Ended(AgentEnd::OutputClosed));
        prop_assert!(world.turns.iter().all(|outcome| !outcome.is_success()));
    }
}

#[test]
fn long_noise_and_lines_do_not_restart_the_deadline_of_silence() {
    let mut machine = Machine::new(SessionRequest::default());
    let mut world = World::default();
    world.step(&mut machine, Event::Start);
    for act in [Act::Answer, Act::Answer, Act::Prompt] {
        world.act(&mut machine, act);
    }
    let effects = machine.step(Event::Line(Incoming::parse(&Line::Whole(b"still loading".to_vec()))));
    assert!(!effects.contains(&Effect::Arm(Timer::Silence)));
    // Nobody waits for an agent while a person is asked.
    world.act(&mut machine, Act::Ask(true, 1));
    assert!(!world.armed.contains(&Timer::Silence));
    world.act(&mut machine, Act::Decide(1, PermissionDecision::Allow));
    assert!(world.armed.contains(&Timer::Silence));
}

#[test]
fn an_exit_after_an_answer_is_told_with_the_next_prompt() {
    let exit = || AgentEnd::Exited { exit: AgentExit::Code(1), errors: "out of memory".into() };
    // Before and after the time in which usage may follow an answer.
    for is_finished in [false, true] {
        let mut machine = Machine::new(SessionRequest::default());
        let mut world = World::default();
        world.step(&mut machine, Event::Start);
        for act in [Act::Answer, Act::Answer, Act::Prompt, Act::Answer] {
            world.act(&mut machine, act);
        }
        if is_finished {
            world.act(&mut machine, Act::Timer(Timer::Usage));
        }
        world.step(&mut machine, Event::Ended(exit()));
        assert!(world.turns.iter().all(Outcome::is_success) && world.turns.len() == 1, "{:?}", world.turns);
        let refused = |machine: &mut Machine| match machine.step(Event::Prompt(Vec::new())).as_slice() {
            [Effect::PromptRefused(failure)] => failure.clone(),
            effects => panic!("{effects:?}"),
        };
        assert!(matches!(refused(&mut machine), Failure::AgentExited { exit: AgentExit::Code(1), .. }));
        assert_eq!(refused(&mut machine), Failure::Ended);
    }
}
