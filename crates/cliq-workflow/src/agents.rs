//! Agents that come with cliq (SPEC section 9).

/// Connectors: agents that fetch from services and publish to them.
pub const CONNECTORS: &[&str] =
    &["curl", "s3", "gdrive", "jira", "confluence", "zendesk", "hubspot", "datadog", "mesh"];

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

/// Whether an agent is a connector.
#[must_use]
pub fn is_connector(agent: &str) -> bool {
    CONNECTORS.contains(&agent)
}

/// Connectors that need an `action`.
pub(crate) fn needs_action(agent: &str) -> bool {
    matches!(agent, "jira" | "confluence" | "zendesk" | "hubspot" | "datadog")
}
