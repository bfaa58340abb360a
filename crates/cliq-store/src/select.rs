//! A SELECT that is composed of conditions.

use std::fmt::Write;

use crate::statement::Argument;

/// A statement whose text consists of fixed fragments: values are arguments.
pub(crate) struct Select<'a> {
    text: String,
    arguments: Vec<Argument<'a>>,
    has_conditions: bool,
}

impl<'a> Select<'a> {
    /// A statement without conditions.
    pub(crate) fn new(from: &'static str) -> Self {
        Self { text: from.to_owned(), arguments: Vec::new(), has_conditions: false }
    }

    /// Adds a condition, in which `?` stands for the arguments in order.
    pub(crate) fn filter(
        &mut self,
        condition: &'static str,
        arguments: impl IntoIterator<Item = impl Into<Argument<'a>>>,
    ) {
        self.text.push_str(if self.has_conditions { " AND " } else { " WHERE " });
        self.has_conditions = true;
        self.add(condition, arguments);
    }

    /// Adds a condition that a column has one of several values.
    pub(crate) fn filter_in(
        &mut self,
        column: &'static str,
        values: impl IntoIterator<Item = impl Into<Argument<'a>>>,
    ) {
        self.text.push_str(if self.has_conditions { " AND " } else { " WHERE " });
        self.has_conditions = true;
        self.text.push_str(column);
        self.text.push_str(" IN (");
        for (n, value) in values.into_iter().enumerate() {
            self.text.push_str(if n == 0 { "" } else { ", " });
            self.add("?", [value]);
        }
        self.text.push(')');
    }

    /// Adds a fragment, such as an order and a limit.
    pub(crate) fn add(
        &mut self,
        fragment: &'static str,
        arguments: impl IntoIterator<Item = impl Into<Argument<'a>>>,
    ) {
        let mut arguments = arguments.into_iter();
        for (n, part) in fragment.split('?').enumerate() {
            if n > 0 {
                self.arguments.extend(arguments.next().map(Into::into));
                let _ = write!(self.text, "${}", self.arguments.len());
            }
            self.text.push_str(part);
        }
    }

    /// Returns the text with `$1`, `$2`, …, and the arguments.
    pub(crate) fn parts(&self) -> (&str, &[Argument<'a>]) {
        (&self.text, &self.arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_numbered_in_order() {
        let mut select = Select::new("SELECT id FROM runs");
        select.filter("team = ?", ["@a/b"]);
        select.filter_in("state", ["queued", "running"]);
        select.filter("id < ?", ["x"]);
        select.add(" ORDER BY id DESC LIMIT ?", [5i64]);
        let (text, arguments) = select.parts();
        assert_eq!(
            text,
            "SELECT id FROM runs WHERE team = $1 AND state IN ($2, $3) AND id < $4 ORDER BY id DESC LIMIT $5"
        );
        assert_eq!(arguments.len(), 5);
    }
}
