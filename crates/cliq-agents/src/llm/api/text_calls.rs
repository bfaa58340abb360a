//! Tool calls that a model wrote as text: servers of local models do not recognize the format of every model.

use cliq_protocol::{Object, ToolCall};
use serde_json::Value;

/// Marks around calls: start, and end if there is one.
const MARKS: &[(&str, Option<&str>)] = &[
    ("<tool_call>", Some("</tool_call>")),
    ("<function_call>", Some("</function_call>")),
    ("[TOOL_CALLS]", None),
    ("<|tool_call|>", Some("<|/tool_call|>")),
    ("<|python_tag|>", None),
    ("```json\n", Some("```")),
    ("```tool_call\n", Some("```")),
    ("```\n", Some("```")),
];

/// Finds calls of known tools in a text. Returns the text without them, and the calls. `None` if there is none.
///
/// Fences count only if nothing but calls follows: a model may show an example.
pub(super) fn find(text: &str, tools: &[&str]) -> Option<(String, Vec<ToolCall>)> {
    if let Some(calls) = parse(text.trim(), tools) {
        return Some((String::new(), calls));
    }
    for (start, end) in MARKS {
        let Some(first) = text.find(start) else { continue };
        let is_fence = start.starts_with("```");
        let (mut rest, mut calls) = (text[..first].trim_end().to_owned(), Vec::new());
        let mut after = &text[first..];
        while let Some(at) = after.find(start) {
            let between = &after[..at];
            let body = &after[at + start.len()..];
            let (body, next) = match end.and_then(|end| Some((body.find(end)?, end))) {
                Some((close, end)) => (&body[..close], &body[close + end.len()..]),
                None => (body, ""),
            };
            let Some(found) = parse(body.trim(), tools) else { break };
            if !between.trim().is_empty() {
                rest.push('\n');
                rest.push_str(between.trim());
            }
            calls.extend(found);
            after = next;
        }
        if calls.is_empty() || is_fence && !after.trim().is_empty() {
            continue;
        }
        if !after.trim().is_empty() {
            rest.push('\n');
            rest.push_str(after.trim());
        }
        return Some((rest, calls));
    }
    None
}

/// Reads one call, a list of calls, or calls in a row. `None` if there is anything else.
fn parse(text: &str, tools: &[&str]) -> Option<Vec<ToolCall>> {
    let mut calls = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value.ok()? {
            Value::Array(items) => {
                for item in &items {
                    calls.push(call(item, tools)?);
                }
            }
            value => calls.push(call(&value, tools)?),
        }
    }
    (!calls.is_empty()).then_some(calls)
}

fn call(value: &Value, tools: &[&str]) -> Option<ToolCall> {
    let value = value.get("function").filter(|function| function.is_object()).unwrap_or(value);
    let name = value.get("name").or_else(|| value.get("tool"))?.as_str()?;
    if !tools.contains(&name) {
        return None;
    }
    let arguments = ["arguments", "parameters", "args", "input"].iter().find_map(|key| value.get(*key));
    let arguments = match arguments {
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(Value::String(text)) => serde_json::from_str(text).ok()?,
        None => Object::new(),
        Some(_) => return None,
    };
    Some(ToolCall { id: String::new(), name: name.to_owned(), arguments, invalid: None, provider_data: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_text_are_found() {
        let tools = ["read_file", "search"];
        for text in [
            r#"{"name": "read_file", "arguments": {"path": "a"}}"#,
            r#"I look. <tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>"#,
            r#"[TOOL_CALLS][{"name": "read_file", "arguments": {"path": "a"}}]"#,
            "I look.\n```json\n{\"name\": \"read_file\", \"parameters\": {\"path\": \"a\"}}\n```\n",
            r#"<|python_tag|>{"name": "read_file", "parameters": {"path": "a"}}"#,
            r#"{"type": "function", "function": {"name": "read_file", "arguments": "{\"path\": \"a\"}"}}"#,
        ] {
            let (rest, calls) = find(text, &tools).unwrap_or_else(|| panic!("{text}"));
            assert!(!rest.contains("read_file"), "{rest}");
            assert_eq!((calls.len(), calls[0].name.as_str()), (1, "read_file"), "{text}");
            assert_eq!(calls[0].arguments["path"], "a", "{text}");
        }
        let two = "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}\n</tool_call>\nand\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"b\"}}\n</tool_call>";
        let (rest, calls) = find(two, &tools).expect("two");
        assert_eq!((rest.trim(), calls.len()), ("and", 2));
    }

    #[test]
    fn other_text_is_left_alone() {
        let tools = ["read_file"];
        for text in [
            "I read the file.",
            "```json\n{\"answer\": 42}\n```",
            r#"{"name": "unknown", "arguments": {}}"#,
            "An example:\n```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```\nThat is how it is called.",
            "<tool_call>{\"name\": \"read_file\", \"arguments\":",
        ] {
            assert_eq!(find(text, &tools), None, "{text}");
        }
    }
}
