//! People who decide about requests of an agent at work: each becomes a review (docs/agents.md).
//!
//! One request is open at a time, others wait for their turn. The reviews are made by the agent of human gates, in a process of its own; what it
//! reports is passed on as if this agent had. `.cliq/asks/<phase>.json` records each request before a person is asked, and its outcome before the
//! agent gets it: a process that continues after a kill, or after the run was parked, asks nobody twice.

mod helper;
mod log;
mod request;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Duration;

use cliq_acp::client::{
    AskId, PermissionDecision as Decision, PermissionReply, QuestionDecision, QuestionReply,
};
use cliq_protocol::{
    AskAnswer, AskRecord, AskState, PEOPLE_VARIABLE, PermissionDecision, PermissionRecord, WaitingReview,
};
use cliq_sdk::{PhaseContext, Reporter};
use cliq_settings::{Environment, ReviewSettings, Settings};
use helper::{Helper, HelperEvent};
use log::AskLog;
use tokio::sync::Notify;

use crate::AnyError;
pub(in crate::llm) use request::Request;
use request::values;

/// Interval at which the reports about an open request are read.
const POLL: Duration = Duration::from_millis(50);

/// People, and the requests to them.
#[derive(Clone)]
pub(in crate::llm) struct People {
    inner: Rc<RefCell<Inner>>,
}

struct Inner {
    helper: Option<Helper>,
    /// Values that are never shown.
    secrets: Vec<String>,
    /// Wakes the thread that polls.
    wake: Rc<Notify>,
    log: AskLog,
    reporter: Reporter,
    /// Open requests. The first one has a review.
    open: VecDeque<Open>,
    /// Whether a review is being made or waited for.
    is_asking: bool,
    /// Last report about the review that is open.
    review: Option<WaitingReview>,
    /// Requests whose outcome this process has given to the agent, with the id of the tool call.
    given: Vec<(u32, Option<String>)>,
    /// Outcomes for the transcript.
    decided: Vec<Decided>,
    /// Words of people that the agent has not read.
    words: Vec<String>,
    /// Outcome for the call that waits.
    #[cfg(feature = "http")]
    answer: Option<AskAnswer>,
    failed: Option<AnyError>,
}

/// Request that has no answer yet.
struct Open {
    /// The request, until it is recorded: one that nobody was asked about leaves no record.
    request: Option<Request>,
    /// Number in the record. Zero before.
    number: u32,
    /// Id in the conversation. `None` for a request of an earlier process.
    id: Option<AskId>,
    reply: Reply,
}

enum Reply {
    /// A tool call that waits in this thread, by its id.
    #[cfg(feature = "http")]
    Call(String),
    Permission(PermissionReply, PermissionRecord),
    Question(QuestionReply, Vec<(String, String)>),
    /// The agent that asked has ended.
    Gone,
}

impl People {
    /// People for an activation. Requests of earlier processes are read.
    pub(in crate::llm) fn open(
        ctx: &PhaseContext,
        settings: &Settings,
        environment: &Environment,
        secrets: Vec<String>,
    ) -> Result<Self, AnyError> {
        let command = environment.get(PEOPLE_VARIABLE).and_then(|text| serde_json::from_str(text).ok());
        let command = command.filter(|command: &Vec<String>| !command.is_empty());
        let reviews = ReviewSettings::read(settings);
        let helper = command.map(|command| Helper::new(command, ctx, &reviews));
        let inner = Inner {
            helper,
            secrets,
            wake: Rc::default(),
            log: AskLog::open(ctx)?,
            reporter: ctx.reporter().clone(),
            open: VecDeque::new(),
            is_asking: false,
            review: None,
            given: Vec::new(),
            decided: Vec::new(),
            words: Vec::new(),
            #[cfg(feature = "http")]
            answer: None,
            failed: None,
        };
        Ok(Self { inner: Rc::new(RefCell::new(inner)) })
    }

    /// Whether a request has no answer yet.
    pub(in crate::llm) fn is_asking(&self) -> bool {
        !self.inner.borrow().open.is_empty()
    }

    /// Whether somebody can be asked.
    pub(in crate::llm) fn can_be_asked(&self) -> bool {
        self.inner.borrow().helper.is_some()
    }

