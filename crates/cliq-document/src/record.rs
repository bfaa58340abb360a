//! Reads a YAML mapping against its table of fields: unknown keys, missing fields and wrong types are reported, all
//! of them; what is right is handed on with its place.

use std::time::Duration;

use crate::diagnostic::{Diagnostic, Span, did_you_mean};
use crate::field::{Field, Type};
use crate::yaml::{Entry, Kind, Node};
use cliq_protocol::parse_duration;

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Located<T> {
    /// Value.
    pub value: T,
    /// Position.
    pub span: Span,
}

/// A checked mapping.
#[derive(Debug)]
pub struct Record<'a> {
    /// Position of the first key.
    pub span: Span,
    entries: Vec<(&'static str, &'a Entry, bool)>,
}

impl<'a> Record<'a> {
    /// Reads `node` as a mapping with `fields`. `what` names it in messages: "a phase".
    pub fn read(
        node: &'a Node,
        fields: &'static [Field],
        what: &str,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let Kind::Map(map) = &node.kind else {
            let known = fields.iter().map(|f| f.name).take(4).collect::<Vec<_>>().join(", ");
            let message = format!("{what} is a mapping, here is {}", node.describe());
            problems.push(Diagnostic::error(
                "wrong-type",
                node.span,
                message,
                format!("write `key: value` lines: {known}, …"),
            ));
            return None;
        };
        let mut record = Self { span: map.first().map_or(node.span, |e| e.span), entries: Vec::new() };
        for entry in map {
            match fields.iter().find(|field| field.name == entry.key) {
                Some(field) => {
                    let valid = check(&entry.value, field.ty, field.name, problems);
                    record.entries.push((field.name, entry, valid));
                }
                None => {
                    let known: Vec<&str> = fields.iter().map(|f| f.name).collect();
                    let message = format!("{what} has no field `{}`", entry.key);
                    problems.push(Diagnostic::error(
                        "unknown-key",
                        entry.span,
                        message,
                        did_you_mean(&entry.key, &known),
                    ));
                }
            }
        }
        for field in fields.iter().filter(|field| field.required && !record.has(field.name)) {
            let message = format!("{what} needs `{}`", field.name);
            problems.push(Diagnostic::error(
                "missing-field",
                record.span,
                message,
                format!("add `{}:`. {}", field.name, field.doc),
            ));
        }
        Some(record)
    }

    /// Whether the field is there, valid or not.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|(n, ..)| *n == name)
    }

    /// The place of a field's key.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<Span> {
        self.entries.iter().find(|(n, ..)| *n == name).map(|(_, entry, _)| entry.span)
    }

    /// The names of the fields that are there.
    pub fn names(&self) -> impl Iterator<Item = (&'static str, Span)> + '_ {
        self.entries.iter().map(|(name, entry, _)| (*name, entry.span))
    }

    /// The field's value, where it is there and valid.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&'a Node> {
        self.entries.iter().find(|(n, _, valid)| *n == name && *valid).map(|(_, entry, _)| &entry.value)
    }

    /// Returns a text, or `None` if it is missing or has another type.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Located<String>> {
        let node = self.node(name)?;
        Some(Located { value: node.scalar()?, span: node.span })
    }

    /// Returns a list of texts. A single text is a list of one.
    #[must_use]
    pub fn texts(&self, name: &str) -> Vec<Located<String>> {
        match self.node(name).map(|node| (&node.kind, node)) {
            Some((Kind::List(items), _)) => {
                items.iter().filter_map(|i| Some(Located { value: i.scalar()?, span: i.span })).collect()
            }
            Some((_, node)) => {
                node.scalar().map(|value| Located { value, span: node.span }).into_iter().collect()
            }
            None => Vec::new(),
        }
    }

    /// Returns the entries of a mapping. Empty if it is missing or has another type.
    #[must_use]
    pub fn map(&self, name: &str) -> &'a [Entry] {
        match self.node(name).map(|node| &node.kind) {
            Some(Kind::Map(entries)) => entries,
            _ => &[],
        }
    }

    /// Returns the items of a list. Empty if it is missing or has another type.
    #[must_use]
    pub fn list(&self, name: &str) -> &'a [Node] {
        match self.node(name).map(|node| &node.kind) {
            Some(Kind::List(items)) => items,
            _ => &[],
        }
    }

    /// Returns a boolean, or `None` if it is missing or has another type.
    #[must_use]
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.node(name)?.kind {
            Kind::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// Returns a whole number, or `None` if it is missing or has another type.
    #[must_use]
    pub fn integer(&self, name: &str) -> Option<i64> {
        self.node(name)?.scalar()?.parse().ok()
    }

    /// Returns a number, or `None` if it is missing or has another type.
    #[must_use]
    pub fn amount(&self, name: &str) -> Option<f64> {
        self.node(name)?.scalar()?.parse().ok()
    }

    /// Returns a duration, or `None` if it is missing or has another type.
    #[must_use]
    pub fn duration(&self, name: &str) -> Option<Duration> {
        parse_duration(&self.node(name)?.scalar()?).ok()
    }
}

