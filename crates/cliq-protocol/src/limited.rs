//! Limits that ended the work of an agent early.

use serde_json::Value;

use crate::fields::Fields;
use crate::{FieldError, Object};

/// Limit that ended the work of an agent before it was done: the optional field `limited` of a handoff envelope and of a channel
/// message with the status `error` (docs/outcomes.md).
#[derive(Debug, Clone, PartialEq)]
pub struct Limited {
    /// Name of the limit, such as `max_turns`, `budget.tokens` or `context_tokens`.
    pub limit: String,
    /// Value of the limit, if it is known: a number, or a text.
    pub value: Option<Value>,
    /// Fields that this version does not know.
    pub extra: Object,
}

impl Limited {
    /// Makes a limit with a value.
    #[must_use]
    pub fn new(limit: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { limit: limit.into(), value: Some(value.into()), extra: Object::new() }
    }

    /// Reads a limit from a JSON value. `path` names it in errors.
    ///
    /// # Errors
    /// Returns an error with the path of the field that is missing or wrong.
    pub fn read(value: Value, path: &str) -> Result<Self, FieldError> {
        let mut fields = Fields::new(value, path)?;
        let limit = fields.text("limit")?;
        let mut extra = fields.rest();
        let value = extra.remove("value").filter(|value| !value.is_null());
        Ok(Self { limit, value, extra })
    }

    /// Returns the limit as a JSON value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut map = self.extra.clone();
        map.insert("limit".to_owned(), self.limit.as_str().into());
        if let Some(value) = &self.value {
            map.insert("value".to_owned(), value.clone());
        }
        Value::Object(map)
    }
}

impl std::fmt::Display for Limited {
    /// Writes the name, and the value in parentheses.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.limit)?;
        match &self.value {
            Some(Value::String(text)) => write!(f, " ({text})"),
            Some(value) => write!(f, " ({value})"),
            None => Ok(()),
        }
    }
}

impl serde::Serialize for Limited {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Limited {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Value::deserialize(deserializer)?, "limited").map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_survive_a_rewrite() {
        for value in [
            json!({"limit": "max_turns", "value": 3}),
            json!({"limit": "error_max_turns", "since": "today"}),
            json!({"limit": "budget.usd", "value": 0.5}),
        ] {
            assert_eq!(Limited::read(value.clone(), "limited").expect("a limit").to_value(), value);
        }
        assert_eq!(Limited::new("max_turns", 3).to_string(), "max_turns (3)");
        let error = Limited::read(json!({"value": 3}), "limited").expect_err("no name");
        assert!(error.to_string().contains("limited.limit"), "{error}");
    }
}
