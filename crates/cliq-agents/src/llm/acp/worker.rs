//! Activation of an agent behind the Agent Client Protocol: its process, its conversation, and the messages that arrive meanwhile.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use cliq_acp::client::{Client, Failure, Limits, Outcome, Session, SteerId, Step, TurnReport, TurnUsage};
use cliq_acp::schema::ContentBlock;
use cliq_protocol::{Limited, Origin, SentParts};
use cliq_sdk::{LimitReached, PhaseContext, Steering, SteeringMessage, Usage};
use tokio::runtime::{Builder, Runtime};

use super::launch::Launch;
use super::listener::{Listener, Said};
use super::termination::Termination;
use crate::AnyError;
use crate::llm::meter::line;
use crate::llm::people::{People, TurnEnd};
use crate::llm::presets::{AfterRefusal, ResumeFitness};
use crate::llm::program::{Begun, begin};
use crate::llm::prompt::Scope;
use crate::llm::{Ended, Render, prompt};

/// Maximum number of times that an agent is asked to go on after it ended its turn because of a refused permission.
const REFUSALS: u32 = 2;
/// Question after a turn without an answer.
const NO_ANSWER: &str = "You ended your turn without an answer. Give your complete answer now, in the form that the task asks for.";
/// Interval at which the thread that waits for steering messages looks whether the turn has ended.
const STEERING_POLL: Duration = Duration::from_millis(100);

/// Time within which an end of this process is noticed after the end of a turn.
const TERMINATION: Duration = Duration::from_millis(500);

/// Agent that works on one activation.
pub(crate) struct AcpWorker<'a> {
    runtime: Runtime,
    launch: Launch,
    people: People,
    begun: Begun<'a>,
    session: Option<Session>,
    steering: Steering,
    /// Prompt that is sent next.
    next: String,
    /// Steering messages that the agent has not read.
    waiting: Vec<SteeringMessage>,
    termination: Termination,
}

/// Outcome of a start.
enum Started {
    Open(Box<Session>),
    /// The agent cannot continue the conversation, for this reason.
    Lost(String),
}

