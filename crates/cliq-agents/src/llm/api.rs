//! Models over HTTP: streaming, with retries. Each of the four APIs has a file for its requests and replies.

mod anthropic;
mod attempt;
mod classify;
mod draft;
mod errors;
mod exchange;
mod gemini;
mod openai;
mod places;
mod repetition;
mod responses;
mod termination;
mod text_calls;

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use cliq_coder::tools::ToolSpec;
use cliq_coder::{Reply, Turn};
use cliq_http::{Client, Limits};
use cliq_protocol::{FailedCall, FailedCallKind, ModelParameters, ReplyKind};
use cliq_sdk::Usage;
use cliq_settings::{CacheLifetime, Secret};
use serde_json::Value;

use super::display::Display;
use super::images::Image;
use super::kinds::ApiKind;
use super::meter::{Meter, line};
use super::structure::Structure;
use classify::{End, Sizes};
use draft::Draft;
use errors::{Class, error_in};
pub(crate) use places::{PlaceLimits, Places};
use termination::Deferred;

/// Maximum number of attempts of a call.
const TRIES: usize = 6;
/// Default of the maximum time without data, before the first byte and after it.
pub(super) const REPLY_TIMEOUT: Duration = Duration::from_secs(300);
/// The longest that an answer may take, to its end.
const ANSWER: Duration = Duration::from_secs(2 * 60 * 60);
/// Bytes of a token, on average, for estimates.
const TOKEN_BYTES: u64 = 4;
/// Size of an image in bytes of text, for estimates.
const IMAGE_BYTES: usize = 5_000;

/// Credentials and endpoint of a model API.
pub(crate) struct Access {
    pub(crate) kind: ApiKind,
    pub(crate) name: String,
    pub(crate) base: String,
    pub(crate) key: Option<Secret>,
    pub(crate) model: String,
    /// Parameters of the phase, with those of the agent for what it does not set.
    pub(crate) parameters: ModelParameters,
    /// Name of the conversation for the cache of a vendor.
    pub(crate) cache_key: Option<String>,
    pub(crate) cache_lifetime: Option<CacheLifetime>,
    /// Maximum number of tokens of a request and its reply.
    pub(crate) context_tokens: u64,
    /// Maximum time without data of a reply.
    pub(crate) reply_timeout: Duration,
    /// Whether requests go to the vendor's own address.
    pub(crate) is_at_vendor: bool,
    /// Places that it shares with other processes, if there is a directory for them.
    pub(crate) places: Option<Places>,
}

/// A model behind an API.
pub(crate) struct Api {
    access: Access,
    client: Client,
    /// Whether the server has refused the role of the system: its template knows none.
    refuses_system: Cell<bool>,
    /// Whether the server has refused a schema of the reply.
    refuses_schema: Cell<bool>,
}

/// Request for a reply.
#[derive(Clone, Copy)]
pub(crate) struct ModelRequest<'a> {
    /// Instructions before the conversation, in the role of the system.
    pub(crate) system: Option<&'a str>,
    pub(crate) turns: &'a [Turn],
    pub(crate) tools: &'a [ToolSpec],
    /// Whether the model may call tools in this reply.
    pub(crate) may_call: bool,
    /// Schema of the reply. `None` if the reply is free.
    pub(crate) schema: Option<&'a ReplySchema>,
    /// Content of the images that turns name.
    pub(crate) images: &'a [Image],
    /// Maximum number of tokens of the reply that budget and context leave. `None` if they leave more than a reply usually has.
    pub(crate) reply_cap: Option<u64>,
}

impl ModelRequest<'_> {
    /// Maximum number of tokens of the reply that is requested, with that of the parameters.
    fn max_tokens(&self, of_parameters: Option<u64>) -> Option<u64> {
        of_parameters.into_iter().chain(self.reply_cap).min()
    }
}

