//! Conversations of model agents: a list, and one in parts.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use cliq_orchestrator::RunEvent;
use cliq_protocol::{Origin, Outcome, Role, TranscriptBody, TranscriptEntry};
use cliq_web::{Core, Path, Query, list_transcripts, read_transcript};
use maud::{Markup, html};
use serde::Deserialize;

use super::head::{Tab, head};
use super::timeline::each_record;
use crate::elements::{ago_text, badge, count, empty, estimated, output, size};
use crate::markdown;
use crate::page::{Page, show};
use crate::text::shown;
use crate::visitor::Visitor;

/// Size of a part in bytes.
const PART: u64 = 96 << 10;
/// The most bytes of a text that are shown.
const MAX_TEXT: usize = 16 << 10;

/// The list of transcripts.
pub(crate) async fn list(visitor: Visitor, State(core): State<Arc<Core>>, Path(id): Path<String>) -> Page {
    let run = core.run(&id).await?;
    let of = run.clone();
    let files = core.in_workspace(&run.workspace, move || list_transcripts(&of)).await?;
    let mut outcomes = Outcomes::default();
    if !files.is_empty() {
        each_record(&core, &run, |record| outcomes.apply(&record.event)).await?;
    }
    let content = html! {
        (head(&run, Tab::Transcripts))
        div #transcripts data-live {
            @if files.is_empty() { (empty("No model agent has worked, or the workspace is gone.")) } @else {
                table {
                    thead { tr { th { "Phase" } th { "Round" } th { "Outcome" } th { "Size" } } }
                    tbody {
                        @for file in &files {
                            @let round = file.name.rsplit('.').nth(1).unwrap_or_default();
                            tr {
                                td { a href=(format!("/runs/{id}/transcripts/{}", file.name)) { (file.phase.as_deref().unwrap_or(&file.name)) } }
                                td.number data-label="round" { (round) }
                                td { (outcomes.of(file.phase.as_deref().unwrap_or_default(), round)) }
                                td.number data-label="size" { (size(file.size)) }
                            }
                        }
                    }
                }
            }
        }
    };
    let events = super::events_of(&run);
    show(
        &visitor,
        &format!("Transcripts of {}", run.title),
        "",
        &html! { div data-events=[events] { (content) } },
    )
}

/// Outcomes of activations: the verdict of a gate, and which gate sent the work back.
#[derive(Debug, Default)]
struct Outcomes {
    activations: HashMap<String, u32>,
    outcomes: HashMap<(String, u32), String>,
}

impl Outcomes {
    #[deny(clippy::wildcard_enum_match_arm)]
    fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::PhaseStarted { phase, .. } => {
                *self.activations.entry(phase.to_string()).or_default() += 1;
            }
            RunEvent::Verdict { gate, verdict, .. } => {
                let outcome = match &verdict.outcome {
                    Outcome::Pass => "passed".to_owned(),
                    Outcome::Escalate => "escalated".to_owned(),
                    Outcome::Route(target) => {
                        self.note(target.as_str(), format!("sent back by {gate}"));
                        format!("sent {target} back")
                    }
                };
                self.note(gate.as_str(), outcome);
            }
            RunEvent::RunStarted { .. }
            | RunEvent::RunInterrupted
            | RunEvent::RunResumed { .. }
            | RunEvent::AgentStarted { .. }
            | RunEvent::CommandStarted { .. }
            | RunEvent::CommandFinished { .. }
            | RunEvent::CommandsFinished { .. }
            | RunEvent::Progress { .. }
            | RunEvent::UsageReported { .. }
            | RunEvent::ReviewWaits { .. }
            | RunEvent::ReviewIdle { .. }
            | RunEvent::PhaseSandboxed { .. }
            | RunEvent::AccessRefused { .. }
            | RunEvent::RunIdle { .. }
            | RunEvent::RunParked { .. }
            | RunEvent::SteeringReceived { .. }
            | RunEvent::SteeringDelivered { .. }
            | RunEvent::NotifyRequested { .. }
            | RunEvent::AgentCompleted { .. }
            | RunEvent::WorkFailed { .. }
            | RunEvent::PhaseDecided { .. }
            | RunEvent::PhaseSkipped { .. }
            | RunEvent::ItemsStarted { .. }
            | RunEvent::ItemFailed { .. }
            | RunEvent::RetryScheduled { .. }
            | RunEvent::MergeConflict { .. }
            | RunEvent::ItemsMerged { .. }
            | RunEvent::RetryDelayed { .. }
            | RunEvent::RetryDue { .. }
            | RunEvent::VerdictRejected { .. }
            | RunEvent::PhaseCompleted { .. }
            | RunEvent::PhaseEscalated { .. }
            | RunEvent::PhaseReset { .. }
            | RunEvent::PhaseStopped { .. }
            | RunEvent::Draining { .. }
            | RunEvent::WorkspaceChanged { .. }
            | RunEvent::Warning { .. }
            | RunEvent::CompletionContradicted { .. }
            | RunEvent::CancelRequested { .. }
            | RunEvent::OrchestratorFailed { .. }
            | RunEvent::RunFinished { .. } => {}
            _ => {}
        }
    }

    fn note(&mut self, phase: &str, outcome: String) {
        if let Some(number) = self.activations.get(phase) {
            self.outcomes.insert((phase.to_owned(), *number), outcome);
        }
    }

    fn of(&self, phase: &str, round: &str) -> &str {
        let number = round.parse().unwrap_or(0);
        self.outcomes.get(&(phase.to_owned(), number)).map_or("", String::as_str)
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Part {
    /// Offset of the part in bytes; the end of the transcript without it.
    from: Option<u64>,
}

/// A transcript: its last part, or the one at an offset.
pub(crate) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path((id, name)): Path<(String, String)>,
    Query(part): Query<Part>,
) -> Page {
    let run = core.run(&id).await?;
    let (of, file) = (run.clone(), name.clone());
    let offset =
        part.from.map_or(-i64::try_from(PART).unwrap_or(0), |from| i64::try_from(from).unwrap_or(i64::MAX));
    let read = core.in_workspace(&run.workspace, move || read_transcript(&of, &file, offset, PART));
    let (bytes, from, total) = read.await??;
    let (begin, entries, end) = entries(&bytes, from, total);
    let base = format!("/runs/{id}/transcripts/{name}");
    let is_last = end >= total;
    let content = html! {
        (head(&run, Tab::Transcripts))
        h2 { (name) }
        p.facts {
            span { (size(total)) }
            a href=(format!("/api/v1{base}")) { "as JSON lines" }
            @if begin > 0 { a href=(format!("{base}?from=0")) { "from the beginning" } a href=(format!("{base}?from={}", begin.saturating_sub(PART))) { "earlier" } }
            @if !is_last { a href=(format!("{base}?from={end}")) { "later" } a href=(base) { "the end" } }
        }
        div #transcript data-live[is_last && part.from.is_none()] { (conversation(&entries)) }
        @if !is_last { p { a.button href=(format!("{base}?from={end}")) { "Later messages" } } }
    };
    let events = super::events_of(&run);
    show(&visitor, &name, "", &html! { div data-events=[events] { (content) } })
}

