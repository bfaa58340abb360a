//! Arguments of a call, read by name.

use std::collections::BTreeMap;

use cliq_protocol::shorten;
use serde_json::{Map, Value};

/// Arguments of a call. What is left after a call has read its own is refused.
pub(super) struct Arguments(pub(super) Map<String, Value>);

impl Arguments {
    /// Takes an optional text.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(Value::Bool(flag)) => Ok(Some(flag.to_string())),
            Some(_) => Err(format!("`{name}` is a text")),
        }
    }

    /// Takes a text that must be there.
    pub(super) fn needed(&mut self, name: &str) -> Result<String, String> {
        self.text(name)?.filter(|text| !text.trim().is_empty()).ok_or_else(|| format!("`{name}` is missing"))
    }

    /// Takes an optional whole number.
    pub(super) fn number(&mut self, name: &str) -> Result<Option<u64>, String> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| format!("`{name}` is a whole number")),
        }
    }

    /// Takes an optional flag, `false` without it.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool, String> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(format!("`{name}` is true or false")),
        }
    }

    /// Takes an optional object.
    pub(super) fn object(&mut self, name: &str) -> Result<Map<String, Value>, String> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(object)) => Ok(object),
            Some(_) => Err(format!("`{name}` is an object")),
        }
    }

    /// Takes all that is left as texts.
    pub(super) fn rest(&mut self) -> Result<BTreeMap<String, String>, String> {
        let names: Vec<String> = self.0.keys().cloned().collect();
        let mut rest = BTreeMap::new();
        for name in names {
            if let Some(text) = self.text(&name)? {
                rest.insert(name, text);
            }
        }
        Ok(rest)
    }

    /// Refuses what is left.
    pub(super) fn end(self) -> Result<(), String> {
        match self.0.keys().next() {
            Some(name) => Err(format!("there is no argument `{}` here", shorten(name, 100))),
            None => Ok(()),
        }
    }
}
