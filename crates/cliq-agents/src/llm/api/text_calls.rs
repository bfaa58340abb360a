//! Tool calls that a model wrote as text: servers do not recognize the format of every model. Pure.
//!
//! A call that cannot be read is returned too, as invalid, so that the model is told. Time and memory are linear in the size of the
//! text.

mod forms;
mod python;

use cliq_coder::tools::ToolSpec;
use cliq_protocol::ToolCall;
use serde_json::Value;

use crate::llm::code::{Block, Code, Run};
use forms::{MARKS, Source, mark, unreadable};

/// Result of a call in a fence that has text after it.
pub(super) const EXAMPLE: &str = "a call in a fenced block with text after it is an example. Call the tool itself, or give your complete \
    answer again";

/// Result of a call in a fence of data that has text before it.
pub(super) const BESIDE_TEXT: &str = "a call in a fenced block beside other text may be an example, and was not run. To call the tool, reply \
    with the call alone; otherwise give your complete answer without this block";

/// Maximum size of the header of a channel in characters.
const HEADER: usize = 160;

/// Calls in a text.
#[derive(Debug, PartialEq)]
pub(super) struct TextCalls {
    /// Text without the calls.
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
}

/// Finds calls in a text without thoughts. Returns `None` if there is none. `was_told` means that the model was told about an example.
///
/// Marks of a format count outside of code. Bare JSON, lists in the syntax of Python and fenced blocks count if they are calls of the
/// tools, and nothing follows. A fenced block of data after other text may be an example: the call is returned as invalid.
pub(super) fn find(text: &str, tools: &[ToolSpec], was_told: bool) -> Option<TextCalls> {
    if let Some(calls) = bare(text.trim(), tools) {
        return Some(TextCalls { text: String::new(), calls });
    }
    let mut finder =
        Finder { source: Source::new(text, tools), rest: String::new(), calls: Vec::new(), kept: 0 };
    let blocks = finder.run();
    if !finder.calls.is_empty() {
        finder.keep(text.len());
        return Some(TextCalls { text: finder.rest, calls: finder.calls });
    }
    in_blocks(text, &blocks, tools, was_told)
}

struct Finder<'a> {
    source: Source<'a>,
    rest: String,
    calls: Vec<ToolCall>,
    /// Start of the text that is not kept yet.
    kept: usize,
}

