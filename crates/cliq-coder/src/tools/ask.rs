//! Questions to people. The caller asks them.

use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum size of a question in bytes.
const MAX_QUESTION: usize = 8 << 10;
/// Maximum number of choices, and of the bytes of one.
const MAX_CHOICES: usize = 20;
const MAX_CHOICE: usize = 200;

/// Question of a model to a person: the arguments of `ask_person`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Question {
    /// The question, with what a person needs to know to answer it.
    pub question: String,
    /// Answers to choose from. Default: the person writes a text.
    #[serde(default)]
    pub choices: Option<Vec<String>>,
}

impl Question {
    /// Checks sizes.
    ///
    /// # Errors
    /// Returns the reason for the model.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.question.trim().is_empty() {
            return Err("`question` is empty".to_owned());
        }
        if self.question.len() > MAX_QUESTION {
            return Err(format!("`question` has more than {MAX_QUESTION} bytes"));
        }
        let Some(choices) = &self.choices else { return Ok(()) };
        let count = choices.len();
        if count == 1 || count > MAX_CHOICES {
            return Err(format!("`choices` has {count} entries: give 2 to {MAX_CHOICES}, or none"));
        }
        if choices.iter().any(|choice| choice.trim().is_empty() || choice.len() > MAX_CHOICE) {
            return Err(format!("a choice is empty or has more than {MAX_CHOICE} bytes"));
        }
        Ok(())
    }
}
