//! Requests of an agent as reviews: subject of a permission, form of a question, and the values that the agent gets back. Pure.

use std::collections::BTreeSet;

use cliq_acp::client::QuestionRequest;
use cliq_acp::schema::ToolCall;
#[cfg(feature = "http")]
use cliq_protocol::AskAnswer;
use cliq_protocol::{Form, Object, ReviewSubject, ToolKind, shorten};
use serde_json::{Map, Value, json};

use crate::llm::acp::result_text;
use crate::llm::prompt::digest;

/// Maximum size of the details of a call in bytes.
const DETAILS: usize = 8 << 10;
/// Maximum size of a question in bytes.
const QUESTION: usize = 8 << 10;

/// Request of an agent, as a person sees it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::llm) struct Request {
    pub(in crate::llm) subject: ReviewSubject,
    pub(super) form: Form,
    /// Digest of what is asked. Ids are not part of it: a process that continues asks with another one.
    pub(in crate::llm) digest: String,
}

impl Request {
    /// Makes the request for a call.
    pub(in crate::llm) fn permission(
        agent: &str,
        call: &ToolCall,
        title: &str,
        tool: ToolKind,
        paths: &[String],
    ) -> Self {
        let input = call.raw_input.as_ref().filter(|input| !input.is_null());
        let content = result_text_of_content(call);
        let mut details = input.map(|input| format!("{input:#}")).unwrap_or_default();
        if !content.trim().is_empty() {
            if !details.is_empty() {
                details.push_str("\n\n");
            }
            details.push_str(&content);
        }
        let key = json!(["permission", title, tool.as_str(), paths, input, content]).to_string();
        let subject = ReviewSubject::Permission {
            agent: agent.to_owned(),
            title: title.to_owned(),
            tool: tool.as_str().to_owned(),
            paths: paths.to_vec(),
            details: (!details.is_empty()).then(|| shorten(&details, DETAILS).into_owned()),
        };
        Self { subject, form: Form::default(), digest: digest(&key) }
    }

    /// Leaves secrets out of what people see.
    pub(super) fn without(mut self, secrets: &[String]) -> Self {
        let mask = |text: &mut String| {
            for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
                *text = text.replace(secret.as_str(), "***");
            }
        };
        match &mut self.subject {
            ReviewSubject::Permission { title, paths, details, .. } => {
                mask(title);
                paths.iter_mut().for_each(mask);
                details.iter_mut().for_each(mask);
            }
            ReviewSubject::Question { text, .. } => mask(text),
        }
        self
    }

    /// Makes the request for a question, with the property of the answer for each field of the form. `None` if a person cannot fill in its
    /// form here.
    pub(in crate::llm) fn question(
        agent: &str,
        question: &QuestionRequest,
    ) -> Option<(Self, Vec<(String, String)>)> {
        let (form, names) = form(&question.schema)?;
        let key = json!(["question", question.message, question.schema]).to_string();
        let text = shorten(question.message.trim(), QUESTION).into_owned();
        let subject = ReviewSubject::Question { agent: agent.to_owned(), text };
        Some((Self { subject, form, digest: digest(&key) }, names))
    }
}

/// Field of the form for a question of a model with tools.
#[cfg(feature = "http")]
const ANSWER: &str = "answer";

#[cfg(feature = "http")]
impl Request {
    /// Makes the request for a tool call that asks a person.
    pub(in crate::llm) fn of_call(
        agent: &str,
        call: &str,
        question: &cliq_coder::tools::Question,
    ) -> Result<Self, String> {
        let mut field = json!({"name": ANSWER, "label": "Answer", "required": true});
        match &question.choices {
            Some(choices) if !choices.is_empty() => {
                field["type"] = "select".into();
                field["choices"] = json!(choices);
            }
            _ => field["type"] = "textarea".into(),
        }
        let form = Form::from_value(json!([field]), "choices").map_err(|error| error.to_string())?;
        // The id of a call is the same in a process that continues.
        let key = json!(["call", call, question.question, question.choices]).to_string();
        let text = shorten(question.question.trim(), QUESTION).into_owned();
        let subject = ReviewSubject::Question { agent: agent.to_owned(), text };
        Ok(Self { subject, form, digest: digest(&key) })
    }

    /// Returns the outcome of a tool call that asked a person, for the model.
    pub(in crate::llm) fn outcome(answer: &AskAnswer) -> Result<String, String> {
        let words = |reason: &Option<String>| {
            reason.as_ref().map(|reason| format!("; in words: {reason}")).unwrap_or_default()
        };
        let alone = "Decide by yourself if you can, and say in your answer what you assumed.";
        match answer {
            AskAnswer::Approved { by, reason, inputs } => {
                let text = inputs.get(ANSWER).and_then(Value::as_str).unwrap_or_default();
                Ok(format!("Answer of {by}: {text}{}", words(reason)))
            }
            AskAnswer::Rejected { by, reason } => {
                Err(format!("{by} did not answer{}. {alone}", words(reason)))
            }
            AskAnswer::Expired { reason } | AskAnswer::Withdrawn { reason } => {
                Err(format!("No answer: {reason}. {alone}"))
            }
        }
    }
}

/// Text of a call that changes or says something, before it runs.
fn result_text_of_content(call: &ToolCall) -> String {
    let mut before = call.clone();
    before.raw_output = None;
    result_text(&before)
}

