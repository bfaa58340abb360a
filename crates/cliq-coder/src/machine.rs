//! Loop of model turns and tool calls: a fold of transcript lines.

mod context;

use cliq_protocol::{Origin, ReplyUsage, Role, ToolCall, ToolResult, TranscriptBody, Usage};

use crate::conversation::{Reply, Thinking, Turn};
use crate::limits::Limits;

/// Maximum number of replies in a row that cannot be used.
const MAX_USELESS: u32 = 2;
/// Maximum number of refusals because the conversation is too long.
const MAX_TOO_LONG: u32 = 3;
/// Number of replies beyond the limit after which the loop ends without an answer.
const GRACE: u32 = 3;

/// State of a model agent in one activation. Pure: the same lines lead to the same state, and the state to the next step.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    limits: Limits,
    turns: Vec<Turn>,
    /// Reply whose lines are being applied.
    partial: Reply,
    stage: Stage,
    /// Calls without a result, in their order.
    open: Vec<ToolCall>,
    answer: Option<String>,
    failure: Option<String>,
    replies: u32,
    useless: u32,
    too_long: u32,
    stale_thinking: u32,
    /// Whether the last reply has to be asked for again.
    was_useless: bool,
    spent: Usage,
    last: Usage,
    /// Bytes of all turns.
    bytes: usize,
    tokens_per_byte: f64,
    /// Steering messages that a summary must not lose.
    guidance: Vec<String>,
}

/// Purpose of the next reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Work on the task.
    Work,
    /// The answer, without tools.
    Final,
    /// Summary of the conversation.
    Summary,
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
    /// Record and apply this message.
    Add(TranscriptBody),
    /// The agent has its answer.
    Answer(String),
    /// The agent cannot continue, with the reason.
    Fail(String),
}

