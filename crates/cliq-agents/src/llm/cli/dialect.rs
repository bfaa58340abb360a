//! Arguments of the vendors' programs, and the meaning of their output lines.

use cliq_protocol::{Limited, ToolCall, ToolResult, TranscriptBody, shorten};
use cliq_sdk::Usage;
use serde_json::{Value, json};

use super::end::{GEMINI_TURNS, Report};

/// Maximum number of bytes of a tool result in the transcript.
const LONGEST_RESULT: usize = 100_000;

/// Program of a vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    ClaudeCode,
    Cursor,
    Gemini,
    Codex,
}

/// Place where a program takes its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptInput {
    /// Standard input, as text.
    Text,
    /// Standard input, as a message per line. It takes further messages while it works, until the input ends.
    Messages,
    /// Last argument.
    Argument,
}

impl PromptInput {
    /// Returns a prompt or a further message as bytes for standard input.
    pub(super) fn encode(self, prompt: &str) -> Vec<u8> {
        match self {
            Self::Text | Self::Argument => prompt.as_bytes().to_vec(),
            Self::Messages => {
                let content = json!([{"type": "text", "text": prompt}]);
                let message = json!({"type": "user", "message": {"role": "user", "content": content}});
                format!("{message}\n").into_bytes()
            }
        }
    }
}

/// Meaning of an output line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Event {
    /// A piece of what it says.
    Say(String),
    /// Something that it does, for people.
    Act(String),
    /// A notice, for people.
    Note(String),
    /// A piece of a thought.
    Think(String),
    /// Complete answer.
    Answer(String),
    /// Report about the end of a turn.
    End(Report),
    /// Id of its session.
    Session(String),
    /// The model that it uses.
    Model(String),
    /// The usage of one reply within its work, by the reply's id. A later report of the same id replaces an earlier one.
    Reply(String, Usage),
    /// The usage of all its work.
    Total(Usage),
    /// Line for the transcript.
    Record(TranscriptBody),
}

impl Dialect {
    /// Arguments that make it answer without a person: edits within the workspace are allowed, for the rest it goes by its
    /// own configuration and by what the user sets.
    pub(super) fn args(self, model: Option<&str>, base: Option<&str>) -> Vec<String> {
        let mut args: Vec<String> = match self {
            Self::ClaudeCode => &[
                "-p",
                "--input-format",
                "stream-json",
                "--output-format",
                "stream-json",
                "--verbose",
                "--permission-mode",
                "acceptEdits",
            ][..],
            Self::Cursor => &["--print", "--force", "--output-format", "stream-json"],
            Self::Gemini => {
                &["--output-format", "stream-json", "--approval-mode", "auto_edit", "--skip-trust"]
            }
            Self::Codex => &["exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write"],
        }
        .iter()
        .map(|arg| (*arg).to_owned())
        .collect();
        if let (Self::Codex, Some(base)) = (self, base) {
            // JSON strings are TOML strings.
            let base = json!(base);
            args.extend([
                "-c".to_owned(),
                format!("model_providers.cliq={{name=\"cliq\",base_url={base},env_key=\"CODEX_API_KEY\",wire_api=\"responses\"}}"),
                "-c".to_owned(),
                "model_provider=\"cliq\"".to_owned(),
            ]);
        }
        if let Some(model) = model {
            args.extend(["--model".to_owned(), model.to_owned()]);
        }
        args
    }

    /// Returns the place where it takes the prompt.
    pub(super) fn input(self) -> PromptInput {
        match self {
            Self::ClaudeCode => PromptInput::Messages,
            Self::Gemini | Self::Codex => PromptInput::Text,
            Self::Cursor => PromptInput::Argument,
        }
    }

    pub(super) fn provider(self) -> &'static str {
        match self {
            Self::ClaudeCode => "anthropic",
            Self::Cursor => "cursor",
            Self::Gemini => "google",
            Self::Codex => "openai",
        }
    }

    pub(super) fn read(self, line: &Value) -> Vec<Event> {
        match self {
            Self::ClaudeCode | Self::Cursor => claude(line),
            Self::Gemini => gemini(line),
            Self::Codex => codex(line),
        }
    }
}

fn text(value: &Value, path: &str) -> Option<String> {
    Some(value.pointer(path)?.as_str()?.to_owned())
}

fn count(value: &Value, path: &str) -> Option<u64> {
    value.pointer(path)?.as_u64()
}

