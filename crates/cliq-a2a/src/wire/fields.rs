//! Reading JSON objects that a stranger sent: the first 20 problems are collected with their paths, the others counted.

use std::cell::RefCell;
use std::rc::Rc;

use cliq_protocol::Violations;
use serde_json::{Map, Value};

use crate::error::{A2aError, Violation};
use crate::version::Version;

/// The longest id that is taken, in bytes.
const MAX_ID: usize = 512;

/// An object with its path. All objects of a request share their list of problems.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    pub(crate) version: Version,
    path: String,
    object: Option<&'a Map<String, Value>>,
    violations: Rc<RefCell<Violations<Violation>>>,
}

impl<'a> Fields<'a> {
    /// The parameters of a request.
    pub(crate) fn new(version: Version, value: &'a Value) -> Self {
        let fields =
            Self { version, path: String::new(), object: value.as_object(), violations: Rc::default() };
        if fields.object.is_none() && !value.is_null() {
            fields.wrong("", "must be an object");
        }
        fields
    }

    /// Gives `value` where nothing was wrong.
    pub(crate) fn finish<T>(&self, value: Option<T>) -> Result<T, A2aError> {
        match value {
            Some(value) if self.violations.borrow().is_empty() => Ok(value),
            _ => Err(A2aError::of_violations(self.violations.take())),
        }
    }

    fn path_of(&self, name: &str) -> String {
        match (self.path.is_empty(), name.is_empty()) {
            (true, _) => name.to_owned(),
            (false, true) => self.path.clone(),
            (false, false) => format!("{}.{name}", self.path),
        }
    }

    /// Notes a problem of a field.
    pub(crate) fn wrong(&self, name: &str, description: impl Into<String>) {
        self.violations.borrow_mut().add_with(|| {
            let field = match self.path_of(name) {
                path if path.is_empty() => "params".to_owned(),
                path => path,
            };
            Violation { field, description: description.into() }
        });
    }

    /// A field; `None` if it is absent or null. In 1.0 the names of the Protocol Buffers are taken too.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        let object = self.object?;
        let found = object.get(name).or_else(|| match self.version {
            Version::V1_0 => object.get(&snake_case(name)),
            Version::V0_3 => None,
        });
        found.filter(|value| !value.is_null())
    }

    /// A text; `None` if it is absent or empty.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        match self.get(name)? {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(text),
            _ => {
                self.wrong(name, "must be a text");
                None
            }
        }
    }

    /// An id: a text of reasonable length.
    pub(crate) fn id(&self, name: &str) -> Option<String> {
        let text = self.text(name)?;
        if text.len() > MAX_ID || text.chars().any(char::is_control) {
            self.wrong(name, format!("must have at most {MAX_ID} bytes and no control characters"));
            return None;
        }
        Some(text.to_owned())
    }

    /// An id that must be there.
    pub(crate) fn required_id(&self, name: &str) -> Option<String> {
        if self.get(name).is_none_or(|value| value == "") {
            self.wrong(name, "is missing");
            return None;
        }
        self.id(name)
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Value::Bool(flag) => Some(*flag),
            // In a query all values are texts.
            Value::String(text) if text == "true" || text == "false" => Some(text == "true"),
            _ => {
                self.wrong(name, "must be true or false");
                None
            }
        }
    }

    /// A whole number from `least` to `most`.
    pub(crate) fn number(&self, name: &str, least: i64, most: i64) -> Option<i64> {
        let value = self.get(name)?;
        // The JSON form of Protocol Buffers writes numbers as texts too, and so does a query.
        let number = value.as_i64().or_else(|| value.as_str()?.parse().ok()).or_else(|| {
            #[expect(clippy::cast_possible_truncation, reason = "a whole number in the range of f64")]
            value.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 9e15).map(|n| n as i64)
        });
        match number {
            Some(n) if (least..=most).contains(&n) => Some(n),
            _ => {
                let shown: String = value.to_string().chars().take(40).collect();
                self.wrong(name, format!("must be a whole number from {least} to {most}, not {shown}"));
                None
            }
        }
    }

    /// An object below this one.
    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        let value = self.get(name)?;
        let fields = self.at(name, value);
        if fields.object.is_none() {
            self.wrong(name, "must be an object");
            return None;
        }
        Some(fields)
    }

    fn at(&self, name: &str, value: &'a Value) -> Self {
        Self {
            version: self.version,
            path: self.path_of(name),
            object: value.as_object(),
            violations: Rc::clone(&self.violations),
        }
    }

    /// The objects of a list, one at a time: a list from outside may have millions.
    pub(crate) fn objects<'s>(&'s self, name: &'s str) -> impl Iterator<Item = Self> + use<'s, 'a> {
        let value = self.get(name);
        let list = value.and_then(Value::as_array);
        if value.is_some() && list.is_none() {
            self.wrong(name, "must be a list");
        }
        list.into_iter().flatten().enumerate().filter_map(move |(n, value)| {
            if !value.is_object() {
                self.violations.borrow_mut().add_with(|| Violation {
                    field: self.path_of(&format!("{name}[{n}]")),
                    description: "must be an object".to_owned(),
                });
                return None;
            }
            Some(self.at(&format!("{name}[{n}]"), value))
        })
    }

    /// The texts of a list.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let Some(value) = self.get(name) else { return Vec::new() };
        let texts: Option<Vec<String>> = value
            .as_array()
            .and_then(|list| list.iter().map(|item| item.as_str().map(str::to_owned)).collect());
        texts.unwrap_or_else(|| {
            self.wrong(name, "must be a list of texts");
            Vec::new()
        })
    }

    /// An object as it is.
    pub(crate) fn metadata(&self, name: &str) -> Option<Map<String, Value>> {
        match self.get(name)? {
            Value::Object(map) => Some(map.clone()),
            _ => {
                self.wrong(name, "must be an object");
                None
            }
        }
    }
}

fn snake_case(name: &str) -> String {
    name.chars().fold(String::new(), |mut text, c| {
        if c.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
        text
    })
}
