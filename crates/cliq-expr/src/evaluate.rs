//! Evaluation of an expression over JSON values.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use cel::objects::{Key, Map};
use cel::{Context, ExecutionError, Value as CelValue};
use serde_json::{Number, Value};

use crate::expression::{Expression, MAX_BYTES, MAX_STEPS, with_stack};
use crate::meter::Meter;

/// Maximum size of a message of the interpreter, in bytes.
const MAX_QUOTED: usize = 200;

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
    /// The evaluation made, copied or read too much.
    #[error("it makes or reads more than {} MB of values", MAX_BYTES / 1_000_000)]
    TooLarge,
    /// The value has no form in JSON.
    #[error("its value is {0}, which is not JSON")]
    NotJson(String),
}

impl Expression {
    /// Computes the value of the expression. `values` are its variables by name.
    ///
    /// Takes at most [`MAX_STEPS`] steps, and makes or reads values of at most [`MAX_BYTES`] in all.
    ///
    /// # Errors
    /// Returns an error if a name or key does not exist, an operator does not fit its operands, or the limit of steps is exceeded.
    pub fn evaluate(&self, values: &serde_json::Map<String, Value>) -> Result<Value, EvaluationError> {
        let no_thread = || Err(EvaluationError::Failed("no thread could be started for it".to_owned()));
        with_stack(|| self.evaluate_bounded(values)).unwrap_or_else(no_thread)
    }

    fn evaluate_bounded(&self, values: &serde_json::Map<String, Value>) -> Result<Value, EvaluationError> {
        let meter = Arc::new(Meter::default());
        let mut context = Context::default();
        for (name, value) in values.iter().filter(|(name, _)| self.reads(name)) {
            context.add_variable_from_value(name.as_str(), to_cel(value));
        }
        meter.declare(&mut context).map_err(|error| EvaluationError::Failed(describe(&error)))?;
        let value = context.resolve(&self.tree);
        // An operator may have swallowed the error.
        if meter.has_too_many_steps() {
            return Err(EvaluationError::TooManySteps);
        }
        if meter.is_too_large() {
            return Err(EvaluationError::TooLarge);
        }
        from_cel(&value.map_err(|error| EvaluationError::Failed(describe(&error)))?)
    }
}

/// Describes an error in the terms of the expression, in at most [`MAX_QUOTED`] bytes: some errors quote values.
fn describe(error: &ExecutionError) -> String {
    let mut head = Head(String::new());
    // The only error is that the text is long enough.
    let _ = match error {
        ExecutionError::NoSuchKey(key) => {
            write!(
                head,
                "there is no `{}`: test for it with `has(…)`",
                key.get(..key.floor_char_boundary(100)).unwrap_or(key)
            )
        }
        other => write!(head, "{}", Described(other)),
    };
    head.0
}

/// An error in the terms of the expression.
struct Described<'a>(&'a ExecutionError);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ExecutionError::UndeclaredReference(name) => write!(f, "there is no name `{name}`"),
            ExecutionError::UnexpectedType { got, want } => write!(f, "expected {want}, found {got}"),
            ExecutionError::NoSuchOverload(overload) => {
                let types = overload.argument_types().join(", ");
                write!(f, "`{}` cannot be applied to ({types})", overload.function().trim_matches('_'))
            }
            ExecutionError::UnsupportedBinaryOperator(operator, left, right) => {
                write!(f, "`{operator}` cannot be applied to ({}, {})", left.type_of(), right.type_of())
            }
            ExecutionError::IndexOutOfBounds(_) => f.write_str("the index is out of bounds"),
            ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
                f.write_str("division by zero")
            }
            ExecutionError::Overflow(..) => f.write_str("the number is too large"),
            other => write!(f, "{other}"),
        }
    }
}

/// The first characters of a text. Formatting ends when there are enough of them.
struct Head(String);

impl fmt::Write for Head {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = MAX_QUOTED.saturating_sub(self.0.len());
        let end = text.floor_char_boundary(left.min(text.len()));
        self.0.push_str(&text[..end]);
        if end < text.len() { Err(fmt::Error) } else { Ok(()) }
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
