//! Records of real agents (`fixtures/acp/records`), line by line through the machine.
//!
//! Each process of a record is driven as it was then: the client's calls of the record become events, the agent's lines are fed in
//! order. Ids differ, so that the agent's responses are translated to the ids of the machine.

#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cliq_acp::client::{
    AgentEnd, AgentExit, AskId, Effect, Event, Machine, Origin, PermissionDecision, QuestionDecision,
    SessionRequest, SteerId, Timer, Update, UsageMeaning,
};
use cliq_acp::{Id, Incoming, Line, Message};
use serde_json::Value;

fn records() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/acp/records");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn meaning(name: &str) -> UsageMeaning {
    match name.split('.').next().unwrap() {
        "claude-agent" | "codex" => UsageMeaning::Turn,
        "opencode" => UsageMeaning::LastRequest,
        "copilot" => UsageMeaning::Cumulative,
        "gemini" => UsageMeaning::Quota,
        "qwen" => UsageMeaning::Chunks,
        _ => UsageMeaning::None,
    }
}

/// One process of a record, and the machine that drives it again.
struct Replay {
    machine: Machine,
    /// Ids of calls of the machine that the record has not made yet, by method.
    sent: BTreeMap<String, VecDeque<Id>>,
    /// Ids of the record and of the machine.
    ids: BTreeMap<String, Id>,
    asks: BTreeMap<String, (AskId, bool)>,
    open_asks: VecDeque<(AskId, bool)>,
    usage_is_due: bool,
    counts: BTreeMap<String, usize>,
    out: String,
}

