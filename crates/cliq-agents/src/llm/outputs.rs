//! Schema of the data that a phase hands over, and the check of data. Pure.

use cliq_protocol::{Object, shorten};
use serde_json::Value;

/// Maximum number of violations that a message names.
const NAMED: usize = 5;

/// Schema of the data that a phase hands over.
pub(crate) struct Outputs {
    schema: Value,
    validator: jsonschema::Validator,
}

impl Outputs {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Returns the reason why it is not a valid schema.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        let validator = jsonschema::options().build(schema).map_err(|error| {
            shorten(&format!("{error} (at `{}`)", error.instance_path()), 300).into_owned()
        })?;
        Ok(Self { schema: schema.clone(), validator })
    }

    /// Checks data.
    ///
    /// # Errors
    /// Returns the violations, for the model and for people.
    pub(crate) fn check(&self, data: Option<&Object>) -> Result<(), String> {
        let Some(data) = data else {
            return Err("it has no data: a JSON object in a fenced block (```json) is required".to_owned());
        };
        let data = Value::Object(data.clone());
        let all: Vec<String> = self
            .validator
            .iter_errors(&data)
            .map(|error| {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() { "the object".to_owned() } else { format!("`{place}`") };
                shorten(&format!("{place}: {error}"), 200).into_owned()
            })
            .collect();
        match all.len() {
            0 => Ok(()),
            count => {
                let more =
                    if count > NAMED { format!("; and {} more", count - NAMED) } else { String::new() };
                let named: Vec<&str> = all.iter().take(NAMED).map(String::as_str).collect();
                Err(format!("its data violates the schema: {}{more}", named.join("; ")))
            }
        }
    }

    /// The schema.
    #[cfg(feature = "http")]
    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }
}
