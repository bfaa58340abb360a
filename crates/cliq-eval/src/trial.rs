//! Trials: one run of a case by a variant, and its result.

use cliq_model::{RunTotals, TrialRow, TrialState};
use serde::{Deserialize, Serialize};

use crate::suite::Suite;

/// Result of a trial, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    /// Outcome.
    pub outcome: TrialOutcome,
    /// Reason why the trial did not pass, or did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// End of the run: `completed`, `escalated`, `failed`, `cancelled`. `None` if the run has no recorded end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Outcomes of the checks.
    #[serde(default)]
    pub checks: Vec<CheckResult>,
    /// Usage of the run and of judges, of all attempts.
    #[serde(default)]
    pub usage: RunTotals,
    /// Usage of the run of the attempt that counts, which `usage` includes.
    #[serde(default)]
    pub run_usage: RunTotals,
    /// Usage of judges, which `usage` includes.
    #[serde(default)]
    pub judge_usage: RunTotals,
    /// Duration of the run in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
}

/// Outcome of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    /// All checks passed.
    Passed,
    /// A check failed.
    Failed,
    /// The infrastructure failed in every attempt. The trial does not count.
    Infrastructure,
    /// The trial was not started: the budget was used up.
    Skipped,
}

impl TrialOutcome {
    /// Whether the trial counts, and if so whether it passed.
    #[must_use]
    pub fn counts(self) -> Option<bool> {
        match self {
            Self::Passed => Some(true),
            Self::Failed => Some(false),
            Self::Infrastructure | Self::Skipped => None,
        }
    }
}

/// Outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Name of the check.
    pub name: String,
    /// Whether the check passed.
    pub pass: bool,
    /// Output of the command, reason of the judge, or value that did not fit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl TrialResult {
    /// Returns the result of a trial that has no run: the budget was used up, or nothing could be started.
    #[must_use]
    pub fn without_run(outcome: TrialOutcome, reason: String, usage: RunTotals) -> Self {
        Self {
            outcome,
            reason: Some(reason),
            end: None,
            checks: Vec::new(),
            usage,
            run_usage: RunTotals::default(),
            judge_usage: RunTotals::default(),
            duration_ms: 0,
        }
    }
}

/// Returns the trials of a suite. Repeats are the outermost order and variants the innermost, so that the variants have the same
/// number of trials at each moment, and drifts of a provider affect them equally.
#[must_use]
pub fn trials_of(suite: &Suite) -> Vec<TrialRow> {
    let mut trials = Vec::with_capacity(suite.trials());
    for repeat in 1..=suite.repeats {
        for case in &suite.cases {
            for variant in &suite.variants {
                trials.push(TrialRow {
                    number: u32::try_from(trials.len() + 1).unwrap_or(u32::MAX),
                    variant: variant.name.clone(),
                    case: case.name.clone(),
                    repeat,
                    state: TrialState::Pending,
                    attempts: 0,
                    run_id: None,
                    result: String::new(),
                });
            }
        }
    }
    trials
}
