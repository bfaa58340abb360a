//! The list of steps of a model, for people.

use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum number of steps.
const MAX_STEPS: usize = 50;

/// Arguments of `todo`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Todo {
    /// All steps, in their order.
    steps: Vec<Step>,
}

/// Step of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(expecting = "an object with `text` and `status`")]
#[schemars(deny_unknown_fields, inline)]
struct Step {
    /// The step, in a few words.
    text: String,
    /// `pending`, `in_progress` or `completed`.
    status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Status {
    Pending,
    InProgress,
    Completed,
}

impl Todo {
    /// Returns the sentence for people: how many steps are done, and the present one.
    pub(super) fn message(&self) -> Result<String, String> {
        let count = self.steps.len();
        if count == 0 || count > MAX_STEPS {
            return Err(format!("the list has {count} steps: give 1 to {MAX_STEPS}"));
        }
        let done = self.steps.iter().filter(|step| step.status == Status::Completed).count();
        let now = self.steps.iter().find(|step| step.status == Status::InProgress);
        let now = now.map(|step| format!(": {}", step.text.trim())).unwrap_or_default();
        Ok(format!("{done} of {count} steps done{now}"))
    }
}
