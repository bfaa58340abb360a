//! Report of an evaluation. Pure: computed from the suite and the stored trials.

mod build;
mod html;
mod markdown;
mod words;

use std::collections::BTreeMap;

use cliq_model::RunTotals;
use cliq_protocol::{RunId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::statistics::{Comparison, Interval};
use crate::trial::TrialOutcome;

pub use build::{Selection, compare_reports};
pub use words::{dollars, percent, percent_interval, seconds};

/// Version of the JSON document.
pub const VERSION: u32 = 1;

/// Report of an evaluation. Serialized, it is the document of `cliq eval --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of the document.
    pub version: u32,
    /// Id of the evaluation.
    pub id: String,
    /// Name of the suite.
    pub suite: String,
    /// Time of the start, UTC.
    pub created_at: Timestamp,
    /// Time of the end, UTC. `null` while trials are left.
    pub ended_at: Option<Timestamp>,
    /// Number of repeats of each case.
    pub repeats: u32,
    /// Difference of pass rates that is too small to matter.
    pub margin: f64,
    /// Numbers of trials.
    pub counts: TrialCounts,
    /// Usage of all attempts and judges.
    pub usage: RunTotals,
    /// Usage of judges, which `usage` includes.
    pub judge_usage: RunTotals,
    /// Summary of each variant, in the order of the suite.
    pub variants: Vec<VariantReport>,
    /// Summary of each case, in the order of the suite.
    pub cases: Vec<CaseReport>,
    /// Comparisons of all pairs of variants.
    pub comparisons: Vec<PairReport>,
    /// Checks with their numbers, in the order of the suite.
    pub checks: Vec<CheckReport>,
    /// Judges whose judgements are compared with those of people.
    pub judges: Vec<JudgeReport>,
    /// Trials in the order of their numbers.
    pub trials: Vec<TrialReport>,
}

/// Numbers of trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TrialCounts {
    /// All trials.
    pub all: u64,
    /// Trials that count: passed or failed.
    pub counted: u64,
    /// Trials that passed.
    pub passed: u64,
    /// Trials whose infrastructure failed in every attempt.
    pub infrastructure: u64,
    /// Trials that did not start because the budget was used up.
    pub skipped: u64,
    /// Trials without a result.
    pub left: u64,
}

/// Summary of trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Trials that count.
    pub trials: u64,
    /// Trials that passed.
    pub passed: u64,
    /// Pass rate, from 0 to 1. `null` without trials.
    pub pass_rate: Option<f64>,
    /// Wilson interval of the pass rate at 95 %.
    pub pass_rate_interval: Interval,
    /// Cost of the runs in US dollars, without judges. `null` if no cost is known.
    pub cost_usd: Option<Spread>,
    /// Tokens of the runs, without judges.
    pub tokens: Option<Spread>,
    /// Duration of the runs in seconds.
    pub duration_s: Option<Spread>,
    /// Trials whose infrastructure failed.
    pub infrastructure: u64,
    /// Trials that were skipped.
    pub skipped: u64,
}

/// Median, 90th percentile and sum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// 90th percentile.
    pub p90: f64,
    /// Sum.
    pub total: f64,
}

/// Summary of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantReport {
    /// Name.
    pub name: String,
    /// Team.
    pub team: String,
    /// Agent for phases that name none.
    pub agent: Option<String>,
    /// Model of the agent.
    pub model: Option<String>,
    /// Settings of the runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Names of the replaced roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Folder with skills in place of those of the team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<String>,
    /// Numbers.
    #[serde(flatten)]
    pub summary: Summary,
    /// pass^k: probability that all repeats of a case pass.
    pub pass_power: Option<PassPower>,
    /// Probability that two repeats of a case differ.
    pub flip_rate: Option<f64>,
}

impl VariantReport {
    /// Returns a sentence with the team, agent, model, settings, roles and skills of the variant.
    #[must_use]
    pub fn used(&self) -> String {
        // A folder is told by its name: its path is that of one machine.
        let name = |place: &str| match place.starts_with('/') {
            true => format!("{}/", camino::Utf8Path::new(place).file_name().unwrap_or(place)),
            false => place.to_owned(),
        };
        let mut parts = vec![format!("team {}", name(&self.team))];
        parts.extend(self.agent.iter().map(|agent| format!("agent {agent}")));
        parts.extend(self.model.iter().map(|model| format!("model {model}")));
        parts.extend(self.settings.iter().map(|(key, value)| format!("{key} {value}")));
        if !self.roles.is_empty() {
            parts.push(format!("roles {}", self.roles.join(", ")));
        }
        parts.extend(self.skills.iter().map(|folder| format!("skills {}", name(folder))));
        parts.join("; ")
    }
}

/// pass^k.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PassPower {
    /// Number of repeats.
    pub k: u64,
    /// Probability.
    pub value: f64,
}

/// Summary of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseReport {
    /// Name.
    pub name: String,
    /// Summary by variant.
    pub variants: BTreeMap<String, Summary>,
}

/// Comparison of two variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairReport {
    /// First variant.
    pub first: String,
    /// Second variant.
    pub second: String,
    /// Numbers and conclusion.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// Conclusion as a sentence.
    pub sentence: String,
}

/// Numbers of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// Case.
    pub case: String,
    /// Name of the check.
    pub check: String,
    /// Trials in which the check passed.
    pub passed: u64,
    /// Trials in which the check failed.
    pub failed: u64,
    /// Mark of a check that tells nothing.
    pub mark: Option<CheckMark>,
}

/// Mark of a check that does not tell the variants apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckMark {
    /// The check passed in each trial.
    NeverFailed,
    /// The check failed in each trial.
    NeverPassed,
}

impl CheckMark {
    /// Returns the mark in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::NeverFailed => "never failed",
            Self::NeverPassed => "never passed",
        }
    }
}

/// Agreement of a judge with people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeReport {
    /// Name of the check.
    pub check: String,
    /// Number of judgements of people that fit a trial.
    pub labels: u64,
    /// Number of them with which the judge agrees.
    pub agreed: u64,
    /// Share of agreement, from 0 to 1.
    pub agreement: Option<f64>,
    /// Wilson interval of the agreement at 95 %.
    pub agreement_interval: Interval,
    /// Trials that the judge let pass, and people did not.
    pub too_lenient: u64,
    /// Trials that people let pass, and the judge did not.
    pub too_strict: u64,
}

/// Trial in a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialReport {
    /// Number, 1-based.
    pub number: u32,
    /// Variant.
    pub variant: String,
    /// Case.
    pub case: String,
    /// Repeat, 1-based.
    pub repeat: u32,
    /// Outcome. `null` without a result.
    pub outcome: Option<TrialOutcome>,
    /// Reason why the trial did not pass, or did not count.
    pub reason: Option<String>,
    /// Names of the checks that failed.
    pub failed_checks: Vec<String>,
    /// Id of the run.
    pub run_id: Option<RunId>,
    /// Directory of the workspace with journal, transcripts and handoffs.
    pub workspace: String,
    /// Path of the page in the dashboard of a server.
    pub page: String,
    /// Attempts that ended with an infrastructure error.
    pub attempts: u32,
    /// Cost in US dollars, without judges.
    pub cost_usd: Option<f64>,
    /// Duration in seconds.
    pub duration_s: f64,
}