/// Schema that a reply has to match: an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReplySchema {
    /// Name: letters and `_`.
    pub(crate) name: &'static str,
    /// JSON Schema.
    pub(crate) schema: Value,
    /// Whether the schema has the form that providers can enforce to the letter.
    pub(crate) is_strict: bool,
}

impl ReplySchema {
    /// Schema of a structure.
    pub(crate) fn of(structure: &Structure) -> Self {
        Self { name: structure.name(), schema: structure.reply_schema(), is_strict: structure.is_strict() }
    }
}

/// Whole reply with what it used.
pub(crate) struct ModelReply {
    pub(crate) reply: Reply,
    /// `None` if the server reported none.
    pub(crate) usage: Option<Usage>,
    pub(crate) kind: ReplyKind,
    /// Reason for the kind, for people. `None` if the kind is `answer` or `calls`.
    pub(crate) detail: Option<String>,
    pub(crate) duration_ms: u64,
}

/// Request of one call, in the format of an API.
struct Call {
    url: String,
    headers: Vec<(&'static str, String)>,
    body: Value,
}

impl Api {
    pub(crate) fn new(access: Access) -> Self {
        let timeout = access.reply_timeout;
        let limits = Limits { first_byte: timeout, idle: timeout, whole: ANSWER, ..Limits::default() };
        Self {
            access,
            client: Client::new(limits),
            refuses_system: Cell::new(false),
            refuses_schema: Cell::new(false),
        }
    }

    /// Name of the model.
    pub(crate) fn model(&self) -> &str {
        &self.access.model
    }

    fn call(&self, request: &ModelRequest<'_>) -> Call {
        let mut call = match self.access.kind {
            ApiKind::Anthropic => anthropic::call(&self.access, request),
            ApiKind::OpenAi => openai::call(&self.access, request),
            ApiKind::Responses => responses::call(&self.access, request),
            ApiKind::Gemini => gemini::call(&self.access, request),
        };
        let may_not_call = (!request.may_call).then(|| call.body.get("tool_choice").cloned()).flatten();
        self.access.parameters.extra_body.add_to(&mut call.body);
        // A field of the person does not let a model call tools when it cannot.
        match may_not_call {
            Some(choice) => call.body["tool_choice"] = choice,
            None if !request.may_call => {
                call.body.as_object_mut().map(|body| body.remove("tool_choice"));
            }
            None => {}
        }
        call
    }

    /// Applies a piece of a reply. Returns the text in it.
    fn apply(&self, value: &Value, draft: &mut Draft) -> Option<String> {
        if let Some(error) = error_in(value) {
            draft.error = Some(error);
            return None;
        }
        match self.access.kind {
            ApiKind::Anthropic => anthropic::apply(value, draft),
            ApiKind::OpenAi => openai::apply(value, draft),
            ApiKind::Responses => responses::apply(value, draft),
            ApiKind::Gemini => gemini::apply(value, draft),
        }
    }