/// Tool call for the transcript.
fn call(id: Option<String>, name: &str, arguments: &Value) -> Event {
    let (id, name) = (id.unwrap_or_default(), name.to_owned());
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    Event::Record(TranscriptBody::ToolCall(ToolCall {
        id,
        name,
        arguments,
        invalid: None,
        provider_data: None,
    }))
}

/// Tool result for the transcript. Content of results is a text, or a list of texts.
fn result(id: Option<String>, content: &Value, is_error: bool) -> Event {
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let id = id.unwrap_or_default();
    let text = shorten(&text, LONGEST_RESULT).into_owned();
    Event::Record(TranscriptBody::ToolResult(ToolResult { is_error, ..ToolResult::new(id, Ok(text)) }))
}

/// Returns the most informative argument of a tool call, for people.
fn tool_summary(input: &Value) -> String {
    let telling = [
        "command",
        "cmd",
        "file_path",
        "filePath",
        "path",
        "absolute_path",
        "pattern",
        "query",
        "url",
        "description",
        "prompt",
    ];
    let found = telling.iter().find_map(|key| match input.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
        _ => None,
    });
    found.map(|text| format!(" {}", text.lines().next().unwrap_or_default())).unwrap_or_default()
}

/// Usage as Claude Code and Cursor print it: the one in snake case, with cached input apart; the other in camel case.
fn anthropic_usage(usage: &Value) -> Usage {
    let either = |snake: &str, camel: &str| count(usage, snake).or_else(|| count(usage, camel));
    let cached = either("/cache_read_input_tokens", "/cacheReadTokens");
    let written = either("/cache_creation_input_tokens", "/cacheWriteTokens");
    let fresh = either("/input_tokens", "/inputTokens").unwrap_or(0);
    Usage {
        tokens_in: fresh.saturating_add(cached.unwrap_or(0)).saturating_add(written.unwrap_or(0)),
        tokens_out: either("/output_tokens", "/outputTokens").unwrap_or(0),
        tokens_cached: cached,
        ..Usage::default()
    }
}

/// All output. `total_tokens` has thoughts too, which are paid for as output.
fn gemini_output(line: &Value) -> u64 {
    let said = count(line, "/stats/output_tokens").unwrap_or(0);
    let rest = count(line, "/stats/total_tokens")
        .and_then(|total| total.checked_sub(count(line, "/stats/input_tokens")?));
    said.max(rest.unwrap_or(0))
}

/// Session and model of a first line.
fn beginning(line: &Value) -> Vec<Event> {
    let session = text(line, "/session_id").map(Event::Session);
    session.into_iter().chain(text(line, "/model").map(Event::Model)).collect()
}

fn claude(line: &Value) -> Vec<Event> {
    match line["type"].as_str().unwrap_or_default() {
        "system" => beginning(line),
        "assistant" => {
            let reply = line
                .pointer("/message/usage")
                .and_then(|usage| Some(Event::Reply(text(line, "/message/id")?, anthropic_usage(usage))));
            let parts = line.pointer("/message/content").and_then(Value::as_array).into_iter().flatten();
            let of_part = |part: &Value| match part["type"].as_str().unwrap_or_default() {
                "text" => {
                    let said = text(part, "/text").map(|said| Event::Say(format!("{}\n", said.trim_end())));
                    said.into_iter().collect()
                }
                "thinking" => {
                    let thought = text(part, "/thinking").filter(|thought| !thought.is_empty());
                    let record = |text| Event::Record(TranscriptBody::Thinking { text, provider_data: None });
                    thought.map(record).into_iter().collect()
                }
                "tool_use" => {
                    let name = text(part, "/name").unwrap_or_default();
                    let act = Event::Act(format!("{name}{}", tool_summary(&part["input"])));
                    vec![act, call(text(part, "/id"), &name, &part["input"])]
                }
                _ => Vec::new(),
            };
            parts.flat_map(of_part).chain(reply).collect()
        }
        "user" => {
            let parts = line.pointer("/message/content").and_then(Value::as_array).into_iter().flatten();
            let results = parts.filter(|part| part["type"] == "tool_result");
            results
                .map(|part| result(text(part, "/tool_use_id"), &part["content"], part["is_error"] == true))
                .collect()
        }
        // Cursor's way to tell of tools: {"tool_call": {"shellToolCall": {"args": {…}}}}.
        "tool_call" => {
            let Some((name, one)) = line["tool_call"].as_object().and_then(|calls| calls.iter().next())
            else {
                return Vec::new();
            };
            let (id, name) = (text(line, "/call_id"), name.trim_end_matches("ToolCall"));
            if line["subtype"] == "started" {
                let act = Event::Act(format!("{name}{}", tool_summary(&one["args"])));
                vec![act, call(id, name, &one["args"])]
            } else {
                vec![result(id, &one["result"], one["result"].get("error").is_some())]
            }
        }
        // Cursor prints its thoughts in pieces.
        "thinking" => text(line, "/text").map(Event::Think).into_iter().collect(),
        "result" => {
            let mut events = Vec::new();
            let cost = line["total_cost_usd"].as_f64().filter(|cost| cost.is_finite() && *cost >= 0.0);
            if line.get("usage").is_some_and(Value::is_object) || cost.is_some() {
                events.push(Event::Total(Usage { cost_usd: cost, ..anthropic_usage(&line["usage"]) }));
            }
            let report = claude_report(line);
            if report == Report::Success {
                events.extend(text(line, "/result").map(Event::Answer));
            }
            events.push(Event::End(report));
            events
        }
        _ => Vec::new(),
    }
}

