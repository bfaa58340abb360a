//! Tools of model agents (docs/models.md): names, and selections of them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Names of the built-in tools.
pub const TOOL_NAMES: [&str; 14] = [
    "read_file",
    "read_image",
    "list_files",
    "search",
    "edit_file",
    "apply_patch",
    "write_file",
    "run_command",
    "read_output",
    "stop_command",
    "fetch_page",
    "report_progress",
    "todo",
    "ask_person",
];
/// Built-in tools of the selection `read`: without effects, and without waiting for people.
const READING: [&str; 7] =
    ["read_file", "read_image", "list_files", "search", "fetch_page", "report_progress", "todo"];
/// Tool that asks people.
const ASK_PERSON: &str = "ask_person";
/// Tools for commands that run in the background.
const OF_COMMANDS: [&str; 2] = ["read_output", "stop_command"];
/// Separator between the name of an MCP server and that of its tool.
pub const MCP_SEPARATOR: &str = "__";

/// Selection of the tools that a model agent may call: `none`, `read`, `full`, or a list of names.
///
/// A tool of an MCP server is called `SERVER__TOOL`. In a list, `SERVER__*` stands for all tools of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentTools {
    /// No tools.
    None,
    /// Built-in tools that change nothing.
    Read,
    /// All tools, those of MCP servers included.
    Full,
    /// The tools of a list.
    Only(Vec<String>),
}

impl AgentTools {
    /// Words that stand for a selection.
    pub const WORDS: [&str; 3] = ["none", "read", "full"];

    /// Parses a word or a list of names. Names are separated by commas or blanks.
    ///
    /// # Errors
    /// Returns the first name that is neither a built-in tool nor of the form `SERVER__TOOL`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "none" => Ok(Self::None),
            "read" => Ok(Self::Read),
            "full" => Ok(Self::Full),
            list => {
                let names = list.split([',', ' ', '\n']).filter(|name| !name.is_empty());
                Self::of_names(names.map(str::to_owned).collect())
            }
        }
    }

    /// Makes a selection of names.
    ///
    /// # Errors
    /// Returns the first name that is neither a built-in tool nor of the form `SERVER__TOOL`.
    pub fn of_names(names: Vec<String>) -> Result<Self, String> {
        let is_known = |name: &str| {
            let of_server = name.split_once(MCP_SEPARATOR);
            TOOL_NAMES.contains(&name)
                || of_server.is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty())
        };
        match names.iter().find(|name| !is_known(name)) {
            Some(unknown) => Err(unknown.clone()),
            None => Ok(Self::Only(names)),
        }
    }

    /// Whether a tool may be called.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::Read => READING.contains(&name),
            Self::Full => true,
            Self::Only(names) => names.iter().any(|allowed| match allowed.strip_suffix('*') {
                Some(prefix) => prefix.ends_with(MCP_SEPARATOR) && name.starts_with(prefix),
                // Whoever may start a command may look at it and end it.
                None => allowed == name || allowed == "run_command" && OF_COMMANDS.contains(&name),
            }),
        }
    }

    /// Whether a tool that changes files or starts programs may be called.
    #[must_use]
    pub fn allows_changes(&self) -> bool {
        self.built_in().any(|name| !READING.contains(&name) && name != ASK_PERSON)
    }

    /// Whether a tool of an MCP server may be called.
    #[must_use]
    pub fn allows_mcp(&self) -> bool {
        match self {
            Self::Full => true,
            Self::None | Self::Read => false,
            Self::Only(names) => names.iter().any(|name| name.contains(MCP_SEPARATOR)),
        }
    }

    /// Names of the built-in tools in the selection.
    pub fn built_in(&self) -> impl Iterator<Item = &'static str> + '_ {
        TOOL_NAMES.into_iter().filter(|name| self.allows(name))
    }
}

impl std::fmt::Display for AgentTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Read => f.write_str("read"),
            Self::Full => f.write_str("full"),
            Self::Only(names) if names.is_empty() => f.write_str("none"),
            Self::Only(names) => f.write_str(&names.join(", ")),
        }
    }
}

impl Serialize for AgentTools {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Only(names) => names.serialize(serializer),
            word => serializer.serialize_str(&word.to_string()),
        }
    }
}

impl<'de> Deserialize<'de> for AgentTools {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let unknown = |name: String| {
            serde::de::Error::custom(format!(
                "`{name}` is not a tool; there are {}, `none`, `read`, `full`, and SERVER__TOOL",
                TOOL_NAMES.join(", ")
            ))
        };
        match Value::deserialize(deserializer)? {
            Value::String(text) => Self::parse(&text).map_err(unknown),
            Value::Array(items) => {
                let names = items.into_iter().map(|item| match item {
                    Value::String(name) => Ok(name),
                    other => {
                        Err(serde::de::Error::custom(format!("expected the name of a tool, found {other}")))
                    }
                });
                Self::of_names(names.collect::<Result<_, _>>()?).map_err(unknown)
            }
            other => {
                Err(serde::de::Error::custom(format!("expected a word or a list of names, found {other}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_allow_what_they_name() {
        let list = AgentTools::parse("read_file, docs__*, git__log").expect("valid");
        for (name, allowed) in [
            ("read_file", true),
            ("write_file", false),
            ("docs__find", true),
            ("git__log", true),
            ("git__push", false),
            ("docs", false),
        ] {
            assert_eq!(list.allows(name), allowed, "{name}");
        }
        assert!(list.allows_mcp() && !list.allows_changes());
        assert!(AgentTools::Read.allows("search") && !AgentTools::Read.allows("run_command"));
        assert!(AgentTools::Full.allows("any__thing") && AgentTools::Full.allows_changes());
        assert_eq!(AgentTools::None.built_in().count(), 0);
        assert_eq!(AgentTools::parse("read_file, bash"), Err("bash".to_owned()));
        assert_eq!(AgentTools::parse("__x"), Err("__x".to_owned()));
    }

    #[test]
    fn selections_survive_json() {
        for text in [r#""none""#, r#""read""#, r#""full""#, r#"["read_file","a__*"]"#] {
            let tools: AgentTools = serde_json::from_str(text).expect("valid");
            assert_eq!(serde_json::to_string(&tools).expect("written"), text);
        }
        let error = serde_json::from_str::<AgentTools>(r#"["bash"]"#).expect_err("unknown").to_string();
        assert!(error.contains("`bash` is not a tool; there are read_file"), "{error}");
    }
}