    /// Asks for a permission.
    pub(in crate::llm) fn permission(
        &self,
        id: AskId,
        request: &Request,
        record: PermissionRecord,
        reply: PermissionReply,
    ) {
        self.inner.borrow_mut().ask(id, request, Reply::Permission(reply, record));
    }

    /// Asks a question. `names` has the property of the answer for each field of the form.
    pub(in crate::llm) fn question(
        &self,
        id: AskId,
        request: &Request,
        names: Vec<(String, String)>,
        reply: QuestionReply,
    ) {
        self.inner.borrow_mut().ask(id, request, Reply::Question(reply, names));
    }

    /// Takes note that the agent needs no answer any more.
    pub(in crate::llm) fn withdrawn(&self, id: AskId) {
        let inner = &mut *self.inner.borrow_mut();
        for open in inner.open.iter_mut().filter(|open| open.id == Some(id)) {
            open.reply = Reply::Gone;
        }
        inner.wake.notify_one();
    }

    /// Takes note of the end of a tool call: a permission for it is used.
    pub(in crate::llm) fn call_ended(&self, call: &str) {
        let inner = &mut *self.inner.borrow_mut();
        let is_of = |(_, of): &(u32, Option<String>)| of.as_deref() == Some(call);
        let numbers: Vec<u32> =
            inner.given.iter().filter(|given| is_of(given)).map(|(number, _)| *number).collect();
        if !numbers.is_empty() {
            let used = inner.log.use_up(|record| numbers.contains(&record.number));
            inner.keep(used);
        }
    }

    /// Takes the outcomes since the last call.
    pub(in crate::llm) fn take_decided(&self) -> Vec<Decided> {
        std::mem::take(&mut self.inner.borrow_mut().decided)
    }

    /// Takes the words of people that the agent has not read.
    pub(in crate::llm) fn take_words(&self) -> Vec<String> {
        std::mem::take(&mut self.inner.borrow_mut().words)
    }

    /// Does what is due: asks the next request, passes reports on, gives outcomes. Returns whether a request is open.
    pub(in crate::llm) fn poll(&self) -> bool {
        let inner = &mut *self.inner.borrow_mut();
        if inner.failed.is_none()
            && let Err(error) = inner.step()
        {
            inner.fail(error);
        }
        !inner.open.is_empty()
    }

    /// Waits until [`People::poll`] may have something to do.
    pub(in crate::llm) async fn due(&self) {
        let (is_open, wake) = {
            let inner = self.inner.borrow();
            (!inner.open.is_empty(), Rc::clone(&inner.wake))
        };
        if is_open { tokio::time::sleep(POLL).await } else { wake.notified().await }
    }

    /// Takes up the request that an earlier process left open, if there is one.
    pub(in crate::llm) fn take_up(&self) {
        let inner = &mut *self.inner.borrow_mut();
        if inner.helper.is_some()
            && let Some(number) = inner.log.pending()
        {
            inner.open.push_back(Open { request: None, number, id: None, reply: Reply::Gone });
        }
    }

    /// Sentences about outcomes that an earlier process did not give to the agent.
    pub(in crate::llm) fn news(&self) -> Vec<String> {
        let inner = self.inner.borrow();
        inner.log.unused().filter(|record| !inner.is_given(record)).filter_map(told).collect()
    }

    /// Ends a turn. After one that came to its end, what is open is withdrawn, and no outcome of it counts any more. After any other, both stay for
    /// the process that continues.
    ///
    /// # Errors
    /// A request could not be made, recorded or withdrawn.
    pub(in crate::llm) fn end_turn(&self, end: TurnEnd) -> Result<(), AnyError> {
        let inner = &mut *self.inner.borrow_mut();
        match end {
            TurnEnd::Terminated | TurnEnd::Broken => inner.open.clear(),
            TurnEnd::Complete => {
                inner.withdraw_all()?;
                inner.log.use_up(|_| true)?;
            }
        }
        inner.failed.take().map_or(Ok(()), Err)
    }
}

