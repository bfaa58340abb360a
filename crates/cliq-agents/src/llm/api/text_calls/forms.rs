//! Forms of tool calls in texts of the common model families. Pure.

use cliq_coder::tools::ToolSpec;
use cliq_protocol::{Object, ToolCall};
use serde_json::Value;

use super::python;

/// Marks around calls: start, and ends. Without an end, the calls reach to the end of the text. `|` and `_` stand for the full-width
/// characters of DeepSeek too.
pub(super) const MARKS: &[(&str, &[&str])] = &[
    // Hermes, Qwen, GLM; with `<function=…>` in it Qwen3-Coder.
    ("<tool_call>", &["</tool_call>"]),
    ("<tool_calls>", &["</tool_calls>"]),
    ("<function_call>", &["</function_call>"]),
    ("<function_calls>", &["</function_calls>"]),
    ("<functioncall>", &["</functioncall>"]),
    // Nemotron, MiniMax, LongCat.
    ("<TOOLCALL>", &["</TOOLCALL>"]),
    ("<minimax:tool_call>", &["</minimax:tool_call>"]),
    ("<longcat_tool_call>", &["</longcat_tool_call>"]),
    // Mistral, and the default form of LM Studio.
    ("[TOOL_CALLS]", &["</s>"]),
    ("[TOOL_REQUEST]", &["[END_TOOL_REQUEST]"]),
    // Granite, Phi, LFM, Gemma.
    ("<|tool_call|>", &["<|/tool_call|>", "<|end_of_text|>"]),
    ("<|tool_call>", &["<tool_call|>"]),
    ("<|tool_call_start|>", &["<|tool_call_end|>"]),
    ("<start_function_call>", &["<end_function_call>"]),
    // Llama.
    ("<|python_tag|>", &["<|eom_id|>", "<|eot_id|>"]),
    // Command.
    ("<|START_ACTION|>", &["<|END_ACTION|>"]),
    // Kimi.
    ("<|tool_calls_section_begin|>", &["<|tool_calls_section_end|>"]),
    // DeepSeek.
    ("<|tool_calls_begin|>", &["<|tool_calls_end|>"]),
    ("<|DSML|function_calls>", &["</|DSML|function_calls>"]),
    ("<|tool_call_begin|>", &["<|tool_call_end|>"]),
];

/// Marks that mean nothing between calls.
const NOISE: [&str; 12] = [
    "<|tool_call_begin|>",
    "<|tool_call_end|>",
    "<tool_call>",
    "</tool_call>",
    "[TOOL_CALLS]",
    "<|tool_call|>",
    "function<|tool_sep|>",
    "```json",
    "```",
    ",",
    ";",
    "call:",
];
/// Marks between the name of a call and its arguments.
const BETWEEN: [&str; 5] = ["<|tool_sep|>", "[ARGS]", "<|tool_call_argument_begin|>", "```json", "```"];

/// Returns the size of a mark at the start of a text. Full-width bars count as `|`, and full-width lines and spaces as `_`.
pub(super) fn mark(text: &str, mark: &str) -> Option<usize> {
    let mut chars = text.chars();
    let mut size = 0;
    for expected in mark.chars() {
        let c = chars.next()?;
        let is_same = match expected {
            '|' => matches!(c, '|' | '｜'),
            '_' => matches!(c, '_' | '▁' | ' '),
            other => other == c,
        };
        if !is_same {
            return None;
        }
        size += c.len_utf8();
    }
    Some(size)
}

