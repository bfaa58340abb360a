//! State machine of a client: one process of an agent, one session, one turn at a time. Pure: time comes in as events.
//!
//! ```text
//! Created ─► Initializing ─► Opening ─► Configuring ─► (Settling) ─► Ready ⇄ Prompting ─► Finishing
//!                                                                             └► Cancelling ┘
//! ```
//! Any state may go to `Ended`. A start ends in exactly one [`Effect::Started`] or [`Effect::StartFailed`], an accepted prompt in
//! exactly one [`Effect::TurnEnded`], a permission of the agent in exactly one response.

mod events;
mod incoming;
mod turn;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agent_client_protocol_schema::v1::ContentBlock;
use serde_json::{Value, json};

use super::anomaly::Anomaly;
use super::ask::{
    AskId, PermissionDecision, PermissionOption, PermissionRequest, QuestionDecision, cancelled_permission,
};
use super::outcome::{Failure, Outcome, Step};
use super::session::{AgentInfo, SessionInfo, SessionRequest, Setting};
use super::update::ToolCalls;
use super::usage::UsageCounter;
use crate::calls::Calls;
use crate::rpc::{Id, Message, RpcError};
pub use events::{AgentEnd, Effect, Event, SteerId, SteerOutcome, Timer};
use turn::Turn;
pub use turn::{Decisions, MAX_TEXT, TurnReport};

/// Maximum number of open permissions and questions.
pub const MAX_ASKED: usize = 64;

#[derive(Debug, Clone, PartialEq)]
enum State {
    Created,
    Initializing,
    Opening(Step),
    /// Value that was set last, and settings that follow.
    Configuring(Setting, Value, VecDeque<Setting>),
    /// The conversation is open; its replay may still arrive.
    Settling(Step),
    Ready,
    Prompting,
    Cancelling,
    /// The prompt is answered; usage may follow.
    Finishing(Outcome),
    Ended,
}

/// Purpose of a call of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Initialize,
    Open(Step),
    Configure,
    Prompt,
    Steer(SteerId),
}

#[derive(Debug, Clone)]
enum Asked {
    Permission(Vec<PermissionOption>),
    Question,
}

/// Permission or question that is open: the id of the agent's request, and what may be answered.
#[derive(Debug, Clone)]
struct OpenAsk {
    request: Id,
    asked: Asked,
}

/// State machine of a client.
#[derive(Debug, Clone)]
pub struct Machine {
    request: SessionRequest,
    state: State,
    calls: Calls<Call>,
    asks: BTreeMap<AskId, OpenAsk>,
    last_ask: u64,
    armed: BTreeSet<Timer>,
    agent: AgentInfo,
    session: SessionInfo,
    tools: ToolCalls,
    usage: UsageCounter,
    turn: Turn,
    /// End of the conversation that no start and no turn has reported.
    untold: Option<Failure>,
    /// Kinds of updates and ids of sessions that were reported already.
    reported: BTreeSet<String>,
    effects: Vec<Effect>,
}

impl Machine {
    /// Returns a machine for a process that is about to start.
    #[must_use]
    pub fn new(request: SessionRequest) -> Self {
        let usage = UsageCounter::new(request.usage);
        Self {
            request,
            state: State::Created,
            calls: Calls::default(),
            asks: BTreeMap::new(),
            last_ask: 0,
            armed: BTreeSet::new(),
            agent: AgentInfo::default(),
            session: SessionInfo::default(),
            tools: ToolCalls::default(),
            usage,
            turn: Turn::default(),
            untold: None,
            reported: BTreeSet::new(),
            effects: Vec::new(),
        }
    }

    /// Returns the facts about the agent. Empty before its answer to `initialize`.
    #[must_use]
    pub fn agent(&self) -> &AgentInfo {
        &self.agent
    }

    /// Returns the session. Empty before it is open.
    #[must_use]
    pub fn session(&self) -> &SessionInfo {
        &self.session
    }

    /// Whether the machine has reached its end.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Returns the current step of the conversation.
    #[must_use]
    pub fn current_step(&self) -> Step {
        match &self.state {
            State::Created | State::Initializing => Step::Initialize,
            State::Opening(step) | State::Settling(step) => *step,
            State::Configuring(..) => Step::Configure,
            State::Ready | State::Finishing(_) | State::Ended => Step::Idle,
            State::Prompting => Step::Prompt,
            State::Cancelling => Step::Cancel,
        }
    }

