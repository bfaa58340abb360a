//! Driver of the machine: threads for the streams, a task for each turn.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_acp::agent::{AgentEffect, AgentEvent, AgentMachine, AgentProfile, OpenMode, OpenedSession, TurnId};
use cliq_acp::schema::{
    AuthMethod, AuthMethodAgent, AuthMethodTerminal, ListSessionsResponse, SessionInfo,
    SetSessionConfigOptionResponse,
};
use cliq_acp::{LineSplitter, RpcError};
use cliq_settings::Settings;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::sessions::{self, OpenSession};
use super::turns::{self, TurnCommand};
use super::{errors, options, replay};
use crate::failure::Failure;
use crate::project;

/// Id of the way to sign in by the agents of this machine.
const MACHINE_AGENTS: &str = "machine-agents";
/// Number of events that wait for the machine.
const WAITING_EVENTS: usize = 64;
/// Number of places for requests to a turn that guidance does not take.
const RESERVED: usize = 16;
/// Number of bytes that may wait for the editor before runs are no longer read.
const WAITING_BYTES: usize = 1 << 20;
/// Time at the end for lines that the client has not read.
const FLUSH: Duration = Duration::from_secs(2);
/// Time at the end for turns that are starting a run.
const LAST: Duration = Duration::from_secs(20);

/// Serves a client on standard input and output until its output ends.
pub(super) async fn serve() -> Result<ExitCode, Failure> {
    let (from_client, mut lines) = mpsc::channel(WAITING_EVENTS);
    std::thread::spawn(move || read(&from_client));
    let (events, mut reports) = mpsc::channel(WAITING_EVENTS);
    let (mut driver, mut writer_ended) = Driver::new(events);
    let mut is_heard = true;
    loop {
        let event = tokio::select! {
            line = lines.recv() => match line {
                Some(line) => AgentEvent::Line(line),
                None => break,
            },
            Some(event) = reports.recv(), if driver.can_send() => event,
            _ = &mut writer_ended => {
                is_heard = false;
                break;
            }
            () = tokio::time::sleep(Duration::from_millis(10)), if !driver.can_send() => continue,
        };
        driver.step(event);
    }
    driver.step(AgentEvent::Closed);
    // Runs go on. A turn that is starting one comes to that first.
    drop(reports);
    driver.turns.clear();
    let mut tasks = std::mem::take(&mut driver.tasks);
    let _ = tokio::time::timeout(LAST, async { while tasks.join_next().await.is_some() {} }).await;
    // What was answered before the end still goes out.
    drop(driver);
    if is_heard {
        let _ = tokio::time::timeout(FLUSH, writer_ended).await;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the lines of the client.
fn read(lines: &mpsc::Sender<cliq_acp::Line>) {
    let mut splitter = LineSplitter::default();
    let mut input = std::io::stdin().lock();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let n = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let mut rest = buffer.get(..n).unwrap_or_default();
        while !rest.is_empty() {
            let (line, taken) = splitter.push(rest);
            rest = rest.get(taken..).unwrap_or_default();
            if line.is_some_and(|line| lines.blocking_send(line).is_err()) {
                return;
            }
        }
    }
    if let Some(line) = splitter.finish() {
        let _ = lines.blocking_send(line);
    }
}

/// Writes lines to the client.
fn write(lines: &std::sync::mpsc::Receiver<String>, waiting: &AtomicUsize) {
    while let Ok(mut line) = lines.recv() {
        let length = line.len();
        line.push('\n');
        let mut out = std::io::stdout().lock();
        if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
            return;
        }
        waiting.fetch_sub(length, Ordering::Relaxed);
    }
}

struct Driver {
    machine: AgentMachine,
    sessions: HashMap<String, OpenSession>,
    turns: HashMap<TurnId, mpsc::Sender<TurnCommand>>,
    events: mpsc::Sender<AgentEvent>,
    tasks: JoinSet<()>,
    out: std::sync::mpsc::Sender<String>,
    /// Bytes that wait for the editor.
    waiting: Arc<AtomicUsize>,
}