    /// Requests a reply. Shows what comes while it comes, and meters its usage.
    pub(crate) fn request(
        &self,
        request: &ModelRequest<'_>,
        display: &mut Display<'_>,
        meter: &mut Meter<'_>,
        on_retry: &mut dyn FnMut(&str, Option<Usage>),
    ) -> Result<ModelReply, Box<FailedCall>> {
        loop {
            let (without_system, without_schema) = (self.refuses_system.get(), self.refuses_schema.get());
            let merged = if without_system { with_system(request) } else { Vec::new() };
            let attempt = ModelRequest {
                system: request.system.filter(|_| !without_system),
                turns: if without_system { &merged } else { request.turns },
                schema: request.schema.filter(|_| !without_schema),
                ..*request
            };
            let failed = match self.request_once(&attempt, display, meter, on_retry) {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            // Each of the two is left out once, and then for all further requests.
            if attempt.system.is_some() && errors::says_no_system(&failed.message) {
                self.refuses_system.set(true);
            } else if attempt.schema.is_some() && errors::says_no_schema(&failed.message) {
                self.refuses_schema.set(true);
            } else {
                return Err(failed);
            }
            on_retry(&failed.message, failed.usage);
        }
    }

    /// Whether the server may take a schema of the reply: it has not refused one.
    pub(crate) fn takes_schemas(&self) -> bool {
        !self.refuses_schema.get()
    }

    /// Whether a request may have a schema and tools. Servers of local models refuse both together.
    pub(crate) fn takes_schemas_with_tools(&self) -> bool {
        match self.access.kind {
            ApiKind::Anthropic => true,
            ApiKind::OpenAi | ApiKind::Responses => self.access.is_at_vendor,
            ApiKind::Gemini => false,
        }
    }

    fn request_once(
        &self,
        request: &ModelRequest<'_>,
        display: &mut Display<'_>,
        meter: &mut Meter<'_>,
        on_retry: &mut dyn FnMut(&str, Option<Usage>),
    ) -> Result<ModelReply, Box<FailedCall>> {
        if let Some(key) = &self.access.key {
            display.hide(key.reveal());
        }
        if let Some(message) = self.too_large(request) {
            return Err(Box::new(FailedCall { message, kind: FailedCallKind::Final, usage: None }));
        }
        display.act(&format!("asking {}", self.access.model));
        let started = Instant::now();
        let call = self.call(request);
        let size = call.body.to_string().len();
        let images = request.images.iter().map(|image| image.base64.len()).sum::<usize>();
        let size = size.saturating_sub(images) + request.images.len() * IMAGE_BYTES;
        let (display, last_class, ended) = (RefCell::new(display), Cell::new(None), RefCell::new(None));
        let wasted = RefCell::new(None);
        let result = cliq_http::retry(
            &self.access.name,
            TRIES,
            || {
                let mut draft = Draft::default();
                let deferred = Deferred::begin();
                let place = self.place(&deferred, &mut display.borrow_mut(), &mut draft);
                let was_sent = place.is_ok();
                let result = place.and_then(|_place| {
                    self.try_once(&call, &deferred, &mut display.borrow_mut(), &mut draft)
                });
                self.share_pause(&result);
                let is_whole = !matches!(draft.end, Some(End::Repeating(_)));
                let usage = match &result {
                    _ if !was_sent => None,
                    Ok(()) if is_whole => draft.usage(self.provider(), &self.access.model),
                    // A reply that was not read to its end has no counts.
                    Ok(()) | Err(_) => {
                        draft.partial_usage(self.provider(), &self.access.model, size as u64 / TOKEN_BYTES)
                    }
                };
                if let Some(usage) = &usage {
                    display.borrow_mut().note(&line(usage));
                    meter.report(usage.clone());
                }
                meter.settle();
                last_class.set(draft.class);
                if draft.was_ended {
                    ended.replace(Some(deferred));
                }
                if result.is_err() {
                    wasted.replace(usage.clone());
                }
                result.map(|()| (draft, usage))
            },
            |said| {
                display.borrow_mut().act(said);
                on_retry(said, wasted.take());
            },
        );
        let display = display.into_inner();
        display.finish();
        match result {
            Ok((draft, usage)) => {
                let sizes = self.sizes(&draft, request.reply_cap);
                let end = draft.end.clone().unwrap_or(End::Stop);
                let reply =
                    draft.into_reply(request.tools, known_ids(request.turns), was_told(request.turns));
                let (kind, detail) = classify::kind(&end, &reply, &self.access.name, &sizes);
                Ok(ModelReply {
                    reply,
                    usage,
                    kind,
                    detail: detail.map(|detail| display.masked(&detail)),
                    duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
                })
            }
            Err(failed) => {
                let message = display.masked(&failed.message);
                let usage = wasted.take();
                if let Some(deferred) = ended.take() {
                    // A resumed run counts what this request has used.
                    on_retry(&message, usage);
                    deferred.end_process();
                    return Err(Box::new(FailedCall { message, kind: FailedCallKind::Final, usage: None }));
                }
                let kind = match last_class.get() {
                    Some(Class::TooLong) => FailedCallKind::TooLong,
                    Some(Class::StaleThinking) => FailedCallKind::StaleThinking,
                    Some(Class::Passing | Class::Permanent) | None => FailedCallKind::Final,
                };
                Err(Box::new(FailedCall { message, kind, usage }))
            }
        }
    }

    /// Returns the reason why a task cannot be sent: it alone exceeds the context.
    fn too_large(&self, request: &ModelRequest<'_>) -> Option<String> {
        let [Turn::User { text, .. }] = request.turns else { return None };
        let bytes = text.len() + request.system.map_or(0, str::len);
        let (tokens, limit) = (bytes as u64 / TOKEN_BYTES, self.access.context_tokens);
        let name = &self.access.name;
        (tokens > limit).then(|| {
            format!(
                "cannot send the task to {}: it has about {tokens} tokens ({}), more than the context of {limit} \
                 (`agents.{name}.context_tokens`); shorten what is handed to the phase, or use a model with a larger context",
                self.access.model,
                cliq_http::size(bytes as u64)
            )
        })
    }

    fn sizes(&self, draft: &Draft, cap: Option<u64>) -> Sizes {
        Sizes {
            tokens_in: draft.tokens_in,
            tokens_out: draft.tokens_out,
            max_tokens: self.access.parameters.max_tokens,
            default_max: (self.access.kind == ApiKind::Anthropic).then_some(anthropic::MAX_TOKENS),
            cap,
            context_tokens: self.access.context_tokens,
        }
    }

    pub(crate) fn provider(&self) -> &'static str {
        match self.access.kind {
            ApiKind::Anthropic => "anthropic",
            ApiKind::OpenAi | ApiKind::Responses => "openai",
            ApiKind::Gemini => "google",
        }
    }
}

/// Turns of a request with the instructions of the system at the start of the first message.
fn with_system(request: &ModelRequest<'_>) -> Vec<Turn> {
    let mut turns = request.turns.to_vec();
    if let (Some(system), Some(Turn::User { text, .. })) = (request.system, turns.first_mut()) {
        text.insert_str(0, system);
    }
    turns
}

/// Whether the model was told that an example is not run.
fn was_told(turns: &[Turn]) -> bool {
    turns.iter().any(|turn| match turn {
        Turn::Results(results) => results.iter().any(|result| result.text.contains(text_calls::EXAMPLE)),
        Turn::User { .. } | Turn::Assistant(_) => false,
    })
}

/// Ids of all tool calls of a conversation.
fn known_ids(turns: &[Turn]) -> impl Iterator<Item = &str> {
    let calls = turns.iter().filter_map(|turn| match turn {
        Turn::Assistant(reply) => Some(&reply.calls),
        _ => None,
    });
    calls.flatten().map(|call| call.id.as_str())
}

fn join(base: &str, path: &str) -> String {
    format!("{}/{path}", base.trim_end_matches('/'))
}

/// Returns a count of tokens. Values outside of its range are cut to the range.
fn count(value: &Value, path: &str) -> Option<u64> {
    let value = value.pointer(path)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
    value.as_u64().or_else(|| value.as_f64().map(|count| count as u64))
}

/// Returns a text, or the texts of a list of parts.
fn texts(value: &Value) -> Option<String> {
    let of = |part: &Value| part.as_str().or_else(|| part.get("text")?.as_str()).map(str::to_owned);
    let text = match value {
        Value::Array(parts) => parts.iter().filter_map(of).collect(),
        value => of(value)?,
    };
    Some(text).filter(|text: &String| !text.is_empty())
}

fn text(value: &Value, path: &str) -> Option<String> {
    Some(value.pointer(path)?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests;