/// Text with searches whose failures are remembered, so that the time of all of them is linear.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) tools: &'a [ToolSpec],
    absent: Vec<&'static str>,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str, tools: &'a [ToolSpec]) -> Self {
        Self { text, tools, absent: Vec::new() }
    }

    /// Returns the position of a mark at or after `from`.
    pub(super) fn find(&mut self, needle: &'static str, from: usize) -> Option<usize> {
        if self.absent.contains(&needle) {
            return None;
        }
        let first = needle.chars().next()?;
        let mut place = from;
        while let Some(found) = self.text[place..].find(first) {
            let at = place + found;
            if mark(&self.text[at..], needle).is_some() {
                return Some(at);
            }
            place = at + first.len_utf8();
        }
        self.absent.push(needle);
        None
    }

    /// Reads calls in a row. Returns them with the position after them; no calls if there are none at this position.
    pub(super) fn calls(&mut self, from: usize) -> (Vec<ToolCall>, usize) {
        let (mut calls, mut end) = (Vec::new(), from);
        loop {
            let at = self.skip(end);
            match self.one(at) {
                Some((found, after)) if after > at => {
                    calls.extend(found);
                    end = self.skip_after(after);
                }
                Some(_) | None => return (calls, end),
            }
        }
    }

    fn skip(&self, from: usize) -> usize {
        let mut at = from;
        loop {
            let rest = &self.text[at..];
            let trimmed = rest.trim_start();
            at += rest.len() - trimmed.len();
            match NOISE.iter().find_map(|noise| mark(trimmed, noise)) {
                Some(size) => at += size,
                None => return at,
            }
        }
    }

    /// Skips marks after a call that belong to it.
    fn skip_after(&self, from: usize) -> usize {
        let mut at = from;
        loop {
            let rest = &self.text[at..];
            let trimmed = rest.trim_start();
            let marks = ["```", "<|tool_call_end|>", "<|call|>"];
            match marks.iter().find_map(|noise| mark(trimmed, noise)) {
                Some(size) => at += rest.len() - trimmed.len() + size,
                None => return at,
            }
        }
    }

    /// Reads one call, or a list of calls.
    fn one(&mut self, at: usize) -> Option<(Vec<ToolCall>, usize)> {
        let rest = &self.text[at..];
        if let Some((value, size)) = json(rest) {
            return of_value(&value, self.tools).map(|calls| (calls, at + size));
        }
        if let Some(size) = mark(rest, "<function=") {
            return self.function(at + size);
        }
        for start in ["<invoke_name=\"", "<|DSML|invoke_name=\""] {
            if let Some(size) = mark(rest, start) {
                return self.invoke(at + size);
            }
        }
        if let Some(list) = rest.strip_prefix('[') {
            let (calls, size) = python_list(list)?;
            return Some((calls, at + 1 + size));
        }
        if let Some((name, arguments, size)) = python::call(rest) {
            let name = name.strip_suffix(".call").unwrap_or(name);
            return Some((vec![call(name, arguments)], at + size));
        }
        self.named(at)
    }

    /// Reads a name and its arguments as JSON, or as keys and values.
    fn named(&mut self, at: usize) -> Option<(Vec<ToolCall>, usize)> {
        let rest = &self.text[at..];
        let size = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))?;
        let name = &rest[..size];
        if name.is_empty() || size > 128 {
            return None;
        }
        let mut place = at + size;
        // The number of the call: `functions.search:0`.
        if let Some(number) = self.text[place..].strip_prefix(':') {
            place += 1 + number.len() - number.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        }
        if self.text[place..].trim_start().starts_with("<arg_key>") {
            return self.pairs(name, place);
        }
        if self.text[place..].trim_start().starts_with("</tool_call>") {
            return Some((vec![call(name, Object::new())], place));
        }
        if let Some(id) = self.text[place..].strip_prefix("[CALL_ID]") {
            place += 9 + id.find('[').filter(|size| *size <= 64)?;
        }
        loop {
            let rest = &self.text[place..];
            let trimmed = rest.trim_start();
            place += rest.len() - trimmed.len();
            match BETWEEN.iter().find_map(|between| mark(trimmed, between)) {
                Some(size) => place += size,
                None => break,
            }
        }
        let (value, size) = json(&self.text[place..])?;
        let Value::Object(arguments) = value else { return None };
        Some((vec![call(name, arguments)], place + size))
    }

    /// Reads the form of GLM: a key and a value in turn.
    fn pairs(&mut self, name: &str, from: usize) -> Option<(Vec<ToolCall>, usize)> {
        let (mut place, mut arguments) = (from, Object::new());
        loop {
            let rest = &self.text[place..];
            let trimmed = rest.trim_start();
            let at = place + rest.len() - trimmed.len();
            if !trimmed.starts_with("<arg_key>") {
                return Some((vec![call(name, arguments)], at));
            }
            let key_end = self.find("</arg_key>", at)?;
            let key = self.text[at + 9..key_end].trim();
            let value_start = self.text[key_end + 10..].trim_start().strip_prefix("<arg_value>")?;
            let start = self.text.len() - value_start.len();
            let end = self.find("</arg_value>", start)?;
            arguments.insert(key.to_owned(), self.typed(name, key, &self.text[start..end]));
            place = end + 12;
        }
    }

    /// Reads the form of Qwen3-Coder after `<function=`: `NAME>`, parameters or a JSON object, `</function>`.
    fn function(&mut self, from: usize) -> Option<(Vec<ToolCall>, usize)> {
        let size = self.text[from..]
            .find(['>', '<', '\n'])
            .filter(|size| self.text[from + size..].starts_with('>'))?;
        let name = self.text[from..from + size].trim().trim_matches('"');
        let (mut place, mut arguments) = (from + size + 1, Object::new());
        loop {
            let rest = &self.text[place..];
            let trimmed = rest.trim_start();
            let at = place + rest.len() - trimmed.len();
            if trimmed.starts_with("</function>") {
                return Some((vec![call(name, arguments)], at + 11));
            }
            if let Some(parameter) = trimmed.strip_prefix("<parameter=") {
                let size =
                    parameter.find(['>', '<', '\n']).filter(|size| parameter[*size..].starts_with('>'))?;
                let key = parameter[..size].trim().trim_matches('"');
                let start = at + 11 + size + 1;
                let end = self.find("</parameter>", start)?;
                arguments.insert(key.to_owned(), self.typed(name, key, &self.text[start..end]));
                place = end + 12;
                continue;
            }
            if !arguments.is_empty() {
                return None;
            }
            let (value, size) = json(trimmed)?;
            let Value::Object(object) = value else { return None };
            arguments = object;
            place = at + size;
            // Llama may leave out the end.
            if !self.text[place..].trim_start().starts_with("</function>") {
                return Some((vec![call(name, arguments)], place));
            }
        }
    }

    /// Reads the form of Anthropic, MiniMax and DeepSeek after `<invoke name="`.
    fn invoke(&mut self, from: usize) -> Option<(Vec<ToolCall>, usize)> {
        let size = self.text[from..].find(['"', '<', '\n'])?;
        let name = &self.text[from..from + size];
        let mut place = from + size + self.text[from + size..].strip_prefix("\">").map(|_| 2)?;
        let mut arguments = Object::new();
        loop {
            let rest = &self.text[place..];
            let trimmed = rest.trim_start();
            let at = place + rest.len() - trimmed.len();
            if let Some(size) = mark(trimmed, "</invoke>").or_else(|| mark(trimmed, "</|DSML|invoke>")) {
                return Some((vec![call(name, arguments)], at + size));
            }
            let (size, end_mark) = match mark(trimmed, "<parameter_name=\"") {
                Some(size) => (size, "</parameter>"),
                None => (mark(trimmed, "<|DSML|parameter_name=\"")?, "</|DSML|parameter>"),
            };
            let head = &trimmed[size..];
            let key_end = head.find(['"', '\n'])?;
            let (key, attributes) = (&head[..key_end], &head[key_end..]);
            let head_end =
                attributes.find(['>', '\n']).filter(|size| attributes[*size..].starts_with('>'))?;
            let start = at + size + key_end + head_end + 1;
            let end = self.find(end_mark, start)?;
            let value = &self.text[start..end];
            let is_text = attributes[..head_end].contains("string=\"true\"");
            let value = if is_text { value.into() } else { self.typed(name, key, value) };
            arguments.insert(key.to_owned(), value);
            place = end + mark(&self.text[end..], end_mark)?;
        }
    }

    /// Returns a value that was written as text, in the type of its parameter.
    fn typed(&self, tool: &str, key: &str, text: &str) -> Value {
        let text = text.strip_prefix('\n').unwrap_or(text);
        let text = text.strip_suffix('\n').unwrap_or(text);
        let tool = self.tools.iter().find(|spec| spec.name == tool);
        let kind = tool.and_then(|spec| spec.schema["properties"][key]["type"].as_str());
        match kind {
            Some("integer" | "number" | "boolean" | "object" | "array") => {
                let trimmed = text.trim();
                let lower = trimmed.to_ascii_lowercase();
                let parsed = serde_json::from_str(trimmed).or_else(|_| serde_json::from_str(&lower));
                parsed.unwrap_or_else(|_| text.into())
            }
            _ => text.into(),
        }
    }
}