/// Report of a `result` line of Claude Code or Cursor. The only success is `subtype: success` without `is_error`, of a reply that is
/// whole.
fn claude_report(line: &Value) -> Report {
    let errors = line["errors"]
        .as_array()
        .map(|errors| errors.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; "));
    let reason = text(line, "/result").or(errors.filter(|text| !text.is_empty())).unwrap_or_default();
    let failure = |name: String| Report::Failure { name, reason: reason.clone() };
    let subtype = line["subtype"].as_str().unwrap_or_default();
    match subtype {
        "success" if line["is_error"] == true => failure("is_error".to_owned()),
        "success" => match (line["stop_reason"].as_str(), line["terminal_reason"].as_str()) {
            (Some(stop), _) if !matches!(stop, "end_turn" | "stop_sequence" | "tool_use") => {
                failure(format!("stop_reason {stop}"))
            }
            (_, Some(end)) if end != "completed" => failure(format!("terminal_reason {end}")),
            (_, _) => Report::Success,
        },
        "error_max_turns" => {
            let value = line.get("num_turns").filter(|turns| turns.is_u64()).cloned();
            Report::Limit { limited: limited(subtype, value), reason }
        }
        "error_max_budget_usd" => Report::Limit { limited: limited(subtype, None), reason },
        "" => failure("a result without `subtype`".to_owned()),
        other => failure(other.to_owned()),
    }
}

fn limited(limit: &str, value: Option<Value>) -> Limited {
    Limited { limit: limit.to_owned(), value, extra: Default::default() }
}

fn gemini(line: &Value) -> Vec<Event> {
    match line["type"].as_str().unwrap_or_default() {
        "init" => beginning(line),
        "message" if line["role"] == "assistant" => {
            text(line, "/content").map(Event::Say).into_iter().collect()
        }
        "tool_use" => {
            let name = text(line, "/tool_name").unwrap_or_else(|| "tool".to_owned());
            let act = Event::Act(format!("{name}{}", tool_summary(&line["parameters"])));
            vec![act, call(text(line, "/tool_id"), &name, &line["parameters"])]
        }
        "tool_result" => {
            let content = if line["output"].is_null() { &line["error"]["message"] } else { &line["output"] };
            vec![result(text(line, "/tool_id"), content, line["status"] == "error")]
        }
        "error" => {
            let reason = text(line, "/message").unwrap_or_default();
            // It stops by itself, and reports success afterwards.
            let report = if reason.starts_with("Loop detected") {
                Report::Failure { name: "loop_detected".to_owned(), reason }
            } else if reason.starts_with("Maximum session turns exceeded") {
                Report::Limit { limited: limited(GEMINI_TURNS, None), reason }
            } else if line["severity"] == "warning" {
                return vec![Event::Note(format!("warning: {reason}"))];
            } else {
                Report::Failure { name: "error".to_owned(), reason }
            };
            vec![Event::End(report)]
        }
        "result" => {
            let mut events = Vec::new();
            if line.get("stats").is_some_and(Value::is_object) {
                events.push(Event::Total(Usage {
                    tokens_in: count(line, "/stats/input_tokens").unwrap_or(0),
                    tokens_out: gemini_output(line),
                    tokens_cached: count(line, "/stats/cached"),
                    ..Usage::default()
                }));
            }
            let report = match (line["status"].as_str(), line["error"].is_null()) {
                (Some("success"), true) => Report::Success,
                (status, _) => gemini_failure(&line["error"], status.unwrap_or("a result without `status`")),
            };
            events.push(Event::End(report));
            events
        }
        // The format `json`, if it is in one line.
        "" if line["response"].is_string() || line["error"].is_object() => {
            let answer = text(line, "/response").filter(|_| line["error"].is_null());
            match answer {
                Some(answer) => vec![
                    Event::Say(format!("{answer}\n")),
                    Event::Answer(answer),
                    Event::End(Report::Success),
                ],
                None => vec![Event::End(gemini_failure(&line["error"], "error"))],
            }
        }
        _ => Vec::new(),
    }
}

/// Failure that Gemini CLI reports as an object with `type` and `message`.
fn gemini_failure(error: &Value, name: &str) -> Report {
    let name = text(error, "/type").filter(|name| !name.is_empty()).unwrap_or_else(|| name.to_owned());
    Report::Failure { name, reason: text(error, "/message").unwrap_or_default() }
}

fn codex(line: &Value) -> Vec<Event> {
    let item = &line["item"];
    match (line["type"].as_str().unwrap_or_default(), item["type"].as_str().unwrap_or_default()) {
        ("thread.started", _) => text(line, "/thread_id").map(Event::Session).into_iter().collect(),
        ("item.started", "command_execution") => {
            let command = text(item, "/command").unwrap_or_default();
            let arguments = json!({"command": command});
            vec![
                Event::Act(format!("runs {command}")),
                call(text(item, "/id"), "command_execution", &arguments),
            ]
        }
        ("item.completed", "command_execution") => {
            let is_error = item["exit_code"].as_i64().is_some_and(|code| code != 0);
            vec![result(text(item, "/id"), &item["aggregated_output"], is_error)]
        }
        ("item.completed", "reasoning") => {
            let record = |text| Event::Record(TranscriptBody::Thinking { text, provider_data: None });
            text(item, "/text").map(record).into_iter().collect()
        }
        ("item.completed", "agent_message") => match text(item, "/text") {
            Some(said) => vec![Event::Say(format!("{said}\n")), Event::Answer(said)],
            None => Vec::new(),
        },
        ("item.completed", "file_change") => {
            let changes = item["changes"].as_array().into_iter().flatten();
            let paths: Vec<&str> = changes.filter_map(|change| change["path"].as_str()).collect();
            let arguments = json!({"changes": item["changes"]});
            let done = result(text(item, "/id"), &item["status"], item["status"] == "failed");
            let act = Event::Act(format!("changes {}", paths.join(", ")));
            vec![act, call(text(item, "/id"), "file_change", &arguments), done]
        }
        ("item.started", "mcp_tool_call") => {
            let tool = text(item, "/tool").unwrap_or_default();
            let name = format!("{}__{tool}", text(item, "/server").unwrap_or_default());
            vec![Event::Act(tool), call(text(item, "/id"), &name, &item["arguments"])]
        }
        ("item.completed", "mcp_tool_call") => {
            let failure = &item["error"]["message"];
            let content = if failure.is_null() { &item["result"]["content"] } else { failure };
            vec![result(text(item, "/id"), content, !failure.is_null())]
        }
        ("item.completed" | "item.started", "web_search") => {
            vec![Event::Act(format!("searches{}", tool_summary(item)))]
        }
        ("turn.completed", _) => {
            let usage = line.get("usage").filter(|usage| usage.is_object());
            let total = usage.map(|usage| {
                Event::Total(Usage {
                    tokens_in: count(usage, "/input_tokens").unwrap_or(0),
                    tokens_out: count(usage, "/output_tokens").unwrap_or(0),
                    tokens_cached: count(usage, "/cached_input_tokens"),
                    tokens_reasoning: count(usage, "/reasoning_output_tokens"),
                    ..Usage::default()
                })
            });
            total.into_iter().chain([Event::End(Report::Success)]).collect()
        }
        ("turn.failed", _) => {
            let reason = text(line, "/error/message").unwrap_or_default();
            vec![Event::End(Report::Failure { name: "turn.failed".to_owned(), reason })]
        }
        // `error` alone tells of another try. The turn may still complete.
        ("error", _) => {
            let reason = text(line, "/message").unwrap_or_default();
            vec![Event::Act(format!("error: {reason}")), Event::End(Report::Error { reason })]
        }
        _ => Vec::new(),
    }
}
