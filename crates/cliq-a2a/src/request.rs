//! The pipeline that a message asks for (docs/a2a.md).

use std::collections::BTreeMap;

use cliq_protocol::Violations;
use serde_json::{Map, Value};

use crate::error::{A2aError, Violation};
use crate::model::{Content, Message};

/// Request for a team, read from a message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineRequest {
    /// The team, `@scope/name`, or the name of a system capability.
    pub skill: Option<String>,
    /// Requirement for the team. `None` if the caller sent none.
    pub requirement: Option<String>,
    /// Values for inputs of the team.
    pub inputs: BTreeMap<String, String>,
    /// Repositories that are cloned into the workspace.
    pub repos: Vec<String>,
    /// Whether the workspace stays after the end, until the retention removes it.
    pub keep_workspace: bool,
    /// All data parts in one: the parameters of a system capability.
    pub data: Map<String, Value>,
}

impl PipelineRequest {
    /// All data parts of a message in one object.
    ///
    /// # Errors
    /// One of them is not an object.
    pub fn data_of(message: &Message) -> Result<Map<String, Value>, A2aError> {
        let mut data = Map::new();
        for (n, part) in message.parts.iter().enumerate() {
            match &part.content {
                Content::Data(Value::Object(object)) => data.extend(object.clone()),
                Content::Data(_) => {
                    return Err(A2aError::wrong(format!("message.parts[{n}].data"), "must be an object"));
                }
                _ => {}
            }
        }
        Ok(data)
    }

    /// Reads a message: texts are the requirement, data parts name team, repositories and inputs.
    ///
    /// # Errors
    /// Names each field of a data part that has the wrong type.
    pub fn read(message: &Message) -> Result<Self, A2aError> {
        let data = Self::data_of(message)?;
        let mut wrong = Violations::new();
        let mut note = |field: &str, description: &str| {
            wrong.add(Violation { field: format!("data.{field}"), description: description.to_owned() });
        };
        let mut request = Self { requirement: message.text(), ..Self::default() };
        match data.get("team").or_else(|| data.get("skill")) {
            None | Some(Value::Null) => {}
            Some(Value::String(name)) => request.skill = Some(name.trim().to_owned()),
            Some(_) => note("team", "must be a text: @scope/name"),
        }
        match data.get("repos") {
            None | Some(Value::Null) => {}
            Some(Value::String(list)) => {
                request.repos =
                    list.split(',').map(str::trim).filter(|url| !url.is_empty()).map(str::to_owned).collect()
            }
            Some(Value::Array(list)) if list.iter().all(Value::is_string) => {
                request.repos =
                    list.iter().filter_map(Value::as_str).map(|url| url.trim().to_owned()).collect();
            }
            Some(_) => note("repos", "must be a text with addresses of repositories, separated by commas"),
        }
        match data.get("inputs") {
            None | Some(Value::Null) => {}
            Some(Value::Object(inputs)) => {
                for (name, value) in inputs {
                    match value {
                        Value::String(text) => drop(request.inputs.insert(name.clone(), text.clone())),
                        Value::Number(_) | Value::Bool(_) => {
                            drop(request.inputs.insert(name.clone(), value.to_string()))
                        }
                        _ => note(&format!("inputs.{name}"), "must be a text, a number, true or false"),
                    }
                }
            }
            Some(_) => note("inputs", "must be an object: names of inputs and their values"),
        }
        match data.get("keep_workspace") {
            None | Some(Value::Null) => {}
            Some(Value::Bool(keep)) => request.keep_workspace = *keep,
            Some(_) => note("keep_workspace", "must be true or false"),
        }
        // What becomes an argument of a program cannot have a zero byte, and nothing else needs one.
        let texts = request.inputs.iter().flat_map(|(name, value)| [name, value]);
        if texts.chain(&request.requirement).chain(&request.skill).any(|text| text.contains('\0')) {
            note("inputs", "must not contain a zero byte, and neither must the text of the message");
        }
        request.data = data;
        if wrong.is_empty() { Ok(request) } else { Err(A2aError::of_violations(wrong)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Part, Role};
    use serde_json::json;

    fn message(parts: Vec<Part>) -> Message {
        Message {
            message_id: "m".into(),
            context_id: None,
            task_id: None,
            role: Role::User,
            parts,
            metadata: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    #[test]
    fn text_and_data_parts() {
        let data = json!({"team": "@a/b", "repos": "https://h/x.git, https://h/y ,", "inputs": {"s": "x", "n": 3, "f": true}});
        let read = PipelineRequest::read(&message(vec![
            Part::text("one"),
            Part::data(data),
            Part::text("  "),
            Part::text("two"),
        ]));
        let read = read.unwrap();
        assert_eq!(read.skill.as_deref(), Some("@a/b"));
        assert_eq!(read.requirement.as_deref(), Some("one\n\ntwo"));
        assert_eq!(read.repos, ["https://h/x.git", "https://h/y"]);
        let inputs: Vec<_> = read.inputs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(inputs, [("f", "true"), ("n", "3"), ("s", "x")]);
        let nospec = PipelineRequest::read(&message(vec![Part::data(json!({"team": "@a/b"}))])).unwrap();
        assert_eq!(nospec.requirement, None);
    }

    #[test]
    fn each_wrong_field_is_named() {
        let data = json!({"team": 1, "repos": {}, "inputs": {"x": []}, "keep_workspace": "yes"});
        let error = PipelineRequest::read(&message(vec![Part::data(data)])).unwrap_err();
        let fields: Vec<&str> = error.violations.iter().map(|v| v.field.as_str()).collect();
        assert_eq!(fields, ["data.team", "data.repos", "data.inputs.x", "data.keep_workspace"]);
    }
}
