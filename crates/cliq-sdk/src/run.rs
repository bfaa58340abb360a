//! From standard input to exit status: the whole `main` of an agent.

use std::io::{IsTerminal, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use camino::Utf8Path;
use cliq_fs::{DEFAULT_FILE_LIMIT, FILE_LIMIT_VARIABLE, SignalWriter};
use cliq_protocol::{AgentMessage, ChannelBody, Dispatch, DispatchType, PhaseDispatch, PhaseKind};
use serde_json::Value;

use crate::context::{GateContext, NotifyContext, PhaseContext, StandardContext, TeamContext};
use crate::{LimitReached, SdkError, Session};

/// Error of a handler: any error.
type AnyError = Box<dyn std::error::Error + Send + Sync>;
type Handler<C> = Box<dyn Fn(&C) -> Result<Completion, AnyError>>;

/// Success, and what it came to. Had from a context, returned from a handler.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "return it from the handler"]
pub struct Completion {
    result: Option<Value>,
}

impl Completion {
    pub(crate) fn new(result: Option<Value>) -> Self {
        Self { result }
    }
}

/// An agent: a handler for each kind of phase that it can work in.
#[derive(Default)]
#[must_use = "an agent does nothing until it is run"]
pub struct Agent {
    standard: Option<Handler<StandardContext>>,
    gate: Option<Handler<GateContext>>,
    team: Option<Handler<TeamContext>>,
    notify: Option<Handler<NotifyContext>>,
    /// The most bytes of a file that others wrote; `None` for the default.
    file_limit: Option<u64>,
}

impl Agent {
    /// An agent that can do nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Works in standard phases, and in exec, pull and push phases that are dispatched to an agent.
    pub fn standard(
        mut self,
        handler: impl Fn(&StandardContext) -> Result<Completion, AnyError> + 'static,
    ) -> Self {
        self.standard = Some(Box::new(handler));
        self
    }

    /// Renders verdicts.
    pub fn gate(mut self, handler: impl Fn(&GateContext) -> Result<Completion, AnyError> + 'static) -> Self {
        self.gate = Some(Box::new(handler));
        self
    }

    /// Runs sub-teams.
    pub fn team(mut self, handler: impl Fn(&TeamContext) -> Result<Completion, AnyError> + 'static) -> Self {
        self.team = Some(Box::new(handler));
        self
    }

    /// Delivers notifications.
    pub fn notify(
        mut self,
        handler: impl Fn(&NotifyContext) -> Result<Completion, AnyError> + 'static,
    ) -> Self {
        self.notify = Some(Box::new(handler));
        self
    }

    /// Reads the message on standard input, runs the handler for it, and reports. Exit status 0 after `complete`, 1 after
    /// `error`, 2 where there was no message to answer.
    pub fn run(mut self) -> ExitCode {
        let limit = std::env::var(FILE_LIMIT_VARIABLE).ok().and_then(|bytes| bytes.parse().ok());
        self.file_limit = self.file_limit.or(limit);
        let mut bytes = Vec::new();
        if let Err(error) = std::io::stdin().lock().read_to_end(&mut bytes) {
            return refuse(&SdkError::Stdin(error));
        }
        let message = match AgentMessage::decode(&bytes) {
            Ok(message) => message,
            Err(error) => return refuse(&SdkError::Message(error)),
        };
        match self.outcome(message) {
            Ok(None) => ExitCode::SUCCESS,
            Ok(Some(reason)) => {
                say(&reason);
                ExitCode::FAILURE
            }
            Err(error) => refuse(&error),
        }
    }

    /// Answers a message in its signal channel. Gives whether it completed.
    ///
    /// # Errors
    /// The signal channel cannot be written.
    pub fn answer(&self, message: AgentMessage) -> Result<bool, SdkError> {
        self.outcome(message).map(|error| error.is_none())
    }

    /// Answers a message. Returns the reason of a failure, or `None` if the agent completed.
    fn outcome(&self, message: AgentMessage) -> Result<Option<String>, SdkError> {
        let session = Session::open(message)?;
        // The handlers are not used again after a panic, so nothing broken can be seen.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.handle(&session)));
        let reason = match outcome {
            Ok(Ok(completion)) => return session.complete(completion.result).map(|()| None),
            Ok(Err(error)) => {
                let reason = describe(error.as_ref());
                if let Some(reached) = LimitReached::of(error.as_ref()) {
                    return session.limited(reason.clone(), reached.limited.clone()).map(|()| Some(reason));
                }
                reason
            }
            Err(panic) => {
                let text = panic
                    .downcast_ref::<&str>()
                    .map(|text| (*text).to_owned())
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_else(|| "no message".to_owned());
                format!("the agent panicked: {text}")
            }
        };
        session.error(reason.clone()).map(|()| Some(reason))
    }

    fn handle(&self, session: &Session) -> Result<Completion, AnyError> {
        match &session.message().dispatch {
            Dispatch::Test(_) => Ok(Completion::new(None)),
            Dispatch::Notify(dispatch) => {
                let handler = self.notify.as_ref().ok_or("this agent does not deliver notifications")?;
                handler(&NotifyContext {
                    cliq_dir: session.message().cliq_dir.clone(),
                    details: dispatch.notify.clone(),
                    reporter: session.reporter().clone(),
                })
            }
            Dispatch::Phase(dispatch) => self.handle_phase(session, dispatch),
        }
    }

    fn handle_phase(&self, session: &Session, dispatch: &PhaseDispatch) -> Result<Completion, AnyError> {
        let file_limit = self.file_limit.unwrap_or(DEFAULT_FILE_LIMIT);
        let base = PhaseContext::new(
            session.message().clone(),
            dispatch.clone(),
            session.reporter().clone(),
            file_limit,
        );
        let kind = dispatch.phase.kind;
        let missing = || format!("this agent does not work in phases of type `{kind}`");
        match kind {
            PhaseKind::Gate | PhaseKind::HumanGate => {
                if dispatch.gate.is_none() {
                    return Err("the message is for a gate and has no `gate` block".into());
                }
                self.gate.as_ref().ok_or_else(missing)?(&GateContext { base })
            }
            PhaseKind::Team => self.team.as_ref().ok_or_else(missing)?(&TeamContext { base }),
            PhaseKind::Standard | PhaseKind::Exec | PhaseKind::Pull | PhaseKind::Push => {
                self.standard.as_ref().ok_or_else(missing)?(&StandardContext { base })
            }
        }
    }
}

/// An error with all its causes, in one line.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Many errors repeat their cause in their own text.
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// Prints the reason of a failure for a person who repeats a dispatch by hand. The orchestrator reads it in the channel, and starts
/// agents without a terminal.
#[expect(clippy::print_stderr, reason = "a person is watching")]
fn say(reason: &str) {
    if std::io::stderr().is_terminal() {
        eprintln!("error: {reason}");
    }
}

/// There is no message to answer: says so on standard error and, where the environment names one, in the channel.
#[expect(clippy::print_stderr, reason = "there is no channel to report in")]
fn refuse(error: &SdkError) -> ExitCode {
    eprintln!("error: {error}");
    if let Ok(file) = std::env::var("CLIQ_SIGNAL_FILE")
        && let Ok(mut writer) = SignalWriter::open(Utf8Path::new(&file), DispatchType::Phase)
    {
        let _ = writer.write(ChannelBody::Ok);
        let _ = writer.write(ChannelBody::Error { error: error.to_string(), usage: None, limited: None });
    }
    ExitCode::from(2)
}