impl Finder<'_> {
    /// Finds calls with marks. Returns the fenced blocks.
    fn run(&mut self) -> Vec<Block> {
        let text = self.source.text;
        let (mut code, mut blocks, mut place) = (Code::new(text), Vec::new(), 0);
        while let Some(found) = text[place..].find(['<', '[', '`', '~', 'A']) {
            let at = place + found;
            let end = match text.as_bytes()[at] {
                b'`' | b'~' => {
                    let run = code.run_at(at);
                    let end = run.end();
                    if let Run::Block(block) = run {
                        blocks.push(block);
                    }
                    place = end;
                    continue;
                }
                b'A' => self.action(at),
                _ => self.marked(at),
            };
            place = match end {
                Some(end) => {
                    self.keep(at);
                    self.kept = end;
                    end
                }
                None => at + 1,
            };
        }
        blocks
    }

    /// Keeps the text up to a position.
    fn keep(&mut self, end: usize) {
        let part = self.source.text[self.kept..end].trim();
        if !part.is_empty() {
            if !self.rest.is_empty() {
                self.rest.push('\n');
            }
            self.rest.push_str(part);
        }
        self.kept = end;
    }

    /// Reads calls after a mark. Returns the position after them, or `None` if there is no mark.
    fn marked(&mut self, at: usize) -> Option<usize> {
        let rest = &self.source.text[at..];
        for (start, ends) in MARKS {
            let Some(size) = mark(rest, start) else { continue };
            let (calls, end) = self.source.calls(at + size);
            let after = &self.source.text[end..];
            let trimmed = after.trim_start();
            let close = ends.iter().find_map(|end| mark(trimmed, end));
            if !calls.is_empty() {
                self.calls.extend(calls);
                return Some(close.map_or(end, |size| end + after.len() - trimmed.len() + size));
            }
            let close = ends.iter().find_map(|end| Some((self.source.find(end, at + size)?, *end)));
            let (body_end, end) = match close {
                Some((found, close)) => (found, found + mark(&self.source.text[found..], close).unwrap_or(0)),
                None => (self.source.text.len(), self.source.text.len()),
            };
            self.refuse(at + size, body_end);
            return Some(end);
        }
        // Without marks around: Qwen3-Coder and Llama, Anthropic.
        if ["<function=", "<invoke_name=\"", "<|DSML|invoke_name=\""]
            .iter()
            .any(|start| mark(rest, start).is_some())
        {
            let (calls, end) = self.source.calls(at);
            if !calls.is_empty() {
                self.calls.extend(calls);
                // Qwen3-Coder may leave out the mark before, and writes the one after.
                let after = self.source.text[end..].trim_start();
                let close = after.strip_prefix("</tool_call>");
                return Some(close.map_or(end, |rest| self.source.text.len() - rest.len()));
            }
            let end = self.source.find("</function>", at).map_or(self.source.text.len(), |found| found + 11);
            self.refuse(at, end);
            return Some(end);
        }
        if rest.starts_with("<|channel|>") || rest.starts_with("<|start|>") {
            return self.channel(at);
        }
        None
    }

    /// Reads a call of the harmony format: `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`.
    fn channel(&mut self, at: usize) -> Option<usize> {
        let rest = &self.source.text[at..];
        let header: String = rest.chars().take(HEADER).collect();
        let end = header.find("<|message|>")?;
        let (_, to) = rest[..end].split_once("to=")?;
        let name = to.split(|c: char| c.is_whitespace() || c == '<').next().unwrap_or_default();
        let name = name.strip_prefix("functions.").unwrap_or(name);
        let start = at + end + 11;
        let body = self.source.text[start..].trim_start();
        let body_start = self.source.text.len() - body.len();
        match forms::json(body) {
            Some((Value::Object(arguments), size)) => {
                self.calls.push(forms::call(name, arguments));
                let after = &self.source.text[body_start + size..];
                let close = after.trim_start().strip_prefix("<|call|>");
                Some(close.map_or(body_start + size, |rest| self.source.text.len() - rest.len()))
            }
            _ => {
                let end = self.source.find("<|call|>", start).unwrap_or(self.source.text.len());
                self.calls.push(unreadable(Some(name), &self.source.text[start..end]));
                Some((end + 8).min(self.source.text.len()))
            }
        }
    }

    /// Reads the form of Command-R, `Action:` and a list, and that of agents with `Action Input:`.
    fn action(&mut self, at: usize) -> Option<usize> {
        let text = self.source.text;
        let is_line_start = at == 0 || text.as_bytes()[at - 1] == b'\n';
        let rest = text[at..].strip_prefix("Action:").filter(|_| is_line_start)?;
        let trimmed = rest.trim_start();
        let trimmed = trimmed.strip_prefix("```json").unwrap_or(trimmed).trim_start();
        if trimmed.starts_with('[') {
            let start = text.len() - trimmed.len();
            let head: String = trimmed.chars().take(200).collect();
            if !head.contains("\"tool_name\"") {
                return None;
            }
            let found =
                forms::json(trimmed).and_then(|(value, size)| Some((forms::of_value(&value, &[])?, size)));
            let Some((calls, size)) = found else {
                self.refuse(start, text.len());
                return Some(text.len());
            };
            self.calls.extend(calls);
            let after = &text[start + size..];
            let close = after.trim_start().strip_prefix("```");
            return Some(close.map_or(start + size, |rest| text.len() - rest.len()));
        }
        let (name, input) = rest.split_once('\n')?;
        let name = name.trim();
        let input = input.trim_start().strip_prefix("Action Input:")?.trim_start();
        if !self.source.tools.iter().any(|tool| tool.name == name) {
            return None;
        }
        match forms::json(input) {
            Some((Value::Object(arguments), size)) => {
                self.calls.push(forms::call(name, arguments));
                Some(text.len() - input.len() + size)
            }
            _ => {
                self.calls.push(unreadable(Some(name), input));
                Some(text.len())
            }
        }
    }

    /// Adds a call that cannot be read.
    fn refuse(&mut self, start: usize, end: usize) {
        let body = &self.source.text[start..end];
        self.calls.push(unreadable(known_name(body, self.source.tools), body));
    }
}

/// Returns the known tool that the start of a broken call names.
fn known_name<'a>(body: &str, tools: &'a [ToolSpec]) -> Option<&'a str> {
    let head: String = body.chars().take(300).collect();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut words = head.split(|c: char| !is_word(c));
    words.find_map(|word| tools.iter().find(|tool| tool.name == word).map(|tool| tool.name.as_str()))
}

/// Reads a text that consists of calls without marks.
fn bare(text: &str, tools: &[ToolSpec]) -> Option<Vec<ToolCall>> {
    if tools.is_empty() || !text.starts_with(['{', '[']) {
        return None;
    }
    let (mut calls, mut place) = (Vec::new(), 0);
    while place < text.len() {
        let rest = &text[place..];
        match forms::json(rest) {
            Some((value, size)) => {
                let found = forms::of_value(&value, tools)?;
                let is_known = found.iter().all(|call| is_tool(call, tools));
                if !is_known && !is_call_alone(&value) {
                    return None;
                }
                calls.extend(found);
                place += size;
            }
            None => {
                let (found, size) = python_calls(rest, tools)?;
                calls.extend(found);
                place += size;
            }
        }
        let rest = &text[place..];
        place +=
            rest.len() - rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';')).len();
    }
    (!calls.is_empty()).then_some(calls)
}

