//! Display of a model's work: everything on standard output, a summary as progress.

use std::io::{self, Write};

use cliq_sdk::Reporter;

use super::Throttle;

/// Maximum number of characters of a progress message.
const GIST: usize = 120;

/// Shows what a model says and does while it does.
pub(crate) struct Display<'a> {
    reporter: &'a Reporter,
    throttle: Throttle,
    /// The line that is being said.
    line: String,
    at_line_start: bool,
    /// Texts that must never be displayed.
    secrets: Vec<String>,
}

impl<'a> Display<'a> {
    pub(crate) fn new(reporter: &'a Reporter) -> Self {
        Self {
            reporter,
            throttle: Throttle::new(),
            line: String::new(),
            at_line_start: true,
            secrets: Vec::new(),
        }
    }

    /// Replaces `secret` in all that is shown from now on.
    pub(crate) fn hide(&mut self, secret: &str) {
        if secret.len() >= 6 && !self.secrets.iter().any(|known| known == secret) {
            self.secrets.push(secret.to_owned());
        }
    }

    pub(crate) fn masked(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "********"))
    }

    /// A piece of what it says, as it comes.
    pub(crate) fn print(&mut self, piece: &str) {
        let piece = self.masked(piece);
        let mut out = io::stdout().lock();
        let _ = out.write_all(piece.as_bytes()).and_then(|()| out.flush());
        self.at_line_start = piece.ends_with('\n');
        self.line.push_str(&piece);
        while let Some(end) = self.line.find('\n') {
            let line: String = self.line.drain(..=end).collect();
            self.report_progress(&line);
        }
    }

    /// Something that it does: always worth telling.
    pub(crate) fn act(&mut self, what: &str) {
        let what = self.masked(what);
        self.end_line();
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "> {what}").and_then(|()| out.flush());
        drop(out);
        let _ = self.reporter.progress(gist(&what));
    }

    /// Something that is neither its words nor its work.
    pub(crate) fn note(&mut self, what: &str) {
        let what = self.masked(what);
        self.end_line();
        let _ = writeln!(io::stdout().lock(), "{what}");
    }

    pub(crate) fn finish(&mut self) {
        self.end_line();
        let line = std::mem::take(&mut self.line);
        self.report_progress(&line);
    }

    fn end_line(&mut self) {
        if !self.at_line_start {
            let _ = writeln!(io::stdout().lock());
            self.at_line_start = true;
        }
    }

    fn report_progress(&mut self, line: &str) {
        let line = line.trim();
        if !line.is_empty() && self.throttle.may() {
            // A channel that cannot be written is told of when the phase ends.
            let _ = self.reporter.progress(gist(line));
        }
    }
}

fn gist(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= GIST {
        return text;
    }
    let mut short: String = text.chars().take(GIST - 1).collect();
    short.push('…');
    short
}
