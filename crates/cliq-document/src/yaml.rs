//! YAML as a tree in which every key and value knows its place. The only module that knows the YAML library.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_yaml::options::{AliasLimits, DuplicateKeyPolicy};
use serde_yaml::{Location, Spanned};

use crate::diagnostic::{Diagnostic, Span};

/// Maximum size of a document, in bytes.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Maximum depth of nested values.
const MAX_DEPTH: usize = 64;

/// Value with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Position.
    pub span: Span,
    /// Value.
    pub kind: Kind,
}

/// Value without its position.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Number as it was written.
    Number(String),
    /// Text.
    Text(String),
    /// List.
    List(Vec<Node>),
    /// Mapping in the order of the document.
    Map(Vec<Entry>),
}

/// Key and value of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Key.
    pub key: String,
    /// Position of the key.
    pub span: Span,
    /// Value.
    pub value: Node,
}

impl Node {
    /// Returns the kind of the value for a message.
    #[must_use]
    pub fn describe(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "true or false",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }

    /// Returns a scalar as text: `1.20` and `no` stay what they look like. `None` for lists, mappings and nothing.
    #[must_use]
    pub fn scalar(&self) -> Option<String> {
        match &self.kind {
            Kind::Text(text) | Kind::Number(text) => Some(text.clone()),
            Kind::Bool(b) => Some(b.to_string()),
            Kind::Null | Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// Returns the value as JSON, without positions.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(b) => (*b).into(),
            Kind::Number(raw) => serde_json::from_str(raw).unwrap_or_else(|_| raw.as_str().into()),
            Kind::Text(text) => text.as_str().into(),
            Kind::List(items) => items.iter().map(Self::to_json).collect(),
            Kind::Map(entries) => {
                Value::Object(entries.iter().map(|e| (e.key.clone(), e.value.to_json())).collect())
            }
        }
    }
}

/// Parses a document. Duplicate keys are reported, the first of them counts. `what` is the remedy for an empty file.
pub fn parse(text: &str, what: &str, problems: &mut Vec<Diagnostic>) -> Option<Node> {
    let top = Span { line: 1, column: 1, start: 0, end: 0 };
    if text.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; {MAX_BYTES} is the most", text.len());
        problems.push(Diagnostic::error("file-too-large", top, message, "split the file"));
        return None;
    }
    let options = serde_yaml::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        strict_booleans: true,
        with_snippet: false,
        budget: Some(budget()),
        alias_limits: alias_limits(),
    };
    match serde_yaml::from_str_with_options::<Spanned<Raw>>(text, options) {
        Ok(raw) => {
            let node = convert(text, raw.into(), problems);
            if node.kind == Kind::Null {
                problems.push(Diagnostic::error("file-empty", top, "the file is empty", what));
                return None;
            }
            Some(node)
        }
        Err(error) => {
            let span = error.location().map_or(top, |location| span_of(text, location));
            let full = error.without_snippet().to_string();
            let message = full.split(" at line ").next().unwrap_or(&full).to_owned();
            let span = if message.contains("quote") { opening_quote(text, span) } else { span };
            // The exact limit of the library does not matter, and aliases wrap theirs in another error.
            let limit = matches!(error.without_snippet(), serde_yaml::Error::Budget { .. })
                || message.contains("limit exceeded");
            problems.push(if limit {
                let help =
                    "write the values out instead of repeating them through anchors, and nest less deeply";
                Diagnostic::error(
                    "yaml-limit",
                    span,
                    format!("the document grows too large: {message}"),
                    help,
                )
            } else {
                let help = "look at the indentation, quotes and brackets at and before this place";
                Diagnostic::error("yaml-syntax", span, format!("not YAML: {message}"), help)
            });
            None
        }
    }
}

/// Returns the opening quote of an error at `span`: the scanner notices an unclosed quote only when the text after it no longer
/// fits, often lines later.
fn opening_quote(text: &str, span: Span) -> Span {
    let mut start = text.len();
    for (n, line) in text.lines().enumerate().take(span.line).collect::<Vec<_>>().into_iter().rev() {
        start = start.min(line.as_ptr() as usize - text.as_ptr() as usize);
        for quote in ['"', '\''] {
            let opens = |at: &usize| line[..*at].chars().next_back().is_none_or(|c| " \t[{,".contains(c));
            let odd = line.matches(quote).count() % 2 == 1;
            if let Some(at) = line.match_indices(quote).map(|(at, _)| at).rfind(opens).filter(|_| odd) {
                let column = line[..at].chars().count() + 1;
                return Span { line: n + 1, column, start: start + at, end: start + at + 1 };
            }
        }
    }
    span
}

fn budget() -> serde_yaml::Budget {
    let mut budget = serde_yaml::Budget::default();
    budget.max_depth = MAX_DEPTH;
    budget.max_nodes = 4_000_000;
    budget.max_events = 8_000_000;
    budget.max_aliases = 256;
    budget.max_anchors = 256;
    budget.max_documents = 1;
    budget
}

