//! Here-documents.

use super::Context;
use super::level::Level;
use super::scanner::Scanner;

/// A here-document whose body has not begun.
pub(super) struct HereDocument {
    /// Line that ends it.
    end: String,
    /// Whether a part of the end is quoted: nothing in the body expands.
    is_literal: bool,
    /// Whether tabs at the beginning of lines are removed.
    strips_tabs: bool,
    /// Number of open constructs around it.
    depth: usize,
}

impl HereDocument {
    /// Whether it began in more constructs than these.
    pub(super) fn is_deeper_than(&self, depth: usize) -> bool {
        self.depth > depth
    }
}

impl Scanner<'_> {
    /// Reads `<<END` or `<<-END`.
    pub(super) fn here_document_start(&mut self) {
        if matches!(self.levels.last(), Some(Level::Test(..))) {
            return self.give_up("`<<` in `[[ ]]`");
        }
        self.at += 2;
        let strips_tabs = self.rest().starts_with('-');
        self.at += usize::from(strips_tabs);
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
        let (mut end, mut is_literal, mut quote, mut is_escaped) = (String::new(), false, None, false);
        while let Some(c) = self.rest().chars().next() {
            match (quote, c) {
                (_, '\n') if quote.is_some() || is_escaped => {
                    return self.give_up("a here-document whose end has several lines");
                }
                (Some(open), _) if c == open => quote = None,
                (Some('"'), '\\') => {
                    return self.give_up("a here-document whose end has an escape in quotes");
                }
                (Some(_), _) => end.push(c),
                (None, _) if is_escaped => {
                    is_escaped = false;
                    end.push(c);
                }
                (None, '\'' | '"') => (quote, is_literal) = (Some(c), true),
                (None, '\\') => (is_escaped, is_literal) = (true, true),
                (None, '$' | '`') => return self.give_up("a here-document whose end has an expansion"),
                (None, c) if c.is_whitespace() || ";&|<>()".contains(c) => break,
                (None, _) => end.push(c),
            }
            self.at += c.len_utf8();
        }
        if end.is_empty() || quote.is_some() || is_escaped {
            return self.give_up("a here-document without an end");
        }
        self.pending.push(HereDocument { end, is_literal, strips_tabs, depth: self.levels.len() });
    }

    /// Reads the bodies of the here-documents that began in the line before.
    pub(super) fn here_documents(&mut self) {
        for document in std::mem::take(&mut self.pending) {
            if document.depth != self.levels.len() {
                return self
                    .give_up("a here-document that begins within a substitution and ends outside of it");
            }
            let mut is_closed = false;
            while !is_closed && self.at < self.script.len() && !self.has_given_up() {
                let line = self.rest().split('\n').next().unwrap_or_default();
                let bare = if document.strips_tabs { line.trim_start_matches('\t') } else { line };
                is_closed = bare == document.end;
                let line_end = self.at + line.len();
                if !is_closed && document.is_literal {
                    self.templates_until(line_end, Context::Literal);
                } else if !is_closed {
                    if line.ends_with('\\') {
                        return self.give_up("a here-document with an escaped end of line");
                    }
                    self.expanding_line(line_end);
                }
                self.at = (line_end + 1).max(self.at).min(self.script.len());
            }
            if !is_closed && self.levels.len() > 0 {
                return self.give_up("a here-document that is not closed");
            }
        }
    }

    fn expanding_line(&mut self, end: usize) {
        let depth = self.levels.len();
        self.levels.push(Level::Here);
        let outer = std::mem::replace(&mut self.end, end);
        self.scan();
        self.end = outer;
        if self.levels.len() != depth + 1 && !self.has_given_up() {
            self.give_up("a substitution of several lines in a here-document");
        }
        if !self.has_given_up() {
            self.levels.pop(&mut self.sites);
        }
    }
}
