//! Receiver of what an agent reports in a turn: display, transcript, estimates of usage, decisions about permissions.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use cliq_acp::client::{
    Anomaly, AskId, Host, OptionKind, Origin, PermissionDecision as Answer, PermissionReply,
    PermissionRequest, QuestionReply, QuestionRequest, SteerId, SteerOutcome, Update,
};
use cliq_acp::schema::{ContentBlock, PlanEntryStatus, ToolCall, ToolCallContent, ToolCallStatus};
use cliq_protocol::{PermissionDecision, PermissionRecord, ToolKind, ToolResult, TranscriptBody, shorten};
use cliq_sdk::{SteeringMessage, Usage};

use super::launch::Launch;
use super::place::place;
use super::policy::{Verdict, choose, verdict};
use crate::llm::cli::Desk;
use crate::llm::people::{Decided, People, Request};
use crate::llm::thoughts;

/// Bytes per token, for agents that report their usage at the end of a turn or never.
const BYTES_PER_TOKEN: u64 = 4;
/// Maximum number of bytes of a tool result in the transcript.
const LONGEST_RESULT: usize = 100_000;
/// Maximum number of bytes of a title.
const TITLE: usize = 300;
/// Beginnings of messages that are notices of the program and not of its model.
const NOTICES: [&str; 3] = ["Info:", "Warning:", "Error:"];

/// Receiver in one turn.
pub(super) struct Listener<'d, 'a> {
    pub(super) desk: &'d mut Desk<'a>,
    launch: &'d Launch,
    people: People,
    /// Calls of which a part is recorded.
    calls: BTreeMap<String, CallState>,
    /// Text since the last action.
    said: String,
    /// Text before that.
    before: String,
    thought: String,
    read: u64,
    written: u64,
    estimated: u64,
    /// Refused call after which the agent has done nothing.
    refused: Option<String>,
    accepted: bool,
    /// Steering messages that were sent into the turn.
    pub(super) sent: Rc<RefCell<BTreeMap<SteerId, SteeringMessage>>>,
    /// Whether the model has read them for certain.
    steered: BTreeMap<SteerId, bool>,
    /// First error of a file, which ends the activation.
    failed: Option<cliq_fs::FsError>,
    noted: BTreeSet<String>,
}

#[derive(Debug, Clone, Copy, Default)]
struct CallState {
    is_recorded: bool,
    has_result: bool,
}

/// Text of a turn.
pub(super) struct Said {
    /// Text after the last action, without thoughts and notices. Text before it announces the action and is no answer.
    pub(super) answer: String,
    /// The answer, or the text before the last action if there is none.
    pub(super) partial: String,
    /// Refused call after which the agent did nothing.
    pub(super) refused: Option<String>,
    /// Estimated usage of the turn.
    pub(super) estimate: Usage,
    pub(super) steered: BTreeMap<SteerId, bool>,
    pub(super) failed: Option<cliq_fs::FsError>,
}

impl<'d, 'a> Listener<'d, 'a> {
    pub(super) fn new(
        desk: &'d mut Desk<'a>,
        launch: &'d Launch,
        people: People,
        prompt_bytes: usize,
    ) -> Self {
        Self {
            desk,
            launch,
            people,
            calls: BTreeMap::new(),
            said: String::new(),
            before: String::new(),
            thought: String::new(),
            read: prompt_bytes as u64,
            written: 0,
            estimated: 0,
            refused: None,
            accepted: false,
            sent: Rc::default(),
            steered: BTreeMap::new(),
            failed: None,
            noted: BTreeSet::new(),
        }
    }

    /// Ends the turn.
    pub(super) fn finish(mut self) -> Said {
        self.take_decided();
        self.end_thought();
        self.desk.recorder.flush();
        self.desk.display.finish();
        let text_of = |said: &str| without_notices(&thoughts::split(said).text);
        let answer = text_of(&self.said);
        let partial = if answer.trim().is_empty() { text_of(&self.before) } else { answer.clone() };
        let estimate = self.estimate();
        Said { answer, partial, refused: self.refused, estimate, steered: self.steered, failed: self.failed }
    }

    fn estimate(&self) -> Usage {
        Usage {
            provider: Some(self.launch.name.clone()),
            model: self.launch.model.clone(),
            tokens_in: self.read.div_ceil(BYTES_PER_TOKEN),
            tokens_out: self.written.div_ceil(BYTES_PER_TOKEN),
            estimated: true,
            ..Usage::default()
        }
    }

    /// Reports an estimate, not for each piece of a text.
    fn report_estimate(&mut self) {
        let usage = self.estimate();
        if usage.tokens() >= self.estimated.saturating_add(self.estimated / 4) {
            self.estimated = usage.tokens();
            self.desk.meter.report(usage);
        }
    }

    fn record(&mut self, body: TranscriptBody) {
        self.desk.recorder.record(body);
    }