#[cfg(feature = "http")]
impl People {
    /// Asks for a tool call, and waits for the outcome. A request that an earlier process made for this call is taken up.
    ///
    /// # Errors
    /// The request could not be made or recorded.
    pub(in crate::llm) fn wait_for(&self, call: &str, request: &Request) -> Result<AskAnswer, AnyError> {
        {
            let inner = &mut *self.inner.borrow_mut();
            let reply = Reply::Call(call.to_owned());
            match inner.log.pending_of(&request.digest).filter(|_| inner.helper.is_some()) {
                Some(number) => inner.open.push_back(Open { request: None, number, id: None, reply }),
                None => inner.ask(AskId(0), request, reply),
            }
        }
        while self.poll() {
            std::thread::sleep(POLL);
        }
        let inner = &mut *self.inner.borrow_mut();
        match (inner.failed.take(), inner.answer.take()) {
            (Some(error), _) => Err(error),
            (None, Some(answer)) => Ok(answer),
            (None, None) => Err("there is no program that asks people".into()),
        }
    }

    /// Withdraws the request that an earlier process left open, unless it is one of these.
    ///
    /// # Errors
    /// The review cannot be cancelled.
    pub(in crate::llm) fn withdraw_but(&self, digests: &[String]) -> Result<(), AnyError> {
        let inner = &mut *self.inner.borrow_mut();
        let Some(number) = inner.log.pending().filter(|_| inner.helper.is_some()) else { return Ok(()) };
        if digests.contains(&inner.log.required(number)?.digest) {
            return Ok(());
        }
        inner.open.push_back(Open { request: None, number, id: None, reply: Reply::Gone });
        inner.is_asking = true;
        inner.withdraw_all()
    }
}

/// Outcome of a request, for the transcript.
pub(in crate::llm) enum Decided {
    Permission(PermissionRecord),
    /// Notice about a question.
    Question(String),
}

/// End of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::llm) enum TurnEnd {
    /// The agent ended it.
    Complete,
    /// The agent died or broke the protocol: it may ask the same again.
    Broken,
    /// This process is asked to end.
    Terminated,
}

/// Sentence for the agent about an outcome.
fn told(record: &AskRecord) -> Option<String> {
    let answer = record.answer.as_ref()?;
    let asked = record.subject.title();
    let mut text = match answer {
        AskAnswer::Approved { .. } => {
            format!("You asked for `{asked}`. {}. Go on with it.", answer.sentence(&record.subject))
        }
        AskAnswer::Rejected { .. } => {
            format!("You asked for `{asked}`. {}. Go on without it.", answer.sentence(&record.subject))
        }
        AskAnswer::Expired { .. } | AskAnswer::Withdrawn { .. } => {
            format!("You asked for `{asked}`. Nobody answered. Go on without it.")
        }
    };
    if let AskAnswer::Approved { inputs, .. } = answer
        && !inputs.is_empty()
    {
        let _ = write!(text, " The answer: {}", serde_json::Value::Object(inputs.clone()));
    }
    Some(text)
}

impl Inner {
    fn is_given(&self, record: &AskRecord) -> bool {
        self.given.iter().any(|(number, _)| *number == record.number)
    }

    /// Keeps the first error. Every request gets no answer then.
    fn fail(&mut self, error: AnyError) {
        self.failed.get_or_insert(error);
        self.open.clear();
        if let Some(helper) = &mut self.helper {
            helper.stop();
        }
    }

    fn keep(&mut self, outcome: Result<(), AnyError>) {
        if let Err(error) = outcome {
            self.fail(error);
        }
    }

    /// Asks, unless an earlier process did not give the outcome of the same request to the agent.
    fn ask(&mut self, id: AskId, request: &Request, reply: Reply) {
        self.wake.notify_one();
        let known =
            self.log.unused().find(|record| record.digest == request.digest && !self.is_given(record));
        if let Some((number, answer)) = known.and_then(|record| Some((record.number, record.answer.clone()?)))
        {
            return self.give(number, &answer, reply, false);
        }
        if self.helper.is_none() || self.failed.is_some() {
            return;
        }
        let request = Some(request.clone().without(&self.secrets));
        self.open.push_back(Open { request, number: 0, id: Some(id), reply });
    }

