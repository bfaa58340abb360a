//! Loop of model turns and tool calls: a fold of transcript lines.
#![deny(clippy::wildcard_enum_match_arm)]

mod context;
mod repetition;
mod replies;

use std::collections::HashMap;

use cliq_protocol::{FailedCall, FailedCallKind, Origin, Role, ToolCall, ToolResult, TranscriptBody, Usage};

use crate::conversation::{Reply, Thinking, Turn};
use crate::limits::Limits;
use crate::outcome::{Failure, Limit};
pub use repetition::REPETITIONS;
use repetition::Repetition;
use replies::Complaint;

/// Number of replies in a row that cannot be used after which the loop ends.
const MAX_USELESS: u32 = 2;
/// Number of replies in a row that may be cut off.
const MAX_CUT_OFF: u32 = 1;
/// Maximum number of refusals in a row because the conversation is too long.
const MAX_TOO_LONG: u32 = 3;
/// Number of replies beyond the limit after which the loop ends without an answer.
const GRACE: u32 = 3;

/// Request to go on with a reply that was cut off.
const CONTINUATION: &str =
    "Your reply was cut off. Go on exactly where it ended: repeat nothing, and add no introduction.";
/// Request for a whole answer in place of one whose continuation is not known to fit.
const WHOLE_ANSWER: &str =
    "Your last answer was cut off before its end. Give your answer complete, from its beginning, as text.";
/// Result of a call of a reply that was cut off.
const CUT_CALL: &str = "not run: your reply was cut off, so that this call may be incomplete. Call the tool again. Write large files in \
    several smaller steps.";
/// Message to a model whose limit was raised.
const RAISED: &str = "The limit that you had reached was raised: go on with your task, you can call tools again. If you have given an \
    answer, give it again at the end, complete.";
/// Message to a model after a failure.
const RESUMED: &str = "Your work was interrupted, since your last replies could not be used. Go on with your task. If you had begun an \
    answer, give it again, complete and from its beginning.";

/// State of a model agent in one activation. Pure: the same lines lead to the same state, and the state to the next step.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    limits: Limits,
    /// Instructions before the conversation.
    system: Option<String>,
    turns: Vec<Turn>,
    /// Reply whose lines are being applied.
    partial: Reply,
    stage: Stage,
    /// Calls without a result, in their order.
    open: Vec<ToolCall>,
    /// Whether the open calls are those of a reply that was cut off.
    are_calls_cut: bool,
    answer: Option<String>,
    /// Arguments of the call that is the answer, while other calls are open.
    given: Option<String>,
    failure: Option<Failure>,
    /// Whether the last line is the end of an activation that failed. A resumed one goes on after it.
    is_ended: bool,
    replies: u32,
    /// Number of replies in a row that cannot be used.
    useless: u32,
    /// Number of replies in a row that were cut off.
    cuts: u32,
    /// Text of the replies that were cut off, up to now.
    parts: String,
    /// Message for the model before the next request.
    owed: Owed,
    repetition: Repetition,
    /// Last text of the model: what a limit leaves.
    last_text: String,
    too_long: u32,
    stale_thinking: u32,
    spent: Usage,
    last: Usage,
    /// Bytes of all turns.
    bytes: usize,
    /// Size of the shortest conversation that was refused as too long, in bytes. Requests are shorter from then on.
    refused_bytes: Option<usize>,
    /// Whether the conversation cannot be made short enough.
    is_out_of_context: bool,
    /// Context in tokens, as far as refusals have shown it.
    context_tokens: u64,
    reply_tokens: u64,
    tokens_per_byte: f64,
    /// Whether a provider has counted tokens.
    has_learned: bool,
    /// Steering messages that a summary must not lose.
    guidance: Vec<String>,
    /// Feedback of the present activation, which a summary must not lose.
    feedback: Option<String>,
}

/// Purpose of the next reply.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    /// Work on the task.
    Work,
    /// Summary of what is done, without tools, since a limit is reached.
    Final {
        /// The limit. `None` if the limits of this activation are larger.
        limit: Option<Limit>,
        /// Whether the model has given its last reply.
        is_over: bool,
    },
    /// Summary of the conversation.
    Summary,
}

/// Message for the model before the next request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owed {
    Nothing,
    /// The request to go on with a reply that was cut off.
    Continuation,
    /// The request for a whole answer.
    Whole,
    /// The reason why the last reply cannot be used.
    Retry(Complaint),
}