impl Loop {
    /// Makes the state before the first message.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            turns: Vec::new(),
            partial: Reply::default(),
            stage: Stage::Work,
            open: Vec::new(),
            answer: None,
            failure: None,
            replies: 0,
            useless: 0,
            too_long: 0,
            stale_thinking: 0,
            was_useless: false,
            spent: Usage::default(),
            last: Usage::default(),
            bytes: 0,
            tokens_per_byte: context::FIRST_RATIO,
            guidance: Vec::new(),
        }
    }

    /// Conversation as the model is to see it: old results may be replaced by placeholders.
    #[must_use]
    pub fn turns(&self) -> &[Turn] {
        &self.turns
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

    /// Calls without a result.
    #[must_use]
    pub fn open_calls(&self) -> &[ToolCall] {
        &self.open
    }

    /// Whether lines of a reply were applied whose end is missing.
    #[must_use]
    pub fn is_within_reply(&self) -> bool {
        self.partial != Reply::default()
    }

    /// Applies a line of the transcript.
    pub fn apply(&mut self, body: &TranscriptBody) {
        if let TranscriptBody::Error { usage: Some(usage), .. } = body {
            self.spent.add(usage);
        }
        match body {
            TranscriptBody::Start(_) | TranscriptBody::End { .. } => {}
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
            TranscriptBody::Error { is_too_long: true, .. } => self.shorten(),
            TranscriptBody::Error { has_stale_thinking: true, .. } => self.refused_thinking(),
            TranscriptBody::Error { .. } => {}
        }
    }

    /// Returns the next step.
    #[must_use]
    pub fn next(&self) -> Step {
        if let Some(reason) = &self.failure {
            return Step::Fail(reason.clone());
        }
        if !self.open.is_empty() {
            return Step::Run(self.open.clone());
        }
        if let Some(answer) = &self.answer {
            return Step::Answer(answer.clone());
        }
        if self.limits.is_spent(&self.spent) {
            return Step::Fail("its budget for language models is spent".to_owned());
        }
        if self.replies >= self.limits.max_turns.saturating_add(GRACE) {
            let why = format!("the model gave no answer within {} replies", self.limits.max_turns);
            return Step::Fail(why);
        }
        match self.stage {
            Stage::Summary | Stage::Final if !self.was_useless => return Step::Ask { may_call: false },
            Stage::Work if !self.was_useless && self.is_limit_near() => {
                return Step::Add(user(Origin::Limit, self.limit_notice()));
            }
            Stage::Work if !self.was_useless && self.is_too_large() => {
                return Step::Add(user(Origin::Summary, context::SUMMARY_REQUEST.to_owned()));
            }
            _ => {}
        }
        if self.was_useless {
            return Step::Add(user(
                Origin::Retry,
                "Your reply was empty. Continue with your task.".to_owned(),
            ));
        }
        Step::Ask { may_call: self.limits.has_tools }
    }

    fn add_message(&mut self, text: &str, origin: Option<Origin>, images: &[String]) {
        self.answer = None;
        self.was_useless = false;
        match origin {
            Some(Origin::Limit) => self.stage = Stage::Final,
            Some(Origin::Summary) => {
                self.stage = Stage::Summary;
                self.forget_results(0, 0);
            }
            Some(Origin::Steering) => self.guidance.push(text.to_owned()),
            _ => {}
        }
        self.push(Turn::User { text: text.to_owned(), images: images.to_vec() });
    }

    fn add_result(&mut self, result: &ToolResult) {
        let Some(at) = self.open.iter().position(|call| call.id == result.id) else { return };
        self.open.remove(at);
        if !matches!(self.turns.last(), Some(Turn::Results(_))) {
            self.turns.push(Turn::Results(Vec::new()));
        }
        let order = match self.turns.iter().rev().nth(1) {
            Some(Turn::Assistant(reply)) => reply.calls.clone(),
            _ => Vec::new(),
        };
        let place = |id: &str| order.iter().position(|call| call.id == id);
        if let Some(Turn::Results(results)) = self.turns.last_mut() {
            results.push(result.clone());
            // Results come as tools end; the model sees them in the order of its calls.
            results.sort_by_key(|result| place(&result.id));
        }
        self.bytes += result.text.len() + 32;
        if self.open.is_empty() {
            self.make_room();
        }
    }

    fn finish_reply(&mut self, end: &ReplyUsage) {
        let reply = std::mem::take(&mut self.partial);
        self.replies = self.replies.saturating_add(1);
        if let Some(usage) = &end.usage {
            self.learn_ratio(usage);
            self.spent.add(usage);
            self.last = usage.clone();
        }
        if reply.is_empty() || (self.stage != Stage::Work && reply.text.trim().is_empty()) {
            self.useless += 1;
            self.was_useless = true;
            if self.useless >= MAX_USELESS {
                self.failure = Some("the model answered with nothing".to_owned());
            }
            return;
        }
        self.useless = 0;
        match self.stage {
            Stage::Summary => self.condense(&reply.text),
            Stage::Final => {
                self.answer = Some(reply.text.clone());
                self.push(Turn::Assistant(Reply { calls: Vec::new(), ..reply }));
            }
            Stage::Work if reply.calls.is_empty() => {
                self.answer = Some(reply.text.clone());
                self.push(Turn::Assistant(reply));
            }
            Stage::Work => {
                self.open.clone_from(&reply.calls);
                self.push(Turn::Assistant(reply));
            }
        }
    }

    fn push(&mut self, turn: Turn) {
        self.bytes += turn.size();
        self.turns.push(turn);
    }

    fn is_limit_near(&self) -> bool {
        // Without tools, every reply is an answer.
        self.limits.has_tools
            && (self.replies + 1 >= self.limits.max_turns || self.limits.is_near(&self.spent, &self.last))
    }

    fn limit_notice(&self) -> String {
        let what = if self.replies + 1 >= self.limits.max_turns {
            format!("the limit of {} replies", self.limits.max_turns)
        } else {
            "the end of your budget".to_owned()
        };
        format!(
            "You have reached {what}. You cannot call tools any more. Give your complete answer now, in the form that the task asks \
             for: what is done, and what is left open."
        )
    }
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
