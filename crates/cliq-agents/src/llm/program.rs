//! Activation of a vendor's program: its conversation, the messages that arrive meanwhile, and questions about its answers.

use std::time::SystemTime;

use cliq_fs::read_transcript;
use cliq_protocol::{ConversationPartner, Origin, SentParts, TranscriptBody, TranscriptEntry};
use cliq_sdk::{PhaseContext, Usage};

use super::cli::{Asked, Cli, Desk, Past, Question, Recorder, Session};
use super::conversation::{self, ConversationFile, Opening, notice_of_fresh};
use super::display::Display;
use super::meter::Meter;
use super::prompt::{self, AnswerForm, Form, Prompt, Scope};
use super::reply::Reply;
use super::{Ended, Render};
use crate::AnyError;

/// Questions and answers of this process, in turn, beginning and ending with a question. Programs without sessions keep no history.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Dialogue {
    turns: Vec<String>,
}

impl Dialogue {
    fn again(&mut self, answer: String, question: String) {
        self.turns.extend([answer, question]);
    }

    /// The last question.
    fn last(&self) -> String {
        self.turns.last().cloned().unwrap_or_default()
    }

    /// The whole dialogue as one question.
    fn as_one(&self) -> String {
        let mut text = String::new();
        for (n, turn) in self.turns.iter().enumerate() {
            if n > 0 {
                text.push_str(if n % 2 == 1 {
                    "\n\n## Your Last Answer\n\n"
                } else {
                    "\n\n## About Your Last Answer\n\n"
                });
            }
            text.push_str(turn);
        }
        text
    }
}

/// Start of an activation of an agent that keeps its own conversations: the first question, and where everything is recorded.
pub(super) struct Begun<'a> {
    pub(super) desk: Desk<'a>,
    /// First question.
    pub(super) question: Prompt,
    /// Reason for the next question, and the steering messages in it.
    pub(super) origin: Origin,
    pub(super) steering: Vec<String>,
    /// Prompt for a new conversation, if the agent does not find the one that is continued.
    whole: Option<Prompt>,
    /// Answer that an earlier process of this activation recorded.
    pub(super) recorded: Option<String>,
    /// Whether there is a session that can be continued.
    pub(super) has_session: bool,
    /// Whether the last prompt of the continued conversation was not answered.
    pub(super) is_unfinished: bool,
    /// Time at which the continued conversation was last recorded.
    pub(super) recorded_at: Option<SystemTime>,
}

