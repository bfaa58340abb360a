//! Lines of the agent: answers, requests and updates.

use std::collections::VecDeque;

use serde_json::Value;

use super::super::anomaly::Anomaly;
use super::super::ask::{AskId, PermissionRequest, QuestionDecision, QuestionRequest, cancelled_permission};
use super::super::outcome::{Failure, Outcome, Step, head};
use super::super::session::{AgentInfo, SessionInfo, Setting};
use super::super::update::{Origin, Update};
use super::turn::MAX_TEXT;
use super::{Asked, Call, Effect, MAX_ASKED, Machine, OpenAsk, State, SteerOutcome, Timer};
use crate::calls::Answered;
use crate::lines::MAX_LINE;
use crate::rpc::{Id, Incoming, InvalidReason, MAX_VALUES, Message, RpcError};

/// Maximum number of kinds and sessions that are reported once each.
const REPORTED: usize = 64;

/// Answer to a call: a result, an error of the agent, or a violation of the protocol.
type Answer = Result<Value, AnswerError>;

enum AnswerError {
    Rejected(RpcError),
    Invalid(&'static str),
}

impl Machine {
    pub(super) fn line(&mut self, line: Incoming) {
        match line {
            Incoming::Message(message) => {
                self.resume_silence();
                match message {
                    Message::Request { id, method, params } => self.requested(id, &method, &params),
                    Message::Notification { method, params } => self.notified(method, params),
                    Message::Response { id, result } => {
                        self.responded(&id, result.map_err(AnswerError::Rejected))
                    }
                }
            }
            Incoming::Blank => {}
            Incoming::Noise(text) => self.out(Effect::Report(Anomaly::Noise(head(&text)))),
            Incoming::Invalid { reason, id } => self.invalid(reason, id),
            Incoming::Half { bytes } => self.out(Effect::Report(Anomaly::HalfLine { bytes })),
            Incoming::TooManyValues => {
                let step = self.current_step();
                self.fail(Failure::TooManyValues { step, limit: MAX_VALUES });
            }
            Incoming::TooLong { bytes } => {
                let step = self.current_step();
                self.fail(Failure::LineTooLong { step, bytes, limit: MAX_LINE });
            }
        }
    }

    fn invalid(&mut self, reason: InvalidReason, id: Option<Id>) {
        match (reason, id) {
            // An object with an id and nothing else can only be meant as a response.
            (InvalidReason::NoKind, Some(id)) => {
                self.responded(
                    &id,
                    Err(AnswerError::Invalid("the response has neither a result nor an error")),
                );
            }
            (InvalidReason::MethodType, Some(id)) => {
                self.out(Effect::Report(Anomaly::Invalid(reason)));
                self.respond(id, Err(RpcError::new(RpcError::INVALID_REQUEST, reason.to_string())));
            }
            (_, _) => self.out(Effect::Report(Anomaly::Invalid(reason))),
        }
    }

    fn responded(&mut self, id: &Id, answer: Answer) {
        let shown = || head(&id.to_string());
        match self.calls.close(id) {
            Answered::Open(call) => self.answered(call, answer),
            Answered::Late => self.out(Effect::Report(Anomaly::LateResponse(shown()))),
            Answered::Repeated => self.out(Effect::Report(Anomaly::RepeatedResponse(shown()))),
            Answered::Unknown => self.out(Effect::Report(Anomaly::UnknownResponse(shown()))),
        }
    }

    fn answered(&mut self, call: Call, answer: Answer) {
        match call {
            Call::Initialize => self.initialized(answer),
            Call::Open(step) => self.opened(step, answer),
            Call::Configure => self.configured(answer),
            Call::Prompt => self.prompted(answer),
            Call::Steer(id) => {
                let outcome = match answer {
                    Ok(value) => match value.get("outcome").and_then(Value::as_str) {
                        Some("injected") => SteerOutcome::Injected,
                        Some("promptRequired") => SteerOutcome::NoTurn,
                        other => {
                            SteerOutcome::Refused(format!("outcome `{}`", head(other.unwrap_or_default())))
                        }
                    },
                    Err(AnswerError::Rejected(error)) => SteerOutcome::Refused(head(&error.to_string())),
                    Err(AnswerError::Invalid(reason)) => SteerOutcome::Refused(reason.to_owned()),
                };
                self.out(Effect::Steered(id, outcome));
            }
        }
    }

    /// Returns the failure for an answer that is an error.
    fn failure(&self, step: Step, error: AnswerError) -> Failure {
        match error {
            AnswerError::Rejected(error) if error.code == RpcError::AUTH_REQUIRED => {
                Failure::SignInRequired {
                    step,
                    message: error.message,
                    methods: self.agent.auth_methods.clone(),
                }
            }
            AnswerError::Rejected(error) => Failure::Rejected { step, error },
            AnswerError::Invalid(reason) => Failure::InvalidAnswer { step, reason: reason.to_owned() },
        }
    }

