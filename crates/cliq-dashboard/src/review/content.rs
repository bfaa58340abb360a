//! Content of a review besides the changes. All of it is text of agents: nothing is executed or loaded from other sites.

use cliq_review::{Artifact, ArtifactView, Content};
use maud::{Markup, html};

use crate::elements::{folded, output, size};
use crate::markdown;
use crate::text::shown;

/// Files that are open when the page is.
const OPEN: usize = 3;

/// Renders the content before the changes: brief, checks, handoffs, files.
pub(super) fn before_changes(content: &Content) -> Markup {
    html! {
        @if let Some(brief) = &content.brief {
            section aria-labelledby="brief-title" { h2 #brief-title { "What is reviewed" } div.prose { (prose(brief)) } }
        }
        @if let Some(requirement) = &content.requirement {
            details.card { summary { "What the run was asked to do" } div.prose { (prose(requirement)) } }
        }
        (checks(content))
        @if !content.handed_over.is_empty() {
            section aria-labelledby="handed-title" {
                h2 #handed-title { "What was handed over" }
                @for handed in &content.handed_over {
                    details.card open { summary { "From " (handed.from) } div.prose { (prose(&handed.text)) } }
                }
            }
        }
        @if !content.artifacts.is_empty() {
            section #files aria-labelledby="files-title" {
                h2 #files-title { "Files" }
                @for (n, artifact) in content.artifacts.iter().enumerate() { (file(artifact, n < OPEN)) }
            }
        }
        @if !content.remarks.is_empty() {
            div.warning { @for remark in &content.remarks { p { (shown(remark.as_bytes())) } } }
        }
    }
}

/// Renders the content after the changes: timeline, earlier verdicts.
pub(super) fn after_changes(content: &Content) -> Markup {
    html! {
        @if !content.history.is_empty() {
            section aria-labelledby="history-title" {
                h2 #history-title { "Earlier verdicts" }
                ol { @for entry in &content.history { li { (folded(&entry.verdict.sentence())) } } }
            }
        }
        @if !content.timeline.is_empty() {
            section #timeline aria-labelledby="timeline-title" {
                h2 #timeline-title { "Timeline" }
                details {
                    summary { (content.timeline.len()) " events" }
                    ol.timeline {
                        @for entry in &content.timeline {
                            li { time datetime=(entry.at) { (entry.at.to_string().get(11..19).unwrap_or_default()) } " " (shown(entry.text.as_bytes())) }
                        }
                    }
                }
            }
        }
    }
}

fn prose(text: &str) -> Markup {
    markdown::render(&shown(text.as_bytes()))
}

fn checks(content: &Content) -> Markup {
    html! {
        @if !content.checks.is_empty() {
            section #checks aria-labelledby="checks-title" {
                h2 #checks-title { "Checks" }
                @for check in &content.checks {
                    @let (mark, word, class) = if check.was_skipped() { ("·", "skipped", "badge skipped") } else if check.pass { ("✓", "passed", "badge completed") } else { ("✗", "failed", "badge failed") };
                    details.card {
                        summary { span class=(class) { (mark) " " (word) } " " (shown(check.label().as_bytes())) }
                        @if let Some(run) = &check.run { pre { (shown(run.as_bytes())) } }
                        @match check.output_tail.as_deref().filter(|tail| !tail.trim().is_empty()) {
                            Some(tail) => (output(&format!("Output of {}", check.name), &shown(tail.as_bytes()))),
                            None => p.empty { "It printed nothing." },
                        }
                    }
                }
            }
        }
    }
}

fn file(artifact: &Artifact, open: bool) -> Markup {
    let path = shown(artifact.path.as_bytes());
    let more = html! { p.hint { "Only its beginning is shown." } };
    html! {
        details.card open[open] {
            summary { code { (path) } " " span.quiet { (size(artifact.size)) } }
            @match &artifact.shown {
                ArtifactView::Markdown { text, cut } => { div.prose { (prose(text)) } @if *cut { (more) } }
                ArtifactView::Text { text, cut } => { (output(&path, &shown(text.as_bytes()))) @if *cut { (more) } }
                ArtifactView::Image { media_type, base64 } => {
                    @if matches!(media_type.as_str(), "image/png" | "image/jpeg" | "image/gif" | "image/webp") && is_base64(base64) {
                        img.artifact src=(format!("data:{media_type};base64,{base64}")) alt=(format!("The image {path}"));
                    } @else { p.empty { "It is not an image that can be shown." } }
                }
                ArtifactView::Binary => p.empty { "It is neither text nor an image, and not shown." },
                ArtifactView::TooLarge => p.empty { "It is too large to be shown here." },
                ArtifactView::Unreadable { why } => p.empty { "It is not shown: " (shown(why.as_bytes())) },
            }
            @if let Some(sha256) = &artifact.sha256 { p.hint { "SHA-256 " code { (sha256) } } }
        }
    }
}

fn is_base64(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='))
}