/// Begins an activation: decides which conversation it continues, makes the first question, and writes the records. `new_session` is the id of
/// a new session, if the caller chooses it.
pub(super) fn begin<'a>(
    ctx: &'a PhaseContext,
    partner: ConversationPartner,
    new_session: Option<String>,
    model: Option<&str>,
    render: Render<'_>,
    rejected: Option<&String>,
) -> Result<Begun<'a>, AnyError> {
    let form = |scope| {
        let steering = &ctx.dispatch().steering;
        render(&Form {
            steering,
            rejected: rejected.is_some(),
            has_tools: false,
            has_system: false,
            answer: AnswerForm::Text,
            skills: "",
            project: "",
            scope,
        })
    };
    let mut opening = conversation::opening(ctx, &partner)?;
    let (mut entries, mut recorded, mut has_answered) = (Vec::new(), None, false);
    if let Opening::Resumed(earlier) = &opening {
        entries = transcript(ctx, earlier.activation)?;
        let answer = last_answer(&entries);
        has_answered = earlier.has_answered || answer.is_some();
        if has_answered && rejected.is_none() {
            recorded = answer.filter(|answer| !Reply::parse(answer).is_empty());
            if recorded.is_none() {
                let why = format!("the answer of activation {} cannot be used", earlier.activation);
                opening = Opening::Fresh { notice: Some(why) };
                entries = Vec::new();
            }
        }
    }
    let recorded_at = match &opening {
        Opening::Fresh { .. } => None,
        Opening::Resumed(earlier) | Opening::Continued(earlier) => {
            conversation::recorded_at(ctx, earlier.activation)
        }
    };
    let is_unfinished = matches!(&opening, Opening::Resumed(_)) && !has_answered;
    let whole = form(Scope::Whole)?;
    let (question, origin, whole) = match (&opening, rejected) {
        (Opening::Fresh { .. }, _) => (whole, Origin::Task, None),
        (Opening::Resumed(_), Some(rejected)) if has_answered => {
            let question =
                Prompt { system: String::new(), text: rejected.clone(), sent: SentParts::default() };
            (question, Origin::Retry, Some(whole))
        }
        (Opening::Resumed(earlier), _) => (form(Scope::Resumed(&earlier.sent))?, Origin::Resume, Some(whole)),
        (Opening::Continued(earlier), _) => {
            (form(Scope::Feedback(&earlier.sent))?, Origin::Feedback, Some(whole))
        }
    };
    let file = ConversationFile::begin(ctx, partner, &opening, new_session, &question.sent)?;
    let mut past = Past { entries, continued_from: file.continued_from(), ..Past::default() };
    if let Opening::Resumed(earlier) = &opening {
        past.continues = Some(earlier.activation);
    }
    let mut recorder = Recorder::new(ctx, model, past)?;
    let mut display = Display::new(ctx.reporter());
    match &opening {
        Opening::Fresh { notice: None } => {}
        Opening::Fresh { notice: Some(reason) } => {
            let notice = notice_of_fresh(reason);
            recorder.notice(&notice);
            display.act(&notice);
        }
        Opening::Resumed(earlier) => {
            display.act(&format!("conversation: resumed from activation {}", earlier.activation));
        }
        Opening::Continued(earlier) => {
            display.act(&format!("conversation: continued from activation {}", earlier.activation));
        }
    }
    let has_session = match &opening {
        Opening::Fresh { .. } => false,
        Opening::Resumed(_) | Opening::Continued(_) => file.session().is_some(),
    };
    Ok(Begun {
        desk: Desk {
            display,
            meter: Meter::new(ctx.reporter()),
            // The prompt contains those of the dispatch message.
            steering: ctx.steering().live_only(),
            recorder,
            conversation: file.into(),
            is_confirmed: false,
        },
        origin,
        steering: question.sent.steering.iter().cloned().collect(),
        question,
        whole,
        recorded,
        has_session,
        is_unfinished,
        recorded_at,
    })
}

impl Begun<'_> {
    /// Begins a new conversation, since the agent cannot continue the earlier one. Returns the question that contains the whole task, if the
    /// earlier conversation had it.
    pub(super) fn start_over(
        &mut self,
        reason: &str,
        session: Option<String>,
    ) -> Result<Option<String>, AnyError> {
        let notice = notice_of_fresh(reason);
        self.desk.recorder.notice(&notice);
        self.desk.display.act(&notice);
        let mut sent =
            SentParts { steering: self.steering.iter().cloned().collect(), ..SentParts::default() };
        let whole = self.whole.take().map(|whole| {
            sent.add(&whole.sent);
            self.origin = Origin::Task;
            whole.text
        });
        self.desk.record().start_over(reason, session, &sent)?;
        self.has_session = false;
        Ok(whole)
    }

    /// Takes note that the agent has worked in the conversation.
    pub(super) fn confirm(&mut self, has_session: bool) {
        self.has_session = has_session;
        self.whole = None;
    }
}

/// Program of a vendor that works on one activation.
pub(super) struct Program<'a> {
    program: Cli,
    begun: Begun<'a>,
    dialogue: Dialogue,
}

impl<'a> Program<'a> {
    /// Opens the conversation of an activation.
    pub(super) fn open(
        program: Cli,
        ctx: &'a PhaseContext,
        render: Render<'_>,
        rejected: Option<&String>,
    ) -> Result<Self, AnyError> {
        let (partner, session) = (program.partner(), program.new_session());
        let begun = begin(ctx, partner, session, program.model.as_deref(), render, rejected)?;
        let dialogue = Dialogue { turns: vec![begun.question.text.clone()] };
        Ok(Self { program, begun, dialogue })
    }

