//! Evaluation of an expression over JSON values.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cel::objects::{Key, Map};
use cel::{Context, ExecutionError, Value as CelValue};
use serde_json::{Number, Value};

use crate::expression::{CHARGE, Expression, GROWN, MAX_STEPS, with_stack};

/// Reason why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// The evaluation failed, such as by a key that does not exist.
    #[error("{0}")]
    Failed(String),
    /// The evaluation took too many steps.
    #[error("it takes more than {MAX_STEPS} steps")]
    TooManySteps,
    /// The value has no form in JSON.
    #[error("its value is {0}, which is not JSON")]
    NotJson(String),
}

impl Expression {
    /// Computes the value of the expression. `values` are its variables by name.
    ///
    /// # Errors
    /// Returns an error if a name or key does not exist, an operator does not fit its operands, or the limit of steps is exceeded.
    pub fn evaluate(&self, values: &serde_json::Map<String, Value>) -> Result<Value, EvaluationError> {
        let no_thread = || Err(EvaluationError::Failed("no thread could be started for it".to_owned()));
        with_stack(|| self.evaluate_bounded(values)).unwrap_or_else(no_thread)
    }

    fn evaluate_bounded(&self, values: &serde_json::Map<String, Value>) -> Result<Value, EvaluationError> {
        let steps = Arc::new(AtomicU64::new(0));
        let mut context = Context::default();
        for (name, value) in values.iter().filter(|(name, _)| self.reads(name)) {
            context.add_variable_from_value(name.as_str(), to_cel(value));
        }
        let charge = {
            let steps = Arc::clone(&steps);
            move |range: CelValue, weight: i64| {
                let weight = u64::try_from(weight).unwrap_or(1).max(1);
                count(&steps, size(&range).saturating_mul(weight)).map(|()| range)
            }
        };
        let grown = {
            let steps = Arc::clone(&steps);
            move |value: CelValue| count(&steps, size(&value)).map(|()| value)
        };
        let declared = context.add_function(CHARGE, charge).and_then(|()| context.add_function(GROWN, grown));
        declared.map_err(|error| EvaluationError::Failed(error.to_string()))?;
        let value = context.resolve(&self.tree);
        if steps.load(Ordering::Relaxed) > MAX_STEPS {
            return Err(EvaluationError::TooManySteps);
        }
        from_cel(&value.map_err(|error| EvaluationError::Failed(describe(&error)))?)
    }
}

/// Adds to the counter of steps.
fn count(steps: &AtomicU64, more: u64) -> Result<(), ExecutionError> {
    let before = steps.fetch_add(more, Ordering::Relaxed);
    if before.saturating_add(more) > MAX_STEPS {
        return Err(ExecutionError::InternalError("too many steps".to_owned()));
    }
    Ok(())
}

fn size(value: &CelValue) -> u64 {
    let size = match value {
        CelValue::List(list) => list.len(),
        CelValue::Map(map) => map.map.len(),
        CelValue::String(text) => text.len(),
        CelValue::Bytes(bytes) => bytes.len(),
        _ => 1,
    };
    size as u64
}

/// Describes an error in the terms of the expression.
fn describe(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("there is no `{key}`: test for it with `has(…)`"),
        ExecutionError::UndeclaredReference(name) => format!("there is no name `{name}`"),
        ExecutionError::UnexpectedType { got, want } => format!("expected {want}, found {got}"),
        ExecutionError::NoSuchOverload(overload) => {
            let types = overload.argument_types().join(", ");
            format!("`{}` cannot be applied to ({types})", overload.function().trim_matches('_'))
        }
        ExecutionError::UnsupportedBinaryOperator(operator, left, right) => {
            format!("`{operator}` cannot be applied to ({}, {})", left.type_of(), right.type_of())
        }
        ExecutionError::IndexOutOfBounds(_) => "the index is out of bounds".to_owned(),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "division by zero".to_owned()
        }
        ExecutionError::Overflow(..) => "the number is too large".to_owned(),
        // The others quote values, which can be long.
        other => {
            let text = other.to_string();
            text.chars().take(200).collect()
        }
    }
}

fn to_cel(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(value) => CelValue::Bool(*value),
        // Whole numbers are `int`, so that they can be used with the literals of an expression.
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => CelValue::Int(number),
            (None, Some(number)) => CelValue::UInt(number),
            (None, None) => CelValue::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => CelValue::String(Arc::new(text.clone())),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| (Key::String(Arc::new(key.clone())), to_cel(value)));
            CelValue::Map(Map { map: Arc::new(entries.collect::<HashMap<_, _>>()) })
        }
    }
}

fn from_cel(value: &CelValue) -> Result<Value, EvaluationError> {
    Ok(match value {
        CelValue::Null => Value::Null,
        CelValue::Bool(value) => Value::Bool(*value),
        CelValue::Int(number) => (*number).into(),
        CelValue::UInt(number) => (*number).into(),
        CelValue::Float(number) => match Number::from_f64(*number) {
            Some(number) => Value::Number(number),
            None => return Err(EvaluationError::NotJson(number.to_string())),
        },
        CelValue::String(text) => Value::String(text.to_string()),
        CelValue::List(items) => Value::Array(items.iter().map(from_cel).collect::<Result<_, _>>()?),
        CelValue::Map(map) => {
            // Sorted: the order of a hash map differs between runs.
            let mut entries = Vec::with_capacity(map.map.len());
            for (key, value) in map.map.iter() {
                let key = match key {
                    Key::String(key) => key.to_string(),
                    Key::Int(key) => key.to_string(),
                    Key::Uint(key) => key.to_string(),
                    Key::Bool(key) => key.to_string(),
                };
                entries.push((key, from_cel(value)?));
            }
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        other => return Err(EvaluationError::NotJson(format!("of type {}", other.type_of()))),
    })
}