/// Whether a value has its type; says so where not. Objects are checked where they are read as records.
fn check(node: &Node, ty: Type, name: &str, problems: &mut Vec<Diagnostic>) -> bool {
    let expected = match ty {
        Type::Any => return true,
        Type::Text if node.scalar().is_some() => return true,
        Type::Text => "a text",
        Type::Bool if matches!(node.kind, Kind::Bool(_)) => return true,
        Type::Bool => "`true` or `false`",
        Type::Amount => {
            let amount = node.scalar().and_then(|text| text.parse::<f64>().ok());
            return match (&node.kind, amount) {
                (Kind::Number(_), Some(n)) if n.is_finite() && n > 0.0 => true,
                (Kind::Number(_), _) => {
                    let found = node.scalar().unwrap_or_default();
                    let message = format!("`{name}` is a number above 0, here is {found}");
                    let help = "write a number such as 2.50";
                    problems.push(Diagnostic::error("out-of-range", node.span, message, help));
                    false
                }
                _ => wrong(node, name, "a number", problems),
            };
        }
        Type::Number(least, most) => {
            let number = node.scalar().and_then(|text| text.parse::<f64>().ok());
            return match (&node.kind, number) {
                (Kind::Number(_), Some(n)) if (f64::from(least)..=f64::from(most)).contains(&n) => true,
                (Kind::Number(_), _) => {
                    let found = node.scalar().unwrap_or_default();
                    let message = format!("`{name}` is a number from {least} to {most}, here is {found}");
                    let help = format!("write a number from {least} to {most}");
                    problems.push(Diagnostic::error("out-of-range", node.span, message, help));
                    false
                }
                _ => wrong(node, name, "a number", problems),
            };
        }
        Type::Integer(least, most) => {
            return match (&node.kind, node.scalar().and_then(|s| s.parse::<i64>().ok())) {
                (Kind::Number(_), Some(n)) if (least..=most).contains(&n) => true,
                (Kind::Number(_), _) => {
                    let found = node.scalar().unwrap_or_default();
                    let range = match most {
                        i64::MAX => format!("at least {least}"),
                        _ => format!("from {least} to {most}"),
                    };
                    let message = format!("`{name}` is a whole number {range}, here is {found}");
                    let help = format!("write a number {range}");
                    problems.push(Diagnostic::error("out-of-range", node.span, message, help));
                    false
                }
                _ => wrong(node, name, "a whole number", problems),
            };
        }
        Type::Duration => {
            let Some(text) = node.scalar() else { return wrong(node, name, "a duration", problems) };
            return match parse_duration(&text) {
                Ok(_) => true,
                Err(why) => {
                    let message = format!("`{name}` is a duration, and {text:?} is none: {why}");
                    problems.push(Diagnostic::error(
                        "invalid-duration",
                        node.span,
                        message,
                        "write `90s`, `45m`, `8h` or `2d`",
                    ));
                    false
                }
            };
        }
        Type::Word(words) => {
            let Some(text) = node.scalar() else { return wrong(node, name, "a word", problems) };
            if words.contains(&text.as_str()) {
                return true;
            }
            let message = format!("`{name}` cannot be {text:?}");
            problems.push(Diagnostic::error("invalid-value", node.span, message, did_you_mean(&text, words)));
            return false;
        }
        Type::TextOrTexts if node.scalar().is_some() => return true,
        Type::Texts | Type::TextOrTexts => match &node.kind {
            Kind::List(items) => {
                let mut good = true;
                for item in items.iter().filter(|item| item.scalar().is_none()) {
                    good = wrong(item, name, "a list of texts", problems);
                }
                return good;
            }
            _ if node.scalar().is_some() => {
                let message = format!("`{name}` is a list, here is {}", node.describe());
                let help = format!("write `{name}: [{}]`", node.scalar().unwrap_or_default());
                problems.push(Diagnostic::error("wrong-type", node.span, message, help));
                return false;
            }
            _ => "a list of texts",
        },
        Type::TextMap => match &node.kind {
            Kind::Map(entries) => {
                let mut good = true;
                for entry in entries.iter().filter(|entry| entry.value.scalar().is_none()) {
                    good = wrong(&entry.value, &format!("{name}.{}", entry.key), "a text", problems);
                }
                return good;
            }
            _ => "a mapping of texts to texts",
        },
        Type::TextMapOrObjects(_) if matches!(node.kind, Kind::List(_)) => return true,
        Type::TextMapOrObjects(_) => return check(node, Type::TextMap, name, problems),
        Type::TextOrObject(_) | Type::WordOrObject(..) if matches!(node.kind, Kind::Map(_)) => return true,
        Type::TextOrObject(_) if node.scalar().is_some() => return true,
        Type::TextOrObject(_) => "a text or a mapping",
        Type::WordOrTexts(_) if matches!(node.kind, Kind::List(_)) => {
            return check(node, Type::Texts, name, problems);
        }
        Type::WordOrTexts(words) => return check(node, Type::Word(words), name, problems),
        // A YAML parser may take `off` for a boolean.
        Type::WordOrObject(words, _) if words.contains(&"off") && matches!(node.kind, Kind::Bool(false)) => {
            return true;
        }
        Type::WordOrObject(words, _) => return check(node, Type::Word(words), name, problems),
        Type::Object(_) | Type::ObjectMap(_) | Type::ObjectsMap(_) if matches!(node.kind, Kind::Map(_)) => {
            return true;
        }
        Type::Object(_) | Type::ObjectMap(_) | Type::ObjectsMap(_) => "a mapping",
        Type::Objects(_) if matches!(node.kind, Kind::List(_)) => return true,
        Type::Objects(_) => "a list",
    };
    wrong(node, name, expected, problems)
}

fn wrong(node: &Node, name: &str, expected: &str, problems: &mut Vec<Diagnostic>) -> bool {
    let message = format!("`{name}` is {expected}, here is {}", node.describe());
    let help = match (expected, &node.kind) {
        (_, Kind::Null) => format!("give `{name}` a value or remove the line"),
        ("a list", _) => format!("write one `- ` line per entry under `{name}:`"),
        _ => format!("write {expected}"),
    };
    problems.push(Diagnostic::error("wrong-type", node.span, message, help));
    false
}
