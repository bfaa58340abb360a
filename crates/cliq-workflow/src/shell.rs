//! Context of a template in a shell script: quotes determine how a variable must be written, and whether the shell expands it at
//! all.
//!
//! This follows the quoting rules of the POSIX shell language as far as quoting goes: quotes, escapes, comments,
//! substitutions, arithmetic and here-documents. It does not parse commands.

use crate::template::{self, Template, TemplateMatch};

/// Quoting around a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// Nothing: the value must be quoted.
    Plain,
    /// Double quotes, a here-document or backticks within quotes: a variable expands and does not split.
    Quoted,
    /// Single quotes or a here-document with a quoted end: nothing expands.
    Literal,
    /// `$(( ))`: a shell may evaluate the value as an expression.
    Arithmetic,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateSite {
    pub(crate) found: TemplateMatch,
    pub(crate) context: Context,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Double,
    /// `$( … )`, or a `( … )` within it.
    Command,
    /// `${ … }`; the flag says whether double quotes surround it.
    Parameter(bool),
    Arithmetic,
    Backtick,
}

struct HereDoc {
    end: String,
    literal: bool,
    tabs: bool,
}

/// Every template of a script, with what surrounds it. `$(date)` is the shell's and not among them.
pub(crate) fn templates(script: &str) -> Vec<TemplateSite> {
    Scanner { script, at: 0, levels: Vec::new(), pending: Vec::new(), places: Vec::new() }.run()
}

struct Scanner<'a> {
    script: &'a str,
    at: usize,
    levels: Vec<Level>,
    pending: Vec<HereDoc>,
    places: Vec<TemplateSite>,
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        &self.script[self.at..]
    }

    fn quoted(&self) -> bool {
        matches!(self.levels.last(), Some(Level::Double | Level::Parameter(true)))
    }

    fn context(&self) -> Context {
        if self.levels.contains(&Level::Arithmetic) {
            Context::Arithmetic
        } else if self.quoted() || self.levels.contains(&Level::Backtick) {
            Context::Quoted
        } else {
            Context::Plain
        }
    }

    /// Takes the template that begins here, if one does.
    fn take_template(&mut self, context: Context) -> bool {
        let Some(TemplateMatch { range, template }) = template::at_start(self.rest()) else { return false };
        if template == Ok(Template::Date) {
            self.at += range.end;
            return true;
        }
        let range = self.at..self.at + range.end;
        self.at = range.end;
        self.places.push(TemplateSite { found: TemplateMatch { range, template }, context });
        true
    }

    fn run(mut self) -> Vec<TemplateSite> {
        let mut word_start = true;
        while let Some(c) = self.rest().chars().next() {
            let was_word_start = std::mem::replace(&mut word_start, false);
            let rest = &self.script[self.at..];
            if rest.starts_with("$(") && self.take_template(self.context()) {
                continue;
            }
            let quoted = self.quoted();
            match c {
                '\\' => {
                    let next = rest[1..].chars().next().map_or(0, char::len_utf8);
                    self.at += 1 + next;
                    continue;
                }
                '\'' if !quoted => {
                    self.single_quotes();
                    continue;
                }
                '"' => match self.levels.last() {
                    Some(Level::Double) => drop(self.levels.pop()),
                    _ => self.levels.push(Level::Double),
                },
                '`' => match self.levels.iter().rposition(|l| *l == Level::Backtick) {
                    Some(open) => self.levels.truncate(open),
                    None => self.levels.push(Level::Backtick),
                },
                '$' if rest.starts_with("$((") => {
                    self.levels.push(Level::Arithmetic);
                    self.at += 2;
                }
                '$' if rest.starts_with("$(") => {
                    self.levels.push(Level::Command);
                    self.at += 1;
                    word_start = true;
                }
                '$' if rest.starts_with("${") => {
                    self.levels.push(Level::Parameter(quoted));
                    self.at += 1;
                }
                '}' => {
                    if matches!(self.levels.last(), Some(Level::Parameter(_))) {
                        self.levels.pop();
                    }
                }
                ')' if rest.starts_with("))") && self.levels.last() == Some(&Level::Arithmetic) => {
                    self.levels.pop();
                    self.at += 1;
                }
                ')' if self.levels.last() == Some(&Level::Command) => drop(self.levels.pop()),
                '(' if !quoted
                    && self.levels.contains(&Level::Command)
                    && !self.levels.contains(&Level::Arithmetic) =>
                {
                    self.levels.push(Level::Command);
                    word_start = true;
                }
                '#' if was_word_start && !quoted => {
                    self.at += rest.find('\n').unwrap_or(rest.len());
                    continue;
                }
                '<' if !quoted && rest.starts_with("<<") && !rest.starts_with("<<<") => {
                    self.here_document_start();
                    continue;
                }
                '<' if rest.starts_with("<<<") => self.at += 2,
                '\n' if !quoted && !self.pending.is_empty() => {
                    self.at += 1;
                    self.here_documents();
                    word_start = true;
                    continue;
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' => word_start = !quoted,
                _ => {}
            }
            self.at += c.len_utf8();
        }
        self.places
    }

    fn single_quotes(&mut self) {
        self.at += 1;
        while let Some(c) = self.rest().chars().next() {
            if c == '\'' {
                self.at += 1;
                return;
            }
            if !(self.rest().starts_with("$(") && self.take_template(Context::Literal)) {
                self.at += c.len_utf8();
            }
        }
    }

    fn here_document_start(&mut self) {
        self.at += 2;
        let tabs = self.rest().starts_with('-');
        self.at += usize::from(tabs);
        let skip = self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
        self.at += skip;
        let (mut end, mut literal, mut quote) = (String::new(), false, None);
        while let Some(c) = self.rest().chars().next() {
            match (quote, c) {
                (Some(open), _) if c == open => quote = None,
                (None, '\'' | '"') => (quote, literal) = (Some(c), true),
                (None, '\\') => literal = true,
                (None, c) if c.is_whitespace() || ";&|<>()".contains(c) => break,
                _ => end.push(c),
            }
            self.at += c.len_utf8();
        }
        if !end.is_empty() {
            self.pending.push(HereDoc { end, literal, tabs });
        }
    }

    fn here_documents(&mut self) {
        for doc in std::mem::take(&mut self.pending) {
            loop {
                let line = self.rest().split('\n').next().unwrap_or_default();
                let (length, bare) =
                    (line.len(), if doc.tabs { line.trim_start_matches('\t') } else { line });
                let stop = bare == doc.end;
                let line_end = self.at + length;
                while !stop && self.at < line_end {
                    let context = if doc.literal { Context::Literal } else { Context::Quoted };
                    if !(self.rest().starts_with("$(") && self.take_template(context)) {
                        self.at += self.rest().chars().next().map_or(1, char::len_utf8);
                    }
                }
                self.at = (line_end + 1).max(self.at).min(self.script.len());
                if stop || self.at >= self.script.len() {
                    break;
                }
            }
        }
    }
}
