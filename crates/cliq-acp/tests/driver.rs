//! Driver with an agent that behaves (`fixtures/acp/agent.py`), as a real process.

#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cliq_acp::client::{
    AgentExit, Client, Direction, Failure, Host, Limits, Origin, Outcome, PermissionDecision,
    PermissionReply, PermissionRequest, QuestionDecision, QuestionReply, QuestionRequest, SessionRequest,
    Update,
};
use cliq_acp::schema::ContentBlock;
use serde_json::{Map, Value};

use crate::misbehaving::is_left;

/// Caller that decides on another thread and keeps all lines.
#[derive(Default)]
struct Caller {
    lines: Vec<(Direction, String)>,
}

impl Host for Caller {
    fn update(&mut self, _origin: Origin, _update: &Update) {}

    fn permission(&mut self, _request: &PermissionRequest, reply: PermissionReply) {
        std::thread::spawn(move || reply.send(PermissionDecision::Allow));
    }

    fn question(&mut self, request: &QuestionRequest, reply: QuestionReply) {
        assert_eq!(request.message, "Which?");
        let content = Map::from_iter([("database".to_owned(), Value::from("SQLite"))]);
        std::thread::spawn(move || reply.send(QuestionDecision::Accept(content)));
    }

    fn line(&mut self, direction: Direction, line: &[u8]) {
        self.lines.push((direction, String::from_utf8_lossy(line).into_owned()));
    }
}

fn agent(case: &str, mark: &str) -> Command {
    let script: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/acp/agent.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(case).env(crate::misbehaving::CASE, mark);
    command
}

fn mark(name: &str) -> String {
    format!("{}-{name}", std::process::id())
}

fn request() -> SessionRequest {
    SessionRequest {
        cwd: "/work".into(),
        answers_questions: true,
        client_version: "1.2.3".into(),
        ..SessionRequest::default()
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn prompt() -> Vec<ContentBlock> {
    vec![ContentBlock::from("Work.")]
}

#[test]
fn decisions_come_from_other_threads() {
    let answer = |case: &str| {
        run(async {
            let mut caller = Caller::default();
            let mut session =
                Client::new(agent(case, "decided"), request()).start(&mut caller).await.unwrap();
            let report = session.prompt(prompt(), &mut caller).await;
            session.end(&mut caller).await;
            assert_eq!(report.outcome, Outcome::Completed);
            report.answer().to_owned()
        })
    };
    assert_eq!(answer("asks"), r#"{"outcome": "selected", "optionId": "once"}"#);
    assert_eq!(answer("asks-a-question-unoffered"), "accept");
}

#[test]
fn the_host_gets_the_lines_of_both_sides_as_they_were_written() {
    let lines = run(async {
        let mut caller = Caller::default();
        let mut session = Client::new(agent("noise", "lines"), request()).start(&mut caller).await.unwrap();
        session.prompt(prompt(), &mut caller).await;
        session.end(&mut caller).await;
        caller.lines
    });
    let shown: Vec<String> = lines
        .iter()
        .map(|(direction, line)| match direction {
            Direction::ToAgent => format!("> {line}"),
            Direction::FromAgent => format!("< {line}"),
        })
        .collect();
    insta::assert_snapshot!("lines", shown.join("\n").replace('\u{1b}', "ESC"));
}

#[test]
fn several_prompts_go_to_one_session() {
    run(async {
        let mut caller = Caller::default();
        let mut session = Client::new(agent("good", "several"), request()).start(&mut caller).await.unwrap();
        for _ in 0..3 {
            let report = session.prompt(prompt(), &mut caller).await;
            assert_eq!((report.outcome, report.messages), (Outcome::Completed, vec!["done".to_owned()]));
        }
        session.end(&mut caller).await;
    });
}

#[test]
fn dropped_sessions_and_futures_leave_no_process() {
    let marks = [mark("dropped-session"), mark("dropped-start"), mark("dropped-prompt")];
    run(async {
        let mut caller = Caller::default();
        let session = Client::new(agent("good", &marks[0]), request()).start(&mut caller).await.unwrap();
        drop(session);

        let client = Client::new(agent("hangs-at-initialize", &marks[1]), request());
        let started = tokio::time::timeout(Duration::from_millis(50), client.start(&mut caller)).await;
        assert!(started.is_err());

        let mut session =
            Client::new(agent("hangs-at-prompt", &marks[2]), request()).start(&mut caller).await.unwrap();
        let prompted =
            tokio::time::timeout(Duration::from_millis(50), session.prompt(prompt(), &mut caller)).await;
        assert!(prompted.is_err());
        // The turn that was given up may still run in the agent.
        let report = session.prompt(prompt(), &mut caller).await;
        assert_eq!(report.outcome, Outcome::Failed(Failure::Busy));
    });
    assert!(marks.iter().all(|mark| !is_left(mark)));
}

#[test]
fn agents_end_by_the_end_of_input_then_by_signals() {
    for (case, exit) in [
        ("good", AgentExit::Code(0)),
        ("ignores-the-end-of-input", AgentExit::Signal(15)),
        ("ignores-every-end", AgentExit::Signal(9)),
    ] {
        let mark = mark(case);
        let limits = Limits {
            close: Duration::from_secs(if case == "good" { 60 } else { 0 }),
            terminate: Duration::from_secs(if case == "ignores-every-end" { 0 } else { 60 }),
            ..Limits::default()
        };
        let ended = run(async {
            let mut caller = Caller::default();
            let client = Client::new(agent(case, &mark), request()).with_limits(limits);
            client.start(&mut caller).await.unwrap().end(&mut caller).await
        });
        assert_eq!(ended, exit, "{case}");
        assert!(!is_left(&mark), "{case}");
    }
}

#[test]
fn start_is_cancelled_before_the_agent_answers() {
    let mark = mark("cancelled-start");
    run(async {
        let client = Client::new(agent("hangs-at-initialize", &mark), request());
        client.control().cancel();
        let error = client.start(&mut Caller::default()).await.unwrap_err();
        assert!(matches!(*error.failure, Failure::CancelledStart { .. }), "{error}");
    });
    assert!(!is_left(&mark));
}

#[test]
fn a_program_that_does_not_exist_is_named() {
    let error = run(Client::new(Command::new("/no/such/agent"), request()).start(&mut Caller::default()))
        .unwrap_err();
    assert_eq!(error.to_string(), "cannot start /no/such/agent: No such file or directory (os error 2)");
}