impl<'a> AcpWorker<'a> {
    /// Opens the conversation of an activation. The agent is started with the first question.
    pub(crate) fn open(
        launch: Launch,
        people: People,
        ctx: &'a PhaseContext,
        render: Render<'_>,
        rejected: Option<&String>,
    ) -> Result<Self, AnyError> {
        if launch.permissions.may_ask() && !people.can_be_asked() {
            let why = format!(
                "{} asks people about permissions, and nobody can be asked here; `permissions` with `allow`, `edits`, `deny` or kinds needs nobody (docs/agents.md)",
                launch.name
            );
            return Err(why.into());
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut termination = Termination::new(&runtime);
        // Before the next prompt is recorded: a process that ends while it waits has sent none.
        settle(&runtime, &people, &mut termination)?;
        let partner = launch.partner();
        let begun = begin(ctx, partner, None, launch.model.as_deref(), render, rejected)?;
        let mut this = Self {
            next: begun.question.text.clone(),
            launch,
            people,
            begun,
            session: None,
            waiting: Vec::new(),
            termination,
            runtime,
            // The prompt contains those of the dispatch message.
            steering: ctx.steering().live_only(),
        };
        if this.begun.is_unfinished && this.launch.resume == ResumeFitness::ForgetsUnfinished {
            let form = prompt::Form {
                steering: &ctx.dispatch().steering,
                rejected: rejected.is_some(),
                has_tools: false,
                has_system: false,
                answer: prompt::AnswerForm::Text,
                skills: "",
                project: "",
                scope: Scope::Whole,
            };
            // The conversation exists, and the prompt that was under way is not in it.
            this.next = render(&form)?.text;
        }
        let news = this.people.news();
        if this.begun.is_unfinished && !news.is_empty() {
            this.next = format!("{}{}", lines(&news), this.next);
        }
        for secret in this.launch.secrets() {
            this.begun.desk.display.hide(&secret);
        }
        Ok(this)
    }

    /// Returns the answer, or what the agent had when it reached a limit. Asks again as long as steering messages arrived while the agent
    /// worked.
    pub(crate) fn answer(&mut self) -> Result<Ended, AnyError> {
        if let Some(answer) = self.begun.recorded.take() {
            self.begun.desk.record().answered()?;
            return Ok(Ended::Answer(answer));
        }
        let (mut refusals, mut was_empty) = (0, false);
        loop {
            self.start()?;
            let (report, said) = self.turn()?;
            if let Some(error) = said.failed {
                return Err(error.into());
            }
            if self.termination.has_come {
                self.end();
                Termination::end_process();
            }
            self.count(report.usage, said.estimate);
            let is_refused = said.refused.is_some() && ended_by_refusal(&report.outcome, self.launch.refusal);
            if let Some(what) = said.refused.as_ref().filter(|_| is_refused) {
                refusals += 1;
                if refusals > REFUSALS {
                    let why = format!(
                        "{} ended its turn again and again because a permission was refused: {what}; `permissions` decides (docs/agents.md)",
                        self.launch.name
                    );
                    return Err(self.fail(&why));
                }
                let words = lines(&self.people.take_words());
                let question = format!(
                    "You are not permitted to do this: {what}\n\n{words}Go on without it, and give your complete answer, in the form that the task asks for."
                );
                self.ask(question, Origin::Retry, Vec::new())?;
                continue;
            }
            let answer = match report.outcome {
                Outcome::Completed if said.answer.trim().is_empty() && was_empty => {
                    return Err(self.fail(&format!("{} answered with nothing, twice", self.launch.name)));
                }
                Outcome::Completed if said.answer.trim().is_empty() => {
                    was_empty = true;
                    self.ask(NO_ANSWER.to_owned(), Origin::Retry, Vec::new())?;
                    continue;
                }
                Outcome::Completed => said.answer,
                Outcome::MaxTokens => return Ok(self.limited("max_tokens", said.partial, &report.outcome)),
                Outcome::MaxTurnRequests => {
                    return Ok(self.limited("max_turn_requests", said.partial, &report.outcome));
                }
                Outcome::Refused
                | Outcome::Cancelled
                | Outcome::UnknownStopReason(_)
                | Outcome::Failed(_) => {
                    return Err(self.fail(&format!("{}: {}", self.launch.name, report.outcome)));
                }
            };
            let (messages, words) = (self.messages()?, self.people.take_words());
            if messages.is_empty() && words.is_empty() {
                self.begun.desk.recorder.end(&answer)?;
                self.begun.desk.record().answered()?;
                return Ok(Ended::Answer(answer));
            }
            let ids = messages.iter().map(|message| message.id.clone()).collect();
            let guidance = if messages.is_empty() {
                "Take this into account, and give your complete answer again, in the form that the task asks for.".to_owned()
            } else {
                prompt::guidance(&messages)
            };
            self.ask(format!("{}{guidance}", lines(&words)), Origin::Steering, ids)?;
        }
    }

    /// Asks about the last answer.
    pub(crate) fn again(&mut self, question: String) -> Result<(), AnyError> {
        self.ask(question, Origin::Retry, Vec::new())
    }

    /// Usage of the activation.
    pub(crate) fn total(&self) -> Usage {
        self.begun.desk.meter.total()
    }

    fn ask(&mut self, question: String, origin: Origin, steering: Vec<String>) -> Result<(), AnyError> {
        let sent = SentParts { steering: steering.iter().cloned().collect(), ..SentParts::default() };
        self.begun.desk.record().ask(&sent)?;
        self.next = question;
        (self.begun.origin, self.begun.steering) = (origin, steering);
        Ok(())
    }

    /// Steering messages that the agent has not read: those that could not be sent into the turn, and new ones.
    fn messages(&mut self) -> Result<Vec<SteeringMessage>, AnyError> {
        let mut messages = std::mem::take(&mut self.waiting);
        while let Some(message) = self.steering.try_next()? {
            messages.push(message);
        }
        Ok(messages)
    }

    fn limited(&mut self, limit: &str, partial: String, outcome: &Outcome) -> Ended {
        let message = format!("{}: {outcome}", self.launch.name);
        self.begun.desk.recorder.fail(message.clone());
        let limited = Limited { limit: limit.to_owned(), value: None, extra: Default::default() };
        Ended::Limited { partial, reached: LimitReached::new(message, limited) }
    }

    fn fail(&mut self, message: &str) -> AnyError {
        let message = self.begun.desk.display.masked(message);
        self.begun.desk.recorder.fail(message.clone());
        message.into()
    }

    /// Starts the agent and opens the conversation, unless it runs.
    fn start(&mut self) -> Result<(), AnyError> {
        if self.session.is_some() {
            return Ok(());
        }
        let resume = self.begun.desk.record().session().map(str::to_owned).filter(|_| self.begun.has_session);
        let session = match self.start_with(resume.as_deref())? {
            Started::Open(session) => session,
            Started::Lost(reason) => {
                if let Some(whole) = self.begun.start_over(&reason, None)? {
                    self.next = whole;
                }
                match self.start_with(None)? {
                    Started::Open(session) => session,
                    Started::Lost(reason) => return Err(self.fail(&reason)),
                }
            }
        };
        let agent = session.agent();
        if !agent.name.is_empty() {
            self.begun.desk.display.note(&format!("[{} {}]", agent.name, agent.version));
        }
        // Recorded before the first prompt: a run that is killed finds the conversation.
        self.begun.desk.record().set_session(&session.info().id)?;
        self.session = Some(*session);
        self.begun.confirm(true);
        Ok(())
    }

    fn start_with(&mut self, resume: Option<&str>) -> Result<Started, AnyError> {
        if resume.is_some() && self.launch.resume == ResumeFitness::NextMinute {
            self.wait_for_next_minute();
        }
        loop {
            let command = self.launch.command()?;
            let limits = Limits {
                // A process that is to end has 2 s before it is killed.
                cancel: Duration::from_secs(1),
                terminate: Duration::from_millis(700),
                ..Limits::default()
            };
            let client = Client::new(command, self.launch.request(resume.map(str::to_owned)))
                .with_limits(limits)
                .with_secrets(self.launch.secrets());
            let control = client.control();
            self.begun.desk.display.act(&format!("starting {}", self.launch.name));
            let mut listener = Listener::new(&mut self.begun.desk, &self.launch, self.people.clone(), 0);
            let termination = &mut self.termination;
            let started = self.runtime.block_on(async {
                let start = client.start(&mut listener);
                tokio::pin!(start);
                loop {
                    tokio::select! {
                        started = &mut start => break started,
                        () = termination.wait() => control.cancel(),
                    }
                }
            });
            let _ = listener.finish();
            let error = match started {
                Ok(session) => return Ok(Started::Open(Box::new(session))),
                Err(error) => error,
            };
            if self.termination.has_come {
                Termination::end_process();
            }
            if let Failure::NotOffered { option, .. } = &*error.failure
                && option == "mode"
                && self.launch.drop_mode_of_preset()
            {
                continue;
            }
            let errors = error.errors.trim();
            let errors = if errors.is_empty() { String::new() } else { format!(": {errors}") };
            let why = format!("{}: {}{errors}", self.launch.name, error.failure);
            if resume.is_some() && is_lost(&error.failure) {
                return Ok(Started::Lost(self.begun.desk.display.masked(&error.failure.to_string())));
            }
            return Err(self.fail(&why));
        }
    }

    /// Waits until the clock minute in which the conversation was recorded is over: loading it earlier would destroy it.
    fn wait_for_next_minute(&mut self) {
        let Some(recorded) = self.begun.recorded_at else { return };
        let minute =
            |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() / 60;
        let now = SystemTime::now();
        if minute(now) > minute(recorded) {
            return;
        }
        let left = (minute(now) + 1) * 60;
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let wait = Duration::from_secs(left).saturating_sub(since) + Duration::from_millis(500);
        let text = format!(
            "waiting {} s: this agent can continue a conversation from the next minute on",
            wait.as_secs() + 1
        );
        self.begun.desk.display.act(&text);
        let termination = &mut self.termination;
        self.runtime.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = termination.wait() => {}
            }
        });
        if self.termination.has_come {
            Termination::end_process();
        }
    }

    /// Sends the next prompt and follows the turn. Steering messages are sent into it, if the agent can take them.
    fn turn(&mut self) -> Result<(TurnReport, Said), AnyError> {
        let Some(mut session) = self.session.take() else { return Err("the agent is not running".into()) };
        let text = std::mem::take(&mut self.next);
        self.begun.desk.recorder.ask(&text, self.begun.origin, self.begun.steering.clone());
        let (can_steer, control) = (session.agent().can_steer, session.control());
        let sent: Rc<RefCell<BTreeMap<SteerId, SteeringMessage>>> = Rc::default();
        let people = self.people.clone();
        let mut listener = Listener::new(&mut self.begun.desk, &self.launch, people.clone(), text.len());
        listener.sent = Rc::clone(&sent);
        let (steering, termination) = (&mut self.steering, &mut self.termination);
        let report = self.runtime.block_on(async {
            let mut is_ending = false;
            let prompt = session.prompt(vec![ContentBlock::from(text)], &mut listener);
            tokio::pin!(prompt);
            loop {
                tokio::select! {
                    report = &mut prompt => break report,
                    () = termination.wait() => {
                        // What is open stays open: the process that continues takes it up.
                        is_ending = true;
                        control.cancel();
                    }
                    () = people.due(), if !is_ending => drop(people.poll()),
                    () = tokio::time::sleep(STEERING_POLL), if can_steer => {
                        // An error is reported when the messages are read after the turn.
                        while steering.wait(Duration::ZERO) {
                            let Ok(Some(message)) = steering.try_next() else { break };
                            let id = control.steer(prompt::guidance(std::slice::from_ref(&message)));
                            sent.borrow_mut().insert(id, message);
                        }
                    }
                }
            }
        });
        let said = listener.finish();
        // An agent that is asked to end with this process may be faster. Its request stays open then.
        if !self.termination.has_come && self.people.is_asking() {
            let termination = &mut self.termination;
            let _ =
                self.runtime.block_on(async { tokio::time::timeout(TERMINATION, termination.wait()).await });
        }
        let end = match &report.outcome {
            _ if self.termination.has_come => TurnEnd::Terminated,
            Outcome::Failed(_) => TurnEnd::Broken,
            Outcome::Completed
            | Outcome::Refused
            | Outcome::MaxTokens
            | Outcome::MaxTurnRequests
            | Outcome::Cancelled
            | Outcome::UnknownStopReason(_) => TurnEnd::Complete,
        };
        let asked = self.people.end_turn(end);
        if !self.termination.has_come {
            asked?;
        }
        // A message that the model did not read for certain is sent again.
        let unread = sent.take().into_iter().filter(|(id, _)| said.steered.get(id) != Some(&true));
        self.waiting.extend(unread.map(|(_, message)| message));
        // The machine has ended the process if the turn failed.
        match &report.outcome {
            Outcome::Failed(_) => {}
            Outcome::Completed
            | Outcome::Refused
            | Outcome::MaxTokens
            | Outcome::MaxTurnRequests
            | Outcome::Cancelled
            | Outcome::UnknownStopReason(_) => self.session = Some(session),
        }
        Ok((report, said))
    }

    /// Takes note of the usage of a turn: what the agent reported, else the estimate.
    fn count(&mut self, reported: TurnUsage, estimate: Usage) {
        let cost_usd =
            reported.cost.filter(|cost| cost.currency.eq_ignore_ascii_case("USD")).map(|cost| cost.amount);
        let usage = match reported.tokens {
            Some(tokens) => Usage {
                tokens_in: tokens.input,
                tokens_out: tokens.output,
                tokens_cached: Some(tokens.cached),
                cost_usd,
                estimated: reported.is_lower_bound,
                ..estimate
            },
            None => Usage { cost_usd, ..estimate },
        };
        let desk = &mut self.begun.desk;
        desk.recorder.usage(&usage);
        desk.display.note(&line(&usage));
        desk.meter.report(usage);
        desk.meter.settle();
    }

    /// Ends the agent in order.
    fn end(&mut self) {
        let Some(session) = self.session.take() else { return };
        let mut listener = Listener::new(&mut self.begun.desk, &self.launch, self.people.clone(), 0);
        self.runtime.block_on(session.end(&mut listener));
    }
}