impl Driver {
    fn new(events: mpsc::Sender<AgentEvent>) -> (Self, tokio::sync::oneshot::Receiver<()>) {
        let (out, to_client) = std::sync::mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (written, count) = (Arc::clone(&waiting), tokio::sync::oneshot::channel());
        let (ended, has_ended) = count;
        std::thread::spawn(move || {
            write(&to_client, &written);
            drop(ended);
        });
        let machine = AgentMachine::new(profile());
        let (sessions, turns, tasks) = (HashMap::new(), HashMap::new(), JoinSet::new());
        (Self { machine, sessions, turns, events, tasks, out, waiting }, has_ended)
    }

    /// Whether the editor reads what it is sent.
    fn can_send(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) < WAITING_BYTES
    }

    fn step(&mut self, event: AgentEvent) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            if let AgentEvent::Ended { turn, .. } = &event {
                self.turns.remove(turn);
            }
            for effect in self.machine.step(event) {
                events.extend(self.perform(effect));
            }
            while self.tasks.try_join_next().is_some() {}
        }
    }

    /// Performs an effect. Returns the report of one that is done at once.
    fn perform(&mut self, effect: AgentEffect) -> Option<AgentEvent> {
        match effect {
            AgentEffect::Send(message) => {
                let line = message.to_line();
                self.waiting.fetch_add(line.len(), Ordering::Relaxed);
                let _ = self.out.send(line);
                None
            }
            AgentEffect::Authenticate { call, method } => {
                Some(AgentEvent::Done { call, result: authenticate(&method) })
            }
            AgentEffect::List { call, cwd, cursor } => {
                let listed = path(cwd).and_then(|cwd| list(cwd.as_deref(), cursor.as_deref()));
                Some(AgentEvent::Done { call, result: listed.map_err(|failure| errors::of(&failure)) })
            }
            AgentEffect::Open { call, mode, cwd } => {
                let opened = path(Some(cwd)).and_then(|cwd| self.open(&mode, &cwd.unwrap_or_default()));
                let not_found = |error: RpcError| match mode {
                    OpenMode::New => error,
                    OpenMode::Load(_) | OpenMode::Resume(_) => {
                        RpcError { code: RpcError::RESOURCE_NOT_FOUND, ..error }
                    }
                };
                let result = opened.map_err(|failure| not_found(errors::of(&failure)));
                Some(AgentEvent::Opened { call, result })
            }
            AgentEffect::SetOption { call, session, option, value } => {
                let set = self.session(&session).and_then(|session| {
                    options::set(session, &option, &value)?;
                    Ok(json!(SetSessionConfigOptionResponse::new(options::of(session))))
                });
                Some(AgentEvent::Done { call, result: set.map_err(|failure| errors::of(&failure)) })
            }
            AgentEffect::Start { turn, session, prompt } => match self.session(&session) {
                Ok(session) => {
                    let session = session.clone();
                    let (commands, receiver) = mpsc::channel(WAITING_EVENTS);
                    self.turns.insert(turn, commands);
                    self.tasks.spawn(turns::run(turn, session, prompt, receiver, self.events.clone()));
                    None
                }
                Err(failure) => {
                    let end = cliq_acp::agent::TurnEnd::Failed(errors::of(&failure));
                    Some(AgentEvent::Ended { turn, end })
                }
            },
            AgentEffect::Steer { call, session: _, turn, text } => {
                self.command(turn, TurnCommand::Steer { call, text })
            }
            AgentEffect::Answer { turn, gate, answer } => {
                self.command(turn, TurnCommand::Answer { gate, answer })
            }
            AgentEffect::Cancel { turn } => self.command(turn, TurnCommand::Cancel),
            AgentEffect::Leave { turn } => {
                self.turns.remove(&turn);
                None
            }
        }
    }

    /// Passes a request to a turn. Returns the report of one that the turn does not take. Guidance leaves room for answers and a
    /// cancellation.
    fn command(&self, turn: TurnId, command: TurnCommand) -> Option<AgentEvent> {
        let is_guidance = matches!(command, TurnCommand::Steer { .. });
        let open = self.turns.get(&turn).filter(|open| !is_guidance || open.capacity() > RESERVED);
        let refused = match open {
            Some(open) => open.try_send(command).err()?.into_inner(),
            None => command,
        };
        let failure = Failure::refused("the run takes no more messages at the moment; try again");
        match refused {
            TurnCommand::Steer { call, .. } => {
                Some(AgentEvent::Done { call, result: Err(errors::of(&failure)) })
            }
            TurnCommand::Answer { gate, .. } => {
                Some(AgentEvent::GateRefused { turn, gate, reason: failure.sentences() })
            }
            // Its end is on the way.
            TurnCommand::Cancel => None,
        }
    }

    fn session(&mut self, id: &str) -> Result<&mut OpenSession, Failure> {
        self.sessions.get_mut(id).ok_or_else(|| Failure::usage(format!("session {id} is not open")))
    }

    fn open(&mut self, mode: &OpenMode, cwd: &Utf8Path) -> Result<OpenedSession, Failure> {
        let session = match mode {
            OpenMode::New => OpenSession::create(cwd)?,
            OpenMode::Load(id) | OpenMode::Resume(id) => OpenSession::load(cwd, id)?,
        };
        let mut opened = OpenedSession::new(&session.record.id, options::of(&session));
        if matches!(mode, OpenMode::Load(_)) {
            opened = opened.with_replay(replay::of(&session));
        }
        self.sessions.insert(session.record.id.clone(), session);
        Ok(opened)
    }
}