/// Reads a list in the syntax of Python, or refuses broken calls of known tools.
fn python_calls(text: &str, tools: &[ToolSpec]) -> Option<(Vec<ToolCall>, usize)> {
    let (calls, end) = Source::new(text, tools).calls(0);
    if !calls.is_empty() {
        return calls.iter().all(|call| is_tool(call, tools)).then_some((calls, end));
    }
    is_broken_call(text, tools).then(|| (vec![unreadable(known_name(text, tools), text)], text.len()))
}

/// Whether a text begins as a call of a tool, and cannot be read.
fn is_broken_call(text: &str, tools: &[ToolSpec]) -> bool {
    let head: String = text.chars().take(300).collect();
    let is_python = head.strip_prefix('[').is_some_and(|rest| {
        tools.iter().any(|tool| {
            rest.trim_start().strip_prefix(tool.name.as_str()).is_some_and(|rest| rest.starts_with('('))
        })
    });
    let names_tool = tools.iter().any(|tool| head.contains(&format!("\"{}\"", tool.name)));
    let has_fields =
        head.contains("\"name\"") && (head.contains("\"arguments\"") || head.contains("\"parameters\""));
    let is_json = head.starts_with('{')
        || head.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with('{'));
    is_python || is_json && names_tool && has_fields
}

fn is_tool(call: &ToolCall, tools: &[ToolSpec]) -> bool {
    tools.iter().any(|tool| tool.name == call.name)
}

/// Whether a value has the fields of a call and no others.
fn is_call_alone(value: &Value) -> bool {
    let is_call = |value: &Value| {
        let Some(map) = value.as_object() else { return false };
        let arguments = map.get("arguments").or_else(|| map.get("parameters"));
        let has_both =
            map.get("name").is_some_and(Value::is_string) && arguments.is_some_and(Value::is_object);
        let fields = ["name", "arguments", "parameters", "type", "id"];
        has_both && map.keys().all(|key| fields.contains(&key.as_str()))
    };
    match value {
        Value::Array(items) => !items.is_empty() && items.iter().all(is_call),
        value => is_call(value),
    }
}

/// Whether the info string of a fenced block names a call.
fn is_call_info(info: &str) -> bool {
    let info = info.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    matches!(info.as_str(), "tool_code" | "tool_call" | "tool_calls" | "function_call")
}

/// Reads calls in fenced blocks at the end of a text.
fn in_blocks(text: &str, blocks: &[Block], tools: &[ToolSpec], was_told: bool) -> Option<TextCalls> {
    let of = |block: &Block| {
        let (content, info) = (text[block.content.clone()].trim(), text[block.info.clone()].trim());
        if is_call_info(info) {
            let inner =
                content.strip_prefix("print(").and_then(|inner| inner.strip_suffix(')')).unwrap_or(content);
            let (calls, _) = Source::new(inner, tools).calls(0);
            return Some(if calls.is_empty() {
                vec![unreadable(known_name(content, tools), content)]
            } else {
                calls
            });
        }
        let calls = match content.starts_with(['{', '[']) {
            true => bare(content, tools)?,
            false if content.starts_with('<') => {
                find(content, tools, true).filter(|found| found.text.is_empty())?.calls
            }
            false => return None,
        };
        calls.iter().all(|call| is_tool(call, tools)).then_some(calls)
    };
    let (mut calls, mut end) = (Vec::new(), text.trim_end().len());
    for block in blocks.iter().rev() {
        let block_end = block.whole.start + text[block.whole.clone()].trim_end().len();
        match (block_end == end).then(|| of(block)).flatten() {
            Some(found) => calls.push(found),
            None => break,
        }
        end = text[..block.whole.start].trim_end().len();
    }
    if !calls.is_empty() {
        let mut calls: Vec<ToolCall> = calls.into_iter().rev().flatten().collect();
        let is_clear = text[..end].trim().is_empty()
            || blocks
                .iter()
                .filter(|block| block.whole.start >= end)
                .all(|block| is_call_info(&text[block.info.clone()]));
        if !is_clear {
            calls.iter_mut().for_each(|call| call.invalid = Some(BESIDE_TEXT.to_owned()));
        }
        return Some(TextCalls { text: text[..end].to_owned(), calls });
    }
    // The only action of the reply, with text after it.
    let [only] = blocks else { return None };
    let found = of(only).filter(|_| !was_told)?;
    let calls =
        found.into_iter().map(|call| ToolCall { invalid: Some(EXAMPLE.to_owned()), ..call }).collect();
    Some(TextCalls { text: text.to_owned(), calls })
}

#[cfg(test)]
mod tests;