impl Drop for AcpWorker<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits for the answer to a request that an earlier process of this work left open. The agent learns it with the next prompt.
fn settle(runtime: &Runtime, people: &People, termination: &mut Termination) -> Result<(), AnyError> {
    people.take_up();
    runtime.block_on(async {
        while people.poll() {
            tokio::select! {
                () = people.due() => {}
                () = termination.wait() => break,
            }
        }
    });
    if termination.has_come {
        Termination::end_process();
    }
    people.end_turn(TurnEnd::Broken)
}

/// Sentences, each followed by a blank line.
fn lines(sentences: &[String]) -> String {
    sentences.iter().map(|sentence| format!("{sentence}\n\n")).collect()
}

/// Whether an agent ended its turn because a permission was refused.
fn ended_by_refusal(outcome: &Outcome, after: AfterRefusal) -> bool {
    match outcome {
        Outcome::Cancelled => true,
        // Those that go on have said what they have to say.
        Outcome::Completed => after != AfterRefusal::Continues,
        Outcome::Refused
        | Outcome::MaxTokens
        | Outcome::MaxTurnRequests
        | Outcome::UnknownStopReason(_)
        | Outcome::Failed(_) => false,
    }
}

/// Whether a failure of a start means that the conversation cannot be continued, and that a new one may work.
fn is_lost(failure: &Failure) -> bool {
    match failure {
        Failure::CannotContinue => true,
        Failure::Rejected { step, .. } | Failure::InvalidAnswer { step, .. } => {
            matches!(step, Step::ResumeSession | Step::LoadSession)
        }
        _ => false,
    }
}
