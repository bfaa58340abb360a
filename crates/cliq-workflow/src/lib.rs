//! From `team.yml` to a workflow that can run (docs/team-yml.md).
//!
//! [`TeamFolder::load`] reads a team from disk and [`TeamFolder::check`] checks it: every problem at once, each with
//! place, code and remedy, and a [`ValidatedWorkflow`] if and only if none is an error. [`check`] does the same for a
//! text. Both spellings of the format, older and newer, become one model.
//!
//! A [`ValidatedWorkflow`] is made this way only, so its holder checks nothing again. Templates in it
//! are resolved when a phase starts, by [`resolve_text`] and, for shell commands, [`resolve_script`], which never puts
//! a value into the text of a script.
//!
//! Absent on purpose: running anything. Only [`TeamFolder`] touches the disk.

use std::sync::Arc;

mod agents;
mod bound;
mod conditions;
mod connectors;
mod definition;
mod fields;
mod folder;
mod globs;
mod graph;
mod model;
mod picture;
mod raw;
mod resolve;
mod schema;
mod shell;
mod skills;
mod template;
mod texts;
mod validate;

pub use agents::{BUILT_IN, is_connector};
pub use cliq_document::{Diagnostic, Severity, Span, count_by_severity, nearest};
pub use cliq_expr::{EvaluationError, Expression};
pub use cliq_protocol::parse_duration;
pub use connectors::{Action, CONNECTORS, Connector, Direction, GOOGLE, Setting};
pub use definition::DefinitionPart;

pub use folder::{EntryFile, LoadError, NoFiles, SchemaCheck, TeamFiles, TeamFolder, link_that_leaves};
pub use globs::{Glob, GlobError, parse_glob};
pub use model::{
    Agent, Command, FailureCause, ForEach, Input, Notify, Output, Phase, PhaseId, Retry, Rule, RuleCondition,
    RuleOutcome, Scope, ValidatedWorkflow,
};
pub use resolve::{ResolveError, Script, Values, resolve_script, resolve_text};
pub use schema::{field_list, json_schema};
pub use skills::{Skill, SkillProblem};
pub use template::{Step, Template};
pub use texts::TeamTexts;

/// Result of checking a team.yml.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TeamCheck {
    /// The workflow, if there is no error.
    pub workflow: Option<ValidatedWorkflow>,
    /// Every problem, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl TeamCheck {
    /// Whether there is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }
}

/// Remedy for an empty team.yml.
const EMPTY: &str = "a team needs `name:` and `workflow:`; `cliq team create` writes a first one";

/// Returns the document of a team.yml as JSON, unchecked. Returns null if the text is no YAML.
#[must_use]
pub fn document_of(text: &str) -> serde_json::Value {
    cliq_document::parse(text, "", &mut Vec::new()).map_or(serde_json::Value::Null, |node| node.to_json())
}

/// Checks the text of a team.yml, with `files` to look up what stands beside it.
#[must_use]
pub fn check(text: &str, files: &dyn TeamFiles) -> TeamCheck {
    let mut diagnostics = Vec::new();
    let workflow = cliq_document::parse(text, EMPTY, &mut diagnostics).and_then(|node| {
        let raw = raw::read(&node, &mut diagnostics)?;
        let mut workflow = validate::validate(&raw, files, &mut diagnostics)?;
        workflow.texts = Arc::new(TeamTexts::of(text, files));
        Some(workflow)
    });
    let mut diagnostics = cliq_document::finish(diagnostics);
    let has_errors = diagnostics.iter().any(|d| d.severity == Severity::Error);
    if workflow.is_none() && !has_errors {
        // Cannot happen: each reason against a workflow is an error of its own. It must not pass silently.
        let help = "please report this team.yml";
        let span = Span { line: 1, column: 1, start: 0, end: 0 };
        diagnostics.push(Diagnostic::error("invalid-team", span, "the team cannot be put together", help));
    }
    TeamCheck { workflow: workflow.filter(|_| !has_errors), diagnostics }
}

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