    fn initialized(&mut self, answer: Answer) {
        let agent = match answer {
            Ok(value) => AgentInfo::parse(&value),
            Err(error) => Err(self.failure(Step::Initialize, error)),
        };
        match agent {
            Ok(agent) => self.agent = agent,
            Err(failure) => return self.fail(failure),
        }
        let step = match (&self.request.resume, self.agent.can_resume, self.agent.can_load) {
            (None, _, _) => Step::NewSession,
            (Some(_), true, _) => Step::ResumeSession,
            (Some(_), false, true) => Step::LoadSession,
            (Some(_), false, false) => return self.fail(Failure::CannotContinue),
        };
        let (_, refused) = self.request.open(&self.agent);
        refused.into_iter().for_each(|anomaly| self.out(Effect::Report(anomaly)));
        self.open(step);
    }

    fn open(&mut self, step: Step) {
        self.state = State::Opening(step);
        let (params, _) = self.request.open(&self.agent);
        let method = match step {
            Step::ResumeSession => "session/resume",
            Step::LoadSession => "session/load",
            _ => "session/new",
        };
        self.call(Call::Open(step), method, params);
        self.arm(Timer::Start);
    }

    fn opened(&mut self, step: Step, answer: Answer) {
        let value = match answer {
            Ok(value) => value,
            Err(AnswerError::Rejected(error))
                if step == Step::ResumeSession
                    && error.code == RpcError::METHOD_NOT_FOUND
                    && self.agent.can_load =>
            {
                self.out(Effect::Report(Anomaly::ResumeRefused));
                return self.open(Step::LoadSession);
            }
            Err(error) => {
                let failure = self.failure(step, error);
                return self.fail(failure);
            }
        };
        let id = match &self.request.resume {
            Some(id) => Some(id.clone()),
            None => value.get("sessionId").and_then(Value::as_str).map(ToOwned::to_owned),
        };
        let Some(id) = id else {
            let reason = "`sessionId` is not a text".to_owned();
            return self.fail(Failure::InvalidAnswer { step, reason });
        };
        self.session = SessionInfo::parse(id, &value);
        let settings = self.request.settings().into();
        self.configure(step, settings);
    }

    /// Applies the next setting, or ends the start.
    fn configure(&mut self, step: Step, mut settings: VecDeque<Setting>) {
        while let Some(setting) = settings.pop_front() {
            match self.session.call_for(&setting) {
                Ok(None) => {}
                Ok(Some(call)) => {
                    self.state = State::Configuring(setting, call.value, settings);
                    self.call(Call::Configure, call.method, call.params);
                    self.arm(Timer::Start);
                    return;
                }
                Err(failure) => return self.fail(failure),
            }
        }
        if self.request.resume.is_none() {
            return self.ready();
        }
        let step = if step == Step::Configure { Step::LoadSession } else { step };
        self.state = State::Settling(step);
        self.arm(Timer::Start);
        self.arm(Timer::Replay);
    }

    fn configured(&mut self, answer: Answer) {
        let State::Configuring(setting, value, settings) = &self.state else { return };
        let (setting, value, settings) = (setting.clone(), value.clone(), settings.clone());
        let option = setting.kind.name().to_owned();
        let failure = match answer {
            Ok(result) => {
                self.session.update_options(&result);
                let is_shown = result.get("configOptions").is_some();
                let actual = self.session.differs(&setting.kind, &value).filter(|_| is_shown);
                actual.map(|actual| Failure::NotApplied { option, value: setting.shown_value(), actual })
            }
            Err(AnswerError::Rejected(error)) if error.code != RpcError::AUTH_REQUIRED => {
                Some(Failure::SettingRejected { option, value: setting.shown_value(), error: error.into() })
            }
            Err(error) => Some(self.failure(Step::Configure, error)),
        };
        match failure {
            Some(failure) => self.fail(failure),
            None => self.configure(Step::Configure, settings),
        }
    }

    fn prompted(&mut self, answer: Answer) {
        let is_cancelling = self.state == State::Cancelling;
        let step = if is_cancelling { Step::Cancel } else { Step::Prompt };
        let invalid = |reason: &str| {
            Outcome::Failed(Failure::InvalidAnswer { step: Step::Prompt, reason: reason.to_owned() })
        };
        let outcome = match answer {
            Ok(value) => {
                self.usage.answer(&value);
                let has_error = value.get("error").is_some_and(|error| !error.is_null());
                match value.get("stopReason") {
                    Some(Value::String(_)) if has_error => invalid("it has a stop reason and an error"),
                    Some(Value::String(reason)) => Outcome::from_stop_reason(reason, is_cancelling),
                    Some(_) => invalid("`stopReason` is not a text"),
                    None => invalid("`stopReason` is missing"),
                }
            }
            Err(AnswerError::Rejected(error))
                if is_cancelling && error.code == RpcError::REQUEST_CANCELLED =>
            {
                Outcome::Cancelled
            }
            Err(error) => Outcome::Failed(self.failure(step, error)),
        };
        self.close_asks();
        self.disarm(Timer::Silence);
        self.disarm(Timer::Cancel);
        self.state = State::Finishing(outcome);
        self.arm(Timer::Usage);
    }

