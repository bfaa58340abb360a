//! Suite of an evaluation: cases, checks, variants (docs/eval.md).
//!
//! A [`Suite`] is made by [`read_suite`], which reports every problem with its place and remedy. It contains the contents of all files
//! that the suite names but those of workspaces and teams, so that a resumed evaluation uses what it was started with.

pub(crate) mod fields;
pub(crate) mod read;
pub(crate) mod read_check;

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_protocol::Budget;
use serde::{Deserialize, Serialize};

pub use fields::{field_list, suite_schema};
pub use read::{SuiteCheck, read_suite};

/// Suite: each case is run by each variant, several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suite {
    /// Name: letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// Number of repeats of each case by each variant.
    pub repeats: u32,
    /// Maximum number of trials at the same time.
    pub max_parallel: u32,
    /// Difference of pass rates that is too small to matter, from 0 to 1.
    pub margin: f64,
    /// Time limit of the run of a trial, in seconds.
    pub timeout_s: u64,
    /// Budget of all trials together.
    #[serde(default)]
    pub budget: SuiteBudget,
    /// Cases.
    pub cases: Vec<Case>,
    /// Variants.
    pub variants: Vec<Variant>,
}

/// Limits on the usage of all trials together. No trial starts after one is reached.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct SuiteBudget {
    /// Tokens of prompts and replies.
    pub tokens: Option<u64>,
    /// US dollars.
    pub usd: Option<f64>,
}

impl From<SuiteBudget> for Budget {
    fn from(budget: SuiteBudget) -> Self {
        Self { tokens: budget.tokens, usd: budget.usd }
    }
}

/// Task with checks of its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Name, unique in the suite.
    pub name: String,
    /// Requirement for the team.
    pub requirement: String,
    /// Values of the team's inputs.
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
    /// Initial contents of the workspace. Empty without it.
    #[serde(default)]
    pub workspace: Option<WorkspaceSource>,
    /// Checks. A trial passes if all of them pass.
    pub checks: Vec<CheckSpec>,
}

/// Initial contents of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceSource {
    /// Copy of a folder.
    Folder(Utf8PathBuf),
    /// Clone of a repository.
    Git {
        /// Address, or path of a local repository.
        url: String,
        /// Branch, tag or commit. The default branch without it.
        revision: Option<String>,
    },
}

/// Check of the outcome of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckSpec {
    /// Name, unique in the case.
    pub name: String,
    /// Kind with its parameters.
    pub kind: CheckKind,
}

/// Kind of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckKind {
    /// Shell command in the workspace. Passes with exit code 0.
    Run {
        /// Command.
        command: String,
        /// Time limit in seconds.
        timeout_s: u64,
    },
    /// File of the workspace.
    File {
        /// Path in the workspace.
        path: String,
        /// Rule.
        rule: FileRule,
    },
    /// Expression in CEL over `handoff`, `end`, `cost`, `tokens`, `duration`. Passes if it is true.
    Expr(String),
    /// End of the run.
    End(EndState),
    /// Judgement of an agent.
    Judge(JudgeSpec),
}

/// Rule for a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileRule {
    /// The file exists.
    Exists,
    /// The file does not exist.
    Absent,
    /// The text of the file matches a regular expression.
    Matches(String),
}

/// End of a run that a check requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndState {
    /// All phases are complete.
    Completed,
    /// A person is needed.
    Escalated,
}

impl EndState {
    /// Names of the ends.
    pub const WORDS: [&str; 2] = ["completed", "escalated"];

    /// Returns the name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Escalated => "escalated",
        }
    }
}

/// Judge: an agent with a rubric. It works on a copy of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeSpec {
    /// Agent. The default agent without it.
    pub agent: Option<String>,
    /// Model of the agent.
    pub model: Option<String>,
    /// Criteria.
    pub rubric: String,
    /// Judgements of people, with which the judge is compared.
    #[serde(default)]
    pub labels: Vec<Label>,
}

/// Judgement of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Variant. Each variant without it.
    #[serde(default)]
    pub variant: Option<String>,
    /// Case.
    pub case: String,
    /// Repeat, 1-based. Each repeat without it.
    #[serde(default)]
    pub repeat: Option<u32>,
    /// Whether the person let it pass.
    pub pass: bool,
}

/// Variant: a team with an agent, a model, settings and roles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Name, unique in the suite.
    pub name: String,
    /// Team: `@scope/name`, or the absolute path of a folder.
    pub team: String,
    /// Agent for phases that name none.
    #[serde(default)]
    pub agent: Option<String>,
    /// Model of this agent.
    #[serde(default)]
    pub model: Option<String>,
    /// Settings of the runs.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Texts that replace roles of the team, by name of the role.
    #[serde(default)]
    pub roles: BTreeMap<String, String>,
    /// Absolute path of a folder with skills that replaces those of the team.
    #[serde(default)]
    pub skills: Option<String>,
}

impl Suite {
    /// Returns the time limit of the run of a trial.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s)
    }

    /// Finds a case by its name.
    #[must_use]
    pub fn case(&self, name: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.name == name)
    }

    /// Finds a variant by its name.
    #[must_use]
    pub fn variant(&self, name: &str) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// Returns the number of trials.
    #[must_use]
    pub fn trials(&self) -> usize {
        self.cases.len() * self.variants.len() * self.repeats as usize
    }
}
