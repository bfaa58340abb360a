//! Machine of an agent. Pure: no clock, no IO.
//!
//! Each request of the client gets exactly one response: requests that a driver carries out are kept under a [`CallId`] until it
//! reports, prompts as the turn of their session.

use std::collections::BTreeMap;
use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    AuthenticateRequest, AvailableCommand, AvailableCommandsUpdate, CancelNotification, InitializeRequest,
    ListSessionsRequest, LoadSessionRequest, LoadSessionResponse, NewSessionRequest, NewSessionResponse,
    PromptRequest, PromptResponse, ResumeSessionRequest, ResumeSessionResponse, SessionConfigOption,
    SessionConfigOptionValue, SessionUpdate, SetSessionConfigOptionRequest, StopReason,
};
use serde_json::{Value, json};

use super::capabilities::{AgentProfile, has_forms};
use super::gate::{Gate, GateAnswer};
use super::prompt::{Prompt, text};
use super::requests::{invalid, params};
use super::session::{AwaitedWords, SessionState, Turn, TurnEnd, TurnId, unknown};
use crate::calls::Calls;
use crate::lines::Line;
use crate::rpc::{Id, Incoming, Message, RpcError};

mod gates;
mod turns;

/// Number of a request that the driver carries out, unique in its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// Way in which a session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenMode {
    /// A new session.
    New,
    /// A known session, with a replay of its history.
    Load(String),
    /// A known session, without its history.
    Resume(String),
}

/// Session that a driver has opened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OpenedSession {
    /// Id of the session.
    pub id: String,
    /// Options of the session.
    pub options: Vec<SessionConfigOption>,
    /// History of the session for [`OpenMode::Load`].
    pub replay: Vec<SessionUpdate>,
}

impl OpenedSession {
    /// Returns a session without history.
    #[must_use]
    pub fn new(id: impl Into<String>, options: Vec<SessionConfigOption>) -> Self {
        Self { id: id.into(), options, replay: Vec::new() }
    }

    /// Sets the history.
    #[must_use]
    pub fn with_replay(self, replay: Vec<SessionUpdate>) -> Self {
        Self { replay, ..self }
    }
}

/// Input of the machine.
#[derive(Debug, Clone)]
pub enum AgentEvent {
    /// Line of the client.
    Line(Line),
    /// The client's output ended. Nothing is sent from now on.
    Closed,
    /// Result of [`AgentEffect::Authenticate`], [`AgentEffect::List`] or [`AgentEffect::SetOption`]; for [`AgentEffect::Steer`] a
    /// sentence as text.
    Done {
        /// The call.
        call: CallId,
        /// Result.
        result: Result<Value, RpcError>,
    },
    /// Result of [`AgentEffect::Open`].
    Opened {
        /// The call.
        call: CallId,
        /// The session.
        result: Result<OpenedSession, RpcError>,
    },
    /// Update for the client.
    Update {
        /// Turn that the update belongs to.
        turn: TurnId,
        /// Update.
        update: Box<SessionUpdate>,
    },
    /// A gate waits for a person.
    GateOpened {
        /// Turn that the gate belongs to.
        turn: TurnId,
        /// Gate.
        gate: Box<Gate>,
    },
    /// A gate no longer waits.
    GateClosed {
        /// Turn that the gate belongs to.
        turn: TurnId,
        /// Id of the gate.
        gate: String,
    },
    /// The answer to a gate was not accepted. The gate still waits.
    GateRefused {
        /// Turn that the gate belongs to.
        turn: TurnId,
        /// Gate.
        gate: Box<Gate>,
        /// Reason.
        reason: String,
    },
    /// A turn ended.
    Ended {
        /// The turn.
        turn: TurnId,
        /// End.
        end: TurnEnd,
    },
}

