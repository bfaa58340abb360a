//! Spans of the replies of models and of their tools, from the lines of a transcript.

use std::collections::BTreeMap;
use std::time::Duration;

use cliq_protocol::{
    FailedCall, FailedCallKind, MCP_SEPARATOR, PhaseName, ReplyKind, ReplyUsage, Timestamp, ToolCall,
    ToolResult, TranscriptBody, TranscriptEntry, Usage, tool_span,
};

use super::content::{Conversation, arguments, result};
use super::parts::before;
use super::{INTERRUPTED, TraceBuilder};
use crate::conventions::{self, key, operation, own};
use crate::metrics::{COST, Label, Measurement, OPERATION_DURATION, TOKEN_USAGE};
use crate::span::{Attribute, Span, SpanKind};

/// Transcript of an activation, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    /// Time at which its first line was written, and the other activation whose lines follow.
    begun: Option<(Timestamp, Option<u32>)>,
    /// Model that the first line names.
    model: Option<String>,
    /// Number of complete replies.
    replies: usize,
    /// Time of the last line: the next reply began after it.
    last: Option<Timestamp>,
    /// Start of the reply whose lines are being read.
    reply: Option<Timestamp>,
    calls: BTreeMap<String, OpenCall>,
    conversation: Conversation,
}

/// Call of a tool without a result.
#[derive(Debug, Clone)]
struct OpenCall {
    call: ToolCall,
    since: Timestamp,
    /// Activation that requested it. Its process may have been killed, and the next one records that there is no result.
    activation: u32,
    permission: Option<&'static str>,
}

/// Call that is over.
struct EndedCall<'a> {
    id: &'a str,
    open: Option<OpenCall>,
    result: Option<&'a ToolResult>,
    end: Timestamp,
}

impl TraceBuilder {
    /// Applies lines of a transcript that follow those before. `is_anew` says that the file was replaced, and that these are its first lines.
    pub fn transcript(
        &mut self,
        phase: &PhaseName,
        activation: u32,
        is_anew: bool,
        lines: &[TranscriptEntry],
    ) {
        let at = (phase.clone(), activation);
        let mut transcript = self.transcripts.remove(&at).filter(|_| !is_anew).unwrap_or_default();
        for line in lines {
            self.line(phase, activation, &mut transcript, line);
        }
        self.transcripts.insert(at, transcript);
    }

    fn line(
        &mut self,
        phase: &PhaseName,
        activation: u32,
        transcript: &mut Transcript,
        line: &TranscriptEntry,
    ) {
        let time = line.ts.time().or(transcript.last).unwrap_or(self.started);
        let before_line = transcript.last.replace(time).unwrap_or(time);
        // Lines of another activation stand before those of this one, with their times: their spans are those of the other.
        let is_copied =
            matches!(transcript.begun, Some((begun, Some(other))) if other != activation && time < begun);
        match &line.body {
            TranscriptBody::Start(start) => {
                transcript.begun = Some((time, start.continues));
                transcript.model.clone_from(&start.model);
            }
            TranscriptBody::Message { role, text, .. } => {
                if *role == cliq_protocol::Role::Assistant {
                    transcript.reply.get_or_insert(before_line);
                }
                self.content(|mask| transcript.conversation.message(*role, &mask.apply(text)));
            }
            TranscriptBody::Thinking { .. } => drop(transcript.reply.get_or_insert(before_line)),
            TranscriptBody::ToolCall(call) => {
                transcript.reply.get_or_insert(before_line);
                self.content(|mask| transcript.conversation.call(call, mask));
                let of = match transcript.begun {
                    Some((_, Some(other))) if is_copied => other,
                    _ => activation,
                };
                let open = OpenCall { call: call.clone(), since: time, activation: of, permission: None };
                if !is_copied || !transcript.calls.contains_key(&call.id) {
                    transcript.calls.insert(call.id.clone(), open);
                }
            }
            TranscriptBody::Permission(asked) => {
                if let Some(open) = transcript.calls.get_mut(&asked.id) {
                    open.permission = Some(asked.decision.as_str());
                }
            }
            TranscriptBody::ToolResult(result) => {
                let open = transcript.calls.remove(&result.id);
                self.content(|mask| transcript.conversation.result(result, mask));
                if !is_copied {
                    let ended = EndedCall { id: &result.id, open, result: Some(result), end: time };
                    self.tool(phase, activation, ended);
                }
            }
            TranscriptBody::Usage(end) => {
                let start = transcript.reply.take().unwrap_or(before_line);
                if !is_copied {
                    self.reply(phase, activation, transcript, end, (start, time));
                }
                transcript.replies += 1;
                transcript.conversation.next();
            }
            TranscriptBody::Error(error) => {
                let start = transcript.reply.take().unwrap_or(before_line);
                if !is_copied {
                    self.failed_call(phase, activation, transcript, error, (start, time));
                }
            }
            TranscriptBody::Notice { .. } | TranscriptBody::End { .. } => {}
        }
    }

