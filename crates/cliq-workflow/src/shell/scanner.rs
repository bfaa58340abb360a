//! The scanner: one pass over the characters of a script.

use super::here::HereDocument;
use super::level::{Level, Levels};
use super::{Context, TemplateSite};
use crate::template::{self, Template, TemplateMatch};

/// Words after which a command begins.
const RESERVED: [&str; 10] = ["if", "then", "else", "elif", "do", "while", "until", "!", "{", "time"];
/// Operators of `[[ ]]` that evaluate their operands.
const NUMERIC: [&str; 7] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v"];

pub(super) struct Scanner<'a> {
    pub(super) script: &'a str,
    pub(super) at: usize,
    /// End of the part that is scanned.
    pub(super) end: usize,
    pub(super) levels: Levels,
    pub(super) pending: Vec<HereDocument>,
    pub(super) sites: Vec<TemplateSite>,
    /// Whether a word begins here.
    word_start: bool,
    /// Whether a command begins here, or with the word that began.
    command_start: bool,
    /// Whether the word so far is a name: `name[` begins an index.
    is_name: bool,
    /// Reason why the quoting cannot be followed.
    unclear: Option<&'static str>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(script: &'a str) -> Self {
        Self {
            script,
            at: 0,
            end: script.len(),
            levels: Levels::default(),
            pending: Vec::new(),
            sites: Vec::new(),
            word_start: true,
            command_start: true,
            is_name: false,
            unclear: None,
        }
    }

    pub(super) fn run(mut self) -> Vec<TemplateSite> {
        self.scan();
        // What is known only at the end of a construct holds also if it is never closed.
        while self.levels.last().is_some() {
            self.levels.pop(&mut self.sites);
        }
        if let Some(reason) = self.unclear {
            // Also those before: an expansion that began before may reach as far as this place.
            for site in self.sites.iter_mut().filter(|site| site.context.is_safe()) {
                site.context = Context::Unclear(reason);
            }
            self.templates_until(self.script.len(), Context::Unclear(reason));
        }
        self.sites
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.script[self.at..self.end.max(self.at)]
    }

    /// Stops the scan: the templates that follow are refused.
    pub(super) fn give_up(&mut self, reason: &'static str) {
        self.unclear.get_or_insert(reason);
    }

    pub(super) fn has_given_up(&self) -> bool {
        self.unclear.is_some()
    }

    /// Takes the template that begins here, if one does. `dollar` is the number of bytes before it that belong to it.
    fn take_template(&mut self, dollar: usize, context: Context) -> bool {
        let Some(TemplateMatch { range, template }) = template::at_start(&self.rest()[dollar..]) else {
            return false;
        };
        let range = self.at..self.at + dollar + range.end;
        if template == Ok(Template::Date) {
            // `$$(date)` is the number of the process and a text.
            self.at = if dollar == 0 { range.end } else { self.at + 2 };
            return true;
        }
        self.at = range.end;
        let found = TemplateMatch { range, template };
        self.sites.push(TemplateSite { found, context, has_dollar: dollar > 0 });
        true
    }

    /// Takes the templates of a part in which nothing else has a meaning.
    pub(super) fn templates_until(&mut self, end: usize, context: Context) {
        while self.at < end {
            let Some(next) = self.script[self.at..end].find("$(") else {
                self.at = end;
                return;
            };
            self.at += next;
            if !self.take_template(0, context) {
                self.at += 2;
            }
        }
    }

    /// Scans up to the end of the part.
    pub(super) fn scan(&mut self) {
        while !self.has_given_up() {
            let Some(c) = self.rest().chars().next() else { return };
            self.step(c);
        }
    }

    fn step(&mut self, c: char) {
        let was_word_start = std::mem::replace(&mut self.word_start, false);
        let was_name = std::mem::replace(&mut self.is_name, false);
        let rest = self.rest();
        if was_word_start && self.levels.has_words() {
            if self.word(rest) {
                return;
            }
            self.is_name = c.is_ascii_alphabetic() || c == '_';
        } else {
            self.is_name = was_name && (c.is_ascii_alphanumeric() || c == '_');
        }
        match c {
            '\\' => self.escape(rest, was_word_start),
            '\'' => self.single_quote(false),
            '"' => self.double_quote(),
            '`' => self.backtick(),
            '$' => self.dollar(rest),
            '(' | ')' | '{' | '}' | '[' | ']' => self.bracket(c, rest, was_name),
            '#' if was_word_start && self.levels.has_words() => self.comment(rest),
            '<' if rest.starts_with("<<<") && self.levels.has_words() => self.at += 3,
            '<' if rest.starts_with("<<") && self.levels.has_words() => self.here_document_start(),
            '\n' => self.end_of_line(),
            ' ' | '\t' | '<' | '>' => {
                self.word_start = !self.levels.is_quoted();
                self.at += 1;
            }
            ';' | '&' | '|' => {
                (self.word_start, self.command_start) = (!self.levels.is_quoted(), !self.levels.is_quoted());
                self.at += 1;
            }
            _ => self.at += c.len_utf8(),
        }
    }

    /// Looks at a word that begins here. Returns whether it was taken.
    fn word(&mut self, rest: &str) -> bool {
        let end = rest.bytes().take(9).position(|b| b.is_ascii_whitespace() || b";&|()<>".contains(&b));
        let word = &rest[..rest.floor_char_boundary(end.unwrap_or_else(|| rest.len().min(9)))];
        if let Some(Level::Test(_, is_numeric)) = self.levels.last_mut() {
            *is_numeric |= NUMERIC.contains(&word);
            if word == "]]" {
                self.levels.pop(&mut self.sites);
                self.at += 2;
                return true;
            }
            return false;
        }
        if !self.command_start || rest.starts_with([' ', '\t', '\n', ';', '&', '|', '(', ')', '<', '>', '#'])
        {
            return false;
        }
        if RESERVED.contains(&word) {
            self.at += word.len();
            return true;
        }
        self.command_start = false;
        match word {
            "case" if self.levels.is_in_command() || self.levels.is_in_backticks() => {
                self.give_up("`case` in a substitution");
                true
            }
            "let" => {
                self.give_up("`let`, which evaluates its arguments");
                true
            }
            "[[" => {
                self.levels.push(Level::Test(self.sites.len(), false));
                self.at += 2;
                true
            }
            _ => false,
        }
    }

    fn escape(&mut self, rest: &str, was_word_start: bool) {
        if let Some(Level::Backtick(_, is_unclear)) = self.levels.last_mut() {
            *is_unclear = true;
        } else if self.levels.is_in_backticks() {
            return self.give_up("an escape within backticks");
        }
        let next = rest[1..].chars().next();
        if next == Some('\n') {
            let before = self.script[..self.at].bytes().next_back();
            let operators: &[u8] = if self.levels.is_quoted() { b"$" } else { b"$<(){}&|`" };
            if before.is_some_and(|b| operators.contains(&b)) {
                return self.give_up("an operator that is broken by an escaped end of line");
            }
            // The shell joins the lines.
            self.word_start = was_word_start;
        }
        self.at += 1 + next.map_or(0, char::len_utf8);
    }

    /// Returns the reason if the meaning of a quote character is not clear here.
    fn unclear_quote(&self) -> Option<&'static str> {
        match self.levels.last()? {
            Level::Parameter { quoted: true, .. } => Some("a quote in a quoted `${ }`"),
            Level::Arithmetic(_) | Level::Bracket(_) => Some("a quote in arithmetic"),
            Level::Command
            | Level::Paren
            | Level::Double
            | Level::Here
            | Level::Parameter { quoted: false, .. }
            | Level::Backtick(..)
            | Level::Test(..) => None,
        }
    }

    fn single_quote(&mut self, is_ansi: bool) {
        if let Some(reason) = self.unclear_quote() {
            return self.give_up(reason);
        }
        if matches!(self.levels.last(), Some(Level::Double | Level::Here)) {
            self.at += 1;
            return;
        }
        self.at += 1;
        let rest = self.rest();
        let length = rest.find('\'').unwrap_or(rest.len());
        let text = &rest[..length];
        if is_ansi && text.contains('\\') {
            return self.give_up("an escape in `$' '`");
        }
        if self.levels.is_in_backticks() && text.contains('`') {
            return self.give_up("a backtick in quotes within backticks");
        }
        let end = self.at + length;
        self.templates_until(end, Context::Literal);
        self.at = (end + 1).min(self.end).max(self.at);
    }

    fn double_quote(&mut self) {
        if let Some(reason) = self.unclear_quote() {
            return self.give_up(reason);
        }
        match self.levels.last() {
            Some(Level::Double) => self.levels.pop(&mut self.sites),
            Some(Level::Here) => {}
            _ => self.levels.push(Level::Double),
        }
        self.at += 1;
    }

    fn backtick(&mut self) {
        self.at += 1;
        if matches!(self.levels.last(), Some(Level::Backtick(..))) {
            self.levels.pop(&mut self.sites);
            self.command_start = false;
            return;
        }
        if self.levels.is_in_backticks() {
            return self.give_up("a backtick in a construct within backticks");
        }
        let is_unclear = self.levels.is_in_quotes();
        self.levels.push(Level::Backtick(self.sites.len(), is_unclear));
        (self.word_start, self.command_start) = (true, true);
    }

    fn dollar(&mut self, rest: &str) {
        let context = self.levels.context();
        if rest.starts_with("$(") && self.take_template(0, context) {
            return;
        }
        let quoted = self.levels.is_quoted();
        let next = rest.as_bytes().get(1).copied();
        match next {
            // A dollar sign before a template stands for itself.
            Some(b'$') if rest[1..].starts_with("$(") && self.take_template(1, context) => {}
            Some(b'(') if rest.starts_with("$((") => {
                self.levels.push(Level::Arithmetic(2));
                self.at += 3;
            }
            Some(b'(') => {
                self.levels.push(Level::Command);
                self.at += 2;
                (self.word_start, self.command_start) = (true, true);
            }
            Some(b'{') => self.parameter(&rest[2..], quoted),
            Some(b'[') => {
                self.levels.push(Level::Bracket(1));
                self.at += 2;
            }
            Some(b'\'') if !quoted => {
                self.at += 1;
                self.single_quote(true);
            }
            Some(b'$' | b'#' | b'?' | b'!' | b'-' | b'@' | b'*' | b'0'..=b'9') => self.at += 2,
            _ => self.at += 1,
        }
    }

    /// Reads the beginning of `${ … }`: name and operator.
    fn parameter(&mut self, inner: &str, quoted: bool) {
        let name = inner.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let special = usize::from(name == 0 && inner.starts_with(['@', '*', '#', '?', '$', '-']));
        let operator = &inner[name + special..];
        let (length, is_word) = if operator.starts_with('}') {
            (0, true)
        } else if name + special == 0 || inner.starts_with("#") {
            // `${#x}` and `${!x}`; values in them are evaluated.
            (0, false)
        } else if [":-", ":+", ":?"].iter().any(|word| operator.starts_with(word)) {
            (2, true)
        } else if operator.starts_with(['-', '+', '?']) {
            (1, true)
        } else if operator.starts_with(":=") {
            (2, quoted)
        } else if operator.starts_with('=') {
            (1, quoted)
        } else {
            (0, false)
        };
        self.levels.push(Level::Parameter { quoted, is_word });
        self.at += 2 + name + special + length;
    }

    fn bracket(&mut self, c: char, rest: &str, was_name: bool) {
        match (c, self.levels.last()) {
            ('(', Some(Level::Arithmetic(_))) | ('[', Some(Level::Bracket(_))) => self.levels.nest(1),
            (')', Some(Level::Arithmetic(open))) | (']', Some(Level::Bracket(open))) => {
                self.levels.nest(-1);
                if open <= 1 {
                    self.levels.pop(&mut self.sites);
                }
            }
            ('}', Some(Level::Parameter { .. })) => self.levels.pop(&mut self.sites),
            ('(' | ')', Some(Level::Test(..))) => self.word_start = true,
            ('(', _) if self.levels.has_words() => {
                if rest.starts_with("((") {
                    return self.double_paren(rest);
                }
                self.levels.push(Level::Paren);
                (self.word_start, self.command_start) = (true, true);
            }
            (')', Some(Level::Command | Level::Paren)) => {
                // A substitution is part of a word, brackets are not.
                let is_paren = self.levels.last() == Some(Level::Paren);
                self.levels.pop(&mut self.sites);
                if self.pending.iter().any(|document| document.is_deeper_than(self.levels.len())) {
                    return self.give_up("a here-document whose body is outside of its substitution");
                }
                (self.word_start, self.command_start) = (is_paren, is_paren);
            }
            (')', _) if self.levels.has_words() => (self.word_start, self.command_start) = (true, true),
            ('[', _) if was_name && self.levels.has_words() => self.levels.push(Level::Bracket(1)),
            _ => {}
        }
        self.at += 1;
    }

    /// Skips `(( … ))`, which bash evaluates and other shells read as brackets.
    fn double_paren(&mut self, rest: &str) {
        let inner = &rest[2..];
        let clear = inner.find("))").filter(|end| {
            let text = &inner[..*end];
            !text.contains(['\'', '"', '`', '\\', '\n', '#', '$', '(', ')']) && !text.contains("<<")
        });
        match clear {
            Some(end) => self.at += 2 + end + 2,
            None => self.give_up("`((`, which shells read in different ways"),
        }
        self.word_start = true;
    }

    fn comment(&mut self, rest: &str) {
        let length = rest.find('\n').unwrap_or(rest.len());
        if self.levels.is_in_backticks() && rest[..length].contains('`') {
            return self.give_up("a comment within backticks");
        }
        self.at += length;
        self.word_start = true;
    }

    fn end_of_line(&mut self) {
        self.at += 1;
        if matches!(self.levels.last(), Some(Level::Bracket(_))) {
            return self.give_up("an index of several lines");
        }
        if self.levels.is_quoted() {
            return;
        }
        if !self.pending.is_empty() && !self.levels.has_words() {
            return self.give_up("a here-document within arithmetic");
        }
        self.here_documents();
        (self.word_start, self.command_start, self.is_name) = (true, true, false);
    }
}