    /// Records what people have decided.
    fn take_decided(&mut self) {
        for decided in self.people.take_decided() {
            self.end_thought();
            match decided {
                Decided::Permission(record) => {
                    if record.decision != PermissionDecision::Allowed {
                        self.refused = Some(record.title.clone());
                    }
                    self.record(TranscriptBody::Permission(record));
                }
                Decided::Question(text) => self.desk.recorder.notice(&text),
            }
        }
    }

    fn end_thought(&mut self) {
        let text = std::mem::take(&mut self.thought);
        if !text.trim().is_empty() {
            self.record(TranscriptBody::Thinking { text, provider_data: None });
        }
    }

    /// Takes note of the first output of the model: from now on the conversation contains the prompt.
    fn accept(&mut self) {
        if !std::mem::replace(&mut self.accepted, true)
            && let Err(error) = self.desk.record().accept()
        {
            self.failed.get_or_insert(error);
        }
    }

    fn say(&mut self, text: &str) {
        self.desk.display.print(text);
        self.desk.recorder.say(text);
        self.written += text.len() as u64;
        self.said.push_str(text);
        if !without_notices(text).is_empty() {
            self.refused = None;
        }
    }

    /// Records a call as soon as its arguments are known, and its result.
    fn call(&mut self, call: &ToolCall, is_new: bool, is_asked: bool) {
        let id = call.tool_call_id.0.to_string();
        let mut state = self.calls.get(&id).copied().unwrap_or_default();
        if is_new {
            self.desk.display.act(&title(call));
            if !self.said.trim().is_empty() {
                self.before = std::mem::take(&mut self.said);
            }
            self.refused = None;
        }
        let arguments =
            call.raw_input.as_ref().and_then(|input| input.as_object()).cloned().unwrap_or_default();
        let is_over = matches!(call.status, ToolCallStatus::Completed | ToolCallStatus::Failed);
        if !state.is_recorded && (!arguments.is_empty() || is_over || is_asked) {
            state.is_recorded = true;
            self.written += title(call).len() as u64;
            let name = call.name.clone().unwrap_or_else(|| title(call));
            self.record(TranscriptBody::ToolCall(cliq_protocol::ToolCall {
                id: id.clone(),
                name,
                arguments,
                invalid: None,
                provider_data: None,
            }));
        }
        if is_over && !state.has_result {
            state.has_result = true;
            self.people.call_ended(&id);
            let text = shorten(&result_text(call), LONGEST_RESULT).into_owned();
            self.read += text.len() as u64;
            let is_error = call.status == ToolCallStatus::Failed;
            let result = ToolResult { is_error, ..ToolResult::new(id.clone(), Ok(text)) };
            self.record(TranscriptBody::ToolResult(result));
        }
        self.calls.insert(id, state);
    }
}

impl Host for Listener<'_, '_> {
    fn update(&mut self, origin: Origin, update: &Update) {
        match origin {
            Origin::Turn => {}
            Origin::Replay | Origin::Idle => return,
        }
        self.take_decided();
        if !matches!(update, Update::Thought(_)) {
            self.end_thought();
        }
        match update {
            Update::Answer(chunk) => {
                self.accept();
                if let Some(text) = chunk.text() {
                    self.say(text);
                }
            }
            Update::Thought(chunk) => {
                self.accept();
                let text = chunk.text().unwrap_or_default();
                self.written += text.len() as u64;
                self.thought.push_str(text);
            }
            Update::ToolStarted(call) => {
                self.accept();
                self.call(call, true, false);
            }
            Update::ToolChanged(call) => self.call(call, false, false),
            Update::Plan(entries) => {
                let done = entries.iter().filter(|entry| entry.status == PlanEntryStatus::Completed).count();
                self.desk.display.act(&format!("plan: {done} of {} done", entries.len()));
            }
            Update::Notice(notice) => self.desk.display.note(&notice.title),
            Update::User(_)
            | Update::Usage { .. }
            | Update::Mode(_)
            | Update::Other(_)
            | Update::Unknown { .. }
            | Update::Extension { .. } => return,
        }
        self.report_estimate();
    }

