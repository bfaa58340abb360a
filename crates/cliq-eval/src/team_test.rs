//! Tests of a team with scripted agents (docs/team-test.md).
//!
//! [`read_tests`] reads a file of tests against its team, and reports every problem with its place and remedy. [`run_test`] runs one in a
//! temporary workspace.

mod compare;
mod expect;
mod fields;
mod read;
mod replies;
mod run;

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_project::{CommandScript, Script, ScriptedReport};
use serde::Serialize;

use crate::suite::CheckSpec;
use crate::trial::CheckResult;
pub use fields::{test_field_list, test_schema};
pub use read::{TestsCheck, read_tests};
pub use run::run_test;

/// Test of a team.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TeamTest {
    /// Name, unique in the file.
    pub name: String,
    /// Requirement for the team.
    pub requirement: String,
    /// Values of the team's inputs.
    pub inputs: BTreeMap<String, String>,
    /// Folder that is copied into the workspace.
    pub workspace: Option<Utf8PathBuf>,
    /// Files of the workspace with their contents.
    pub files: BTreeMap<String, String>,
    /// Time limit of the run.
    pub timeout: Duration,
    /// Replies of the agents.
    pub script: Script,
    /// Results of commands that are not run.
    pub commands: CommandScript,
    /// Number of scripted results by phase and command, to find unused ones.
    pub(crate) scripted_results: BTreeMap<(String, String), usize>,
    /// Expectations.
    pub(crate) expect: Expectations,
    /// Checks of the outcome.
    pub(crate) checks: Vec<CheckSpec>,
}

/// Expectations of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Expectations {
    pub(crate) end: String,
    pub(crate) reasons: Vec<String>,
    pub(crate) order: Vec<String>,
    pub(crate) runs: BTreeMap<String, u32>,
    pub(crate) verdicts: BTreeMap<String, Vec<String>>,
    pub(crate) prompts: Vec<PromptExpectation>,
    pub(crate) commands: BTreeMap<(String, String), Vec<CommandEnd>>,
}

/// Result of a command that a test expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandEnd {
    Pass,
    Fail,
    Skip,
}

impl CommandEnd {
    pub(crate) const WORDS: [&str; 3] = ["pass", "fail", "skip"];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Skip => "skip",
        }
    }
}

/// Contents of prompts that a test expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptExpectation {
    pub(crate) phase: String,
    pub(crate) activation: Option<u32>,
    pub(crate) item: Option<u32>,
    pub(crate) contains: Vec<String>,
    pub(crate) lacks: Vec<String>,
}

/// Result of a test.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TestResult {
    /// Name of the test.
    pub name: String,
    /// Whether the run was as expected.
    pub pass: bool,
    /// Differences from the expectations, in sentences.
    pub failures: Vec<String>,
    /// Results of the checks.
    pub checks: Vec<CheckResult>,
    /// Duration of the run in milliseconds.
    pub duration_ms: u64,
    /// The run; `None` if it could not be started.
    pub run: Option<ScriptedReport>,
}

impl TestResult {
    /// Returns the result of a test whose run could not be started.
    #[must_use]
    pub fn not_started(name: &str, error: &crate::EvalError) -> Self {
        Self {
            name: name.to_owned(),
            pass: false,
            failures: vec![format!("the run cannot start: {error}")],
            checks: Vec::new(),
            duration_ms: 0,
            run: None,
        }
    }
}
