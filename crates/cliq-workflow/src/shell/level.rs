//! Nested constructs around a place in a script.

use super::{Context, TemplateSite};

/// A construct that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// `" … "`.
    Double,
    /// `$( … )`.
    Command,
    /// `( … )`.
    Paren,
    /// `${ … }`.
    Parameter {
        /// Whether double quotes or a here-document surround it.
        quoted: bool,
        /// Whether a value in it is a plain word, as in `${x:-…}`.
        is_word: bool,
    },
    /// `$(( … ))`, with the number of open brackets.
    Arithmetic(u32),
    /// `$[ … ]` or `name[ … ]`, with the number of open brackets.
    Bracket(u32),
    /// Backticks, with the number of templates before them, and whether quoting in them is unclear.
    Backtick(usize, bool),
    /// `[[ … ]]`, with the number of templates before it, and whether it compares numbers.
    Test(usize, bool),
    /// The body of a here-document whose end is not quoted.
    Here,
}

/// Open constructs, innermost last, with counts of those that decide about templates.
#[derive(Debug, Default)]
pub(super) struct Levels {
    all: Vec<Level>,
    numbers: usize,
    patterns: usize,
    quotes: usize,
    commands: usize,
    backticks: usize,
}

impl Levels {
    pub(super) fn last(&self) -> Option<Level> {
        self.all.last().copied()
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut Level> {
        self.all.last_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether a `$( … )` is open.
    pub(super) fn is_in_command(&self) -> bool {
        self.commands > 0
    }

    /// Whether double quotes, a here-document or `${ … }` is open, at any depth.
    pub(super) fn is_in_quotes(&self) -> bool {
        self.quotes > 0
    }

    pub(super) fn is_in_backticks(&self) -> bool {
        self.backticks > 0
    }

    /// Whether quotes and blanks have no meaning here.
    pub(super) fn is_quoted(&self) -> bool {
        matches!(self.last(), Some(Level::Double | Level::Here | Level::Parameter { quoted: true, .. }))
    }

    /// Whether words and redirections are read here, as opposed to text and arithmetic.
    pub(super) fn has_words(&self) -> bool {
        matches!(
            self.last(),
            None | Some(Level::Command | Level::Paren | Level::Backtick(..) | Level::Test(..))
        )
    }

    fn counters(&mut self, level: Level) -> [Option<&mut usize>; 2] {
        match level {
            Level::Double | Level::Here => [Some(&mut self.quotes), None],
            Level::Command => [Some(&mut self.commands), None],
            Level::Parameter { is_word: true, .. } => [Some(&mut self.quotes), None],
            Level::Parameter { is_word: false, .. } => [Some(&mut self.quotes), Some(&mut self.patterns)],
            Level::Arithmetic(_) | Level::Bracket(_) => [Some(&mut self.numbers), None],
            Level::Backtick(..) => [Some(&mut self.backticks), None],
            Level::Paren | Level::Test(..) => [None, None],
        }
    }

    pub(super) fn push(&mut self, level: Level) {
        for counter in self.counters(level).into_iter().flatten() {
            *counter += 1;
        }
        self.all.push(level);
    }

    /// Adds to the number of open brackets of the innermost construct.
    pub(super) fn nest(&mut self, more: i32) {
        if let Some(Level::Arithmetic(open) | Level::Bracket(open)) = self.last_mut() {
            *open = open.saturating_add_signed(more);
        }
    }

    /// Closes the innermost construct. What is now known about its templates is entered into them.
    pub(super) fn pop(&mut self, sites: &mut [TemplateSite]) {
        let Some(level) = self.all.pop() else { return };
        for counter in self.counters(level).into_iter().flatten() {
            *counter = counter.saturating_sub(1);
        }
        let (first, context) = match level {
            Level::Backtick(first, true) => (first, Context::Backticks),
            Level::Test(first, true) => (first, Context::Arithmetic),
            Level::Backtick(_, false)
            | Level::Test(_, false)
            | Level::Double
            | Level::Command
            | Level::Paren
            | Level::Parameter { .. }
            | Level::Arithmetic(_)
            | Level::Bracket(_)
            | Level::Here => return,
        };
        for site in sites.iter_mut().skip(first).filter(|site| site.context.is_safe()) {
            site.context = context;
        }
    }

    /// Returns the context of a template here, as far as it is known before the constructs are closed.
    pub(super) fn context(&self) -> Context {
        if self.numbers > 0 {
            Context::Arithmetic
        } else if self.patterns > 0 {
            Context::Parameter
        } else if self.is_quoted() {
            Context::Quoted
        } else {
            Context::Plain
        }
    }
}