/// Reads calls in the syntax of Python up to `]`.
fn python_list(text: &str) -> Option<(Vec<ToolCall>, usize)> {
    let (mut calls, mut at) = (Vec::new(), 0);
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        if trimmed.starts_with(']') {
            return (!calls.is_empty()).then_some((calls, at + 1));
        }
        let (name, arguments, size) = python::call(trimmed)?;
        calls.push(call(name, arguments));
        at += size;
        let rest = text[at..].trim_start();
        match rest.strip_prefix(',') {
            Some(after) => at = text.len() - after.len(),
            None if rest.starts_with(']') => {}
            None => return None,
        }
    }
}

/// Reads an object or a list at the start of a text: JSON, or a literal of Python. Returns it with its size.
pub(super) fn json(text: &str) -> Option<(Value, usize)> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match stream.next() {
        Some(Ok(value)) => Some((value, stream.byte_offset())),
        // Line breaks in strings, single quotes.
        Some(Err(_)) => python::literal(text),
        None => None,
    }
}

/// Returns the calls that a value holds. `None` if a part of it is not a call.
pub(super) fn of_value(value: &Value, tools: &[ToolSpec]) -> Option<Vec<ToolCall>> {
    match value {
        Value::Array(items) => {
            let calls: Option<Vec<ToolCall>> = items.iter().map(|item| of_object(item, tools)).collect();
            calls.filter(|calls| !calls.is_empty())
        }
        value => Some(vec![of_object(value, tools)?]),
    }
}