/// Output of the machine.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEffect {
    /// Send a message to the client.
    Send(Message),
    /// Check that the agent can work.
    Authenticate {
        /// Call to report to.
        call: CallId,
        /// Id of the way to sign in.
        method: String,
    },
    /// List sessions.
    List {
        /// Call to report to.
        call: CallId,
        /// Directory whose sessions are listed. `None` for all.
        cwd: Option<PathBuf>,
        /// Position in the list.
        cursor: Option<String>,
    },
    /// Open a session.
    Open {
        /// Call to report to.
        call: CallId,
        /// Way.
        mode: OpenMode,
        /// Working directory.
        cwd: PathBuf,
    },
    /// Set an option of a session.
    SetOption {
        /// Call to report to.
        call: CallId,
        /// Session.
        session: String,
        /// Id of the option.
        option: String,
        /// Value.
        value: String,
    },
    /// Carry out a prompt.
    Start {
        /// Turn to report to.
        turn: TurnId,
        /// Session.
        session: String,
        /// Prompt.
        prompt: Prompt,
    },
    /// Send guidance to the work of a turn.
    Steer {
        /// Call to report to.
        call: CallId,
        /// Session.
        session: String,
        /// Turn that works.
        turn: TurnId,
        /// Guidance.
        text: String,
    },
    /// Cancel the work of a turn. The turn still ends by [`AgentEvent::Ended`].
    Cancel {
        /// The turn.
        turn: TurnId,
    },
    /// Answer a gate.
    Answer {
        /// Turn to report to.
        turn: TurnId,
        /// Gate.
        gate: Box<Gate>,
        /// Answer.
        answer: GateAnswer,
    },
    /// Stop following the work of a turn, which goes on.
    Leave {
        /// The turn.
        turn: TurnId,
    },
}

/// Request of the client that the driver carries out.
#[derive(Debug, Clone)]
struct PendingCall {
    request: Id,
    kind: PendingKind,
}

#[derive(Debug, Clone)]
enum PendingKind {
    /// The result is the response.
    Plain,
    /// A session is opened.
    Open(OpenMode),
    /// Guidance for the turn of a session.
    Steer(String),
}

/// Request to the client that is not answered yet.
#[derive(Debug, Clone)]
struct Ask {
    session: String,
    turn: TurnId,
    gate: Box<Gate>,
    stage: AskStage,
}

#[derive(Debug, Clone)]
enum AskStage {
    Permission,
    Form,
    /// Words of a request for changes by this phase.
    Words(String),
}

/// Machine of an agent.
#[derive(Debug)]
pub struct AgentMachine {
    profile: AgentProfile,
    is_initialized: bool,
    has_forms: bool,
    is_closed: bool,
    sessions: BTreeMap<String, SessionState>,
    pending: BTreeMap<CallId, PendingCall>,
    asks: Calls<Ask>,
    last: u64,
    effects: Vec<AgentEffect>,
}

impl AgentMachine {
    /// Returns a machine that waits for `initialize`.
    #[must_use]
    pub fn new(profile: AgentProfile) -> Self {
        Self {
            profile,
            is_initialized: false,
            has_forms: false,
            is_closed: false,
            sessions: BTreeMap::new(),
            pending: BTreeMap::new(),
            asks: Calls::default(),
            last: 0,
            effects: Vec::new(),
        }
    }

    /// Takes an event and returns its effects, in their order.
    pub fn step(&mut self, event: AgentEvent) -> Vec<AgentEffect> {
        match event {
            AgentEvent::Line(line) => self.line(&line),
            AgentEvent::Closed => self.is_closed = true,
            AgentEvent::Done { call, result } => self.done(call, result),
            AgentEvent::Opened { call, result } => self.opened(call, result),
            AgentEvent::Update { turn, update } => {
                if let Some(session) = self.session_of(turn) {
                    self.update(&session, *update);
                }
            }
            AgentEvent::GateOpened { turn, gate } => self.gate_opened(turn, gate),
            AgentEvent::GateClosed { turn, gate } => self.gate_closed(turn, &gate),
            AgentEvent::GateRefused { turn, gate, reason } => self.gate_refused(turn, &gate, &reason),
            AgentEvent::Ended { turn, end } => self.ended(turn, end),
        }
        let mut effects = std::mem::take(&mut self.effects);
        if self.is_closed {
            effects.retain(|effect| !matches!(effect, AgentEffect::Send(_)));
        }
        effects
    }