    fn content(&self, add: impl FnOnce(&super::Mask)) {
        if self.options.content {
            add(&self.options.mask);
        }
    }

    /// Adds the span of a reply.
    fn reply(
        &mut self,
        phase: &PhaseName,
        activation: u32,
        transcript: &Transcript,
        end: &ReplyUsage,
        (since, time): (Timestamp, Timestamp),
    ) {
        let id = self.ids.reply_span(phase, activation, transcript.replies);
        let start = end.duration_ms.map_or(since, |millis| before(time, Duration::from_millis(millis)));
        let usage = end.usage.clone().unwrap_or_default();
        let mut extra: Vec<Attribute> = Vec::new();
        if end.usage.is_some() {
            extra.push((key::INPUT_TOKENS, usage.tokens_in.into()));
            extra.push((key::OUTPUT_TOKENS, usage.tokens_out.into()));
        }
        let finish = end.kind.and_then(finish_reason);
        extra
            .extend(finish.map(|reason| (key::FINISH_REASONS, crate::Value::Texts(vec![reason.to_owned()]))));
        extra.extend(end.kind.map(|kind| (own::REPLY, kind.as_str().into())));
        let error = match end.kind {
            Some(ReplyKind::Refused) => Some("refused"),
            Some(ReplyKind::Empty) => Some("empty"),
            Some(ReplyKind::Answer | ReplyKind::Calls | ReplyKind::CutOff) | None => None,
        };
        if self.options.content {
            extra.extend(transcript.conversation.attributes(finish));
        }
        self.chat(
            phase,
            transcript,
            Chat { id, start, end: time, usage, error, detail: end.detail.as_deref(), extra },
        );
    }

    /// Adds the span of a request without a reply.
    fn failed_call(
        &mut self,
        phase: &PhaseName,
        activation: u32,
        transcript: &Transcript,
        failed: &FailedCall,
        (start, end): (Timestamp, Timestamp),
    ) {
        let id = self.ids.failed_span(phase, activation, end);
        let usage = failed.usage.clone().unwrap_or_default();
        let mut extra: Vec<Attribute> = Vec::new();
        if failed.usage.is_some() {
            extra.push((key::INPUT_TOKENS, usage.tokens_in.into()));
            extra.push((key::OUTPUT_TOKENS, usage.tokens_out.into()));
        }
        let error = match failed.kind {
            FailedCallKind::Final => "failed",
            FailedCallKind::Passing => "retried",
            FailedCallKind::TooLong => "too_long",
            FailedCallKind::StaleThinking => "stale_thinking",
        };
        let detail = Some(failed.message.as_str());
        self.chat(phase, transcript, Chat { id, start, end, usage, error: Some(error), detail, extra });
    }

