//! Every field of a file of tests in one table: the reader checks against it, and the JSON Schema is made from it.

use cliq_document::{Field, Type, may, must, published_schema, schema_of};
use serde_json::Value;

use crate::suite::fields::CHECK;

/// Ends of a run that a test may expect.
pub(super) const ENDS: [&str; 3] = ["completed", "escalated", "failed"];

pub(super) static FILE: &[Field] =
    &[must("tests", Type::Objects(TEST), "Tests, each with a run of its own.")];

pub(super) static TEST: &[Field] = &[
    must("name", Type::Text, "Name of the test, unique in the file: letters, digits, `-`, `_`, `.`."),
    may("requirement", Type::Text, "Requirement for the team. Default: `Test of the team.`"),
    may("inputs", Type::TextMap, "Values of the team's inputs."),
    may("workspace", Type::Text, "Folder that is copied into the workspace, relative to the file of tests."),
    may("files", Type::TextMap, "Files of the workspace with their contents, beside those of `workspace`."),
    may("timeout", Type::Duration, "Time limit of the run. Default: `2m`."),
    may(
        "replies",
        Type::ObjectsMap(REPLY),
        "Replies of each phase, in the order of its activations. A phase without an entry gives default replies: a text, and at a gate a PASS.",
    ),
    may(
        "commands",
        Type::Any,
        "Results of commands that are not run: `PHASE: {COMMAND: [fail, pass]}`, by activation. The last one counts for all later ones.",
    ),
    may("expect", Type::Object(EXPECT), "Expectations of the run."),
    may("checks", Type::Objects(CHECK), "Checks of the outcome as in a suite: `run`, `file` and `expr`."),
];

pub(super) static REPLY: &[Field] = &[
    may("item", Type::Integer(0, 100_000), "Item of a phase with `for_each`, 0-based. Default: each item."),
    may("text", Type::Text, "Text that is handed over."),
    may("data", Type::Any, "Data that is handed over, a mapping. At a human gate, values of the inputs."),
    may("files", Type::TextMap, "Files that the agent writes, with their contents."),
    may("remove", Type::Texts, "Files that the agent removes."),
    may(
        "verdict",
        Type::Text,
        "Verdict of a gate: `pass`, `escalate`, or the phase that the work goes back to.",
    ),
    may("reason", Type::Text, "Reason of the verdict."),
    may("error", Type::Text, "Message of a failure: the agent fails with it."),
];

pub(super) static EXPECT: &[Field] = &[
    may(
        "end",
        Type::Word(&ENDS),
        "End of the run: `completed`, `escalated` or `failed`. Default: `completed`.",
    ),
    may("reason", Type::TextOrTexts, "Texts that the reason of the end contains."),
    may(
        "order",
        Type::Texts,
        "Phases in the order of their starts. A phase that runs again is there again; other phases may start in between.",
    ),
    may("runs", Type::Any, "Number of starts of phases: `PHASE: NUMBER`. Items of a list count as one."),
    may(
        "verdicts",
        Type::Any,
        "All verdicts of gates in their order: `GATE: [PHASE, pass]`, with `pass`, `escalate` or the phase that the work went back to.",
    ),
    may("prompts", Type::Objects(PROMPT), "Contents of the prompts that agents got."),
    may(
        "commands",
        Type::Any,
        "Results of commands by activation: `PHASE: {COMMAND: [fail, pass]}`, or `skip`.",
    ),
];

pub(super) static PROMPT: &[Field] = &[
    must("phase", Type::Text, "Phase."),
    may("activation", Type::Integer(1, 100_000), "Number of the activation. Default: each."),
    may("item", Type::Integer(0, 100_000), "Item of a phase with `for_each`, 0-based. Default: each."),
    may("contains", Type::TextOrTexts, "Texts that the prompt contains."),
    may("lacks", Type::TextOrTexts, "Texts that the prompt does not contain."),
];

/// Objects with their tables, for the documentation.
static OBJECTS: &[(&str, &[Field])] =
    &[("file", FILE), ("test", TEST), ("reply", REPLY), ("expect", EXPECT), ("prompt", PROMPT)];

/// Returns the JSON Schema (draft 2020-12) of a file of tests.
#[must_use]
pub fn test_schema() -> Value {
    published_schema(
        schema_of(FILE),
        "team-tests",
        "cliq team tests",
        "Tests of a team with scripted agents, for cliq team test.",
    )
}

/// Returns every field of a file of tests: its object, its name, whether it is required, and its description.
pub fn test_field_list() -> impl Iterator<Item = (&'static str, &'static str, bool, &'static str)> {
    OBJECTS.iter().flat_map(|(title, fields)| {
        fields.iter().map(move |field| (*title, field.name, field.required, field.doc))
    })
}
