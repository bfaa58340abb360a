//! The handoff as people read it: `handoff.md`.

use std::fmt::Write;

use cliq_protocol::{Body, Envelope};

/// Renders an envelope as markdown.
#[must_use]
pub fn render_handoff(envelope: &Envelope) -> String {
    let mut out = format!("# Handoff from {} ({})\n", envelope.phase, envelope.agent);
    if let Some(text) = &envelope.text {
        let _ = write!(out, "\n{}\n", text.trim_end());
    }
    match &envelope.body {
        Body::Gate(gate) => {
            let _ = write!(
                out,
                "\n## Verdict\n\n{} (evaluation {} of {})\n",
                gate.verdict.sentence(),
                gate.iteration,
                gate.max_iterations
            );
            if !gate.checks.is_empty() {
                out.push_str("\n## Checks\n\n");
                for check in &gate.checks {
                    let mark = if check.was_skipped() { "skipped" } else { pass_or_fail(check.pass) };
                    let _ = writeln!(out, "- {mark}: {}", check.label());
                    if let Some(tail) = check.output_tail.as_deref().filter(|_| !check.pass) {
                        out.push_str(&fenced(tail, "text", "  "));
                    }
                }
            }
        }
        Body::Standard(Some(data)) | Body::Team(Some(data)) => {
            let json = serde_json::to_string_pretty(data).unwrap_or_default();
            let _ = write!(out, "\n## Data\n\n{}", fenced(&json, "json", ""));
        }
        Body::Standard(None) | Body::Team(None) => {}
    }
    out
}

fn pass_or_fail(pass: bool) -> &'static str {
    if pass { "pass" } else { "FAIL" }
}

/// A code block whose fence is longer than any run of backticks within.
fn fenced(text: &str, language: &str, indent: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let mut out = format!("{indent}{fence}{language}\n");
    for line in text.lines() {
        let _ = writeln!(out, "{indent}{line}");
    }
    let _ = writeln!(out, "{indent}{fence}");
    out
}