/// Returns name, version and ways to sign in. cliq has no account of its own: it uses the agents and keys of this machine.
fn profile() -> AgentProfile {
    let machine = AuthMethodAgent::new(MACHINE_AGENTS, "Agents of this machine").description(
        "cliq uses the agents and keys that are set up on this machine. `cliq doctor` lists them.".to_owned(),
    );
    let setup = AuthMethodTerminal::new("setup", "Set up an agent in a terminal")
        .description("Shows which agents can work on this machine, and sets the default.".to_owned())
        .args(vec!["--setup".to_owned()]);
    AgentProfile::new("cliq", env!("CARGO_PKG_VERSION"))
        .with_title("cliq")
        .with_auth_methods(vec![AuthMethod::Agent(machine), AuthMethod::Terminal(setup)])
}

/// Checks that an agent for phases that name none can work on this machine.
fn authenticate(method: &str) -> Result<Value, RpcError> {
    if method != MACHINE_AGENTS {
        let why = format!("there is no way to sign in `{method}`: use `{MACHINE_AGENTS}`");
        return Err(RpcError::new(RpcError::INVALID_PARAMS, why));
    }
    let host = project::host();
    let settings = Settings::load(host.home.as_deref(), None)
        .map_err(|error| RpcError::new(RpcError::INTERNAL_ERROR, error.to_string()))?;
    match host.default_agent(&settings) {
        Some(_) => Ok(json!({})),
        None => Err(RpcError::new(
            RpcError::AUTH_REQUIRED,
            "no agent is set up on this machine: `cliq doctor` shows which programs and keys are missing, `cliq settings set -g default_agent NAME` chooses one",
        )),
    }
}

fn path(path: Option<std::path::PathBuf>) -> Result<Option<Utf8PathBuf>, Failure> {
    let utf8 = |path| Utf8PathBuf::from_path_buf(path);
    path.map(utf8)
        .transpose()
        .map_err(|path| Failure::usage(format!("{} is not UTF-8, which cliq needs of paths", path.display())))
}

fn list(cwd: Option<&Utf8Path>, cursor: Option<&str>) -> Result<Value, Failure> {
    let page = sessions::list(cwd, cursor)?;
    let infos = page.sessions.into_iter().map(|(workspace, record)| {
        SessionInfo::new(record.id, workspace).title(record.title).updated_at(record.updated)
    });
    Ok(json!(ListSessionsResponse::new(infos.collect()).next_cursor(page.next)))
}