/// Makes the form for a JSON schema of an object with primitive properties. `None` if a property has another type.
fn form(schema: &Value) -> Option<(Form, Vec<(String, String)>)> {
    let empty = Map::new();
    let properties = match schema.get("properties") {
        None => &empty,
        Some(properties) => properties.as_object()?,
    };
    let required: BTreeSet<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let (mut fields, mut names): (Vec<Value>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    for (n, (property, schema)) in properties.iter().enumerate() {
        let mut name = field_name(property, n);
        if names.iter().any(|(known, _)| *known == name) {
            name = format!("field{}", n + 1);
        }
        let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
        let mut field = json!({
            "name": name,
            "label": text("title").unwrap_or_else(|| property.clone()),
            "required": required.contains(property.as_str()),
        });
        let mut help = text("description");
        match schema.get("type").and_then(Value::as_str)? {
            "string" => match choices(schema)? {
                Some((choices, titles)) => {
                    field["type"] = "select".into();
                    field["choices"] = json!(choices);
                    if let Some(titles) = titles {
                        help = Some(help.map_or(titles.clone(), |help| format!("{help} ({titles})")));
                    }
                }
                None => field["type"] = "textarea".into(),
            },
            "number" | "integer" => field["type"] = "number".into(),
            "boolean" => field["type"] = "boolean".into(),
            _ => return None,
        }
        if let Some(help) = help {
            field["help"] = help.into();
        }
        if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
            field["default"] = default.clone();
        }
        fields.push(field);
        names.push((name, property.clone()));
    }
    Some((Form::from_value(Value::Array(fields), "requestedSchema").ok()?, names))
}

/// Values of a choice, and their titles as a text. The outer `None` is a choice that is not one of texts.
#[expect(clippy::option_option, reason = "no choice, and a choice that cannot be shown, are different")]
fn choices(schema: &Value) -> Option<Option<(Vec<String>, Option<String>)>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(values) = schema.get("enum") {
        let values: Option<Vec<String>> = values.as_array()?.iter().map(text).collect();
        return Some(Some((values?, None)));
    }
    let Some(options) = schema.get("oneOf").or_else(|| schema.get("anyOf")) else { return Some(None) };
    let (mut values, mut titles) = (Vec::new(), Vec::new());
    for option in options.as_array()? {
        let value = text(option.get("const")?)?;
        if let Some(title) = option.get("title").and_then(text).filter(|title| *title != value) {
            titles.push(format!("{value}: {title}"));
        }
        values.push(value);
    }
    Some(Some((values, (!titles.is_empty()).then(|| titles.join("; ")))))
}

/// Name of a form field for a property.
fn field_name(property: &str, n: usize) -> String {
    let lower = property.to_ascii_lowercase();
    let name: String = lower
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
        .collect();
    let is_valid = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.len() <= 60;
    if is_valid { name } else { format!("field{}", n + 1) }
}

/// Values of a form with the names of the agent's properties.
pub(super) fn values(inputs: &Object, names: &[(String, String)]) -> Map<String, Value> {
    let value = |(name, property): &(String, String)| Some((property.clone(), inputs.get(name)?.clone()));
    names.iter().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use cliq_acp::client::AskId;

    use super::*;

    fn question(schema: Value) -> Option<(Request, Vec<(String, String)>)> {
        Request::question("a", &QuestionRequest { id: AskId(1), message: "Which?".to_owned(), schema })
    }

    #[test]
    fn question_becomes_a_form_and_its_values_get_back() {
        let schema = json!({
            "type": "object", "required": ["Data Base"],
            "properties": {
                "Data Base": { "type": "string", "title": "Database", "oneOf": [{ "const": "pg", "title": "PostgreSQL" }, { "const": "lite" }] },
                "port": { "type": "integer", "default": 5432 },
                "Port": { "type": "number" },
                "ssl": { "type": "boolean", "description": "Encrypt" },
            },
        });
        let (request, names) = question(schema).expect("a form");
        let form = request.form.to_value();
        assert_eq!(form[0]["choices"], json!(["pg", "lite"]), "{form}");
        assert_eq!((&form[0]["label"], &form[0]["help"]), (&json!("Database"), &json!("pg: PostgreSQL")));
        let given = json!({ "data_base": "lite", "ssl": "yes" });
        let inputs = request.form.check(given.as_object().expect("values"), true).expect("complete");
        let values = values(&inputs, &names);
        assert_eq!(values["Data Base"], "lite");
        assert_eq!((&values["port"], &values["ssl"]), (&json!(5432), &json!(true)));
        assert_eq!(names.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len(), 4);
    }

    #[test]
    fn questions_that_no_form_can_show_are_not_asked() {
        for schema in [
            json!({ "properties": { "a": { "type": "array", "items": { "type": "string" } } } }),
            json!({ "properties": { "a": {} } }),
            json!({ "properties": [] }),
            json!({ "properties": { "a": { "type": "string", "enum": [1] } } }),
            json!({ "properties": { "a": { "type": "string", "oneOf": [{ "title": "no value" }] } } }),
        ] {
            assert_eq!(question(schema.clone()), None, "{schema}");
        }
        assert!(question(json!({ "type": "object" })).is_some(), "a question without fields can be answered");
    }

    #[test]
    fn same_request_has_the_same_digest_under_another_id() {
        let call = |id: &str, input: Value| ToolCall::new(id.to_owned(), "run").raw_input(input);
        let digest = |call: &ToolCall| Request::permission("a", call, "run", ToolKind::Execute, &[]).digest;
        let first = digest(&call("1", json!({ "command": "ls" })));
        assert_eq!(first, digest(&call("2", json!({ "command": "ls" }))));
        assert_ne!(first, digest(&call("1", json!({ "command": "ls /" }))));
    }
}