    fn chat(&mut self, phase: &PhaseName, transcript: &Transcript, chat: Chat<'_>) {
        if !self.seen.insert(chat.id) {
            return;
        }
        let Chat { id, start, end, usage, error, detail, extra } = chat;
        let cost = self.cost(&usage);
        let requested = transcript.model.clone().or_else(|| usage.model.clone());
        let mut parent = self.parent_of(phase);
        let mut provider = usage.provider.clone();
        if let Some(activation) = self.activation_at(phase, end) {
            parent = activation.id;
            activation.model.has_replies |= usage.tokens() > 0;
            provider = provider.or_else(|| activation.model.provider.clone());
            activation.model.provider.clone_from(&provider);
            activation.model.requested = activation.model.requested.take().or_else(|| requested.clone());
        }
        let provider = provider.as_deref().map_or(conventions::SCOPE, conventions::provider).to_owned();
        let mut attributes: Vec<Attribute> =
            vec![(key::OPERATION, operation::CHAT.into()), (key::PROVIDER, provider.as_str().into())];
        attributes.extend(requested.clone().map(|model| (key::REQUEST_MODEL, model.into())));
        attributes.extend(usage.model.clone().map(|model| (key::RESPONSE_MODEL, model.into())));
        attributes.extend(extra);
        attributes.extend(usage.tokens_cached.map(|cached| (key::CACHED_TOKENS, cached.into())));
        attributes.extend(usage.tokens_reasoning.map(|tokens| (key::REASONING_TOKENS, tokens.into())));
        attributes.extend(cost.map(|cost| (own::COST, cost.into())));
        attributes.extend(usage.estimated.then_some((own::ESTIMATED, true.into())));
        attributes.push((own::PHASE, phase.as_str().into()));
        let mut labels: Vec<Label> =
            vec![(key::OPERATION, operation::CHAT.to_owned()), (key::PROVIDER, provider)];
        labels.extend(requested.clone().map(|model| (key::REQUEST_MODEL, model)));
        labels.extend(usage.model.clone().map(|model| (key::RESPONSE_MODEL, model)));
        let measurements = self.measure(&usage, cost, end.since(start), error, &labels);
        attributes.extend(error.map(|error| (key::ERROR, error.into())));
        let span = Span {
            trace: self.ids.id(),
            id,
            parent: Some(parent),
            name: requested.map_or_else(|| operation::CHAT.to_owned(), |model| format!("chat {model}")),
            kind: SpanKind::Client,
            start,
            end,
            attributes,
            links: Vec::new(),
            error: error.map(|error| {
                self.failure(detail, &format!("the request ended without a usable reply: {error}"))
            }),
            measurements,
        };
        self.push(span);
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers of tokens are far below 2^52")]
    fn measure(
        &self,
        usage: &Usage,
        cost: Option<f64>,
        duration: Duration,
        error: Option<&str>,
        labels: &[Label],
    ) -> Vec<Measurement> {
        let mut all = Vec::new();
        if usage.tokens() > 0 {
            for (kind, tokens) in [("input", usage.tokens_in), ("output", usage.tokens_out)] {
                let labels = labels.iter().cloned().chain([(key::TOKEN_TYPE, kind.to_owned())]);
                all.push(Measurement::new(&TOKEN_USAGE, tokens as f64, labels));
            }
        }
        let failure = error.map(|error| (key::ERROR, error.to_owned()));
        let of_duration = labels.iter().cloned().chain(failure);
        all.push(Measurement::new(&OPERATION_DURATION, duration.as_secs_f64(), of_duration));
        all.extend(cost.map(|cost| Measurement::new(&COST, cost, labels.to_vec())));
        all
    }

    /// Adds the span of a call of a tool.
    fn tool(&mut self, phase: &PhaseName, activation: u32, ended: EndedCall<'_>) {
        let EndedCall { id: call, open, result: outcome, end } = ended;
        let activation = open.as_ref().map_or(activation, |open| open.activation);
        let id = tool_span(self.ids.id(), phase.as_str(), activation, call);
        if !self.seen.insert(id) {
            return;
        }
        let since = open.as_ref().map_or(end, |open| open.since);
        let duration = outcome.and_then(|result| result.duration_ms).map(Duration::from_millis);
        let start = duration.map_or(since, |duration| before(end, duration).max(since));
        let name = open.as_ref().map_or("unknown", |open| open.call.name.as_str()).to_owned();
        let server = name.split_once(MCP_SEPARATOR).map(|(server, _)| server.to_owned());
        let mut attributes: Vec<Attribute> = vec![
            (key::OPERATION, operation::EXECUTE_TOOL.into()),
            (key::TOOL, name.as_str().into()),
            (key::TOOL_TYPE, if server.is_some() { "extension" } else { "function" }.into()),
            (key::CALL, call.into()),
            (own::PHASE, phase.as_str().into()),
        ];
        if let Some(server) = server {
            attributes.push((key::MCP_METHOD, "tools/call".into()));
            attributes.push((own::MCP_SERVER, server.into()));
        }
        let permission = open.as_ref().and_then(|open| open.permission);
        attributes.extend(permission.map(|decision| (own::PERMISSION, decision.into())));
        if self.options.content {
            let mask = &self.options.mask;
            attributes.extend(open.as_ref().map(|open| (key::ARGUMENTS, arguments(&open.call, mask).into())));
            attributes.extend(outcome.map(|outcome| (key::RESULT, result(outcome, mask).into())));
        }
        let error = match outcome {
            Some(outcome) if outcome.is_error => Some("tool_error"),
            Some(_) => None,
            None => Some(INTERRUPTED),
        };
        attributes.extend(error.map(|error| (key::ERROR, error.into())));
        let parent = self.activation_at(phase, end).map(|activation| activation.id);
        let span = Span {
            trace: self.ids.id(),
            id,
            parent: Some(parent.unwrap_or_else(|| self.parent_of(phase))),
            name: format!("execute_tool {name}"),
            kind: SpanKind::Internal,
            start,
            end,
            attributes,
            links: Vec::new(),
            error: error.map(|error| {
                self.failure(
                    outcome.map(|outcome| outcome.text.as_str()),
                    &format!("the call failed: {error}"),
                )
            }),
            measurements: Vec::new(),
        };
        self.push(span);
    }

    /// Ends the calls of an activation that ends: they have no result.
    pub(super) fn end_calls(&mut self, phase: &PhaseName) {
        let start = self.agents.get(phase).and_then(|all| all.last()).map_or(self.now, |last| last.start);
        let mut ended = Vec::new();
        for ((of, activation), transcript) in &mut self.transcripts {
            if of == phase {
                for (id, open) in std::mem::take(&mut transcript.calls) {
                    // A call of an earlier activation was ended with it.
                    if open.since >= start {
                        ended.push((*activation, id, open));
                    }
                }
            }
        }
        ended.sort_by(|(a, x, _), (b, y, _)| (a, x).cmp(&(b, y)));
        let end = self.now;
        for (activation, id, open) in ended {
            self.tool(phase, activation, EndedCall { id: &id, open: Some(open), result: None, end });
        }
    }
}

/// Request to a model that is over.
struct Chat<'a> {
    id: cliq_protocol::SpanId,
    start: Timestamp,
    end: Timestamp,
    usage: Usage,
    error: Option<&'a str>,
    detail: Option<&'a str>,
    extra: Vec<Attribute>,
}

/// End of a reply in the words of the conventions. A reply without content has none.
fn finish_reason(kind: ReplyKind) -> Option<&'static str> {
    match kind {
        ReplyKind::Answer => Some("stop"),
        ReplyKind::Calls => Some("tool_call"),
        ReplyKind::CutOff => Some("length"),
        ReplyKind::Refused => Some("content_filter"),
        ReplyKind::Empty => None,
    }
}
