//! Reads a JSON object field by field, with errors that name the field by its path.
//!
//! Derived deserialisation would lose either the path (plain derive) or the unknown fields' order of precedence and
//! positions (`flatten`), and both matter here: people mend these files by hand.

use serde_json::Value;

use crate::{FieldError, Object};

pub(crate) struct Fields {
    path: String,
    map: Object,
}

/// Describes a value for an error message.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => format!("the boolean {b}"),
        Value::Number(n) => format!("the number {n}"),
        Value::String(s) if s.chars().count() > 40 => {
            format!("the text {:?}…", s.chars().take(40).collect::<String>())
        }
        Value::String(s) => format!("the text {s:?}"),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

impl Fields {
    pub(crate) fn new(value: Value, path: impl Into<String>) -> Result<Self, FieldError> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Self { path, map }),
            other => Err(FieldError { field: path, expected: "an object".into(), found: describe(&other) }),
        }
    }

    pub(crate) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    pub(crate) fn wrong(&self, name: &str, expected: impl Into<String>, found: &Value) -> FieldError {
        FieldError { field: self.path_of(name), expected: expected.into(), found: describe(found) }
    }

    fn missing(&self, name: &str, expected: &str) -> FieldError {
        FieldError { field: self.path_of(name), expected: expected.to_owned(), found: "nothing".to_owned() }
    }

    /// Takes a field out. A null counts as absent and stays among the rest, so that it survives a rewrite.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        match self.map.get(name) {
            None | Some(Value::Null) => None,
            Some(_) => self.map.remove(name),
        }
    }

    /// Takes a field out, null included.
    pub(crate) fn take_raw(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name)
    }

    pub(crate) fn required(&mut self, name: &str, expected: &str) -> Result<Value, FieldError> {
        self.take(name).ok_or_else(|| self.missing(name, expected))
    }

    pub(crate) fn optional_text(&mut self, name: &str) -> Result<Option<String>, FieldError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(s)) => Ok(Some(s)),
            Some(other) => Err(self.wrong(name, "a text", &other)),
        }
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<String, FieldError> {
        self.optional_text(name)?.ok_or_else(|| self.missing(name, "a text"))
    }

    pub(crate) fn optional_bool(&mut self, name: &str) -> Result<Option<bool>, FieldError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(b)) => Ok(Some(b)),
            Some(other) => Err(self.wrong(name, "true or false", &other)),
        }
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, FieldError> {
        self.optional_bool(name)?.ok_or_else(|| self.missing(name, "true or false"))
    }

    pub(crate) fn optional_count(&mut self, name: &str) -> Result<Option<u64>, FieldError> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(n) => Ok(Some(n)),
                None => Err(self.wrong(name, "a whole number, 0 or more", &value)),
            },
        }
    }

    pub(crate) fn optional_integer(&mut self, name: &str) -> Result<Option<i64>, FieldError> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_i64() {
                Some(n) => Ok(Some(n)),
                None => Err(self.wrong(name, "a whole number", &value)),
            },
        }
    }

    /// An amount of money, say: finite, 0 or more.
    pub(crate) fn optional_amount(&mut self, name: &str) -> Result<Option<f64>, FieldError> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_f64().filter(|n| n.is_finite() && *n >= 0.0) {
                Some(n) => Ok(Some(n)),
                None => Err(self.wrong(name, "a number, 0 or more", &value)),
            },
        }
    }

    pub(crate) fn iteration(&mut self, name: &str) -> Result<u32, FieldError> {
        const WANT: &str = "a whole number, 0 or more";
        let value = self.required(name, WANT)?;
        value.as_u64().and_then(|n| u32::try_from(n).ok()).ok_or_else(|| self.wrong(name, WANT, &value))
    }

    pub(crate) fn optional_object(&mut self, name: &str) -> Result<Option<Object>, FieldError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(other) => Err(self.wrong(name, "an object", &other)),
        }
    }

    /// A list whose items `item` decodes, given each item and its path.
    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        mut item: impl FnMut(Value, String) -> Result<T, FieldError>,
    ) -> Result<Vec<T>, FieldError> {
        match self.required(name, "a list")? {
            Value::Array(items) => {
                let path = self.path_of(name);
                items.into_iter().enumerate().map(|(i, value)| item(value, format!("{path}[{i}]"))).collect()
            }
            other => Err(self.wrong(name, "a list", &other)),
        }
    }

    /// The format version, which must be 1.
    pub(crate) fn version(&mut self) -> Result<(), FieldError> {
        let value = self.required("version", "1")?;
        if value.as_u64() == Some(crate::VERSION) {
            Ok(())
        } else {
            Err(self.wrong("version", "1 (the only version this cliq reads)", &value))
        }
    }

    pub(crate) fn phase_name(&mut self, name: &str) -> Result<crate::PhaseName, FieldError> {
        let text = self.text(name)?;
        crate::PhaseName::parse_with_item(&text).map_err(|error| FieldError {
            field: self.path_of(name),
            expected: format!("a phase name ({error})"),
            found: describe(&Value::String(text)),
        })
    }

    /// The fields that were not taken: the unknown ones.
    pub(crate) fn rest(self) -> Object {
        self.map
    }
}
