//! Every field of `triggers.yml` in one table: the reader checks against it, and the JSON Schema is made from it.

use cliq_document::{Field, Type, may, must, published_schema, schema_of};
use serde_json::Value;

use crate::model::Policy;
use crate::presets::Preset;
use crate::schedule::CatchUp;
use crate::signature::Scheme;

pub(super) static FILE: &[Field] = &[must("triggers", Type::Objects(TRIGGER), "Triggers.")];

pub(super) static TRIGGER: &[Field] = &[
    must("name", Type::Text, "Name, unique in the file: lower-case letters, digits, `-`."),
    may("schedule", Type::Object(SCHEDULE), "Source: times."),
    may("webhook", Type::Object(WEBHOOK), "Source: requests to `/hooks/NAME`."),
    may("after", Type::Object(AFTER), "Source: ends of runs."),
    may("files", Type::Object(FILES), "Source: changed files of a project."),
    may(
        "preset",
        Type::Word(&Preset::WORDS),
        "Preset of a webhook: condition, title, requirement and group.",
    ),
    may(
        "when",
        Type::Text,
        "Condition in CEL over `headers`, `body`, `run`, `files`, `now`. Beside that of the preset.",
    ),
    may("concurrency", Type::Object(CONCURRENCY), "Runs that must not work at the same time."),
    may("team", Type::Text, "Team, `@scope/name`. May be left out if the project has an assembled team."),
    may(
        "project",
        Type::Text,
        "Project to work in: its directory, or its id at the server. Default: a workspace of its own.",
    ),
    may("title", Type::Text, "Title of the run. A template."),
    may("requirement", Type::Text, "Requirement for the team. A template."),
    may("inputs", Type::TextMap, "Values of the team's inputs. Templates."),
    may("repos", Type::Texts, "Repositories to clone into the workspace. Templates."),
    may("agent", Type::Text, "Agent for phases that name none."),
    may("budget", Type::Object(BUDGET), "Budget of the run."),
    may(
        "sandbox",
        Type::Word(&["off", "workspace", "strict"]),
        "Sandbox around the run. Default: `server.sandbox` for webhooks, `off` for other sources.",
    ),
];

pub(super) static SCHEDULE: &[Field] = &[
    must("cron", Type::Text, "Cron expression: minute, hour, day, month, weekday; seconds may come first."),
    may("timezone", Type::Text, "Name of a time zone, such as `Europe/Berlin`. Default: `UTC`."),
    may("catch_up", Type::Word(&CatchUp::WORDS), "Policy for ticks that were missed. Default: `none`."),
    may(
        "overlap",
        Type::Word(&Policy::WORDS),
        "Policy for a tick while the last run is active. Default: `queue`.",
    ),
];

pub(super) static WEBHOOK: &[Field] = &[
    may("signature", Type::Word(&Scheme::WORDS), "Signature scheme. Needed without a preset."),
    must("secret", Type::Text, "Name of the secret: the setting `triggers.secrets.NAME`."),
];

pub(super) static AFTER: &[Field] = &[
    may("team", Type::Text, "Team of the run, `@scope/name`. Default: any."),
    may(
        "state",
        Type::WordOrTexts(&["completed", "escalated", "failed", "cancelled", "any"]),
        "State of the end, or a list. Default: `completed`.",
    ),
];

pub(super) static FILES: &[Field] = &[
    may(
        "project",
        Type::Text,
        "Project with the files: its directory, or its id. Default: the trigger's `project`.",
    ),
    must("glob", Type::Text, "Glob relative to the project, such as `docs/**/*.md`."),
    may("debounce", Type::Duration, "Time without changes after which the trigger fires. Default: `2s`."),
];

pub(super) static CONCURRENCY: &[Field] = &[
    may("group", Type::Text, "Name of the group. A template. Default: that of the preset, or the trigger."),
    may("policy", Type::Word(&Policy::WORDS), "Policy while a run of the group is active. Default: `queue`."),
];

pub(super) static BUDGET: &[Field] = &[
    may("tokens", Type::Integer(1, i64::MAX), "Tokens of prompts and replies."),
    may("usd", Type::Amount, "US dollars."),
];

/// Returns the JSON Schema (draft 2020-12) of `triggers.yml`.
#[must_use]
pub fn triggers_schema() -> Value {
    published_schema(
        schema_of(FILE),
        "triggers",
        "cliq triggers",
        "Triggers of a cliq server: CLIQ_HOME/triggers.yml.",
    )
}

#[cfg(test)]
mod tests {
    use cliq_protocol::Profile;

    use super::*;

    #[test]
    fn words_of_sandboxes_are_the_profiles() {
        let field = TRIGGER.iter().find(|field| field.name == "sandbox").expect("a field");
        let Type::Word(words) = field.ty else { panic!("{field:?}") };
        assert_eq!(words, Profile::ALL.map(|profile| profile.to_string()));
    }
}
