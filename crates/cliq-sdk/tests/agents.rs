//! Agents written with the SDK, answering real messages in real files.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, SignalTail, read_handoff, write_handoff};
use cliq_protocol::{AgentMessage, Body, ChannelBody, ChannelMessage, ChannelOrder, Dispatch, PhaseKind};
use cliq_sdk::{Agent, Envelope, Handoff, LimitReached, Limited, NotifyRequest, Object, PhaseName, Session};
use proptest::prelude::*;
use serde_json::{Value, json};

struct Stage {
    _guard: tempfile::TempDir,
    dir: CliqDir,
}

fn name(text: &str) -> PhaseName {
    PhaseName::parse(text).expect("a name")
}

impl Stage {
    fn new() -> Self {
        let guard = tempfile::tempdir().expect("a directory");
        let dir = CliqDir::create(Utf8Path::from_path(guard.path()).expect("utf-8")).expect("created");
        Self { _guard: guard, dir }
    }

    fn signal_file(&self) -> Utf8PathBuf {
        self.dir.signals().join("dev.jsonl")
    }

    fn message(&self, kind: PhaseKind) -> AgentMessage {
        let channel = |from: &str, to: &str| self.dir.channel(&name(from), &name(to));
        let mut value = json!({
            "version": 1, "type": "phase", "run_id": "r", "workspace": self.dir.workspace(), "cliq_dir": self.dir.root(),
            "phase": {"name": "dev", "type": kind, "agent": "mine", "iteration": 1},
            "inputs": {"k": "v"},
            "incoming": [{"from": "arch", "dir": channel("arch", "dev"), "handoff_file": channel("arch", "dev").join("handoff.json")}],
            "outgoing": [{"to": "qa", "dir": channel("dev", "qa")}, {"to": "ops", "dir": channel("dev", "ops")}],
            "signal_file": self.signal_file(), "files_dir": self.dir.files(),
        });
        if kind.is_gate() {
            value["gate"] = json!({
                "iteration": 2, "max_iterations": 3, "checks": [{"name": "t", "pass": false}], "route_targets": ["arch", "fixer"],
                "history": [], "context_file": "/x",
            });
        }
        AgentMessage::decode(value.to_string().as_bytes()).expect("a message")
    }

    fn lines(&self) -> Vec<ChannelMessage> {
        let mut lines = Vec::new();
        SignalTail::new(&self.signal_file())
            .read_new(|line| lines.push(line.message.expect("a message")))
            .expect("read");
        lines
    }

    fn end(&self) -> ChannelBody {
        let lines = self.lines();
        let mut order = ChannelOrder::new();
        lines.iter().for_each(|m| order.accept(&m.body).expect("in order"));
        lines.last().expect("a line").body.clone()
    }
}

#[test]
fn a_handler_gets_what_was_handed_and_hands_on() {
    let stage = Stage::new();
    let data = json!({"n": 7}).as_object().cloned();
    let handed = Envelope::standard(name("arch"), "x", data, Some("Build it.".into()));
    write_handoff(&stage.dir.channel(&name("arch"), &name("dev")), &handed).unwrap();
    let agent = Agent::new().standard(|ctx| {
        ctx.progress("half")?;
        let got = ctx.handoff_from("arch")?.and_then(|e| e.text).unwrap_or_default();
        ctx.send(&Handoff::text(got).with_data(json!({"ok": true})))?;
        ctx.send_to("ops", &Handoff::data(json!([1])))?;
        assert_eq!(ctx.inputs()["k"], "v");
        Ok(ctx.complete(json!({"done": ctx.incoming()?.len()})))
    });
    assert!(agent.answer(stage.message(PhaseKind::Standard)).unwrap());
    assert_eq!(stage.end(), ChannelBody::Complete { result: Some(json!({"done": 1})) });
    let qa =
        read_handoff(&stage.dir.channel(&name("dev"), &name("qa")), &name("dev"), u64::MAX).unwrap().unwrap();
    assert_eq!((qa.text.as_deref(), qa.agent.as_str()), (Some("Build it."), "mine"));
    let ops = read_handoff(&stage.dir.channel(&name("dev"), &name("ops")), &name("dev"), u64::MAX)
        .unwrap()
        .unwrap();
    assert_eq!(Value::Object(ops.data().unwrap()), json!({"value": [1]}));
}