    fn permission(&mut self, request: &PermissionRequest, reply: PermissionReply) {
        self.take_decided();
        self.end_thought();
        self.accept();
        let call = &request.call;
        self.call(call, false, true);
        let kind = kind_of(call);
        let paths = paths_of(call);
        let places: Vec<_> = paths.iter().map(|path| place(&self.launch.workspace, path)).collect();
        let (allow, reason) = match verdict(&self.launch.permissions, kind, &places) {
            Verdict::Allow(reason) => (true, reason),
            Verdict::Refuse(reason) => (false, reason),
            Verdict::Ask => {
                let what = title(call);
                self.desk.display.act(&format!("asks people: {}: {what}", kind.as_str()));
                let asked = Request::permission(&self.launch.name, call, &what, kind, &paths);
                let record = PermissionRecord {
                    id: call.tool_call_id.0.to_string(),
                    title: what,
                    kind: kind.as_str().to_owned(),
                    paths,
                    decision: PermissionDecision::Cancelled,
                    reason: String::new(),
                };
                return self.people.permission(request.id, &asked, record, reply);
            }
        };
        let offered: Vec<OptionKind> = request.options.iter().map(|option| option.kind).collect();
        let (_, decision) = choose(allow, &offered);
        let answer = match decision {
            PermissionDecision::Allowed => Answer::Allow,
            PermissionDecision::Refused => Answer::Reject,
            PermissionDecision::Cancelled => Answer::Cancel,
        };
        let what = title(call);
        if decision != PermissionDecision::Allowed {
            self.desk.display.act(&format!("{} {}: {what} ({reason})", decision.as_str(), kind.as_str()));
            self.refused = Some(what.clone());
        }
        self.record(TranscriptBody::Permission(PermissionRecord {
            id: call.tool_call_id.0.to_string(),
            title: what,
            kind: kind.as_str().to_owned(),
            paths,
            decision,
            reason: reason.to_string(),
        }));
        reply.send(answer);
    }

    fn question(&mut self, question: &QuestionRequest, reply: QuestionReply) {
        self.take_decided();
        self.end_thought();
        self.accept();
        match Request::question(&self.launch.name, question) {
            Some((asked, names)) => {
                self.desk.display.act(&format!("asks people: {}", asked.subject.title()));
                self.people.question(question.id, &asked, names, reply);
            }
            // The reply that is dropped declines.
            None => self.desk.display.act("a question is declined: a person cannot fill in its form here"),
        }
    }

    fn withdrawn(&mut self, id: AskId) {
        self.people.withdrawn(id);
    }

    fn steered(&mut self, id: SteerId, outcome: &SteerOutcome) {
        let is_read = *outcome == SteerOutcome::Injected;
        self.steered.insert(id, is_read);
        let message = self.sent.borrow().get(&id).map(|message| message.id.clone());
        if let Some(message) = message.filter(|_| is_read)
            && let Err(error) = self.desk.record().steer(&message)
        {
            self.failed.get_or_insert(error);
        }
    }

    fn anomaly(&mut self, anomaly: &Anomaly) {
        let text = anomaly.to_string();
        if self.noted.len() < 20 && self.noted.insert(text.clone()) {
            self.desk.display.note(&format!("[{text}]"));
        }
    }
}

/// Kind of a call. The agent decides which it says.
fn kind_of(call: &ToolCall) -> ToolKind {
    let word = serde_json::to_value(call.kind).ok();
    word.as_ref().and_then(|word| ToolKind::parse(word.as_str()?)).unwrap_or(ToolKind::Other)
}

/// Files that a call concerns: those that it names, and those of its differences.
fn paths_of(call: &ToolCall) -> Vec<String> {
    let named = call.locations.iter().map(|location| location.path.to_string_lossy().into_owned());
    let of_diffs = call.content.iter().filter_map(|part| match part {
        ToolCallContent::Diff(diff) => Some(diff.path.to_string_lossy().into_owned()),
        _ => None,
    });
    let mut paths: Vec<String> = Vec::new();
    for path in named.chain(of_diffs).filter(|path| !path.is_empty()) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

fn title(call: &ToolCall) -> String {
    let flat = call.title.split_whitespace().collect::<Vec<_>>().join(" ");
    let flat = if flat.is_empty() { kind_of(call).as_str().to_owned() } else { flat };
    shorten(&flat, TITLE).into_owned()
}

/// Text of the result of a call: its content, else its raw output.
pub(in crate::llm) fn result_text(call: &ToolCall) -> String {
    let mut text = String::new();
    for part in &call.content {
        let piece = match part {
            ToolCallContent::Content(content) => match &content.content {
                ContentBlock::Text(text) => text.text.clone(),
                _ => continue,
            },
            ToolCallContent::Diff(diff) => format!("changed {}", diff.path.to_string_lossy()),
            _ => continue,
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&piece);
    }
    match (&call.raw_output, text.is_empty()) {
        (Some(serde_json::Value::String(output)), true) => output.clone(),
        (Some(output), true) => output.to_string(),
        _ => text,
    }
}

/// Text without leading lines that are notices of the program.
fn without_notices(text: &str) -> String {
    let is_notice =
        |line: &&str| NOTICES.iter().any(|notice| line.starts_with(notice)) || line.trim().is_empty();
    let kept: Vec<&str> = text.trim().lines().skip_while(is_notice).collect();
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_of_programs_are_no_answers() {
        assert_eq!(without_notices("Info: Operation cancelled by user"), "");
        assert_eq!(without_notices("Warning: old\n\nI did it.\nInfo: stays"), "I did it.\nInfo: stays");
    }
}
