//! Transcripts of models as lines for people.

use cliq_protocol::{Role, TranscriptBody, TranscriptEntry};

use crate::text::{StyledLine, Tone, wrap};

/// Maximum number of lines of a message of the user, and of a tool result.
const PROMPT_LINES: usize = 12;
const RESULT_LINES: usize = 10;
/// Maximum number of characters of an argument.
const ARGUMENT: usize = 120;

/// Returns the lines of an entry, at most `columns` wide. A line that is no entry is shown as it is.
pub(crate) fn entry_lines(line: &[u8], columns: usize) -> Vec<StyledLine> {
    let Ok(entry) = TranscriptEntry::decode(line) else {
        return vec![StyledLine::new(Tone::Warn, &String::from_utf8_lossy(line))];
    };
    let mut out = Lines { time: entry.ts.to_string(), columns, lines: Vec::new() };
    match &entry.body {
        TranscriptBody::Start(start) => {
            let model = start.model.as_deref().unwrap_or("its own model");
            out.head(Tone::Strong, &format!("{} with {model}", start.agent));
        }
        TranscriptBody::Message { role: Role::Assistant, text, .. } => {
            out.head(Tone::Good, "model");
            out.body(Tone::Plain, text, usize::MAX);
        }
        TranscriptBody::Message { role: Role::System, text, .. } => {
            out.head(Tone::Accent, "role and tools");
            out.body(Tone::Dim, text, PROMPT_LINES);
        }
        TranscriptBody::Message { role: Role::User, text, .. } => {
            out.head(Tone::Accent, "task");
            out.body(Tone::Dim, text, PROMPT_LINES);
        }
        TranscriptBody::Thinking { text, .. } => {
            if !text.trim().is_empty() {
                out.head(Tone::Dim, "thinks");
                out.body(Tone::Dim, text, PROMPT_LINES);
            }
        }
        TranscriptBody::ToolCall(call) => {
            let arguments: Vec<String> =
                call.arguments.iter().map(|(name, value)| format!("{name}: {}", short(value))).collect();
            out.head(Tone::Warn, &format!("{} {}", call.name, arguments.join(", ")));
        }
        TranscriptBody::ToolResult(result) => {
            let (tone, word) = if result.is_error { (Tone::Bad, "failed") } else { (Tone::Dim, "result") };
            let took = result.duration_ms.map(|ms| format!(" after {ms} ms")).unwrap_or_default();
            out.head(tone, &format!("{word}{took}"));
            out.body(Tone::Plain, &result.text, RESULT_LINES);
        }
        TranscriptBody::Permission(asked) => {
            let what = format!("{} {}: {}", asked.decision.as_str(), asked.kind, asked.title);
            out.head(Tone::Warn, &what);
        }
        TranscriptBody::Usage(end) => {
            let text = match &end.usage {
                Some(usage) => format!("{} tokens in, {} out", usage.tokens_in, usage.tokens_out),
                None => "usage unknown".to_owned(),
            };
            out.lines.push(StyledLine::new(Tone::Dim, &format!("         {text}")));
        }
        TranscriptBody::Error(error) => {
            out.head(Tone::Bad, "error");
            out.body(Tone::Bad, &error.message, RESULT_LINES);
        }
        TranscriptBody::Notice { text } => {
            out.head(Tone::Warn, "notice");
            out.body(Tone::Plain, text, PROMPT_LINES);
        }
        TranscriptBody::End { .. } => out.head(Tone::Strong, "answered"),
    }
    out.lines
}

struct Lines {
    time: String,
    columns: usize,
    lines: Vec<StyledLine>,
}

impl Lines {
    fn head(&mut self, tone: Tone, text: &str) {
        let time = self.time.get(11..19).unwrap_or_default();
        let mut parts = wrap(text, self.columns.saturating_sub(9)).into_iter();
        let first = parts.next().unwrap_or_default();
        self.lines.push(StyledLine::new(Tone::Dim, time).with(Tone::Plain, " ").with(tone, &first));
        self.lines.extend(parts.map(|part| StyledLine::new(tone, &format!("         {part}"))));
    }

    fn body(&mut self, tone: Tone, text: &str, limit: usize) {
        let lines = wrap(text, self.columns.saturating_sub(4));
        let more = lines.len().saturating_sub(limit);
        self.lines.extend(lines.iter().take(limit).map(|line| StyledLine::new(tone, &format!("    {line}"))));
        if more > 0 {
            self.lines.push(StyledLine::new(Tone::Dim, &format!("    … {more} more lines")));
        }
    }
}

fn short(value: &serde_json::Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match text.char_indices().nth(ARGUMENT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
