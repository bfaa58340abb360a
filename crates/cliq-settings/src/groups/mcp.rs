//! Settings `mcp.*`.

use std::collections::BTreeSet;
use std::time::Duration;

use super::group;
use crate::layers::Settings;
use crate::secret::Secret;
use crate::value::names;

group! {
    /// Settings of an MCP server.
    Shared struct McpServerSettings of server {
        "mcp.*.command", command: Option<String>, "a program that speaks MCP on standard input and output";
        "mcp.*.args", args: Vec<String>, "arguments of that program";
        "mcp.*.env", env: Vec<String>, "environment variables that the program keeps in its sandbox";
        @Person "mcp.*.trusted", trusted: bool = "false",
            "whether the program runs without a sandbox; only in the settings of a person";
        "mcp.*.url", url: Option<String> as Url, "an MCP server with streamable HTTP, in place of a program";
        "mcp.*.token", token: Option<Secret>, "the bearer token for that server";
        "mcp.*.timeout", timeout: Duration = "60s", "the most time for one request to an MCP server";
    }
}

impl McpServerSettings {
    /// Returns the names of all MCP servers that are set, sorted.
    #[must_use]
    pub fn names(settings: &Settings) -> BTreeSet<String> {
        names(settings, Self::KEYS)
    }
}
