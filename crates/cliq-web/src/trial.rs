//! Document of a trial of an evaluation, shown with its run.

use cliq_model::{Caveat, Run, RunOrigin, TrialRow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::core::Core;
use crate::problem::Problem;

/// Trial of an evaluation.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TrialDocument {
    /// Id of the evaluation.
    pub evaluation: String,
    /// Number of the trial, 1-based.
    pub number: u32,
    /// Name of the variant.
    pub variant: String,
    /// Name of the case.
    pub case: String,
    /// `passed`, `failed`, `infrastructure` or `skipped`; `null` before the trial has ended.
    pub outcome: Option<String>,
    /// Reason why the trial did not pass, or did not count.
    pub reason: Option<String>,
    /// Outcomes of its checks.
    pub checks: Vec<TrialCheck>,
}

/// Outcome of a check of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrialCheck {
    /// Name of the check.
    pub name: String,
    /// Whether the check passed.
    pub pass: bool,
    /// Output of the command, reason of the judge, or value that did not fit.
    #[serde(default)]
    pub detail: String,
}

impl TrialDocument {
    /// Returns the document of a stored trial.
    fn of(evaluation: String, trial: TrialRow) -> Self {
        let result: Value = serde_json::from_str(&trial.result).unwrap_or_default();
        let text = |key: &str| result[key].as_str().map(str::to_owned);
        let checks = result["checks"].as_array().into_iter().flatten();
        Self {
            evaluation,
            number: trial.number,
            variant: trial.variant,
            case: trial.case,
            outcome: text("outcome"),
            reason: text("reason"),
            checks: checks.filter_map(|check| TrialCheck::deserialize(check).ok()).collect(),
        }
    }

    /// Returns the caveat of the trial: whatever its run says, a trial that did not pass is no success. Returns `None` if it passed or
    /// has not ended.
    #[must_use]
    pub fn caveat(&self) -> Option<Caveat> {
        self.outcome.as_ref().filter(|outcome| *outcome != "passed").map(|_| Caveat::FailedTrial)
    }
}

/// Returns the trial of a run, or `None` if the run is no trial.
///
/// # Errors
/// Returns a problem if the store fails.
pub(crate) async fn trial_of(core: &Core, run: &Run) -> Result<Option<TrialDocument>, Problem> {
    if run.origin != RunOrigin::Evaluation {
        return Ok(None);
    }
    let found = core.evaluations.trial_of_run(&run.id).await?;
    Ok(found.map(|(evaluation, trial)| TrialDocument::of(evaluation, trial)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cliq_model::TrialState;

    fn document(result: &str) -> TrialDocument {
        let row = TrialRow {
            number: 3,
            variant: "v".into(),
            case: "c".into(),
            repeat: 1,
            state: TrialState::Finished,
            attempts: 0,
            run_id: None,
            result: result.into(),
        };
        TrialDocument::of("e".into(), row)
    }

    #[test]
    fn a_trial_that_did_not_pass_is_no_success() {
        let failed = document(
            r#"{"outcome": "failed", "reason": "test", "checks": [{"name": "test", "pass": false, "detail": "1 != 2"}, 5]}"#,
        );
        assert_eq!(failed.caveat(), Some(Caveat::FailedTrial));
        assert_eq!(failed.checks, [TrialCheck { name: "test".into(), pass: false, detail: "1 != 2".into() }]);
        assert_eq!(document(r#"{"outcome": "infrastructure"}"#).caveat(), Some(Caveat::FailedTrial));
        assert_eq!(document(r#"{"outcome": "passed"}"#).caveat(), None);
        for unfinished in ["", "null", "{"] {
            assert_eq!(document(unfinished).caveat(), None, "{unfinished}");
        }
    }
}
