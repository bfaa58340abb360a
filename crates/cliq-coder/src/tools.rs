//! Built-in tools: descriptions for models, and what they do in a workspace.

mod command;
mod edit;
mod files;
mod paths;
mod search;

use cliq_protocol::AgentTools;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use command::Cancel;
pub use paths::Workspace;

/// Maximum size of a result in bytes, unless the context is small.
pub const RESULT_LIMIT: usize = 30_000;

/// Tool as it is described to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Name.
    pub name: String,
    /// Purpose and use.
    pub description: String,
    /// JSON Schema of the arguments: an object.
    pub schema: Value,
}

/// Outcome of a tool call: text for the model. `Err` if the tool failed.
pub type Outcome = Result<String, String>;

/// Descriptions of the built-in tools of a selection.
#[must_use]
pub fn specs(selection: &AgentTools) -> Vec<ToolSpec> {
    let all = [
        spec::<files::ReadFile>(
            "read_file",
            "Reads a text file of the workspace. Lines are numbered from 1. Long files are returned in parts: give `start_line` and \
             `end_line` for another part.",
        ),
        spec::<files::ListFiles>(
            "list_files",
            "Lists the files below a directory of the workspace, without those that .gitignore excludes.",
        ),
        spec::<search::Search>(
            "search",
            "Searches the files of the workspace for a regular expression (Rust syntax), without those that .gitignore excludes. Returns \
             `path:line: text`.",
        ),
        spec::<edit::EditFile>(
            "edit_file",
            "Replaces a text in a file of the workspace. `old` must occur exactly once, with the same blanks and line ends: include \
             enough lines around it. Returns the difference.",
        ),
        spec::<edit::WriteFile>(
            "write_file",
            "Creates a file of the workspace, or replaces its whole content. Directories are created. Use `edit_file` to change a part.",
        ),
        spec::<command::RunCommand>(
            "run_command",
            "Runs a shell command in the workspace and returns its output and exit status. It has no input and ends after \
             `timeout_seconds`, with all processes that it started. It may have no access to the network or to files outside of the \
             workspace.",
        ),
        spec::<Progress>(
            "report_progress",
            "Tells the people who watch, in one sentence, what you are doing now. Use it at the start of each larger step.",
        ),
    ];
    all.into_iter().filter(|tool| selection.allows(&tool.name)).collect()
}

/// Arguments of `report_progress`, which does nothing in the workspace.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Progress {
    /// The sentence.
    message: String,
}

/// Returns the sentence of a `report_progress` call.
///
/// # Errors
/// Returns what is wrong with the arguments.
pub fn progress_message(arguments: &Value) -> Outcome {
    parse::<Progress>("report_progress", arguments).map(|progress| progress.message)
}

/// Whether a tool changes nothing, so that it may run beside others.
#[must_use]
pub fn is_reading(name: &str) -> bool {
    matches!(name, "read_file" | "list_files" | "search" | "report_progress")
}

/// Runs a tool. `limit` is the maximum size of the result in bytes.
///
/// # Errors
/// Returns the reason why the tool failed, for the model.
pub fn run(name: &str, arguments: &Value, workspace: &Workspace, limit: usize, cancel: &Cancel) -> Outcome {
    let text = match name {
        "read_file" => files::read(workspace, &parse(name, arguments)?, limit),
        "list_files" => files::list(workspace, &parse(name, arguments)?, limit),
        "search" => search::search(workspace, &parse(name, arguments)?, limit),
        "edit_file" => edit::edit(workspace, &parse(name, arguments)?),
        "write_file" => edit::write(workspace, &parse(name, arguments)?),
        "run_command" => command::run(workspace, &parse(name, arguments)?, limit, cancel),
        "report_progress" => progress_message(arguments).map(|_| "reported".to_owned()),
        _ => Err(format!("there is no tool `{name}`")),
    };
    text.map(|text| cap(text, limit)).map_err(|text| cap(text, limit))
}

fn spec<T: JsonSchema>(name: &str, description: &str) -> ToolSpec {
    let mut schema =
        schemars::generate::SchemaSettings::draft07().into_generator().into_root_schema_for::<T>().to_value();
    if let Some(object) = schema.as_object_mut() {
        for name in ["$schema", "title", "description"] {
            object.remove(name);
        }
        simplify(object.get_mut("properties").unwrap_or(&mut json!({})));
    }
    ToolSpec { name: name.to_owned(), description: description.to_owned(), schema }
}

/// Reduces the schemas of optional fields to the parts that all APIs accept: one type, without `null`, format or range.
fn simplify(properties: &mut Value) {
    for property in properties.as_object_mut().into_iter().flat_map(|map| map.values_mut()) {
        let Some(property) = property.as_object_mut() else { continue };
        for name in ["format", "minimum", "maximum", "default"] {
            property.remove(name);
        }
        if let Some(Value::Array(types)) = property.get("type") {
            let kind = types.iter().find(|kind| *kind != "null").cloned();
            property.insert("type".to_owned(), kind.unwrap_or_else(|| "string".into()));
        }
    }
}

fn parse<T: DeserializeOwned>(name: &str, arguments: &Value) -> Result<T, String> {
    serde_json::from_value(arguments.clone())
        .map_err(|error| format!("the arguments of `{name}` are not valid: {error}"))
}

/// Cuts a text in its middle: the end often has the reason of a failure.
#[must_use]
pub fn cap(text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let head = floor(&text, limit * 2 / 5);
    let tail = ceil(&text, text.len() - (limit * 3 / 5));
    let removed = tail - head;
    format!("{}\n[{removed} bytes removed]\n{}", &text[..head], &text[tail..])
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_described_as_models_need_it() {
        insta::assert_json_snapshot!(
            specs(&AgentTools::Full)
                .iter()
                .map(
                    |tool| json!({"name": tool.name, "description": tool.description, "schema": tool.schema})
                )
                .collect::<Vec<_>>()
        );
        let names: Vec<String> = specs(&AgentTools::Read).into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["read_file", "list_files", "search", "report_progress"]);
    }

    #[test]
    fn long_texts_lose_their_middle() {
        let text = "ä".repeat(1000);
        let short = cap(text, 100);
        assert!(short.contains("bytes removed]") && short.len() < 140, "{short}");
        assert_eq!(cap("short".to_owned(), 100), "short");
    }
}
