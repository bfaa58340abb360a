//! Usage of language models: tokens and cost, as agents report them (docs/protocol.md).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fields::Fields;
use crate::{FieldError, Object};

/// The usage of one activation of an agent so far. A later report replaces an earlier one.
///
/// On the wire: `usage` of a `progress` message, or of the `result` of a terminal message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Usage {
    /// The provider, such as `anthropic`.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// All tokens of input, cached ones included.
    pub tokens_in: u64,
    /// Tokens of output, reasoning included.
    pub tokens_out: u64,
    /// The part of the input that was read from a cache. `None` if the provider does not say.
    pub tokens_cached: Option<u64>,
    /// The part of the output that is reasoning. `None` if the provider does not say.
    pub tokens_reasoning: Option<u64>,
    /// The cost in US dollars. `None` if it is unknown.
    pub cost_usd: Option<f64>,
    /// Whether a part of the counts is an estimate, since the provider reported none.
    pub estimated: bool,
    /// Fields that this version does not know.
    pub extra: Object,
}

impl Usage {
    /// Reads usage from a JSON value. `path` names it in errors.
    ///
    /// # Errors
    /// Names the field that is wrong.
    pub fn read(value: Value, path: &str) -> Result<Self, FieldError> {
        let mut fields = Fields::new(value, path)?;
        Ok(Self {
            provider: fields.optional_text("provider")?,
            model: fields.optional_text("model")?,
            tokens_in: fields.optional_count("tokens_in")?.unwrap_or(0),
            tokens_out: fields.optional_count("tokens_out")?.unwrap_or(0),
            tokens_cached: fields.optional_count("tokens_cached")?,
            tokens_reasoning: fields.optional_count("tokens_reasoning")?,
            cost_usd: fields.optional_amount("cost_usd")?,
            estimated: fields.optional_bool("estimated")?.unwrap_or(false),
            extra: fields.rest(),
        })
    }

    /// The usage in the `result` of a terminal message; `None` if it has none.
    ///
    /// # Errors
    /// There is a `usage`, and it is wrong.
    pub fn of_result(result: &Value) -> Result<Option<Self>, FieldError> {
        match result.get("usage") {
            None | Some(Value::Null) => Ok(None),
            Some(usage) => Self::read(usage.clone(), "result.usage").map(Some),
        }
    }

    /// The usage as a JSON value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut map = self.extra.clone();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                map.insert(name.to_owned(), value);
            }
        };
        put("provider", self.provider.clone().map(Value::from));
        put("model", self.model.clone().map(Value::from));
        put("tokens_in", Some(self.tokens_in.into()));
        put("tokens_out", Some(self.tokens_out.into()));
        put("tokens_cached", self.tokens_cached.map(Value::from));
        put("tokens_reasoning", self.tokens_reasoning.map(Value::from));
        put("cost_usd", self.cost_usd.map(Value::from));
        put("estimated", self.estimated.then_some(Value::Bool(true)));
        Value::Object(map)
    }

    /// All tokens, of input and of output.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens_in.saturating_add(self.tokens_out)
    }

    /// Adds the usage of another reply. Provider and model stay only where both agree; the cost becomes unknown where
    /// either is. The sum is estimated if either is.
    pub fn add(&mut self, other: &Self) {
        if *self == Self::default() {
            self.clone_from(other);
            return;
        }
        let agreed = |own: &Option<String>, other: &Option<String>| own.clone().filter(|_| own == other);
        self.provider = agreed(&self.provider, &other.provider);
        self.model = agreed(&self.model, &other.model);
        self.tokens_in = self.tokens_in.saturating_add(other.tokens_in);
        self.tokens_out = self.tokens_out.saturating_add(other.tokens_out);
        self.tokens_cached = sum(self.tokens_cached, other.tokens_cached);
        self.tokens_reasoning = sum(self.tokens_reasoning, other.tokens_reasoning);
        self.cost_usd = self.cost_usd.zip(other.cost_usd).map(|(own, other)| own + other);
        self.estimated |= other.estimated;
    }
}