fn alias_limits() -> AliasLimits {
    let mut limits = AliasLimits::default();
    limits.max_total_replayed_events = 100_000;
    limits
}

fn span_of(text: &str, location: serde_yaml::Location) -> Span {
    let (line, column) = (location.line() as usize, location.column() as usize);
    let span = location.span();
    let (start, end) = match (span.byte_offset(), span.byte_len()) {
        (Some(start), Some(len)) => (start as usize, (start + len) as usize),
        // Scanner errors count characters only.
        _ => {
            let at = text.char_indices().nth(span.offset() as usize).map_or(text.len(), |(at, _)| at);
            (at, at)
        }
    };
    let end = end.min(text.len());
    Span { line: line.max(1), column: column.max(1), start: start.min(end), end }
}

/// Value of the library: plain scalars are resolved, and the position in the text shows how they were written.
enum Raw {
    Null,
    Bool(bool),
    /// Place of the text if it is another one: of the anchor that an alias names.
    Number(Option<Box<Location>>),
    Text(String),
    List(Vec<Placed<Raw>>),
    Map(Vec<(Placed<String>, Placed<Raw>)>),
}

/// Value with one position. The library has two for each, and a large document has a hundred thousand values.
struct Placed<T> {
    value: T,
    at: Location,
}

impl From<Spanned<String>> for Placed<String> {
    fn from(key: Spanned<String>) -> Self {
        Self { value: key.value, at: key.referenced }
    }
}

impl From<Spanned<Raw>> for Placed<Raw> {
    fn from(raw: Spanned<Raw>) -> Self {
        let value = match raw.value {
            Raw::Number(_) if raw.defined != raw.referenced => Raw::Number(Some(Box::new(raw.defined))),
            value => value,
        };
        Self { value, at: raw.referenced }
    }
}

fn convert(text: &str, raw: Placed<Raw>, problems: &mut Vec<Diagnostic>) -> Node {
    let span = span_of(text, raw.at);
    let kind = match raw.value {
        Raw::Null => Kind::Null,
        Raw::Bool(b) => Kind::Bool(b),
        Raw::Text(value) => Kind::Text(value),
        Raw::Number(place) => {
            let at = place.map_or(span, |place| span_of(text, *place));
            Kind::Number(text.get(at.start..at.end).unwrap_or_default().trim().to_owned())
        }
        Raw::List(items) => Kind::List(items.into_iter().map(|item| convert(text, item, problems)).collect()),
        Raw::Map(pairs) => {
            let mut entries: Vec<Entry> = Vec::with_capacity(pairs.len());
            let mut seen = std::collections::HashMap::new();
            for (key, value) in pairs {
                let span = span_of(text, key.at);
                if let Some(first) = seen.insert(key.value.clone(), span.line) {
                    let message = format!("`{}` stands here twice: first in line {first}", key.value);
                    problems.push(Diagnostic::error("duplicate-key", span, message, "remove one of the two"));
                    seen.insert(key.value, first);
                } else {
                    entries.push(Entry { key: key.value, span, value: convert(text, value, problems) });
                }
            }
            Kind::Map(entries)
        }
    };
    Node { span, kind }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;
        impl<'de> Visitor<'de> for AnyValue {
            type Value = Raw;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
                Ok(Raw::Bool(value))
            }
            fn visit_i64<E>(self, _: i64) -> Result<Raw, E> {
                Ok(Raw::Number(None))
            }
            fn visit_u64<E>(self, _: u64) -> Result<Raw, E> {
                Ok(Raw::Number(None))
            }
            fn visit_i128<E>(self, _: i128) -> Result<Raw, E> {
                Ok(Raw::Number(None))
            }
            fn visit_u128<E>(self, _: u128) -> Result<Raw, E> {
                Ok(Raw::Number(None))
            }
            fn visit_f64<E>(self, _: f64) -> Result<Raw, E> {
                Ok(Raw::Number(None))
            }
            fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
                Ok(Raw::Text(value.to_owned()))
            }
            fn visit_bytes<E>(self, value: &[u8]) -> Result<Raw, E> {
                Ok(Raw::Text(String::from_utf8_lossy(value).into_owned()))
            }
            fn visit_unit<E>(self) -> Result<Raw, E> {
                Ok(Raw::Null)
            }
            fn visit_none<E>(self) -> Result<Raw, E> {
                Ok(Raw::Null)
            }
            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
                Raw::deserialize(deserializer)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = access.next_element::<Spanned<Raw>>()? {
                    items.push(item.into());
                }
                // Most lists and mappings are short, and a vector has room for four.
                items.shrink_to_fit();
                Ok(Raw::List(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
                let mut pairs = Vec::new();
                while let Some((key, value)) = access.next_entry::<Spanned<String>, Spanned<Raw>>()? {
                    pairs.push((key.into(), value.into()));
                }
                pairs.shrink_to_fit();
                Ok(Raw::Map(pairs))
            }
        }
        deserializer.deserialize_any(AnyValue)
    }
}
