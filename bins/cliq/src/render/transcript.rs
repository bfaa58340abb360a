//! Transcripts of model agents for people.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeMap;
use std::io;

use cliq_protocol::{
    Origin, PermissionDecision, ReplyKind, ReplyUsage, Role, TranscriptBody, TranscriptEntry, Usage,
};

use super::usage::estimated;
use crate::ui::{self, BOLD, CYAN, DIM, GREEN, RED, YELLOW, paint};

/// Maximum number of lines shown of a message of the user, and of a tool result. `--json` has all of them.
const PROMPT_LINES: usize = 12;
const RESULT_LINES: usize = 8;

/// Prints an entry. `calls` has the calls so far by id: several results follow several calls, in any order.
pub(crate) fn show(entry: &TranscriptEntry, calls: &mut BTreeMap<String, String>) -> io::Result<()> {
    let ts = entry.ts.to_string();
    let time = ts.get(11..19).unwrap_or_default();
    let head = |style, what: &str| ui::line(format!("{} {}", paint(DIM, time), paint(style, what)));
    match &entry.body {
        TranscriptBody::Start(start) => {
            let model = start.model.as_deref().unwrap_or("its own model");
            let tools = if start.tools.is_empty() {
                String::new()
            } else {
                format!(", tools: {}", start.tools.join(", "))
            };
            let continues = start.continues.map(|number| format!("; continues activation {number}"));
            let what = format!("{} with {model}{tools}{}", start.agent, continues.unwrap_or_default());
            head(BOLD, &what)?;
            match start.continued_from {
                Some(number) => {
                    ui::line(paint(DIM, format!("         conversation: continued from activation {number}")))
                }
                None => Ok(()),
            }
        }
        TranscriptBody::Message { role: Role::Assistant, text, .. } => {
            head(GREEN, "model")?;
            body(text, usize::MAX)
        }
        TranscriptBody::Message { role: Role::System, text, .. } => {
            head(CYAN, "role and tools")?;
            body(text, PROMPT_LINES)
        }
        TranscriptBody::Message { role: Role::User, text, origin, images, .. } => {
            head(CYAN, name(*origin))?;
            body(text, PROMPT_LINES)?;
            images.iter().try_for_each(|image| ui::line(format!("    [image {image}]")))
        }
        TranscriptBody::Thinking { text, .. } if text.trim().is_empty() => Ok(()),
        TranscriptBody::Thinking { text, .. } => {
            head(DIM, "thinks")?;
            body(text, PROMPT_LINES)
        }
        TranscriptBody::ToolCall(call) => {
            let arguments: Vec<String> = call
                .arguments
                .iter()
                .map(|(name, value)| format!("{name}: {}", short(&value.to_string())))
                .collect();
            let first =
                call.arguments.values().next().map(|value| short(&value.to_string())).unwrap_or_default();
            calls.insert(call.id.clone(), format!("{} {first}", call.name).trim_end().to_owned());
            head(YELLOW, &ui::plain(&format!("{} {}", call.name, arguments.join(", "))))
        }
        TranscriptBody::ToolResult(result) => {
            let how = if result.is_error { paint(RED, "failed") } else { paint(DIM, "result") };
            let time_taken = result.duration_ms.map(|ms| format!(" after {ms} ms")).unwrap_or_default();
            let of = calls.get(&result.id).map(|call| format!(" of {}", ui::plain(call))).unwrap_or_default();
            ui::line(format!("{} {how}{}", paint(DIM, time), paint(DIM, format!("{of}{time_taken}"))))?;
            body(&result.text, RESULT_LINES)
        }
        TranscriptBody::Permission(asked) => {
            let (style, what) =
                (if asked.decision == PermissionDecision::Allowed { DIM } else { YELLOW }, asked.decision);
            head(
                style,
                &ui::plain(&format!("{} {}: {} ({})", what.as_str(), asked.kind, asked.title, asked.reason)),
            )
        }
        TranscriptBody::Usage(end) => {
            let used = end.usage.as_ref().map_or_else(|| "usage unknown".to_owned(), tokens);
            let time_taken = end.duration_ms.map(|ms| format!(", {ms} ms")).unwrap_or_default();
            ui::line(paint(DIM, format!("         {used}{time_taken}{}", kind(end))))
        }
        TranscriptBody::Error(error) => {
            head(RED, if error.kind.is_retried() { "error, tried again" } else { "error" })?;
            body(&error.message, RESULT_LINES)?;
            error
                .usage
                .iter()
                .try_for_each(|usage| ui::line(paint(DIM, format!("         {}", tokens(usage)))))
        }
        TranscriptBody::Notice { text } => {
            head(YELLOW, "notice")?;
            body(text, PROMPT_LINES)
        }
        TranscriptBody::End { .. } => head(BOLD, "answered"),
    }
}

fn name(origin: Option<Origin>) -> &'static str {
    match origin {
        None | Some(Origin::Task) => "task",
        Some(Origin::Steering) => "guidance",
        Some(Origin::Retry) => "asked again",
        Some(Origin::Limit) => "limit",
        Some(Origin::Summary) => "summary requested",
        Some(Origin::Continue) => "continuation requested",
        Some(Origin::Resume) => "resumed",
        Some(Origin::Feedback) => "feedback",
    }
}

/// Kind of a reply that is neither an answer nor calls, with the reason.
fn kind(end: &ReplyUsage) -> String {
    let name = match end.kind {
        None | Some(ReplyKind::Answer | ReplyKind::Calls) => return String::new(),
        Some(ReplyKind::CutOff) => "cut off",
        Some(ReplyKind::Refused) => "refused",
        Some(ReplyKind::Empty) => "empty",
    };
    let detail = end.detail.as_deref().map(|detail| format!(": {}", ui::plain(detail))).unwrap_or_default();
    format!(", {name}{detail}")
}

fn tokens(usage: &Usage) -> String {
    let cached = usage.tokens_cached.map(|cached| format!(" ({cached} cached)")).unwrap_or_default();
    let estimated = estimated(usage.estimated);
    format!("{} tokens in{cached}, {} out{estimated}", usage.tokens_in, usage.tokens_out)
}

/// Prints the first lines of a text, indented.
fn body(text: &str, limit: usize) -> io::Result<()> {
    let count = text.lines().count();
    for line in text.lines().take(limit) {
        ui::line(format!("    {}", ui::plain(line)))?;
    }
    if count > limit {
        ui::line(paint(DIM, format!("    … {} more lines (`--json` has them)", count - limit)))?;
    }
    Ok(())
}

fn short(text: &str) -> String {
    match text.char_indices().nth(100) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
