//! The handoff as people read it: `handoff.md`.

use std::fmt::Write as _;
use std::io::{self, Write};

use cliq_protocol::{Body, Envelope};

/// Renders an envelope as markdown.
#[must_use]
pub fn render_handoff(envelope: &Envelope) -> String {
    let mut bytes = Vec::new();
    // Writing to memory does not fail.
    let _ = write_markdown(envelope, &mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

/// Writes the text of [`render_handoff`], without a copy of the envelope in memory.
pub(crate) fn write_markdown(envelope: &Envelope, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "# Handoff from {} ({})", envelope.phase, envelope.agent)?;
    if let Some(limited) = &envelope.limited {
        write!(out, "\n**Partial: stopped at {limited}.**\n")?;
    }
    if let Some(text) = &envelope.text {
        write!(out, "\n{}\n", text.trim_end())?;
    }
    match &envelope.body {
        Body::Gate(gate) => {
            let verdict = gate.verdict.sentence();
            write!(
                out,
                "\n## Verdict\n\n{verdict} (evaluation {} of {})\n",
                gate.iteration, gate.max_iterations
            )?;
            if !gate.checks.is_empty() {
                out.write_all(b"\n## Checks\n\n")?;
                for check in &gate.checks {
                    let mark = if check.was_skipped() { "skipped" } else { pass_or_fail(check.pass) };
                    writeln!(out, "- {mark}: {}", check.label())?;
                    if let Some(tail) = check.output_tail.as_deref().filter(|_| !check.pass) {
                        out.write_all(fenced(tail, "text", "  ").as_bytes())?;
                    }
                }
            }
            Ok(())
        }
        Body::Standard(Some(data)) | Body::Team(Some(data)) => {
            // The fence is longer than any run of backticks within: one pass to find out, one to write.
            let mut backticks = LongestRun::default();
            serde_json::to_writer_pretty(&mut backticks, data)?;
            let fence = "`".repeat(backticks.longest.max(2) + 1);
            write!(out, "\n## Data\n\n{fence}json\n")?;
            serde_json::to_writer_pretty(&mut *out, data)?;
            write!(out, "\n{fence}\n")
        }
        Body::Standard(None) | Body::Team(None) => Ok(()),
    }
}

/// Counts the longest run of backticks in what is written to it.
#[derive(Default)]
struct LongestRun {
    longest: usize,
    current: usize,
}

impl Write for LongestRun {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            self.current = if byte == b'`' { self.current + 1 } else { 0 };
            self.longest = self.longest.max(self.current);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
