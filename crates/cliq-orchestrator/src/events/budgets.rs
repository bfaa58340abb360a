//! Budgets as a journal records them.

use std::collections::BTreeMap;

use cliq_protocol::{Budget, PhaseName};
use cliq_workflow::ValidatedWorkflow;
use serde::{Deserialize, Serialize};

use crate::engine::Limits;

/// The budgets of a run, as recorded.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedBudgets {
    /// The budget of the run.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub run: Budget,
    /// Budgets of phases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub phases: BTreeMap<PhaseName, Budget>,
    /// Phases whose agent is known to use a language model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<PhaseName>,
}

impl RecordedBudgets {
    /// Whether nothing is recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.run.is_unlimited() && self.phases.is_empty() && self.models.is_empty()
    }

    pub(super) fn limits(&self, workflow: &ValidatedWorkflow) -> Limits {
        let find = |name: &PhaseName| workflow.find(name.as_str());
        Limits {
            run: self.run,
            phases: self.phases.iter().filter_map(|(name, budget)| Some((find(name)?, *budget))).collect(),
            models: self.models.iter().filter_map(find).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Holder {
        #[serde(default, skip_serializing_if = "RecordedBudgets::is_empty")]
        budgets: RecordedBudgets,
    }

    #[test]
    fn budgets_survive_a_rewrite() {
        for value in [
            json!({}),
            json!({"budgets": {"models": ["dev", "review"]}}),
            json!({"budgets": {"run": {"tokens": 5}}}),
            json!({"budgets": {"phases": {"dev": {"usd": 1.5}}, "models": ["dev"]}}),
        ] {
            let holder: Holder = serde_json::from_value(value.clone()).expect("budgets");
            assert_eq!(serde_json::to_value(&holder).expect("JSON"), value);
        }
    }
}
