//! Writing markers, and the formats that prompts quote.

use crate::body::Body;
use crate::fields::Shape;
use crate::kind::{MarkerKind, Subject};
use crate::scan::Marker;

const PROMPT: (&str, &str) = ("---DELEGATION PROMPT START---", "---DELEGATION PROMPT END---");

impl MarkerKind {
    /// Returns the text that an agent has to write, with words in brackets for the values.
    #[must_use]
    pub fn format(self) -> String {
        let subject = match self.subject() {
            Subject::None => String::new(),
            Subject::Named(what) => format!("[{what}]"),
        };
        let mut writer = Writer::new(self, &subject);
        for field in self.fields() {
            writer = match field.shape {
                Shape::Line(what) => writer.line(field.key, what),
                Shape::Text(what) => writer.text(field.key, what),
                Shape::Items(each) => writer.items(field.key, [each]),
                Shape::Choice(words) => writer.line(field.key, &format!("[{}]", words.join(" | "))),
                Shape::Prompt(what) => writer.delegation_prompt(what),
            };
        }
        writer.finish().to_string()
    }
}

/// Writes a marker, field by field.
///
/// Values cannot end the marker's body or form another marker: lines are indented where needed.
///
/// ```
/// use cliq_markers::{MarkerKind, Writer};
/// let marker = Writer::new(MarkerKind::ReadyForReview, "task-1").items("Files Modified", ["a.rs: new"]).finish();
/// assert_eq!(marker.to_string(), "READY_FOR_REVIEW: task-1\n\nFiles Modified:\n- a.rs: new\n");
/// ```
#[derive(Debug, Clone)]
pub struct Writer {
    kind: MarkerKind,
    subject: String,
    lines: Vec<String>,
}

impl Writer {
    /// A marker about `subject`, which markers that stand alone do not show.
    #[must_use]
    pub fn new(kind: MarkerKind, subject: &str) -> Self {
        let subject = subject.split_whitespace().collect::<Vec<_>>().join(" ");
        let subject = if kind.subject() == Subject::None { String::new() } else { subject };
        Self { kind, subject, lines: vec![String::new()] }
    }

    /// A key with its value on the same line. A value of several lines goes below the key.
    #[must_use]
    pub fn line(mut self, key: &str, value: &str) -> Self {
        if value.contains('\n') {
            return self.text(key, value);
        }
        self.lines.push(format!("{key}: {}", value.trim()));
        self
    }

    /// A key with lines below it.
    #[must_use]
    pub fn text(mut self, key: &str, text: &str) -> Self {
        self.gap();
        self.lines.push(format!("{key}:"));
        self.lines.extend(text.lines().map(harmless));
        self
    }

    /// A key with items below it.
    #[must_use]
    pub fn items<T: AsRef<str>>(mut self, key: &str, items: impl IntoIterator<Item = T>) -> Self {
        self.gap();
        self.lines.push(format!("{key}:"));
        for item in items {
            let mut lines = item.as_ref().lines().map(str::trim).filter(|line| !line.is_empty());
            self.lines.extend(lines.next().map(|line| format!("- {line}")));
            self.lines.extend(lines.map(|line| harmless(&format!("  {line}"))));
        }
        self.lines.push(String::new());
        self
    }

    /// Sets the prompt for an expert.
    #[must_use]
    pub fn delegation_prompt(mut self, prompt: &str) -> Self {
        self.gap();
        let (start, end) = PROMPT;
        self.lines.push(start.to_owned());
        let own = |line: &&str| line.trim_end() != end && line.trim_end() != start;
        self.lines.extend(prompt.lines().filter(own).map(str::to_owned));
        self.lines.push(end.to_owned());
        self
    }

    /// The marker. Its text is what [`std::fmt::Display`] gives.
    #[must_use]
    pub fn finish(self) -> Marker<'static> {
        // One blank line after the marker's own, none doubled.
        let mut lines = self.lines;
        lines.dedup_by(|a, b| a.is_empty() && b.is_empty());
        Marker::new(self.kind, self.subject, Body::new(lines.join("\n")))
    }

    fn gap(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(String::new());
        }
    }
}

/// A line that begins no marker, key, item, fence or prompt.
fn harmless(line: &str) -> String {
    let line = line.trim_end();
    let found = crate::scan(line);
    let speaks = !found.markers.is_empty() || !found.malformed.is_empty();
    let bare = line.trim_start();
    if speaks || bare.starts_with("```") || bare.starts_with("~~~") || line.starts_with("---DELEGATION") {
        format!("    {line}")
    } else {
        line.to_owned()
    }
}
