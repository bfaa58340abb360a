//! State of a vendor's program that works: its text, its usage, and its reports about the end.

use std::collections::BTreeMap;

use cliq_fs::OutputLine;
use cliq_protocol::{CountedTokens, FailedCall, FailedCallKind, TranscriptBody, shorten};
use cliq_sdk::Usage;

use super::dialect::{Dialect, Event};
use super::end::Report;
use super::lines::objects;
use super::recorder::Recorder;
use super::{COMPLAINT, Display, Meter};
use crate::llm::thoughts;

/// Bytes per token, for programs that report their usage only at the end.
const BYTES_PER_TOKEN: u64 = 4;
/// Maximum number of bytes of a line that is shown because it is not from the program.
const NOISE: usize = 4096;

/// Output of a program so far.
pub(super) struct Progress<'a> {
    dialect: Dialect,
    recorder: &'a mut Recorder,
    /// The model that it uses.
    model: Option<String>,
    /// The usage of each reply of the turn under way.
    replies: BTreeMap<String, Usage>,
    /// The usage of the turns that have ended. A program that received further messages has several.
    total: Usage,
    /// Bytes that the model read and wrote in the turn under way, and the last estimate that was reported.
    bytes: Bytes,
    estimated: u64,
    /// Text that the program declared as its answer.
    last: Option<String>,
    /// Text since the last action.
    said: String,
    /// Text before that.
    before: String,
    thought: String,
    /// End of the lines that are not from the program.
    noise: String,
    pub(super) reports: Vec<Report>,
    /// Id of its session.
    pub(super) session: Option<String>,
    /// Whether the model has begun to reply.
    pub(super) has_begun: bool,
    /// Tokens of the session before this request, if the program counts them too.
    baseline: Option<CountedTokens>,
    /// Tokens of the session, as the program has reported them.
    pub(super) counted: Option<CountedTokens>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bytes {
    read: u64,
    written: u64,
}

impl<'a> Progress<'a> {
    pub(super) fn new(
        dialect: Dialect,
        model: Option<String>,
        prompt_bytes: usize,
        baseline: Option<CountedTokens>,
        recorder: &'a mut Recorder,
    ) -> Self {
        Self {
            dialect,
            recorder,
            model,
            replies: BTreeMap::new(),
            total: Usage::default(),
            bytes: Bytes { read: prompt_bytes as u64, written: 0 },
            estimated: 0,
            last: None,
            said: String::new(),
            before: String::new(),
            thought: String::new(),
            noise: String::new(),
            reports: Vec::new(),
            session: None,
            has_begun: false,
            baseline,
            counted: None,
        }
    }

    /// Returns the answer without thoughts: the declared one, else the text after the last action.
    pub(super) fn answer(&self) -> String {
        let text = match (&self.last, self.said.trim().is_empty()) {
            (Some(last), _) => last,
            (None, false) => &self.said,
            (None, true) => &self.before,
        };
        thoughts::split(text).text
    }

    /// Returns the end of the lines that are not from the program.
    pub(super) fn noise(&self) -> &str {
        self.noise.trim()
    }

    /// Takes an output line. Returns whether the program has reported the end of a turn.
    pub(super) fn line(
        &mut self,
        line: OutputLine<'_>,
        display: &mut Display<'_>,
        meter: &mut Meter<'_>,
    ) -> bool {
        let reports = self.reports.len();
        match line {
            OutputLine::TooLong { bytes } => display.note(&format!("[a line of {bytes} bytes was skipped]")),
            OutputLine::Whole(line) => match objects(line) {
                Some(values) => {
                    for value in values {
                        for event in self.dialect.read(&value) {
                            self.event(event, display, meter);
                        }
                    }
                }
                // Notices and warnings of its own, or of a wrapper.
                None => {
                    let text = String::from_utf8_lossy(line);
                    let text = shorten(text.trim_end(), NOISE);
                    display.note(&text);
                    self.noise.push_str(&text);
                    self.noise.push('\n');
                    let surplus = self.noise.len().saturating_sub(COMPLAINT);
                    let start = self.noise.ceil_char_boundary(surplus);
                    self.noise.drain(..start);
                }
            },
        }
        self.reports.len() > reports
    }

    fn event(&mut self, event: Event, display: &mut Display<'_>, meter: &mut Meter<'_>) {
        if !matches!(event, Event::Think(_)) {
            self.end_thought();
        }
        self.has_begun |= matches!(
            event,
            Event::Say(_) | Event::Think(_) | Event::Record(_) | Event::Answer(_) | Event::Reply(..)
        );
        match event {
            Event::Session(id) => {
                self.session.get_or_insert(id);
                return;
            }
            Event::Say(piece) => {
                display.print(&piece);
                self.recorder.say(&piece);
                self.bytes.written += piece.len() as u64;
                self.said.push_str(&piece);
            }
            Event::Think(piece) => {
                self.bytes.written += piece.len() as u64;
                self.thought.push_str(&piece);
            }
            Event::Act(what) => {
                display.act(&what);
                if !self.said.trim().is_empty() {
                    self.before = std::mem::take(&mut self.said);
                }
            }
            Event::Note(text) => display.note(&text),
            Event::Answer(text) => self.last = Some(text),
            Event::Record(body) => {
                self.count(&body);
                self.recorder.record(body);
            }
            Event::End(report) => self.reports.push(report),
            Event::Model(model) => self.model = Some(model),
            Event::Reply(id, usage) => {
                let named = self.named(usage.clone());
                self.recorder.usage_of_reply(&id, &named);
                self.replies.insert(id, usage);
            }
            Event::Total(usage) => {
                let usage = self.of_request(usage);
                let named = self.named(usage.clone());
                self.recorder.total(&named);
                self.finish_turn(&usage);
                meter.report(self.named(self.total.clone()));
                return;
            }
        }
        self.report_estimate(meter);
    }