/// Returns the whole lines of a part, with where they begin and end in the file.
fn entries(bytes: &[u8], from: u64, total: u64) -> (u64, Vec<TranscriptEntry>, u64) {
    let skipped = match from {
        0 => 0,
        _ => bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1),
    };
    let mut rest = &bytes[skipped..];
    let begin = from + skipped as u64;
    let (mut entries, mut end) = (Vec::new(), begin);
    while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
        entries.extend(TranscriptEntry::decode(&rest[..at]).ok());
        end += at as u64 + 1;
        rest = &rest[at + 1..];
    }
    if entries.is_empty() && end < total {
        // A line that is longer than a part is left out.
        end = from + bytes.len() as u64;
    }
    (begin, entries, end)
}

fn conversation(entries: &[TranscriptEntry]) -> Markup {
    let results: HashMap<&str, &cliq_protocol::ToolResult> = entries
        .iter()
        .filter_map(|entry| match &entry.body {
            TranscriptBody::ToolResult(result) => Some((result.id.as_str(), result)),
            _ => None,
        })
        .collect();
    let calls: Vec<&str> = entries
        .iter()
        .filter_map(|entry| match &entry.body {
            TranscriptBody::ToolCall(call) => Some(call.id.as_str()),
            _ => None,
        })
        .collect();
    let last = entries.iter().rev().find_map(|entry| match &entry.body {
        TranscriptBody::Message { role: Role::Assistant, text, .. } => Some(text.as_str()),
        _ => None,
    });
    html! {
        @if entries.is_empty() { (empty("Nothing yet.")) }
        @for entry in entries {
            @match &entry.body {
                TranscriptBody::Start(start) => {
                    p.facts { span { (start.agent) @if let Some(model) = &start.model { ", " (model) } } span { "activation " (start.activation) } @if let Some(from) = start.continued_from { span { "conversation: continued from activation " (from) } } span { (ago_text(&entry.ts.to_string())) } }
                    @if !start.tools.is_empty() { details { summary { (start.tools.len()) " tools" } p { (start.tools.join(", ")) } } }
                }
                TranscriptBody::Message { role: Role::Assistant, text, .. } => {
                    div.message.assistant { header { "Model" } div.prose { (markdown::render(&shown(cut(text).as_bytes()))) } }
                }
                TranscriptBody::Message { role: Role::System, text, .. } => { details.message { summary { "Role and tools" } pre { (shown(cut(text).as_bytes())) } } }
                TranscriptBody::Message { role: Role::User, text, origin, .. } => {
                    div.message.user {
                        header { (origin_word(*origin)) }
                        @if text.len() > 2000 { details { summary { (size(text.len() as u64)) " of text" } pre { (shown(cut(text).as_bytes())) } } }
                        @else { pre { (shown(text.as_bytes())) } }
                    }
                }
                TranscriptBody::Thinking { text, .. } if text.trim().is_empty() => {}
                TranscriptBody::Thinking { text, .. } => { details.message { summary { "Thought" } pre { (shown(cut(text).as_bytes())) } } }
                TranscriptBody::ToolCall(call) => {
                    @let result = results.get(call.id.as_str());
                    details.message.tool {
                        summary {
                            @match result {
                                Some(result) if result.is_error => (badge("failed")),
                                Some(_) => (badge("done")),
                                None => (badge("running")),
                            }
                            " " code { (call.name) } " " span.quiet { (brief(&call.arguments)) }
                        }
                        (output("Arguments", &shown(cut(&call.invalid.clone().unwrap_or_else(|| format!("{:#}", serde_json::Value::Object(call.arguments.clone())))).as_bytes())))
                        @if let Some(result) = result { (result_text(&result.text)) }
                    }
                }
                TranscriptBody::ToolResult(result) if calls.contains(&result.id.as_str()) => {}
                TranscriptBody::ToolResult(result) => { details.message.tool { summary { "Result of a call before this part" } (result_text(&result.text)) } }
                TranscriptBody::Permission(asked) => {
                    p.quiet { "Asked for permission (" (shown(cut(&asked.kind).as_bytes())) "): " (shown(cut(&asked.title).as_bytes())) " — " (asked.decision.as_str()) ", " (shown(cut(&asked.reason).as_bytes())) }
                }
                TranscriptBody::Usage(end) => {
                    @if let Some(usage) = &end.usage {
                        p.quiet { (count(usage.tokens_in)) " tokens in, " (count(usage.tokens_out)) " out" @if let Some(cost) = usage.cost_usd { ", $" (format!("{cost:.4}")) } (estimated(usage.estimated)) }
                    }
                }
                TranscriptBody::Error(error) => {
                    div.message.bad { header { "Error" @if error.kind.is_retried() { ", tried again" } } pre { (shown(error.message.as_bytes())) } }
                    @if let Some(usage) = &error.usage {
                        p.quiet { (count(usage.tokens_in)) " tokens in, " (count(usage.tokens_out)) " out" (estimated(usage.estimated)) }
                    }
                }
                TranscriptBody::Notice { text } => { div.message { header { "Notice" } pre { (shown(text.as_bytes())) } } }
                // The answer is the last message in most cases: it is not shown twice.
                TranscriptBody::End { text } if Some(text.trim()) == last.map(str::trim) => { p.quiet { "End of the activation." } }
                TranscriptBody::End { text } => { div.message.assistant { header { "Answer" } div.prose { (markdown::render(&shown(cut(text).as_bytes()))) } } }
            }
        }
    }
}