    /// Takes an event and returns its effects, in order.
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        if self.state != State::Ended {
            self.handle(event);
        } else {
            self.after_the_end(&event);
        }
        std::mem::take(&mut self.effects)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Start => {
                if self.state == State::Created {
                    self.state = State::Initializing;
                    let params = self.request.initialize();
                    self.call(Call::Initialize, "initialize", params);
                    self.arm(Timer::Start);
                }
            }
            Event::Line(line) => self.line(line),
            Event::Prompt(content) => self.prompt(&content),
            Event::Steer { id, text } => self.steer(id, &text),
            Event::Cancel => self.cancel(),
            Event::PermissionDecided(id, decision) => self.decide(id, decision),
            Event::QuestionAnswered(id, decision) => self.answer_question(id, &decision),
            Event::Timer(timer) => {
                if self.armed.remove(&timer) {
                    self.deadline(timer);
                }
            }
            Event::Ended(end) => self.connection_ended(end),
        }
    }

    fn after_the_end(&mut self, event: &Event) {
        match event {
            Event::Prompt(_) => {
                let failure = self.untold.take().unwrap_or(Failure::Ended);
                self.out(Effect::PromptRefused(failure));
            }
            Event::Steer { id, .. } => self.out(Effect::Steered(*id, SteerOutcome::NoTurn)),
            Event::Start
            | Event::Line(_)
            | Event::Cancel
            | Event::PermissionDecided(..)
            | Event::QuestionAnswered(..)
            | Event::Timer(_)
            | Event::Ended(_) => {}
        }
    }

    fn prompt(&mut self, content: &[ContentBlock]) {
        if self.state != State::Ready {
            self.out(Effect::PromptRefused(Failure::Busy));
            return;
        }
        self.state = State::Prompting;
        self.turn = Turn::default();
        self.usage.begin();
        let params = json!({ "sessionId": self.session.id, "prompt": content });
        self.call(Call::Prompt, "session/prompt", params);
        self.arm(Timer::Silence);
    }

    fn steer(&mut self, id: SteerId, text: &str) {
        match self.state {
            State::Prompting if self.agent.can_steer => {
                let prompt = json!([{ "type": "text", "text": text }]);
                let params = json!({ "sessionId": self.session.id, "prompt": prompt });
                self.call(Call::Steer(id), "_session/steering", params);
            }
            State::Prompting => self.out(Effect::Steered(id, SteerOutcome::NotSupported)),
            _ => self.out(Effect::Steered(id, SteerOutcome::NoTurn)),
        }
    }

    fn cancel(&mut self) {
        match self.state {
            State::Prompting => {
                self.state = State::Cancelling;
                self.close_asks();
                let params = json!({ "sessionId": self.session.id });
                self.out(Effect::Send(Message::notification("session/cancel", params)));
                self.disarm(Timer::Silence);
                self.arm(Timer::Cancel);
            }
            State::Created
            | State::Initializing
            | State::Opening(_)
            | State::Configuring(..)
            | State::Settling(_) => {
                let step = self.current_step();
                self.fail(Failure::CancelledStart { step });
            }
            State::Ready | State::Cancelling | State::Finishing(_) | State::Ended => {}
        }
    }

    fn decide(&mut self, id: AskId, decision: PermissionDecision) {
        let Some(OpenAsk { asked: Asked::Permission(_), .. }) = self.asks.get(&id) else { return };
        let Some(OpenAsk { request, asked: Asked::Permission(options) }) = self.asks.remove(&id) else {
            return;
        };
        let result = match PermissionRequest::answer(&options, decision) {
            Ok(answer) => {
                self.turn.decisions.count(decision);
                answer
            }
            Err(kind) => {
                self.turn.decisions.count(PermissionDecision::Cancel);
                self.out(Effect::Report(Anomaly::NoOnceOption(kind)));
                cancelled_permission()
            }
        };
        self.respond(request, Ok(result));
        self.resume_silence();
    }

    fn answer_question(&mut self, id: AskId, decision: &QuestionDecision) {
        let Some(OpenAsk { asked: Asked::Question, .. }) = self.asks.get(&id) else { return };
        let Some(OpenAsk { request, .. }) = self.asks.remove(&id) else { return };
        self.respond(request, Ok(decision.to_value()));
        self.resume_silence();
    }

    fn deadline(&mut self, timer: Timer) {
        let step = self.current_step();
        match timer {
            Timer::Start => self.fail(Failure::TimedOut { step }),
            Timer::Replay => {
                if matches!(self.state, State::Settling(_)) {
                    self.ready();
                }
            }
            Timer::Silence => self.fail(Failure::Silent { step }),
            Timer::Cancel => self.fail(Failure::TimedOut { step: Step::Cancel }),
            Timer::Usage => {
                if let State::Finishing(outcome) = &self.state {
                    let outcome = outcome.clone();
                    self.finish_turn(outcome);
                    self.state = State::Ready;
                }
            }
        }
    }

    fn connection_ended(&mut self, end: AgentEnd) {
        let step = self.current_step();
        self.fail(match end {
            AgentEnd::Exited { exit, errors } => Failure::AgentExited { step, exit, errors },
            AgentEnd::OutputClosed => Failure::OutputClosed { step },
            AgentEnd::InputClosed => Failure::InputClosed { step },
            AgentEnd::InputStuck { bytes } => Failure::InputStuck { step, bytes },
        });
    }

    /// Ends everything. A start or a turn that was not over failed.
    fn fail(&mut self, failure: Failure) {
        let state = std::mem::replace(&mut self.state, State::Ended);
        for (id, _) in std::mem::take(&mut self.asks) {
            self.out(Effect::Withdraw(id));
        }
        for timer in std::mem::take(&mut self.armed) {
            self.out(Effect::Disarm(timer));
        }
        match state {
            State::Created
            | State::Initializing
            | State::Opening(_)
            | State::Configuring(..)
            | State::Settling(_) => self.out(Effect::StartFailed(failure)),
            State::Prompting | State::Cancelling => self.finish_turn(Outcome::Failed(failure)),
            // The answer was there before. The next prompt is refused with the failure, whether it is sent before or after this.
            State::Finishing(outcome) => {
                self.untold = Some(failure);
                self.finish_turn(outcome);
            }
            State::Ready => self.untold = Some(failure),
            State::Ended => {}
        }
        self.calls.abandon(|_| true);
        self.out(Effect::End);
    }

    fn finish_turn(&mut self, outcome: Outcome) {
        let unanswered: Vec<SteerId> = self
            .calls
            .notes()
            .filter_map(|call| match call {
                Call::Steer(id) => Some(*id),
                Call::Initialize | Call::Open(_) | Call::Configure | Call::Prompt => None,
            })
            .collect();
        self.calls.abandon(|call| matches!(call, Call::Steer(_)));
        for id in unanswered {
            self.out(Effect::Steered(id, SteerOutcome::Unanswered));
        }
        let report = std::mem::take(&mut self.turn).into_report(outcome, self.usage.finish());
        self.out(Effect::TurnEnded(Box::new(report)));
    }

    fn ready(&mut self) {
        self.state = State::Ready;
        self.disarm(Timer::Start);
        self.disarm(Timer::Replay);
        self.out(Effect::Started);
    }

    /// Answers all open permissions and questions, as the turn is over.
    fn close_asks(&mut self) {
        for (id, ask) in std::mem::take(&mut self.asks) {
            let answer = match ask.asked {
                Asked::Permission(_) => {
                    self.turn.decisions.count(PermissionDecision::Cancel);
                    cancelled_permission()
                }
                Asked::Question => QuestionDecision::Cancel.to_value(),
            };
            self.respond(ask.request, Ok(answer));
            self.out(Effect::Withdraw(id));
        }
    }

    /// Restarts the deadline of silence, unless a permission or question is open.
    fn resume_silence(&mut self) {
        if self.state == State::Prompting && self.asks.is_empty() {
            self.arm(Timer::Silence);
        }
    }

    fn call(&mut self, call: Call, method: &str, params: Value) {
        let id = self.calls.open(call);
        self.out(Effect::Send(Message::request(id, method, params)));
    }

    fn respond(&mut self, id: Id, result: Result<Value, RpcError>) {
        self.out(Effect::Send(Message::response(id, result)));
    }

    fn arm(&mut self, timer: Timer) {
        self.armed.insert(timer);
        self.out(Effect::Arm(timer));
    }

    fn disarm(&mut self, timer: Timer) {
        if self.armed.remove(&timer) {
            self.out(Effect::Disarm(timer));
        }
    }

    fn out(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
}