/// Sum of what is known, or `None` if nothing is.
fn sum(own: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (own, other) {
        (None, None) => None,
        (own, other) => Some(own.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    }
}

impl Serialize for Usage {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Usage {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Value::deserialize(deserializer)?, "usage").map_err(serde::de::Error::custom)
    }
}

/// A limit on usage. A part that is `None` has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Budget {
    /// The most tokens, of input and output together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The most US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

impl Budget {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.tokens.is_none() && self.usd.is_none()
    }

    /// This budget, with the parts of `over` in place of its own where `over` has them.
    #[must_use]
    pub fn overridden_by(self, over: Self) -> Self {
        Self { tokens: over.tokens.or(self.tokens), usd: over.usd.or(self.usd) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Price;

    #[test]
    fn wrong_usage_is_named() {
        let error = |value: Value| Usage::read(value, "usage").unwrap_err().to_string();
        insta::assert_snapshot!([
            error(json!({"tokens_in": "many"})),
            error(json!({"tokens_out": -1})),
            error(json!({"cost_usd": -0.5})),
            error(json!({"cost_usd": "free"})),
            error(json!(12)),
            Usage::of_result(&json!({"usage": []})).unwrap_err().to_string(),
        ].join("\n"), @r#"
        field `usage.tokens_in`: expected a whole number, 0 or more, found the text "many"
        field `usage.tokens_out`: expected a whole number, 0 or more, found the number -1
        field `usage.cost_usd`: expected a number, 0 or more, found the number -0.5
        field `usage.cost_usd`: expected a number, 0 or more, found the text "free"
        field `usage`: expected an object, found the number 12
        field `result.usage`: expected an object, found a list
        "#);
    }

    #[test]
    fn usage_survives_a_rewrite() {
        let value = json!({"provider": "p", "model": "m", "tokens_in": 3, "tokens_out": 4, "tokens_cached": 1, "tokens_reasoning": 2,
                           "cost_usd": 0.25, "estimated": true, "new": [1]});
        assert_eq!(Usage::read(value.clone(), "").unwrap().to_value(), value);
        assert_eq!(Usage::of_result(&json!({"usage": value})).unwrap().unwrap().tokens(), 7);
        assert_eq!(Usage::of_result(&json!({"verdict": "PASS"})).unwrap(), None);
    }

    #[test]
    fn sums_keep_what_is_known() {
        let usage = |model: &str, cost: Option<f64>| Usage {
            provider: Some("p".into()),
            model: Some(model.into()),
            tokens_in: 10,
            tokens_out: 1,
            cost_usd: cost,
            ..Usage::default()
        };
        let mut sum = Usage::default();
        sum.add(&usage("a", Some(0.5)));
        sum.add(&usage("a", Some(0.25)));
        assert_eq!((sum.model.as_deref(), sum.tokens_in, sum.cost_usd), (Some("a"), 20, Some(0.75)));
        sum.add(&usage("b", None));
        assert_eq!((sum.model.as_deref(), sum.provider.as_deref()), (None, Some("p")));
        assert_eq!((sum.tokens(), sum.cost_usd), (33, None));
    }

    #[test]
    fn cached_input_has_its_own_price() {
        let usage = Usage {
            tokens_in: 1_000_000,
            tokens_out: 500_000,
            tokens_cached: Some(400_000),
            ..Usage::default()
        };
        let price = Price { input: 3.0, output: 15.0, cached: Some(0.3) };
        assert!((price.cost(&usage) - (0.6 * 3.0 + 0.4 * 0.3 + 7.5)).abs() < 1e-9);
        let flat = Price { cached: None, ..price };
        assert!((flat.cost(&usage) - 10.5).abs() < 1e-9);
    }
}