fn origin_word(origin: Option<Origin>) -> String {
    let word = origin.and_then(|origin| serde_json::to_value(origin).ok());
    let word = word.as_ref().and_then(|word| word.as_str()).unwrap_or("message").replace('_', " ");
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// A result, with the colours of differences if it is a patch.
fn result_text(text: &str) -> Markup {
    let text = shown(cut(text).as_bytes());
    let is_patch = text.lines().any(|line| line.starts_with("@@ ") || line.starts_with("--- "));
    html! {
        @if is_patch { pre.diff tabindex="0" role="region" aria-label="Result" { @for line in text.lines() { (crate::changes::shown(line)) "\n" } } }
        @else { (output("Result", &text)) }
    }
}

/// The first text of arguments, on one line.
fn brief(arguments: &cliq_protocol::Object) -> String {
    let first = arguments.values().find_map(|value| value.as_str()).unwrap_or_default();
    shown(first.lines().next().unwrap_or_default().chars().take(80).collect::<String>().as_bytes())
}

fn cut(text: &str) -> String {
    let mut end = MAX_TEXT.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end == text.len() {
        text.to_owned()
    } else {
        format!("{}\n… {} more bytes", &text[..end], text.len() - end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_lines() {
        let line = |text: &str| {
            format!("{{\"ts\":\"2026-01-01T00:00:00.000Z\",\"type\":\"end\",\"text\":\"{text}\"}}\n")
        };
        let all = format!("{}{}{}", line("one"), line("two"), line("three"));
        let second = line("one").len() as u64;
        let (begin, found, end) = entries(all.as_bytes(), 0, all.len() as u64);
        assert_eq!((begin, found.len(), end), (0, 3, all.len() as u64));
        // From the middle of the first line: it is left out.
        let (begin, found, _) = entries(&all.as_bytes()[5..], 5, all.len() as u64);
        assert_eq!((begin, found.len()), (second, 2));
        // An end within a line.
        let cut = all.len() - 4;
        let (_, found, end) = entries(&all.as_bytes()[..cut], 0, all.len() as u64);
        assert_eq!((found.len(), end), (2, second + line("two").len() as u64));
    }
}