fn of_object(value: &Value, tools: &[ToolSpec]) -> Option<ToolCall> {
    let value = value.get("function").filter(|function| function.is_object()).unwrap_or(value);
    let Some(name) =
        ["name", "tool_name", "tool", "function"].iter().find_map(|key| value.get(*key)?.as_str())
    else {
        // The name as the only key: {"search": {…}}.
        let (name, arguments) = value.as_object().filter(|map| map.len() == 1)?.iter().next()?;
        let is_known = tools.iter().any(|tool| tool.name == *name);
        return Some(call(name, arguments.as_object().filter(|_| is_known)?.clone()));
    };
    let arguments = ["arguments", "parameters", "args", "input"].iter().find_map(|key| value.get(*key));
    let arguments = match arguments {
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(Value::String(text)) if text.trim().is_empty() => Object::new(),
        Some(Value::String(text)) => match json(text.trim())? {
            (Value::Object(arguments), _) => arguments,
            _ => return None,
        },
        Some(Value::Null) | None => Object::new(),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => return None,
    };
    Some(call(name, arguments))
}

/// Makes a call. Its id is given later.
pub(super) fn call(name: &str, arguments: Object) -> ToolCall {
    let name = name.trim();
    let name = name.strip_prefix("functions.").unwrap_or(name);
    ToolCall { id: String::new(), name: safe(name), arguments, invalid: None, provider_data: None }
}

/// Makes a call that cannot be read.
pub(super) fn unreadable(name: Option<&str>, text: &str) -> ToolCall {
    let text: String = text.trim().chars().take(2_000).collect();
    let name = name.map_or_else(|| "unreadable_call".to_owned(), safe);
    ToolCall { id: String::new(), name, arguments: Object::new(), invalid: Some(text), provider_data: None }
}

/// Returns a name that every API accepts when the call is returned to it.
fn safe(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = name.chars().take(64).map(|c| if allowed(c) { c } else { '_' }).collect();
    if name.is_empty() { "unreadable_call".to_owned() } else { name }
}
