//! Servers of tools that a team declares (docs/models.md).

use camino::Utf8Path;
use serde::{Deserialize, Serialize};

/// MCP server of a team: a program that speaks on standard input and output, or a URL with streamable HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct McpServerSpec {
    /// Program. A relative path with a `/` is below the team folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Arguments of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables that the program keeps in its sandbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// URL, in place of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Deadline of a request in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

impl McpServerSpec {
    /// Path of the program below the team folder, if it is there.
    #[must_use]
    pub fn program_of_team(&self) -> Option<&Utf8Path> {
        let command = self.command.as_deref().map(Utf8Path::new)?;
        (command.is_relative() && command.as_str().contains('/')).then_some(command)
    }
}

/// Whether a text can be the name of a server: lower-case letters, digits and single hyphens, at most 32 characters.
#[must_use]
pub fn is_mcp_server_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 32
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}