    /// Returns the usage of this request, if the program reports that of the whole session.
    fn of_request(&mut self, usage: Usage) -> Usage {
        if !self.dialect.counts_sessions() {
            return usage;
        }
        let counted = CountedTokens {
            tokens_in: usage.tokens_in,
            tokens_out: usage.tokens_out,
            tokens_cached: usage.tokens_cached.unwrap_or(0),
        };
        self.counted = Some(counted);
        let Some(before) = self.baseline else { return usage };
        let less = |now: u64, before: u64| now.checked_sub(before);
        let rest = less(counted.tokens_in, before.tokens_in).zip(less(counted.tokens_out, before.tokens_out));
        // A version that counts each request by itself reports less than before.
        let Some((tokens_in, tokens_out)) = rest else { return usage };
        let tokens_cached = usage.tokens_cached.map(|now| now.saturating_sub(before.tokens_cached));
        // The record of a session does not have the reasoning of its earlier requests.
        Usage { tokens_in, tokens_out, tokens_cached, tokens_reasoning: None, ..usage }
    }

    /// Counts the bytes of a line of the transcript.
    fn count(&mut self, body: &TranscriptBody) {
        match body {
            TranscriptBody::ToolCall(call) => {
                let arguments: usize =
                    call.arguments.iter().map(|(key, value)| key.len() + value.to_string().len()).sum();
                self.bytes.written += (call.name.len() + arguments) as u64;
            }
            TranscriptBody::ToolResult(result) => self.bytes.read += result.text.len() as u64,
            TranscriptBody::Thinking { text, .. } => self.bytes.written += text.len() as u64,
            TranscriptBody::Message { text, .. } => self.bytes.written += text.len() as u64,
            TranscriptBody::Start(_)
            | TranscriptBody::Usage(_)
            | TranscriptBody::Error { .. }
            | TranscriptBody::Permission(_)
            | TranscriptBody::Notice { .. }
            | TranscriptBody::End { .. } => {}
        }
    }

    /// Reports the usage of the turn under way. It is an estimate until the program reports the total.
    fn report_estimate(&mut self, meter: &mut Meter<'_>) {
        let usage = self.estimate();
        // Not for each piece of a text.
        if self.replies.is_empty() && usage.tokens() < self.estimated.saturating_add(self.estimated / 4) {
            return;
        }
        self.estimated = usage.tokens();
        meter.report(self.named(usage));
    }

    /// Returns the usage of all turns, of which that of the last is estimated: the sum of its replies, or from bytes.
    fn estimate(&self) -> Usage {
        let mut turn = Usage::default();
        if self.replies.is_empty() {
            turn.tokens_in = self.bytes.read.div_ceil(BYTES_PER_TOKEN);
            turn.tokens_out = self.bytes.written.div_ceil(BYTES_PER_TOKEN);
        } else {
            self.replies.values().for_each(|usage| turn.add(usage));
        }
        let mut usage = self.total.clone();
        usage.add(&turn);
        Usage { estimated: true, cost_usd: self.total.cost_usd, ..usage }
    }

    /// Adds the usage of a turn. Tokens are those of the turn, the cost is that of all turns.
    fn finish_turn(&mut self, turn: &Usage) {
        let cost_usd = turn.cost_usd;
        self.total.add(turn);
        self.total.cost_usd = cost_usd;
        self.replies.clear();
        self.bytes = Bytes::default();
        self.estimated = self.total.tokens();
    }

    /// Ends the work: takes note of the usage if the program has not reported it in full.
    pub(super) fn finish(&mut self, meter: &mut Meter<'_>) {
        self.end_thought();
        let has_unknown = !self.replies.is_empty() || self.bytes.written > 0 || self.total.tokens() == 0;
        if has_unknown {
            let usage = self.named(self.estimate());
            if self.total.tokens() == 0 {
                self.recorder.total(&usage);
            }
            meter.report(usage);
        }
        self.recorder.flush();
    }

    /// Records a failure.
    pub(super) fn fail(&mut self, message: String) {
        let error = FailedCall { message, kind: FailedCallKind::Final, usage: None };
        self.recorder.record(TranscriptBody::Error(error));
    }

    fn end_thought(&mut self) {
        let text = std::mem::take(&mut self.thought);
        if !text.trim().is_empty() {
            self.recorder.record(TranscriptBody::Thinking { text, provider_data: None });
        }
    }

    fn named(&self, usage: Usage) -> Usage {
        let provider = Some(self.dialect.provider().to_owned());
        Usage { provider, model: self.model.clone(), ..usage }
    }
}