#[test]
fn errors_panics_and_missing_handlers_are_reported() {
    let cases: [(Agent, &str); 4] = [
        (Agent::new().standard(|_| Err("no model".into())), "no model"),
        (
            Agent::new().standard(|ctx| {
                Ok(ctx.send_to("nobody", &Handoff::text("x")).map(|()| ctx.complete(json!(1)))?)
            }),
            "this phase has no channel to `nobody`; it has: qa, ops",
        ),
        (Agent::new().standard(|_| panic!("index {} is wrong", 3)), "the agent panicked: index 3 is wrong"),
        (Agent::new(), "this agent does not work in phases of type `standard`"),
    ];
    for (agent, want) in cases {
        let stage = Stage::new();
        assert!(!agent.answer(stage.message(PhaseKind::Standard)).unwrap());
        assert_eq!(stage.end(), ChannelBody::Error { error: want.to_owned(), usage: None, limited: None });
    }
}

#[test]
fn reached_limit_is_reported_and_marks_the_handoff() {
    let stage = Stage::new();
    let agent = Agent::new().standard(|ctx| {
        let limited = Limited::new("max_turns", 3);
        ctx.send(&Handoff::text("Half of it.").with_limited(limited.clone()))?;
        Err(LimitReached::new("stopped at max_turns (3)", limited).into())
    });
    assert!(!agent.answer(stage.message(PhaseKind::Standard)).unwrap());
    let ChannelBody::Error { error, limited, .. } = stage.end() else { panic!("an error") };
    assert_eq!(error, "stopped at max_turns (3)");
    assert_eq!(limited, Some(Limited::new("max_turns", 3)));
    let dir = stage.dir.channel(&name("dev"), &name("qa"));
    let handoff = read_handoff(&dir, &name("dev"), u64::MAX).unwrap().unwrap();
    assert_eq!((handoff.text.as_deref(), handoff.limited), (Some("Half of it."), limited));
}

#[test]
fn a_broken_handoff_is_named() {
    let stage = Stage::new();
    let channel = stage.dir.channel(&name("arch"), &name("dev"));
    fs::create_dir_all(&channel).unwrap();
    fs::write(channel.join("handoff.json"), "{\"version\": 1, \"phase_type\": 3}").unwrap();
    let agent =
        Agent::new().standard(|ctx| ctx.incoming().map(|_| ctx.complete(json!(1))).map_err(Into::into));
    assert!(!agent.answer(stage.message(PhaseKind::Standard)).unwrap());
    let ChannelBody::Error { error, .. } = stage.end() else { panic!("an error") };
    assert!(error.contains("handoff.json is not a valid handoff: field `phase_type`: expected"), "{error}");
}

#[test]
fn gates_route_with_feedback_and_only_where_they_may() {
    let stage = Stage::new();
    let agent = Agent::new().gate(|ctx| {
        assert!(
            ctx.route("elsewhere", "x").unwrap_err().to_string().contains("it may route to: arch, fixer")
        );
        Ok(ctx.route("fixer", format!("{} of {}", ctx.iteration(), ctx.max_iterations()))?)
    });
    assert!(agent.answer(stage.message(PhaseKind::Gate)).unwrap());
    let ChannelBody::Complete { result: Some(result) } = stage.end() else { panic!("complete") };
    assert_eq!(result, json!({"verdict": {"outcome": "ROUTE", "target": "fixer", "reason": "2 of 3"}}));
    let feedback = read_handoff(&stage.dir.channel(&name("dev"), &name("fixer")), &name("dev"), u64::MAX)
        .unwrap()
        .unwrap();
    let Body::Gate(data) = feedback.body else { panic!("a gate envelope") };
    assert_eq!((data.iteration, data.checks[0].name.as_str()), (2, "t"));
}

