//! Models over HTTP: streaming, with retries. Each of the three APIs has a file for its requests and replies.

mod anthropic;
mod draft;
mod gemini;
mod openai;
mod text_calls;

use std::cell::RefCell;
use std::io::{BufReader, Read};
use std::time::{Duration, Instant};

use cliq_coder::tools::ToolSpec;
use cliq_coder::{Reply, Turn};
use cliq_http::{CallError, Client, Limits, Request, read_events};
use cliq_sdk::Usage;
use cliq_settings::Secret;
use serde_json::Value;

use super::catalog::ApiKind;
use super::display::Display;
use super::images::Image;
use super::meter::{Meter, line};
use draft::Draft;

/// Maximum number of attempts of a call.
const TRIES: usize = 6;
/// Deadline for the first byte of a response.
const FIRST_BYTE: Duration = Duration::from_secs(300);
/// The longest that an answer may take, to its end.
const ANSWER: Duration = Duration::from_secs(2 * 60 * 60);

/// Credentials and endpoint of a model API.
pub(crate) struct Access {
    pub(crate) kind: ApiKind,
    pub(crate) name: &'static str,
    pub(crate) base: String,
    pub(crate) key: Option<Secret>,
    pub(crate) model: String,
    pub(crate) max_tokens: Option<usize>,
}

/// A model behind an API.
pub(crate) struct Api {
    access: Access,
    client: Client,
}

/// Request for a reply.
pub(crate) struct ModelRequest<'a> {
    pub(crate) turns: &'a [Turn],
    pub(crate) tools: &'a [ToolSpec],
    /// Whether the model may call tools in this reply.
    pub(crate) may_call: bool,
    /// Content of the images that turns name.
    pub(crate) images: &'a [Image],
}

/// Whole reply with what it used.
pub(crate) struct ModelReply {
    pub(crate) reply: Reply,
    /// `None` if the server reported none.
    pub(crate) usage: Option<Usage>,
    pub(crate) is_cut_off: bool,
    pub(crate) duration_ms: u64,
}

/// Failed request.
pub(crate) struct ModelError {
    /// Cause, for people.
    pub(crate) message: String,
    /// Whether the conversation is too long for the model.
    pub(crate) is_too_long: bool,
    /// Whether the provider refused earlier thoughts.
    pub(crate) has_stale_thinking: bool,
}

/// One call, as an API wants it.
struct Call {
    url: String,
    headers: Vec<(&'static str, String)>,
    body: Value,
}

impl Api {
    pub(crate) fn new(access: Access) -> Self {
        let limits = Limits { first_byte: FIRST_BYTE, idle: FIRST_BYTE, whole: ANSWER, ..Limits::default() };
        Self { access, client: Client::new(limits) }
    }

    /// Name of the model.
    pub(crate) fn model(&self) -> &str {
        &self.access.model
    }

    fn call(&self, request: &ModelRequest<'_>) -> Call {
        match self.access.kind {
            ApiKind::Anthropic => anthropic::call(&self.access, request),
            ApiKind::OpenAi => openai::call(&self.access, request),
            ApiKind::Gemini => gemini::call(&self.access, request),
        }
    }

    /// Applies a piece of a reply. Returns the text in it.
    fn apply(&self, data: &str, draft: &mut Draft) -> Option<String> {
        if data.trim() == "[DONE]" {
            draft.is_done = true;
            return None;
        }
        let Ok(value) = serde_json::from_str::<Value>(data) else {
            let shown: String = data.chars().take(200).collect();
            draft.error = Some((format!("a piece of the answer is not JSON: {shown}"), true));
            return None;
        };
        match self.access.kind {
            ApiKind::Anthropic => anthropic::apply(&value, draft),
            ApiKind::OpenAi => openai::apply(&value, draft),
            ApiKind::Gemini => gemini::apply(&value, draft),
        }
    }