    /// Returns the answer, or what the program had when it reached a limit. Asks again as long as steering messages arrived while the
    /// program worked.
    pub(super) fn answer(&mut self) -> Result<Ended, AnyError> {
        if let Some(answer) = self.begun.recorded.take() {
            self.begun.desk.record().answered()?;
            return Ok(Ended::Answer(answer));
        }
        loop {
            let answer = match self.ask()? {
                Asked::Lost(reason) => {
                    self.start_over(&reason)?;
                    continue;
                }
                Asked::Ended(Ended::Answer(answer)) => answer,
                Asked::Ended(limited @ Ended::Limited { .. }) => return Ok(limited),
            };
            let mut messages = Vec::new();
            while let Some(message) = self.begun.desk.steering.try_next()? {
                messages.push(message);
            }
            if messages.is_empty() {
                self.begun.desk.recorder.end(&answer)?;
                self.begun.desk.record().answered()?;
                return Ok(Ended::Answer(answer));
            }
            let ids = messages.iter().map(|message| message.id.clone()).collect();
            self.next(answer, prompt::guidance(&messages), Origin::Steering, ids)?;
        }
    }

    /// Asks about the last answer.
    pub(super) fn again(&mut self, answer: String, question: String) -> Result<(), AnyError> {
        self.next(answer, question, Origin::Retry, Vec::new())
    }

    /// Usage of the activation.
    pub(super) fn total(&self) -> Usage {
        self.begun.desk.meter.total()
    }

    fn next(
        &mut self,
        answer: String,
        question: String,
        origin: Origin,
        steering: Vec<String>,
    ) -> Result<(), AnyError> {
        let sent = SentParts { steering: steering.iter().cloned().collect(), ..SentParts::default() };
        self.begun.desk.record().ask(&sent)?;
        self.dialogue.again(answer, question);
        (self.begun.origin, self.begun.steering) = (origin, steering);
        Ok(())
    }

    fn ask(&mut self) -> Result<Asked, AnyError> {
        let id = self.begun.desk.record().session().map(str::to_owned);
        let (session, text) = match (&id, self.begun.has_session) {
            (Some(id), true) => (Session::Resume(id), self.dialogue.last()),
            (_, _) => (Session::New(id.as_deref()), self.dialogue.as_one()),
        };
        let new = self.dialogue.last();
        let (origin, steering) = (self.begun.origin, self.begun.steering.clone());
        let question = Question { text: &text, new: &new, origin, steering, session };
        let asked = self.program.ask(&question, &mut self.begun.desk)?;
        self.begun.desk.display.finish();
        if let Asked::Ended(_) = &asked {
            self.begun.confirm(self.begun.desk.is_confirmed);
        }
        Ok(asked)
    }

    /// Begins a new conversation, since the program cannot continue the earlier one.
    fn start_over(&mut self, reason: &str) -> Result<(), AnyError> {
        if let Some(whole) = self.begun.start_over(reason, self.program.new_session())? {
            self.dialogue.turns[0] = whole;
        }
        Ok(())
    }
}

/// Reads the transcript of an activation of this phase in this run.
fn transcript(ctx: &PhaseContext, activation: u32) -> Result<Vec<TranscriptEntry>, AnyError> {
    let Some(path) = &ctx.dispatch().transcript_file else { return Ok(Vec::new()) };
    let path = path.with_file_name(format!("{}.{activation}.jsonl", ctx.phase().name));
    let entries = read_transcript(&path)?.unwrap_or_default();
    let is_own = entries
        .iter()
        .any(|entry| matches!(&entry.body, TranscriptBody::Start(start) if start.run_id == *ctx.run_id()));
    Ok(if is_own { entries } else { Vec::new() })
}

/// Returns the answer with which a transcript ends.
fn last_answer(entries: &[TranscriptEntry]) -> Option<String> {
    match &entries.last()?.body {
        TranscriptBody::End { text } => Some(text.clone()),
        TranscriptBody::Start(_)
        | TranscriptBody::Message { .. }
        | TranscriptBody::Thinking { .. }
        | TranscriptBody::ToolCall(_)
        | TranscriptBody::ToolResult(_)
        | TranscriptBody::Permission(_)
        | TranscriptBody::Usage(_)
        | TranscriptBody::Error(_)
        | TranscriptBody::Notice { .. } => None,
    }
}
