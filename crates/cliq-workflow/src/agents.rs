//! Agents that come with cliq (docs/team-yml.md).

use crate::connectors::Connector;

/// All built-in agents, connectors included.
pub const BUILT_IN: &[&str] = &[
    "claude-code",
    "cursor",
    "gemini",
    "codex",
    "openai-api",
    "claude-api",
    "gemini-api",
    "a2a",
    "builder",
    "exec",
    "rules",
    "hug",
    "team",
    "slack",
    "webhook",
    "email",
    "curl",
    "s3",
    "gdrive",
    "jira",
    "confluence",
    "zendesk",
    "hubspot",
    "datadog",
    "mesh",
];

/// Built-in agents of standard phases that keep no conversation with a model.
pub(crate) const WITHOUT_CONVERSATION: &[&str] = &["a2a", "builder", "exec"];

/// Whether an agent is a connector. `mesh` counts as one: it has no role.
#[must_use]
pub fn is_connector(agent: &str) -> bool {
    agent == "mesh" || Connector::find(agent).is_some()
}