    /// Calls once. `draft` gets what came, in vain or not.
    fn try_once(&self, call: &Call, display: &mut Display<'_>, draft: &mut Draft) -> Result<(), CallError> {
        let name = self.access.name;
        let mut request = Request::post(&call.url).json(&call.body).called(name);
        for (name, value) in &call.headers {
            request = request.secret_header(*name, value);
        }
        let response = self.client.open(&request).map_err(|mut failed| {
            failed.message = request.redact(&failed.message);
            self.with_hint(failed)
        })?;
        let whole = response
            .headers()
            .get("content-type")
            .and_then(|v| v.to_str().ok())
            .is_some_and(|v| v.starts_with("application/json"));
        let mut outcome = Ok(());
        let mut take = |data: &str| {
            if let Some(text) = self.apply(data, draft) {
                display.print(&text);
            }
            if let Some((message, again)) = draft.error.take() {
                outcome = Err(CallError::new(format!("{name}: {message}"), again));
            } else if let Some(why) = draft.refusal.take() {
                outcome = Err(CallError::permanent(format!("{name} ended its answer: {why}")));
            }
            outcome.is_ok()
        };
        let body = response.into_body().into_reader();
        let read = if whole {
            // Servers that do not stream answer all at once.
            let mut text = String::new();
            BufReader::new(body).read_to_string(&mut text).map(|_| {
                take(&text);
                take("[DONE]");
            })
        } else {
            read_events(BufReader::new(body), |event| take(&event.data))
        };
        outcome?;
        let broken = |what: String| CallError::new(format!("the answer of {name} broke off: {what}"), true);
        read.map_err(|error| broken(error.to_string()))?;
        if !draft.is_done && !draft.is_cut_off {
            return Err(broken("its end is missing".to_owned()));
        }
        Ok(())
    }

    /// Requests a reply. Shows what comes while it comes, and meters its usage.
    pub(crate) fn request(
        &self,
        request: &ModelRequest<'_>,
        display: &mut Display<'_>,
        meter: &mut Meter<'_>,
        on_retry: &mut dyn FnMut(&str),
    ) -> Result<ModelReply, ModelError> {
        if let Some(key) = &self.access.key {
            display.hide(key.reveal());
        }
        display.act(&format!("asking {}", self.access.model));
        let started = Instant::now();
        let call = self.call(request);
        let (display, mut is_too_long, mut has_stale_thinking) = (RefCell::new(display), false, false);
        let result = cliq_http::retry(
            self.access.name,
            TRIES,
            || {
                let mut draft = Draft::default();
                let result = self.try_once(&call, &mut display.borrow_mut(), &mut draft);
                let usage = draft.usage(self.provider(), &self.access.model);
                if let Some(usage) = &usage {
                    display.borrow_mut().note(&line(usage));
                    meter.report(usage.clone());
                }
                meter.settle();
                is_too_long = result.as_ref().is_err_and(says_too_long);
                has_stale_thinking = result.as_ref().is_err_and(says_stale_thinking);
                result.map(|()| (draft, usage))
            },
            |said| {
                display.borrow_mut().act(said);
                on_retry(said);
            },
        );
        let display = display.into_inner();
        display.finish();
        match result {
            Ok((draft, usage)) => {
                let names: Vec<&str> = match request.may_call {
                    true => request.tools.iter().map(|tool| tool.name.as_str()).collect(),
                    false => Vec::new(),
                };
                Ok(ModelReply {
                    is_cut_off: draft.is_cut_off,
                    reply: draft.into_reply(&names, known_ids(request.turns)),
                    usage,
                    duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                })
            }
            Err(failed) => {
                let message = display.masked(&failed.message);
                Err(ModelError { message, is_too_long, has_stale_thinking })
            }
        }
    }

    /// Error for a reply that was cut off.
    pub(crate) fn cut_off(&self) -> String {
        let name = self.access.name;
        format!("the answer of {name} was cut off at its longest: raise `agents.{name}.max_tokens`")
    }

    pub(crate) fn provider(&self) -> &'static str {
        match self.access.kind {
            ApiKind::Anthropic => "anthropic",
            ApiKind::OpenAi => "openai",
            ApiKind::Gemini => "google",
        }
    }

    /// An error with what may mend it.
    fn with_hint(&self, mut failed: CallError) -> CallError {
        let name = self.access.name;
        let hint = match failed.status {
            Some(401 | 403) => format!(" (check its key: the environment, or `agents.{name}.api_key`)"),
            Some(404) => format!(
                " (check `agents.{name}.model`, here {}, and `agents.{name}.base_url`)",
                self.access.model
            ),
            None => format!(" (at {})", cliq_protocol::without_credentials(&self.access.base)),
            Some(_) => String::new(),
        };
        failed.message.push_str(&hint);
        failed
    }
}

