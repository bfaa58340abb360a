//! Parameters of requests to models behind an API (docs/models.md): effort, temperature, length, and fields of a server.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Object;

/// Effort of a model that thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// No thoughts, or as few as the model can.
    None,
    /// Short thoughts.
    Low,
    /// Between `low` and `high`.
    Medium,
    /// Long thoughts.
    High,
    /// As much as the model can.
    Max,
}

impl Effort {
    /// All values, in ascending order.
    pub const ALL: [Self; 5] = [Self::None, Self::Low, Self::Medium, Self::High, Self::Max];

    /// Words of all values, in the same order.
    pub const WORDS: [&str; 5] = ["none", "low", "medium", "high", "max"];

    /// Word of the value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }

    /// Returns the value with this word, or `None` if there is none.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.as_str() == word)
    }
}

/// Temperature of a model: a number from 0 to 2.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Temperature(f64);

impl Temperature {
    /// Returns the temperature, or `None` if the number is not from 0 to 2.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=2.0).contains(&value).then_some(Self(value))
    }

    /// Number from 0 to 2.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Temperature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::new(value)
            .ok_or_else(|| D::Error::custom(format!("expected a number from 0 to 2, found {value}")))
    }
}

/// Fields that a request has in addition: those of one server, such as `top_k`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ExtraBody(Object);

impl ExtraBody {
    /// Fields that cliq sets itself: what the model is told, and how its reply is read.
    pub const RESERVED: [&str; 13] = [
        "model",
        "messages",
        "input",
        "contents",
        "system",
        "instructions",
        "systemInstruction",
        "system_instruction",
        "tools",
        "stream",
        "stream_options",
        "store",
        "n",
    ];

    /// Checks the fields.
    ///
    /// # Errors
    /// Returns a reserved field among them.
    pub fn new(fields: Object) -> Result<Self, String> {
        match Self::RESERVED.iter().find(|name| fields.contains_key(**name)) {
            Some(name) => Err((*name).to_owned()),
            None => Ok(Self(fields)),
        }
    }

    /// Whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields.
    #[must_use]
    pub fn fields(&self) -> &Object {
        &self.0
    }

    /// Adds the fields to the body of a request. Objects are merged, other values replaced.
    pub fn add_to(&self, body: &mut Value) {
        merge(body, &self.0);
    }
}

fn merge(body: &mut Value, fields: &Object) {
    for (name, value) in fields {
        match value {
            Value::Object(inner) if body[name.as_str()].is_object() => merge(&mut body[name.as_str()], inner),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => {
                body[name.as_str()] = value.clone();
            }
        }
    }
}

impl<'de> Deserialize<'de> for ExtraBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Object::deserialize(deserializer)?;
        Self::new(fields)
            .map_err(|name| D::Error::custom(format!("`{name}` is a field that cliq sets itself")))
    }
}

/// Parameters of requests to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelParameters {
    /// Effort. Without it, the server decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Temperature. Without it, the server decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// Maximum number of tokens of a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Further fields of the body.
    #[serde(default, skip_serializing_if = "ExtraBody::is_empty")]
    pub extra_body: ExtraBody,
}

impl ModelParameters {
    /// Whether nothing is set.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns these parameters, with those of `base` for what is not set. Fields of `extra_body` are merged.
    #[must_use]
    pub fn over(&self, base: &Self) -> Self {
        let mut extra_body = Value::Object(base.extra_body.0.clone());
        self.extra_body.add_to(&mut extra_body);
        let extra_body = match extra_body {
            Value::Object(fields) => ExtraBody(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                ExtraBody::default()
            }
        };
        Self {
            effort: self.effort.or(base.effort),
            temperature: self.temperature.or(base.temperature),
            max_tokens: self.max_tokens.or(base.max_tokens),
            extra_body,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> ModelParameters {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn phase_goes_before_agent_and_fields_are_merged() {
        let agent =
            read(json!({"effort": "low", "max_tokens": 9, "extra_body": {"a": {"b": 1, "c": 2}, "d": 3}}));
        let phase = read(json!({"effort": "max", "temperature": 0, "extra_body": {"a": {"b": 5}}}));
        assert_eq!(
            serde_json::to_value(phase.over(&agent)).unwrap(),
            json!({"effort": "max", "temperature": 0.0, "max_tokens": 9, "extra_body": {"a": {"b": 5, "c": 2}, "d": 3}})
        );
        assert!(read(json!({})).is_default() && !phase.is_default());
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for wrong in [
            json!({"effort": "higher"}),
            json!({"temperature": 2.1}),
            json!({"temperature": -1}),
            json!({"extra_body": {"messages": []}}),
            json!({"extra_body": {"stream": false}}),
        ] {
            assert!(serde_json::from_value::<ModelParameters>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