impl Replay {
    fn note(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    fn flush(&mut self) {
        let counts = std::mem::take(&mut self.counts);
        for (what, n) in counts {
            writeln!(self.out, "    {n} {what}").unwrap();
        }
    }

    fn step(&mut self, event: Event) {
        for effect in self.machine.step(event) {
            match effect {
                Effect::Send(Message::Request { id, method, .. }) => {
                    self.sent.entry(method).or_default().push_back(id);
                }
                Effect::Send(Message::Response { result, .. }) => match result {
                    Ok(_) => self.note("answers"),
                    Err(error) => self.note(format!("refusals: {error}")),
                },
                Effect::Send(Message::Notification { method, .. }) => self.note(format!("sent {method}")),
                Effect::Arm(Timer::Usage) => self.usage_is_due = true,
                Effect::Arm(_) | Effect::Disarm(_) => {}
                Effect::Started => {
                    self.flush();
                    let (agent, session) = (self.machine.agent(), self.machine.session());
                    let facts = format!(
                        "{} {}: resume {}, load {}, steer {}; mode {:?}, model {:?}",
                        agent.name,
                        agent.version,
                        agent.can_resume,
                        agent.can_load,
                        agent.can_steer,
                        session.mode,
                        session.model
                    );
                    writeln!(self.out, "  started {facts}").unwrap();
                }
                Effect::StartFailed(failure) => writeln!(self.out, "  start failed: {failure}").unwrap(),
                Effect::Update(origin, update) => {
                    let place = match origin {
                        Origin::Turn => "",
                        Origin::Replay => "replayed ",
                        Origin::Idle => "idle ",
                    };
                    self.note(format!("{place}{}", kind(&update)));
                }
                Effect::AskPermission(request) => {
                    self.note(format!("permissions for {:?} {}", request.call.kind, request.call.title));
                    self.open_asks.push_back((request.id, true));
                }
                Effect::AskQuestion(request) => {
                    self.note(format!("questions: {}", request.message));
                    self.open_asks.push_back((request.id, false));
                }
                Effect::Withdraw(_) => self.note("withdrawn"),
                Effect::Steered(_, outcome) => self.note(format!("steering {outcome:?}")),
                Effect::TurnEnded(report) => {
                    self.flush();
                    let usage = &report.usage;
                    let tokens = usage.tokens.map(|tokens| {
                        let mark = if usage.is_lower_bound { ">=" } else { "" };
                        format!("{mark}{}+{} ({} cached)", tokens.input, tokens.output, tokens.cached)
                    });
                    writeln!(
                        self.out,
                        "  turn: {}; {} messages, {} tools, tokens {}, cost {:?}; {:?}",
                        report.outcome,
                        report.messages.len(),
                        report.tool_calls,
                        tokens.as_deref().unwrap_or("-"),
                        usage.cost.as_ref().map(|cost| cost.amount),
                        report.answer()
                    )
                    .unwrap();
                }
                Effect::PromptRefused(failure) => writeln!(self.out, "  prompt refused: {failure}").unwrap(),
                Effect::Report(anomaly) => self.note(format!("anomaly: {anomaly}")),
                Effect::End => writeln!(self.out, "  end").unwrap(),
            }
        }
    }

    /// Usage that follows the answer is there when the record goes on.
    fn settle(&mut self) {
        self.step(Event::Timer(Timer::Replay));
        if std::mem::take(&mut self.usage_is_due) {
            self.step(Event::Timer(Timer::Usage));
        }
    }

    fn client(&mut self, message: &Value) {
        let id = message["id"].to_string();
        let params = &message["params"];
        match message["method"].as_str() {
            Some("session/prompt") => {
                self.settle();
                self.step(Event::Prompt(serde_json::from_value(params["prompt"].clone()).unwrap()));
            }
            Some("session/cancel") => self.step(Event::Cancel),
            Some("_session/steering") => {
                let text = params["prompt"][0]["text"].as_str().unwrap().to_owned();
                self.step(Event::Steer { id: SteerId(self.ids.len() as u64), text });
            }
            Some(_) => {}
            None => {
                if let Some((ask, is_permission)) = self.asks.remove(&id) {
                    self.step(answer(ask, is_permission, &message["result"]));
                }
                return;
            }
        }
        if let Some(own) =
            self.sent.get_mut(message["method"].as_str().unwrap()).and_then(VecDeque::pop_front)
        {
            self.ids.insert(id, own);
        }
    }

    fn agent(&mut self, message: &Value, is_loaded: bool) {
        let mut message = message.clone();
        if is_loaded
            && let Some(capabilities) = message.pointer_mut("/result/agentCapabilities/sessionCapabilities")
        {
            // The record loads although the agent can resume.
            capabilities.as_object_mut().unwrap().shift_remove("resume");
        }
        let mut incoming = Incoming::parse(&Line::Whole(message.to_string().into_bytes()));
        if let Incoming::Message(Message::Response { id, .. }) = &mut incoming {
            // The call may not have been made again: a second prompt while one runs.
            *id = self.ids.get(&id.to_string()).cloned().unwrap_or_else(|| Id::Text("not sent".into()));
        }
        self.step(Event::Line(incoming));
        if let (Some(ask), true) = (self.open_asks.pop_front(), message["method"].is_string()) {
            self.asks.insert(message["id"].to_string(), ask);
        }
    }
}

fn answer(ask: AskId, is_permission: bool, result: &Value) -> Event {
    if !is_permission {
        let content = result["content"].as_object().cloned().unwrap();
        return Event::QuestionAnswered(ask, QuestionDecision::Accept(content));
    }
    let chosen = result["outcome"]["optionId"].as_str();
    Event::PermissionDecided(
        ask,
        match chosen {
            Some(id) if id.starts_with("reject") || id == "cancel" => PermissionDecision::Reject,
            Some(_) => PermissionDecision::Allow,
            None => PermissionDecision::Cancel,
        },
    )
}

fn kind(update: &Update) -> String {
    match update {
        Update::Answer(_) => "answer chunks".into(),
        Update::Thought(_) => "thought chunks".into(),
        Update::User(_) => "user chunks".into(),
        Update::ToolStarted(_) => "tool starts".into(),
        Update::ToolChanged(call) => format!("tool changes {:?}", call.status),
        Update::Plan(_) => "plans".into(),
        Update::Notice(notice) => format!("notice {:?} {}", notice.severity, notice.title),
        Update::Usage { .. } => "usage".into(),
        Update::Mode(mode) => format!("mode {mode}"),
        Update::Other(other) => {
            let value = serde_json::to_value(other).unwrap();
            value["sessionUpdate"].as_str().unwrap().to_owned()
        }
        Update::Unknown { kind, .. } => format!("unknown {kind}"),
        Update::Extension { method, .. } => format!("notification {method}"),
    }
}

fn replay(path: &Path) -> String {
    let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut processes: Vec<&str> = Vec::new();
    for line in &lines {
        let process = line["proc"].as_str().unwrap();
        if !processes.contains(&process) {
            processes.push(process);
        }
    }
    let mut out = format!("{name}\n");
    for process in processes {
        let of_process: Vec<&Value> = lines.iter().filter(|line| line["proc"] == process).collect();
        let calls = || of_process.iter().filter(|line| line["dir"] == "client").map(|line| &line["msg"]);
        let call = |method: &str| {
            calls().find(|message| message["method"] == method).map(|message| &message["params"])
        };
        let setting = |id: &str| {
            let set = call("session/set_config_option").filter(|params| params["configId"] == id);
            set.and_then(|params| params["value"].as_str()).map(ToOwned::to_owned)
        };
        let mode =
            call("session/set_mode").and_then(|params| params["modeId"].as_str()).map(ToOwned::to_owned);
        let is_loaded = call("session/load").is_some();
        let resumed = call("session/resume").or_else(|| call("session/load"));
        let collaboration =
            setting("collaboration_mode").map(|value| ("collaboration_mode".to_owned(), Value::from(value)));
        let request = SessionRequest {
            cwd: "/work/project".into(),
            resume: resumed.map(|params| params["sessionId"].as_str().unwrap().to_owned()),
            mode: mode.or_else(|| setting("mode")),
            options: collaboration.into_iter().collect(),
            usage: meaning(&name),
            answers_questions: name.contains("elicit"),
            ..SessionRequest::default()
        };
        writeln!(out, " {process}").unwrap();
        let mut replay = Replay {
            machine: Machine::new(request),
            sent: BTreeMap::new(),
            ids: BTreeMap::new(),
            asks: BTreeMap::new(),
            open_asks: VecDeque::new(),
            usage_is_due: false,
            counts: BTreeMap::new(),
            out: String::new(),
        };
        replay.step(Event::Start);
        for line in of_process {
            match line["dir"].as_str().unwrap() {
                "client" => replay.client(&line["msg"]),
                "agent" => replay.agent(&line["msg"], is_loaded),
                _ => {}
            }
        }
        replay.settle();
        let exit = AgentExit::Signal(9);
        replay.step(Event::Ended(AgentEnd::Exited { exit, errors: String::new() }));
        replay.flush();
        out.push_str(&replay.out);
    }
    out
}

#[test]
fn records_of_real_agents_are_tolerated() {
    let files = records();
    assert!(files.len() >= 25, "the records are not where this test looks");
    for path in files {
        let name = path.file_stem().unwrap().to_str().unwrap().replace('.', "_");
        let summary = replay(&path);
        assert!(!summary.contains("does not follow the protocol"), "{summary}");
        insta::assert_snapshot!(name, summary);
    }
}
