//! Verdict of a gate: the object form and the text form.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::fields::{Fields, describe};
use crate::{FieldError, Object, PhaseName};

/// Outcome of a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The quality bar is met.
    Pass,
    /// The named phase works again, then the gate evaluates again.
    Route(PhaseName),
    /// A person is needed.
    Escalate,
}

/// A verdict: outcome and reason, as `{"outcome": "ROUTE", "target": "developer", "reason": "…"}`.
///
/// The text form `PASS`, `ROUTE:developer`, `ESCALATE` (docs/team-yml.md) is read by [`FromStr`] and written by
/// [`fmt::Display`]; it has no room for a reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Outcome of the gate.
    pub outcome: Outcome,
    /// Reason of the verdict. Gates should give one; a bare `PASS` has none.
    pub reason: Option<String>,
    /// Fields that this version does not know.
    pub extra: Object,
}

/// Reason why a text is not a verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid verdict: write PASS, ROUTE:<phase> or ESCALATE{detail}")]
pub struct VerdictError {
    text: String,
    detail: String,
}

impl Verdict {
    /// A PASS.
    #[must_use]
    pub fn pass(reason: impl Into<String>) -> Self {
        Self::new(Outcome::Pass, reason)
    }

    /// A ROUTE to `target`.
    #[must_use]
    pub fn route(target: PhaseName, reason: impl Into<String>) -> Self {
        Self::new(Outcome::Route(target), reason)
    }

    /// An ESCALATE.
    #[must_use]
    pub fn escalate(reason: impl Into<String>) -> Self {
        Self::new(Outcome::Escalate, reason)
    }

    fn new(outcome: Outcome, reason: impl Into<String>) -> Self {
        Self { outcome, reason: Some(reason.into()), extra: Object::new() }
    }

    /// Reads either form from a JSON value.
    ///
    /// Time and memory are linear in the size of the input; an error has at most 1,000 bytes.
    ///
    /// # Errors
    /// Names the field that is missing or wrong.
    pub fn from_value(value: Value) -> Result<Self, FieldError> {
        Self::read(value, "verdict".to_owned())
    }

    pub(crate) fn read(value: Value, path: String) -> Result<Self, FieldError> {
        const WANT: &str = "PASS, ROUTE or ESCALATE";
        if let Value::String(text) = &value {
            return text.parse().map_err(|error: VerdictError| FieldError {
                field: path,
                expected: format!("PASS, ROUTE:<phase> or ESCALATE{}", error.detail),
                found: describe(&value),
            });
        }
        let mut fields = Fields::new(value, path)?;
        let outcome = fields.required("outcome", WANT)?;
        let outcome = match outcome.as_str() {
            Some("PASS") => Outcome::Pass,
            Some("ROUTE") => Outcome::Route(fields.phase_name("target")?),
            Some("ESCALATE") => Outcome::Escalate,
            _ => return Err(fields.wrong("outcome", WANT, &outcome)),
        };
        let reason = fields.optional_text("reason")?;
        Ok(Self { outcome, reason, extra: fields.rest() })
    }

    /// Returns the target that a PASS names, which makes it unclear: a PASS has none (docs/protocol.md).
    #[must_use]
    pub fn target_beside_pass(&self) -> Option<&str> {
        let target = self.extra.get("target").and_then(Value::as_str).map(str::trim);
        target.filter(|target| self.outcome == Outcome::Pass && !target.is_empty())
    }

    /// The object form.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut map = self.extra.clone();
        let (outcome, target) = match &self.outcome {
            Outcome::Pass => ("PASS", None),
            Outcome::Route(target) => ("ROUTE", Some(target)),
            Outcome::Escalate => ("ESCALATE", None),
        };
        map.insert("outcome".into(), outcome.into());
        if let Some(target) = target {
            map.insert("target".into(), target.as_str().into());
        }
        if let Some(reason) = &self.reason {
            map.insert("reason".into(), reason.as_str().into());
        }
        Value::Object(map)
    }

    /// The sentence that a gate's handoff opens with: `ROUTE to developer: Tests fail.` (docs/protocol.md).
    #[must_use]
    pub fn sentence(&self) -> String {
        let head = match &self.outcome {
            Outcome::Pass => "PASS".to_owned(),
            Outcome::Route(target) => format!("ROUTE to {target}"),
            Outcome::Escalate => "ESCALATE".to_owned(),
        };
        match &self.reason {
            Some(reason) => format!("{head}: {reason}"),
            None => head,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Outcome::Pass => f.pad("PASS"),
            Outcome::Route(target) => f.pad(&format!("ROUTE:{target}")),
            Outcome::Escalate => f.pad("ESCALATE"),
        }
    }
}

impl FromStr for Verdict {
    type Err = VerdictError;
    fn from_str(text: &str) -> Result<Self, VerdictError> {
        let trimmed = text.trim();
        let outcome = match trimmed {
            "PASS" => Outcome::Pass,
            "ESCALATE" => Outcome::Escalate,
            other => {
                let fail = |detail: String| VerdictError { text: text.to_owned(), detail };
                let target = other.strip_prefix("ROUTE:").ok_or_else(|| fail(String::new()))?;
                Outcome::Route(PhaseName::parse(target.trim()).map_err(|e| fail(format!(" ({e})")))?)
            }
        };
        Ok(Self { outcome, reason: None, extra: Object::new() })
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Verdict {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