/// Ids of all tool calls of a conversation.
fn known_ids(turns: &[Turn]) -> impl Iterator<Item = &str> {
    let calls = turns.iter().filter_map(|turn| match turn {
        Turn::Assistant(reply) => Some(&reply.calls),
        _ => None,
    });
    calls.flatten().map(|call| call.id.as_str())
}

/// Whether an error says that the conversation is too long for the model. Each server has words of its own.
fn says_too_long(error: &CallError) -> bool {
    if !matches!(error.status, Some(400 | 413 | 422)) {
        return false;
    }
    let said = error.message.to_lowercase();
    [
        "prompt is too long",
        "context length",
        "context window",
        "context size",
        "context_length",
        "too many tokens",
        "maximum number of tokens",
        "input token count",
        "input is too long",
    ]
    .iter()
    .any(|words| said.contains(words))
}

/// Whether an error says that a thought does not belong to the conversation: its beginning has changed.
fn says_stale_thinking(error: &CallError) -> bool {
    error.status == Some(400)
        && error.message.contains("thinking")
        && (error.message.contains("bound to") || error.message.contains("signature"))
}

fn join(base: &str, path: &str) -> String {
    format!("{}/{path}", base.trim_end_matches('/'))
}

fn count(value: &Value, path: &str) -> Option<u64> {
    value.pointer(path)?.as_u64()
}

fn text(value: &Value, path: &str) -> Option<String> {
    Some(value.pointer(path)?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use cliq_coder::Thinking;
    use cliq_protocol::{Object, ToolCall, ToolResult};
    use serde_json::json;

    use super::*;

    fn turns() -> Vec<Turn> {
        let call = |id: &str, data: Option<&str>| ToolCall {
            id: id.into(),
            name: "read_file".into(),
            arguments: Object::from_iter([("path".to_owned(), json!("a"))]),
            invalid: None,
            provider_data: data.map(Value::from),
        };
        let user = |text: &str, images: &[&str]| Turn::User {
            text: text.into(),
            images: images.iter().map(|path| (*path).to_owned()).collect(),
        };
        let result = |id: &str, is_error| ToolResult {
            id: id.into(),
            is_error,
            text: "text".into(),
            duration_ms: None,
        };
        let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
        vec![
            user("The task.", &["a.png"]),
            Turn::Assistant(Reply {
                text: "I look.".into(),
                thinking: vec![Thinking { text: "hm".into(), provider_data: Some(thought) }],
                calls: vec![call("1", Some("signature")), call("2", None)],
            }),
            Turn::Results(vec![result("1", false), result("2", true)]),
            user("Guidance.", &[]),
        ]
    }

    #[test]
    fn requests_are_pinned() {
        let images = [Image { path: "a.png".into(), media_type: "image/png", base64: "AQID".into() }];
        let schema =
            json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        let tools = [ToolSpec { name: "read_file".into(), description: "Reads.".into(), schema }];
        let turns = turns();
        let of = |kind| {
            let access = Access {
                kind,
                name: "x",
                base: "http://x".into(),
                key: None,
                model: "m".into(),
                max_tokens: Some(9),
            };
            let api = Api::new(access);
            let bodies = [true, false].map(|may_call| {
                let request = ModelRequest { turns: &turns, tools: &tools, may_call, images: &images };
                api.call(&request).body
            });
            let [body, last] = bodies;
            let choice = [&last["tool_choice"], &last["toolConfig"]]
                .into_iter()
                .find(|value| !value.is_null())
                .cloned();
            json!({"body": body, "without calls": choice})
        };
        insta::assert_json_snapshot!([ApiKind::Anthropic, ApiKind::OpenAi, ApiKind::Gemini].map(of));
    }

    #[test]
    fn errors_that_another_request_mends_are_told_apart() {
        let error =
            |status, message: &str| CallError { status: Some(status), ..CallError::permanent(message) };
        for said in [
            "prompt is too long: 210000 tokens > 200000 maximum",
            "This model's maximum context length is 8192 tokens",
            "the request exceeds the available context size",
            "The input token count (1200000) exceeds the maximum number of tokens allowed",
        ] {
            assert!(says_too_long(&error(400, said)) && !says_stale_thinking(&error(400, said)), "{said}");
        }
        assert!(!says_too_long(&error(500, "context length")) && !says_too_long(&error(400, "bad key")));
        let stale =
            "Invalid `signature` in `thinking` block. The block is bound to a different conversation.";
        assert!(says_stale_thinking(&error(400, stale)) && !says_too_long(&error(400, stale)));
    }
}