    fn step(&mut self) -> Result<(), AnyError> {
        let Some(helper) = &mut self.helper else { return Ok(()) };
        // A request that was withdrawn before a person was asked needs nothing.
        while let Some(first) = self.open.front() {
            let is_gone = matches!(first.reply, Reply::Gone) && first.id.is_some();
            if !is_gone {
                break;
            }
            let number = first.number;
            self.open.pop_front();
            if !std::mem::take(&mut self.is_asking) {
                continue;
            }
            let answer = helper.withdraw(self.log.required(number)?)?;
            self.log.answer(number, &answer, AskState::Used)?;
            report_end(&self.reporter, &mut self.review, "the agent withdrew its request")?;
        }
        let Some(first) = self.open.front_mut() else { return Ok(()) };
        if let Some(request) = first.request.take() {
            first.number = self.log.add(&request)?;
        }
        let number = first.number;
        if !self.is_asking {
            helper.start(self.log.required(number)?)?;
            self.is_asking = true;
        }
        for event in helper.poll()? {
            match event {
                HelperEvent::Review(message, review) => {
                    self.reporter.review(message, &review)?;
                    self.review = Some(*review);
                }
                HelperEvent::Progress(message) => self.reporter.progress(message)?,
                HelperEvent::Notify(request) => self.reporter.notify(request)?,
                HelperEvent::Answer(answer) => {
                    self.is_asking = false;
                    let Some(open) = self.open.pop_front() else { break };
                    self.log.answer(number, &answer, AskState::Answered)?;
                    let sentence = answer.sentence(&self.log.required(number)?.subject);
                    report_end(&self.reporter, &mut self.review, &sentence)?;
                    self.give(number, &answer, open.reply, true);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Gives an outcome to the agent. One for an agent that has ended is given to the next one.
    fn give(&mut self, number: u32, answer: &AskAnswer, reply: Reply, is_live: bool) {
        let Some(record) = self.log.record(number) else { return };
        let (title, sentence) = (record.subject.title(), answer.sentence(&record.subject));
        if is_live
            && !matches!(reply, Reply::Gone)
            && let Some(words) = answer.words()
        {
            let verb = if answer.is_approved() { "allowed" } else { "refused" };
            // The protocol has no place for words beside a decision.
            if matches!(reply, Reply::Permission(..)) {
                self.words.push(format!("About your request for `{title}`, which was {verb}: {words}"));
            }
        }
        match reply {
            Reply::Permission(reply, mut record) => {
                let (decision, recorded) = match answer {
                    AskAnswer::Approved { .. } => (Decision::Allow, PermissionDecision::Allowed),
                    AskAnswer::Rejected { .. } | AskAnswer::Expired { .. } | AskAnswer::Withdrawn { .. } => {
                        (Decision::Reject, PermissionDecision::Refused)
                    }
                };
                self.given.push((number, Some(record.id.clone())));
                (record.decision, record.reason) = (recorded, sentence);
                self.decided.push(Decided::Permission(record));
                reply.send(decision);
            }
            Reply::Question(reply, names) => {
                self.given.push((number, None));
                self.decided.push(Decided::Question(format!("question: {title}; {sentence}")));
                reply.send(match answer {
                    AskAnswer::Approved { inputs, .. } => QuestionDecision::Accept(values(inputs, &names)),
                    AskAnswer::Rejected { .. } => QuestionDecision::Decline,
                    AskAnswer::Expired { .. } | AskAnswer::Withdrawn { .. } => QuestionDecision::Cancel,
                });
            }
            #[cfg(feature = "http")]
            Reply::Call(call) => {
                self.given.push((number, Some(call)));
                self.answer = Some(answer.clone());
            }
            Reply::Gone => {}
        }
    }

    fn withdraw_all(&mut self) -> Result<(), AnyError> {
        for open in &mut self.open {
            (open.id, open.reply) = (Some(AskId(0)), Reply::Gone);
        }
        if self.failed.is_none() && !self.open.is_empty() {
            self.step()?;
        }
        self.open.clear();
        Ok(())
    }
}

/// Reports that the review that was open is over, and that the agent works.
fn report_end(reporter: &Reporter, review: &mut Option<WaitingReview>, answer: &str) -> Result<(), AnyError> {
    let Some(over) = review.take() else { return Ok(()) };
    let over = WaitingReview {
        reviewers: Vec::new(),
        due: None,
        others: Vec::new(),
        answer: Some(answer.to_owned()),
        ..over
    };
    reporter.review(answer, &over)?;
    Ok(())
}
