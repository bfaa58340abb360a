//! Models over HTTP: streaming, with retries. What the three APIs differ in is in a file for each.

mod anthropic;
mod gemini;
mod openai;

use std::cell::RefCell;
use std::io::{BufReader, Read};
use std::time::Duration;

use cliq_http::{CallError, Client, Limits, Request, read_events};
use cliq_sdk::{Steering, Usage};
use cliq_settings::Secret;
use serde_json::Value;

use super::catalog::ApiKind;
use super::display::Display;
use super::meter::{Meter, line};
use super::{Conversation, Model};
use crate::AnyError;

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

/// One call, as an API wants it.
struct Call {
    url: String,
    headers: Vec<(&'static str, String)>,
    body: Value,
}

/// Content of one piece of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Piece {
    text: Option<String>,
    tokens_in: Option<u64>,
    tokens_out: Option<u64>,
    /// The part of the input that was read from a cache.
    tokens_cached: Option<u64>,
    /// Whether the reply was cut off at the length limit.
    cut_off: bool,
    /// Reason why the model refused to continue.
    refused: Option<String>,
    /// Something went wrong; whether another try may help.
    error: Option<(String, bool)>,
    /// Nothing follows.
    done: bool,
}

impl Api {
    pub(crate) fn new(access: Access) -> Self {
        let limits = Limits { first_byte: FIRST_BYTE, idle: FIRST_BYTE, whole: ANSWER, ..Limits::default() };
        Self { access, client: Client::new(limits) }
    }

    fn call(&self, conversation: &Conversation) -> Call {
        match self.access.kind {
            ApiKind::Anthropic => anthropic::call(&self.access, conversation),
            ApiKind::OpenAi => openai::call(&self.access, conversation),
            ApiKind::Gemini => gemini::call(&self.access, conversation),
        }
    }

    fn piece(&self, data: &str) -> Piece {
        if data.trim() == "[DONE]" {
            return Piece { done: true, ..Piece::default() };
        }
        let Ok(value) = serde_json::from_str::<Value>(data) else {
            let shown: String = data.chars().take(200).collect();
            return Piece {
                error: Some((format!("a piece of the answer is not JSON: {shown}"), true)),
                ..Piece::default()
            };
        };
        match self.access.kind {
            ApiKind::Anthropic => anthropic::piece(&value),
            ApiKind::OpenAi => openai::piece(&value),
            ApiKind::Gemini => gemini::piece(&value),
        }
    }

    /// Calls once. `usage` gets what the call has used, be it in vain.
    fn try_once(
        &self,
        call: &Call,
        display: &mut Display<'_>,
        usage: &mut Usage,
    ) -> Result<String, CallError> {
        let mut request = Request::post(&call.url).json(&call.body).called(self.access.name);
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
        let mut answer = String::new();
        let mut outcome = Ok(());
        let mut ended = false;
        let mut take = |piece: Piece| {
            usage.tokens_in = piece.tokens_in.unwrap_or(usage.tokens_in);
            usage.tokens_out = piece.tokens_out.unwrap_or(usage.tokens_out);
            usage.tokens_cached = piece.tokens_cached.or(usage.tokens_cached);
            if let Some(text) = &piece.text {
                display.print(text);
                answer.push_str(text);
            }
            ended |= piece.done;
            if let Some((message, again)) = piece.error {
                outcome = Err(CallError::new(format!("{}: {message}", self.access.name), again));
            } else if let Some(why) = piece.refused {
                outcome = Err(CallError::permanent(format!("{} ended its answer: {why}", self.access.name)));
            } else if piece.cut_off {
                outcome = Err(CallError::permanent(format!(
                    "the answer of {} was cut off at its longest: raise `agents.{}.max_tokens`",
                    self.access.name, self.access.name
                )));
            }
            outcome.is_ok()
        };
        let body = response.into_body().into_reader();
        let read = if whole {
            // Servers that do not stream answer all at once.
            let mut text = String::new();
            BufReader::new(body).read_to_string(&mut text).map(|_| {
                take(self.piece(&text));
                take(Piece { done: true, ..Piece::default() });
            })
        } else {
            read_events(BufReader::new(body), |event| take(self.piece(&event.data)))
        };
        outcome?;
        let broken = |what: String| {
            CallError::new(format!("the answer of {} broke off: {what}", self.access.name), true)
        };
        read.map_err(|error| broken(error.to_string()))?;
        if !ended {
            return Err(broken("its end is missing".to_owned()));
        }
        Ok(answer)
    }

    fn no_usage(&self) -> Usage {
        let provider = match self.access.kind {
            ApiKind::Anthropic => "anthropic",
            ApiKind::OpenAi => "openai",
            ApiKind::Gemini => "google",
        };
        let model = Some(self.access.model.clone());
        Usage { provider: Some(provider.to_owned()), model, ..Usage::default() }
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
            None => format!(" (at {})", self.access.base),
            Some(_) => String::new(),
        };
        failed.message.push_str(&hint);
        failed
    }
}

impl Model for Api {
    fn ask(
        &self,
        conversation: &Conversation,
        display: &mut Display<'_>,
        meter: &mut Meter<'_>,
        _: &mut Steering,
    ) -> Result<String, AnyError> {
        if let Some(key) = &self.access.key {
            display.hide(key.reveal());
        }
        display.act(&format!("asking {}", self.access.model));
        let call = self.call(conversation);
        let display = RefCell::new(display);
        let result = cliq_http::retry(
            self.access.name,
            TRIES,
            || {
                let mut usage = self.no_usage();
                let result = self.try_once(&call, &mut display.borrow_mut(), &mut usage);
                if usage.tokens() > 0 {
                    display.borrow_mut().note(&line(&usage));
                }
                meter.report(usage);
                meter.settle();
                result
            },
            |said| display.borrow_mut().act(said),
        );
        let display = display.into_inner();
        let answer = result.map_err(|failed| display.masked(&failed.message))?;
        display.finish();
        Ok(answer)
    }
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