/// Next step of a loop.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Request a reply to [`Loop::turns`].
    Ask {
        /// Whether the model may call tools.
        may_call: bool,
    },
    /// Run these calls and apply their results.
    Run(Vec<ToolCall>),
    /// Record and apply this line.
    Add(TranscriptBody),
    /// The agent has its answer: a text, or the arguments of the answer tool as JSON.
    Answer(String),
    /// A limit ended the work before there was an answer.
    Limited {
        /// The limit.
        limit: Limit,
        /// Last text of the model. Empty if there is none.
        partial: String,
    },
    /// The agent cannot continue.
    Fail(Failure),
}

impl Loop {
    /// Makes the state before the first message.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            context_tokens: limits.context_tokens,
            reply_tokens: limits.reply_tokens,
            limits,
            system: None,
            turns: Vec::new(),
            partial: Reply::default(),
            stage: Stage::Work,
            open: Vec::new(),
            are_calls_cut: false,
            answer: None,
            given: None,
            failure: None,
            is_ended: false,
            replies: 0,
            useless: 0,
            cuts: 0,
            parts: String::new(),
            owed: Owed::Nothing,
            repetition: Repetition::default(),
            last_text: String::new(),
            too_long: 0,
            stale_thinking: 0,
            spent: Usage::default(),
            last: Usage::default(),
            bytes: 0,
            refused_bytes: None,
            is_out_of_context: false,
            tokens_per_byte: context::FIRST_RATIO,
            has_learned: false,
            guidance: Vec::new(),
            feedback: None,
        }
    }

    /// Conversation as the model is to see it: old results may be replaced by placeholders.
    #[must_use]
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Instructions before the conversation, in the role of the system.
    #[must_use]
    pub fn system(&self) -> Option<&str> {
        self.system.as_deref()
    }

    /// Usage of all replies.
    #[must_use]
    pub fn spent(&self) -> &Usage {
        &self.spent
    }

    /// Number of replies.
    #[must_use]
    pub fn replies(&self) -> u32 {
        self.replies
    }

    /// Calls without a result that were or are to be run.
    #[must_use]
    pub fn open_calls(&self) -> &[ToolCall] {
        if self.are_calls_cut { &[] } else { &self.open }
    }

    /// Whether the last reply has several calls of the answer tool that differ: which of them is the answer is not clear, and none
    /// is to be taken.
    ///
    /// Looks at the whole reply, so that it says the same after an interruption between two of its calls.
    #[must_use]
    pub fn do_answers_differ(&self) -> bool {
        let Some(tool) = self.limits.answer_tool else { return false };
        let last = self.turns.iter().rev().find_map(|turn| match turn {
            Turn::Assistant(reply) => Some(reply),
            Turn::User { .. } | Turn::Results(_) => None,
        });
        let calls = last.map_or(&[][..], |reply| &reply.calls);
        let mut answers = calls.iter().filter(|call| call.name == tool).map(|call| &call.arguments);
        answers.next().is_some_and(|first| answers.any(|other| other != first))
    }

    /// Whether the next reply is work on the task: no summary, and no last words before a limit.
    #[must_use]
    pub fn is_working(&self) -> bool {
        self.stage == Stage::Work
    }

    /// Whether lines of a reply were applied whose end is missing.
    #[must_use]
    pub fn is_within_reply(&self) -> bool {
        self.partial != Reply::default()
    }

    /// Whether the next reply continues one that was cut off. A message before it would separate the two.
    #[must_use]
    pub fn is_within_answer(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Applies a line of the transcript.
    pub fn apply(&mut self, body: &TranscriptBody) {
        if let TranscriptBody::Error(FailedCall { usage: Some(usage), .. }) = body {
            self.spent.add(usage);
        }
        match body {
            TranscriptBody::Start(_)
            | TranscriptBody::Permission(_)
            | TranscriptBody::Notice { .. }
            | TranscriptBody::End { .. } => {}
            // The first one counts: later changes are messages of the user.
            TranscriptBody::Message { role: Role::System, text, .. } => {
                self.system.get_or_insert_with(|| text.clone());
            }
            TranscriptBody::Message { role: Role::User, text, origin, images, .. } => {
                self.add_message(text, *origin, images);
            }
            TranscriptBody::Message { role: Role::Assistant, text, .. } => self.partial.text.push_str(text),
            TranscriptBody::Thinking { text, provider_data } => self
                .partial
                .thinking
                .push(Thinking { text: text.clone(), provider_data: provider_data.clone() }),
            TranscriptBody::ToolCall(call) => self.partial.calls.push(call.clone()),
            TranscriptBody::ToolResult(result) => self.add_result(result),
            TranscriptBody::Usage(usage) => self.finish_reply(usage),
            TranscriptBody::Error(error) => match error.kind {
                FailedCallKind::TooLong => self.shorten(),
                FailedCallKind::StaleThinking => self.refused_thinking(),
                FailedCallKind::Passing => self.is_ended = false,
                FailedCallKind::Final => self.is_ended = true,
            },
        }
    }

    /// Returns the next step.
    #[must_use]
    pub fn next(&self) -> Step {
        if let Some(failure) = &self.failure {
            // The reason is recorded: this activation follows the one that failed.
            return if self.is_ended {
                Step::Add(user(Origin::Resume, RESUMED.to_owned()))
            } else {
                Step::Fail(failure.clone())
            };
        }
        match self.open.first() {
            Some(call) if self.are_calls_cut => {
                let result = ToolResult::new(call.id.clone(), Err(CUT_CALL.to_owned()));
                return Step::Add(TranscriptBody::ToolResult(result));
            }
            Some(_) => return Step::Run(self.open.clone()),
            None => {}
        }
        if let Some(answer) = &self.answer {
            return Step::Answer(answer.clone());
        }
        if let Some(limit) = self.reached_limit() {
            return self.limited(limit);
        }
        if self.is_out_of_context() {
            // The server may have another context by now.
            return if self.is_ended {
                Step::Add(user(Origin::Resume, RAISED.to_owned()))
            } else {
                self.limited(Limit::Context(self.limits.context_tokens))
            };
        }
        match (&self.stage, &self.owed) {
            (Stage::Final { limit: None, .. }, _) => Step::Add(user(Origin::Resume, RAISED.to_owned())),
            (_, Owed::Continuation) => Step::Add(user(Origin::Continue, CONTINUATION.to_owned())),
            (_, Owed::Whole) => Step::Add(user(Origin::Continue, WHOLE_ANSWER.to_owned())),
            (stage, Owed::Retry(complaint)) => Step::Add(user(Origin::Retry, complaint.message(stage))),
            (Stage::Summary | Stage::Final { .. }, Owed::Nothing) => Step::Ask { may_call: false },
            // A continuation belongs to the reply before it.
            (Stage::Work, Owed::Nothing) if self.is_within_answer() => {
                Step::Ask { may_call: self.limits.has_tools }
            }
            (Stage::Work, Owed::Nothing) => match self.near_limit() {
                Some(limit) => Step::Add(user(Origin::Limit, limit_notice(limit))),
                None if self.is_too_large() => {
                    Step::Add(user(Origin::Summary, context::SUMMARY_REQUEST.to_owned()))
                }
                None => Step::Ask { may_call: self.limits.has_tools },
            },
        }
    }

    fn limited(&self, limit: Limit) -> Step {
        Step::Limited { limit, partial: self.last_text.clone() }
    }

    /// Returns the limit after which no request follows.
    fn reached_limit(&self) -> Option<Limit> {
        match self.stage {
            Stage::Final { limit: Some(limit), is_over: true } => Some(limit),
            Stage::Work | Stage::Summary | Stage::Final { .. } => {
                let max = self.limits.max_turns;
                let turns = (self.replies >= max.saturating_add(GRACE)).then_some(Limit::Turns(max));
                self.limits.spent(&self.spent).or(turns)
            }
        }
    }

    fn add_message(&mut self, text: &str, origin: Option<Origin>, images: &[String]) {
        self.answer = None;
        if let Stage::Final { limit, .. } = self.stage {
            self.stage = Stage::Final { limit, is_over: false };
        }
        // What follows another message is not known to continue the text before it.
        let is_separated = origin != Some(Origin::Continue) && !std::mem::take(&mut self.parts).is_empty();
        self.owed = if is_separated { Owed::Whole } else { Owed::Nothing };
        match origin {
            Some(Origin::Limit) => {
                self.stage = Stage::Final { limit: self.near_limit(), is_over: false };
            }
            Some(Origin::Summary) => {
                self.stage = Stage::Summary;
                self.forget_results(0, 0);
            }
            Some(Origin::Steering) => self.guidance.push(text.to_owned()),
            Some(Origin::Resume) => self.resume(),
            Some(Origin::Feedback) => self.begin_turn(text),
            Some(Origin::Task | Origin::Retry | Origin::Continue) | None => {}
        }
        self.push(Turn::User { text: text.to_owned(), images: images.to_vec() });
    }

    /// Begins the work on feedback, in the same conversation. Limits of replies hold for each activation.
    fn begin_turn(&mut self, feedback: &str) {
        self.stage = Stage::Work;
        self.failure = None;
        self.is_ended = false;
        self.replies = 0;
        (self.useless, self.cuts) = (0, 0);
        self.parts.clear();
        self.owed = Owed::Nothing;
        self.repetition = Repetition::default();
        self.last_text.clear();
        (self.too_long, self.stale_thinking) = (0, 0);
        // Earlier feedback was answered.
        self.feedback = Some(feedback.to_owned());
    }

    /// Begins anew after a limit or a failure, in the same conversation.
    fn resume(&mut self) {
        self.stage = Stage::Work;
        self.failure = None;
        self.is_ended = false;
        (self.useless, self.cuts) = (0, 0);
        self.owed = Owed::Nothing;
        self.repetition = Repetition::default();
        (self.too_long, self.stale_thinking) = (0, 0);
        self.refused_bytes = None;
        self.is_out_of_context = false;
        self.context_tokens = self.limits.context_tokens;
        self.reply_tokens = self.limits.reply_tokens;
    }

    fn add_result(&mut self, result: &ToolResult) {
        let Some(at) = self.open.iter().position(|call| call.id == result.id) else { return };
        let call = self.open.remove(at);
        if !result.is_error && self.limits.answer_tool == Some(call.name.as_str()) && self.given.is_none() {
            self.given = Some(serde_json::Value::Object(call.arguments).to_string());
        }
        if !matches!(self.turns.last(), Some(Turn::Results(_))) {
            self.turns.push(Turn::Results(Vec::new()));
        }
        if let [.., before, Turn::Results(results)] = &mut self.turns[..] {
            results.push(result.clone());
            // Results come as tools end; the model sees them in the order of its calls.
            if self.open.is_empty()
                && let Turn::Assistant(reply) = before
            {
                let ids = reply.calls.iter().enumerate().map(|(place, call)| (call.id.as_str(), place));
                let places: HashMap<&str, usize> = ids.collect();
                results.sort_by_key(|result| places.get(result.id.as_str()).copied());
            }
        }
        self.bytes += Turn::Results(vec![result.clone()]).size();
        if let Some(repeated) = self.repetition.result(result) {
            self.failure = Some(Failure::Repetition(repeated));
        }
        if self.open.is_empty() {
            self.answer = self.given.take();
            self.are_calls_cut = false;
            self.make_room();
        }
    }

    fn push(&mut self, turn: Turn) {
        self.bytes += turn.size();
        self.turns.push(turn);
    }

    /// Returns the limit that leaves room for one more reply. Without tools, every reply is an answer.
    fn near_limit(&self) -> Option<Limit> {
        if !self.limits.has_tools {
            return None;
        }
        let max = self.limits.max_turns;
        let turns = (self.replies.saturating_add(1) >= max).then_some(Limit::Turns(max));
        turns.or_else(|| self.limits.near(&self.spent, &self.last))
    }
}

fn limit_notice(limit: Limit) -> String {
    let what = match limit {
        Limit::Turns(max) => format!("the limit of {max} replies"),
        Limit::Tokens(_) | Limit::Usd(_) => "the end of your budget".to_owned(),
        Limit::Context(_) => "the end of your context".to_owned(),
    };
    format!(
        "You have reached {what}. You cannot call tools any more. Give your complete answer now, in the form that the task asks \
         for: what is done, and what is left open."
    )
}

fn user(origin: Origin, text: String) -> TranscriptBody {
    TranscriptBody::Message {
        role: Role::User,
        text,
        origin: Some(origin),
        steering: Vec::new(),
        images: Vec::new(),
    }
}
