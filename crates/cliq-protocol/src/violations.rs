//! Bounded lists of violations in texts from outside.

use std::fmt;

/// Violations of one document: the first [`Violations::MAX`] of them, and the number of the others.
///
/// A document from outside may have millions of faults. Memory and the size of the message stay bounded: each text is cut at
/// [`Violations::MAX_TEXT`] bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations<T> {
    shown: Vec<T>,
    omitted: usize,
}

impl<T> Default for Violations<T> {
    fn default() -> Self {
        Self { shown: Vec::new(), omitted: 0 }
    }
}

impl<T> Violations<T> {
    /// Maximum number of violations that are kept.
    pub const MAX: usize = 20;
    /// Maximum size of the text of one violation in bytes, by [`shorten`].
    pub const MAX_TEXT: usize = 300;

    /// Makes an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a violation. `make` runs only if there is room for its result.
    pub fn add_with(&mut self, make: impl FnOnce() -> T) {
        if self.shown.len() < Self::MAX {
            self.shown.push(make());
        } else {
            self.omitted = self.omitted.saturating_add(1);
        }
    }

    /// Adds a violation.
    pub fn add(&mut self, violation: T) {
        self.add_with(|| violation);
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Returns the violations that are kept, in the order in which they were found.
    #[must_use]
    pub fn shown(&self) -> &[T] {
        &self.shown
    }

    /// Returns the number of violations that were left out.
    #[must_use]
    pub fn omitted(&self) -> usize {
        self.omitted
    }

    /// Returns the kept violations and the number of those that were left out.
    #[must_use]
    pub fn into_parts(self) -> (Vec<T>, usize) {
        (self.shown, self.omitted)
    }

    /// Returns "and N more" if violations were left out.
    #[must_use]
    pub fn rest(&self) -> Option<String> {
        (self.omitted > 0).then(|| format!("and {} more", self.omitted))
    }
}

impl<T: fmt::Display> Violations<T> {
    /// Returns all kept violations as one text, separated by `separator`, with the number of the others at the end.
    #[must_use]
    pub fn join(&self, separator: &str) -> String {
        let shown = self.shown.iter().map(ToString::to_string);
        shown.chain(self.rest()).collect::<Vec<_>>().join(separator)
    }
}

/// Cuts a text from outside for a message: at most `max` bytes, at a character boundary, with `…` as the end of a text that was cut.
#[must_use]
pub fn shorten(text: &str, max: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= max {
        return text.into();
    }
    let end = text.floor_char_boundary(max.saturating_sub('…'.len_utf8()));
    format!("{}…", &text[..end]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_kept_and_the_others_counted() {
        let mut violations = Violations::new();
        for number in 0..1_000_000 {
            violations.add_with(|| format!("fault {number}"));
        }
        assert_eq!((violations.shown().len(), violations.omitted()), (20, 999_980));
        let text = violations.join("; ");
        assert!(
            text.starts_with("fault 0; fault 1; ") && text.ends_with("fault 19; and 999980 more"),
            "{text}"
        );
    }

    #[test]
    fn texts_are_cut_at_characters() {
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!(shorten("abcdef", 5), "ab…");
        assert_eq!(shorten("äöüäöü", 8), "äö…");
        assert_eq!(shorten("äö", 1), "…");
    }
}