    fn send(&mut self, message: Message) {
        self.effects.push(AgentEffect::Send(message));
    }

    fn respond(&mut self, request: Id, result: Result<Value, RpcError>) {
        self.send(Message::response(request, result));
    }

    fn update(&mut self, session: &str, update: impl Into<Box<SessionUpdate>>) {
        let params = json!({ "sessionId": session, "update": update.into() });
        self.send(Message::notification("session/update", params));
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn line(&mut self, line: &Line) {
        let refuse = |code, why: String| Err(RpcError::new(code, why));
        match Incoming::parse(line) {
            Incoming::Blank | Incoming::Half { .. } => {}
            Incoming::Message(Message::Request { id, method, params }) => self.request(id, &method, params),
            Incoming::Message(Message::Notification { method, params }) => self.notification(&method, params),
            Incoming::Message(Message::Response { id, result }) => self.answered(&id, result),
            Incoming::Noise(_) => {
                let result = refuse(RpcError::PARSE_ERROR, "the line is not JSON".to_owned());
                self.respond(Id::Null, result);
            }
            Incoming::Invalid { reason, id } => {
                let result = refuse(RpcError::INVALID_REQUEST, reason.to_string());
                self.respond(id.unwrap_or(Id::Null), result);
            }
            Incoming::TooManyValues => {
                let result = refuse(RpcError::INVALID_REQUEST, "the line has too many values".to_owned());
                self.respond(Id::Null, result);
            }
            Incoming::TooLong { bytes } => {
                let why = format!("the line has {bytes} bytes; the limit is {}", crate::lines::MAX_LINE);
                self.respond(Id::Null, refuse(RpcError::INVALID_REQUEST, why));
            }
        }
    }

    fn request(&mut self, request: Id, method: &str, params: Value) {
        if let Err(error) = self.dispatch(&request, method, params) {
            self.respond(request, Err(error));
        }
    }

    /// Carries out a request. The caller responds if it fails.
    fn dispatch(&mut self, request: &Id, method: &str, value: Value) -> Result<(), RpcError> {
        if method == "initialize" {
            let offer: InitializeRequest = params(method, value)?;
            let answer = json!(self.profile.answer(&offer));
            self.is_initialized = true;
            self.has_forms = has_forms(&offer);
            self.respond(request.clone(), Ok(answer));
            return Ok(());
        }
        if !self.is_initialized {
            let why = format!("`{method}` before `initialize`");
            return Err(RpcError::new(RpcError::INVALID_REQUEST, why));
        }
        match method {
            "authenticate" => {
                let AuthenticateRequest { method_id, .. } = params(method, value)?;
                let call = self.call(request, PendingKind::Plain);
                self.effects.push(AgentEffect::Authenticate { call, method: method_id.to_string() });
            }
            "session/new" => {
                let NewSessionRequest { cwd, .. } = params(method, value)?;
                self.open(request, OpenMode::New, cwd)?;
            }
            "session/load" => {
                let LoadSessionRequest { cwd, session_id, .. } = params(method, value)?;
                self.open(request, OpenMode::Load(session_id.to_string()), cwd)?;
            }
            "session/resume" => {
                let ResumeSessionRequest { cwd, session_id, .. } = params(method, value)?;
                self.open(request, OpenMode::Resume(session_id.to_string()), cwd)?;
            }
            "session/list" => {
                let ListSessionsRequest { cwd, cursor, .. } = params(method, value)?;
                let call = self.call(request, PendingKind::Plain);
                self.effects.push(AgentEffect::List { call, cwd, cursor });
            }
            "session/set_config_option" => {
                let SetSessionConfigOptionRequest { session_id, config_id, value, .. } =
                    params(method, value)?;
                let SessionConfigOptionValue::ValueId { value } = value else {
                    return Err(invalid(format!("the option `{config_id}` is one of a list, not a boolean")));
                };
                let (session, option) = (session_id.to_string(), config_id.to_string());
                self.state(&session)?;
                let call = self.call(request, PendingKind::Plain);
                let value = value.to_string();
                self.effects.push(AgentEffect::SetOption { call, session, option, value });
            }
            "session/prompt" => {
                let PromptRequest { session_id, prompt, .. } = params(method, value)?;
                let text = text(&prompt)
                    .map_err(|kind| invalid(format!("the prompt has {kind}; only text is supported")))?;
                self.prompt(request, &session_id.to_string(), text)?;
            }
            _ => return Err(RpcError::method_not_found(method)),
        }
        Ok(())
    }

    fn call(&mut self, request: &Id, kind: PendingKind) -> CallId {
        let call = CallId(self.next());
        self.pending.insert(call, PendingCall { request: request.clone(), kind });
        call
    }

    fn open(&mut self, request: &Id, mode: OpenMode, cwd: PathBuf) -> Result<(), RpcError> {
        if !cwd.is_absolute() {
            return Err(invalid(format!("`cwd` is not an absolute path: {}", cwd.display())));
        }
        let call = self.call(request, PendingKind::Open(mode.clone()));
        self.effects.push(AgentEffect::Open { call, mode, cwd });
        Ok(())
    }

    fn state(&mut self, session: &str) -> Result<&mut SessionState, RpcError> {
        self.sessions.get_mut(session).ok_or_else(|| unknown(session))
    }

    fn notification(&mut self, method: &str, value: Value) {
        match method {
            "session/cancel" => {
                if let Ok(CancelNotification { session_id, .. }) = params(method, value) {
                    self.cancel(&session_id.to_string());
                }
            }
            "$/cancel_request" => {
                if let Some(request) = value.get("requestId").and_then(Id::parse) {
                    self.cancel_request(&request);
                }
            }
            // Notifications have no response, not even that they are unknown.
            _ => {}
        }
    }

    fn done(&mut self, call: CallId, result: Result<Value, RpcError>) {
        let Some(PendingCall { request, kind }) = self.pending.remove(&call) else { return };
        match (kind, result) {
            (PendingKind::Plain, result) => self.respond(request, result),
            (PendingKind::Steer(session), Ok(sentence)) => {
                if let Some(sentence) = sentence.as_str() {
                    self.say(&session, sentence);
                }
                self.respond(request, Ok(json!(PromptResponse::new(StopReason::EndTurn))));
            }
            (PendingKind::Steer(_) | PendingKind::Open(_), Err(error)) => self.respond(request, Err(error)),
            (PendingKind::Open(_), Ok(_)) => {
                let error = RpcError::new(RpcError::INTERNAL_ERROR, "the session was not opened");
                self.respond(request, Err(error));
            }
        }
    }

    fn opened(&mut self, call: CallId, result: Result<OpenedSession, RpcError>) {
        let Some(PendingCall { request, kind }) = self.pending.remove(&call) else { return };
        let opened = match result {
            Ok(opened) => opened,
            Err(error) => return self.respond(request, Err(error)),
        };
        let OpenedSession { id, options, replay } = opened;
        self.sessions.entry(id.clone()).or_default();
        for update in replay {
            self.update(&id, update);
        }
        let answer = match kind {
            PendingKind::Open(OpenMode::Load(_)) => json!(LoadSessionResponse::new().config_options(options)),
            PendingKind::Open(OpenMode::Resume(_)) => {
                json!(ResumeSessionResponse::new().config_options(options))
            }
            PendingKind::Open(OpenMode::New) | PendingKind::Plain | PendingKind::Steer(_) => {
                json!(NewSessionResponse::new(id.clone()).config_options(options))
            }
        };
        self.respond(request, Ok(answer));
        let commands = Prompt::COMMANDS.map(|(name, description)| AvailableCommand::new(name, description));
        let commands = AvailableCommandsUpdate::new(commands.to_vec());
        self.update(&id, SessionUpdate::AvailableCommandsUpdate(commands));
    }
}