    fn requested(&mut self, id: Id, method: &str, params: &Value) {
        let name = match method {
            "session/request_permission" => "permission",
            "elicitation/create" => "question",
            _ => {
                self.out(Effect::Report(Anomaly::UnknownMethod(head(method))));
                return self.respond(id, Err(RpcError::method_not_found(method)));
            }
        };
        let is_permission = name == "permission";
        let cancelled =
            if is_permission { cancelled_permission() } else { QuestionDecision::Cancel.to_value() };
        match self.state {
            State::Prompting => {}
            // The agent may have asked before it read the request to cancel.
            State::Cancelling => return self.respond(id, Ok(cancelled)),
            _ => {
                self.out(Effect::Report(Anomaly::AskedOutsideTurn(name)));
                return self.respond(id, Ok(cancelled));
            }
        }
        if self.asks.len() >= MAX_ASKED {
            self.out(Effect::Report(Anomaly::TooManyAsked(name)));
            let error = RpcError::new(RpcError::INTERNAL_ERROR, "too many requests are open");
            return self.respond(id, Err(error));
        }
        self.check_session(params);
        let ask = AskId(self.last_ask + 1);
        let effect = if is_permission {
            match PermissionRequest::parse(ask, params, &mut self.tools) {
                Ok((request, is_new)) => {
                    if is_new {
                        // Some agents announce a call only after its permission.
                        let started = Update::ToolStarted(request.call.clone());
                        self.turn.take(&started);
                        self.out(Effect::Update(Origin::Turn, Box::new(started)));
                    }
                    let asked = Asked::Permission(request.options.clone());
                    Some((asked, Effect::AskPermission(request)))
                }
                Err(reason) => {
                    let reason = head(&reason);
                    let error = RpcError::new(RpcError::INVALID_PARAMS, reason.as_str());
                    self.out(Effect::Report(Anomaly::InvalidParams { method: method.to_owned(), reason }));
                    return self.respond(id, Err(error));
                }
            }
        } else {
            let request = QuestionRequest::parse(ask, params).filter(|_| self.request.answers_questions);
            request.map(|request| (Asked::Question, Effect::AskQuestion(request)))
        };
        let Some((asked, effect)) = effect else {
            return self.respond(id, Ok(QuestionDecision::Decline.to_value()));
        };
        self.last_ask += 1;
        self.asks.insert(ask, OpenAsk { request: id, asked });
        self.disarm(Timer::Silence);
        self.out(effect);
    }

    fn notified(&mut self, method: String, mut params: Value) {
        match method.as_str() {
            "session/update" => {
                let Some(update) = params.get_mut("update").map(Value::take) else {
                    let reason = "`update` is missing".to_owned();
                    return self.out(Effect::Report(Anomaly::InvalidParams { method, reason }));
                };
                if self.check_session(&params) {
                    self.updated(update);
                }
            }
            "$/cancel_request" => {
                let request = params.get("requestId").and_then(Id::parse);
                let ask = self.asks.iter().find(|(_, ask)| Some(&ask.request) == request.as_ref());
                if let Some(ask) = ask.map(|(ask, _)| *ask)
                    && let Some(open) = self.asks.remove(&ask)
                {
                    let error = RpcError::new(RpcError::REQUEST_CANCELLED, "Request cancelled");
                    self.respond(open.request, Err(error));
                    self.out(Effect::Withdraw(ask));
                    self.resume_silence();
                }
            }
            _ => {
                let origin = self.origin();
                self.out(Effect::Update(origin, Box::new(Update::Extension { method, params })));
            }
        }
    }

    fn updated(&mut self, value: Value) {
        let origin = self.origin();
        self.usage.update(&value);
        let update = self.tools.parse(value);
        if let Update::Unknown { kind, .. } = &update
            && self.is_first_report(&format!("update {kind}"))
        {
            let kind = head(kind);
            self.out(Effect::Report(Anomaly::UnknownUpdate(kind)));
        }
        let fits = origin != Origin::Turn || self.turn.take(&update);
        self.out(Effect::Update(origin, Box::new(update)));
        if matches!(self.state, State::Settling(_)) {
            self.arm(Timer::Replay);
        }
        if !fits {
            self.fail(Failure::TooMuchText { limit: MAX_TEXT });
        }
    }

    fn origin(&self) -> Origin {
        match self.state {
            State::Prompting | State::Cancelling | State::Finishing(_) => Origin::Turn,
            State::Opening(_) | State::Configuring(..) | State::Settling(_)
                if self.request.resume.is_some() =>
            {
                Origin::Replay
            }
            _ => Origin::Idle,
        }
    }

    /// Whether parameters are those of the session. Before the session is open, and if they name none, they are.
    fn check_session(&mut self, params: &Value) -> bool {
        let Some(session) = params.get("sessionId") else { return true };
        let is_own = session.as_str() == Some(&self.session.id) || self.session.id.is_empty();
        let session = head(&session.as_str().map_or_else(|| session.to_string(), ToOwned::to_owned));
        if !is_own && self.is_first_report(&format!("session {session}")) {
            self.out(Effect::Report(Anomaly::OtherSession(session)));
        }
        is_own
    }

    fn is_first_report(&mut self, key: &str) -> bool {
        self.reported.len() < REPORTED && self.reported.insert(head(key))
    }
}
