//! Prompts of a phase that has worked before: messages in its conversation, and its earlier work for a new one.
#![deny(clippy::wildcard_enum_match_arm)]

use std::fmt::Write;

use cliq_protocol::TranscriptBody;
use cliq_sdk::PhaseContext;

use super::{Form, LINE_ENDS, Prompt, Scope, digest, fence_for, task};
use crate::AnyError;
use crate::llm::thoughts;

/// Returns the message for a conversation that contains the task already: what is new or has changed, of the task and of `more` parts.
/// `None` if the prompt begins a conversation.
pub(super) fn update(
    ctx: &PhaseContext,
    form: &Form<'_>,
    more: &[(&str, &str)],
) -> Result<Option<Prompt>, AnyError> {
    let Some(known) = form.scope.sent() else { return Ok(None) };
    let mut text = match form.scope {
        Scope::Whole | Scope::Feedback(_) => {
            match ctx.phase().routed_by.as_ref() {
                Some(gate) => format!(
                    "`{gate}` sent your work back. What it found is below, under \"From {gate}\": mend that.\n\n"
                ),
                None => "You do this task once more. What has changed since your last answer is below.\n\n".to_owned(),
            }
        }
        Scope::Resumed(_) => {
            "Your work was interrupted. Go on with it; look at the workspace before you do something again.\n\n"
                .to_owned()
        }
    };
    let Prompt { text: mut changed, mut sent, .. } = task(ctx, form)?;
    for (name, part) in more {
        let digest = digest(part);
        if known.parts.get(*name) != Some(&digest) {
            changed.push_str(part);
        }
        sent.parts.insert((*name).to_owned(), digest);
    }
    if !changed.is_empty() {
        text.push_str("These parts of your task are new or have changed:\n\n");
        text.push_str(&changed);
    }
    text.push_str("When you are done, give your complete answer, in the form that the task asks for.");
    if matches!(form.scope, Scope::Feedback(_)) {
        text.push_str(" It replaces your last one.");
    }
    text.push('\n');
    Ok(Some(Prompt { system: String::new(), text, sent }))
}

/// Maximum number of bytes of an earlier answer in a prompt.
const MAX_ANSWER: usize = 16_000;

/// Returns the section about the last completed activation of the phase: its answer, and the files that it changed.
pub(super) fn earlier_work(ctx: &PhaseContext) -> Result<String, AnyError> {
    let Some(previous) = &ctx.phase().previous else { return Ok(String::new()) };
    let path = ctx.dispatch().transcript_file.as_ref().and_then(|path| {
        Some(path.parent()?.join(format!("{}.{}.jsonl", ctx.phase().name, previous.activation)))
    });
    let entries = match path {
        Some(path) => cliq_fs::read_transcript(&path)?.unwrap_or_default(),
        None => Vec::new(),
    };
    let is_own = entries
        .iter()
        .any(|entry| matches!(&entry.body, TranscriptBody::Start(start) if start.run_id == *ctx.run_id()));
    let answer = entries.iter().rev().filter(|_| is_own).find_map(|entry| match &entry.body {
        TranscriptBody::End { text } => Some(thoughts::split(text).text),
        TranscriptBody::Start(_)
        | TranscriptBody::Message { .. }
        | TranscriptBody::Thinking { .. }
        | TranscriptBody::ToolCall(_)
        | TranscriptBody::ToolResult(_)
        | TranscriptBody::Permission(_)
        | TranscriptBody::Usage(_)
        | TranscriptBody::Error(_)
        | TranscriptBody::Notice { .. } => None,
    });
    let mut text = String::new();
    if let Some(answer) = answer.filter(|answer| !answer.trim().is_empty()) {
        let answer = cliq_protocol::shorten(answer.trim(), MAX_ANSWER);
        let fence = fence_for(&answer);
        let _ = write!(text, "Your last answer was:\n\n{fence}answer\n{answer}\n{fence}\n\n");
    }
    match previous.changed_files.as_deref() {
        None => {}
        Some([]) => text.push_str("You changed no files.\n\n"),
        Some(files) => {
            text.push_str("You changed these files:\n\n");
            for file in files {
                // A name is data: it cannot end its line.
                let _ = writeln!(text, "- {}", file.replace(LINE_ENDS, "\u{FFFD}"));
            }
            if previous.more_files > 0 {
                let _ = writeln!(text, "- and {} more", previous.more_files);
            }
            text.push('\n');
        }
    }
    Ok(if text.is_empty() { text } else { format!("## Your Earlier Work\n\n{text}") })
}