#[test]
fn passing_hands_over_to_successors() {
    let stage = Stage::new();
    assert!(Agent::new().gate(|ctx| Ok(ctx.pass("fine")?)).answer(stage.message(PhaseKind::Gate)).unwrap());
    assert!(
        read_handoff(&stage.dir.channel(&name("dev"), &name("qa")), &name("dev"), u64::MAX)
            .unwrap()
            .is_some()
    );
    let stage = Stage::new();
    assert!(
        Agent::new().gate(|ctx| Ok(ctx.escalate("help"))).answer(stage.message(PhaseKind::Gate)).unwrap()
    );
    assert_eq!(stage.dir.channels().read_dir_utf8().unwrap().count(), 0);
}

#[test]
fn test_messages_are_answered_without_work() {
    let stage = Stage::new();
    let value = json!({"version": 1, "type": "test", "run_id": "r", "workspace": "/w", "cliq_dir": "/w/.cliq", "signal_file": stage.signal_file()});
    let message = AgentMessage::decode(value.to_string().as_bytes()).unwrap();
    assert!(Agent::new().standard(|_| panic!("no work")).answer(message).unwrap());
    assert_eq!(stage.end(), ChannelBody::Complete { result: None });
}

#[test]
fn a_session_that_is_dropped_says_so() {
    let stage = Stage::new();
    drop(Session::open(stage.message(PhaseKind::Standard)).unwrap());
    assert_eq!(
        stage.end(),
        ChannelBody::Error {
            error: "the agent returned without completing".to_owned(),
            usage: None,
            limited: None
        }
    );
    let stage = Stage::new();
    let message = stage.message(PhaseKind::Standard);
    std::thread::spawn(move || {
        let _session = Session::open(message).unwrap();
        panic!("on purpose");
    })
    .join()
    .unwrap_err();
    assert_eq!(
        stage.end(),
        ChannelBody::Error { error: "the agent panicked".to_owned(), usage: None, limited: None }
    );
}

#[test]
fn nothing_can_be_said_after_the_end() {
    let stage = Stage::new();
    let session = Session::open(stage.message(PhaseKind::Standard)).unwrap();
    let reporter = session.reporter().clone();
    session.complete(None).unwrap();
    assert!(reporter.progress("late").unwrap_err().to_string().contains("after the terminal message"));
    assert_eq!(stage.lines().len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    /// No sequence of calls, from several threads at once, writes an order that the protocol forbids.
    #[test]
    fn no_sequence_of_calls_breaks_the_order(calls in proptest::collection::vec(0u8..4, 0..12), end in 0u8..3, late in 0u8..4) {
        let stage = Stage::new();
        let session = Session::open(stage.message(PhaseKind::Standard)).expect("opened");
        let reporter = session.reporter().clone();
        let from_thread = std::thread::spawn({
            let reporter = reporter.clone();
            move || (0..late).for_each(|n| drop(reporter.progress(format!("thread {n}"))))
        });
        for call in calls {
            match call {
                0 => drop(reporter.progress("p")),
                1 => drop(session.reporter().progress("q")),
                _ => drop(reporter.notify(NotifyRequest {
                    id: None,
                    agent: "slack".into(), channel: None, event: "e".into(), payload: None, extra: Object::new() })),
            }
        }
        match end {
            0 => drop(session.complete(Some(json!({"a": 1})))),
            1 => drop(session.error("e")),
            _ => drop(session),
        }
        let _ = reporter.progress("after");
        from_thread.join().expect("joined");
        prop_assert!(stage.end().is_terminal());
    }
}

#[test]
fn the_message_of_the_session_is_what_was_sent() {
    let stage = Stage::new();
    let session = Session::open(stage.message(PhaseKind::Gate)).unwrap();
    assert!(matches!(&session.message().dispatch, Dispatch::Phase(phase) if phase.gate.is_some()));
    session.error("enough").unwrap();
}
