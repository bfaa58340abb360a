//! Every field of a suite in one table: the reader checks against it, and the JSON Schema is made from it.

use cliq_document::{Field, Type, may, must, published_schema, schema_of};
use cliq_protocol::Effort;
use serde_json::Value;

use super::EndState;

pub(super) static SUITE: &[Field] = &[
    must("name", Type::Text, "Name of the suite: letters, digits, `-`, `_`, `.`."),
    may("description", Type::Text, "Purpose, in a sentence."),
    may("repeats", Type::Integer(1, 10_000), "Repeats of each case by each variant. Default: 5."),
    may("max_parallel", Type::Integer(1, 1000), "Maximum number of trials at the same time. Default: 2."),
    may(
        "margin",
        Type::Amount,
        "Difference of pass rates that is too small to matter, from 0 to 1. Default: 0.1.",
    ),
    may("timeout", Type::Duration, "Time limit of the run of a trial. Default: `1h`."),
    may(
        "budget",
        Type::Object(BUDGET),
        "Budget of all trials together. No trial starts after it is used up.",
    ),
    must("cases", Type::Objects(CASE), "Tasks with checks."),
    may("checks", Type::Objects(CHECK), "Checks of every case, beside those of the case."),
    must("variants", Type::Objects(VARIANT), "Teams, agents, models, settings and roles to compare."),
];

pub(super) static BUDGET: &[Field] = &[
    may("tokens", Type::Integer(1, i64::MAX), "Tokens of prompts and replies."),
    may("usd", Type::Amount, "US dollars."),
];

pub(super) static CASE: &[Field] = &[
    must("name", Type::Text, "Name of the case, unique in the suite."),
    may("requirement", Type::Text, "Requirement for the team."),
    may("requirement_file", Type::Text, "File with the requirement, relative to the suite."),
    may("inputs", Type::TextMap, "Values of the team's inputs."),
    may(
        "workspace",
        Type::TextOrObject(WORKSPACE),
        "Initial contents of the workspace: a folder relative to the suite, or a git repository.",
    ),
    may("checks", Type::Objects(CHECK), "Checks of the outcome. A trial passes if all pass."),
];

pub(super) static WORKSPACE: &[Field] = &[
    must("git", Type::Text, "Address of the repository, or a path relative to the suite."),
    may("revision", Type::Text, "Branch, tag or commit. Default: the default branch."),
];

pub(crate) static CHECK: &[Field] = &[
    may("name", Type::Text, "Name of the check, unique in the case. Default: its kind and number."),
    may("run", Type::Text, "Shell command in the workspace. Exit code 0 passes."),
    may("timeout", Type::Duration, "Time limit of the command. Default: `10m`."),
    may(
        "file",
        Type::TextOrObject(FILE),
        "Path of a file in the workspace, or a mapping with `path`. It must exist, unless `absent` or `matches` is given.",
    ),
    may("exists", Type::Bool, "Whether the file must exist."),
    may("absent", Type::Bool, "Whether the file must not exist."),
    may("matches", Type::Text, "Regular expression that the text of the file must match."),
    may(
        "expr",
        Type::Text,
        "Expression in CEL over `handoff`, `end`, `cost`, `tokens`, `duration` (seconds).",
    ),
    may("end", Type::Word(&EndState::WORDS), "End of the run. Without such a check a run must complete."),
    may("judge", Type::Object(JUDGE), "Agent that judges the outcome."),
];

pub(super) static FILE: &[Field] = &[
    must("path", Type::Text, "Path in the workspace."),
    may("exists", Type::Bool, "Whether the file must exist."),
    may("absent", Type::Bool, "Whether the file must not exist."),
    may("matches", Type::Text, "Regular expression that the text of the file must match."),
];

pub(super) static LABEL: &[Field] = &[
    must("case", Type::Text, "Case."),
    may("variant", Type::Text, "Variant. Default: each."),
    may("repeat", Type::Integer(1, 10_000), "Repeat. Default: each."),
    must("pass", Type::Bool, "Whether the person let it pass."),
];

pub(super) static JUDGE: &[Field] = &[
    may("agent", Type::Text, "Agent. Default: the default agent."),
    may("model", Type::Text, "Model of the agent."),
    may("rubric", Type::Text, "Criteria."),
    may("rubric_file", Type::Text, "File with the criteria, relative to the suite."),
    may("labels", Type::Any, "Judgements of people: a list, or a file with a JSON object per line."),
];

pub(super) static VARIANT: &[Field] = &[
    must("name", Type::Text, "Name of the variant, unique in the suite."),
    must("team", Type::Text, "Team: `@scope/name`, or a folder relative to the suite."),
    may("agent", Type::Text, "Agent for phases that name none."),
    may("model", Type::Text, "Model of `agent`."),
    may("effort", Type::Word(&Effort::WORDS), "Effort of `agent`, a model behind an API."),
    may("temperature", Type::Number(0, 2), "Temperature of `agent`, a model behind an API."),
    may("settings", Type::TextMap, "Settings of the runs, such as `budget.usd: 2`."),
    may(
        "roles",
        Type::TextMap,
        "Files that replace roles of the team, by name of the role, relative to the suite.",
    ),
    may(
        "skills",
        Type::Text,
        "Folder with skills that replaces the `skills` of the team, relative to the suite.",
    ),
];

/// Objects with their tables, for the documentation.
static OBJECTS: &[(&str, &[Field])] = &[
    ("suite", SUITE),
    ("budget", BUDGET),
    ("case", CASE),
    ("workspace", WORKSPACE),
    ("check", CHECK),
    ("file", FILE),
    ("judge", JUDGE),
    ("label", LABEL),
    ("variant", VARIANT),
];

/// Returns the JSON Schema (draft 2020-12) of a suite.
#[must_use]
pub fn suite_schema() -> Value {
    published_schema(schema_of(SUITE), "suite", "cliq suite", "Suite of an evaluation with cliq eval.")
}

/// Returns every field of a suite: its object, its name, whether it is required, and its description.
pub fn field_list() -> impl Iterator<Item = (&'static str, &'static str, bool, &'static str)> {
    OBJECTS.iter().flat_map(|(title, fields)| {
        fields.iter().map(move |field| (*title, field.name, field.required, field.doc))
    })
}
