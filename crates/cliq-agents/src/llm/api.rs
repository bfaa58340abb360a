//! Models over HTTP: streaming, with retries. What the three APIs differ in is in a file for each.

mod anthropic;
mod gemini;
mod openai;

use std::cell::{Cell, RefCell};
use std::io::{BufReader, Read};
use std::rc::Rc;
use std::time::Duration;

use backon::{BlockingRetryable, ExponentialBuilder};
use cliq_settings::Secret;
use serde_json::Value;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

use super::display::Display;
use super::known::ApiKind;
use super::{Answer, Conversation, Model, sse};
use crate::AnyError;

/// How often a call is tried.
const TRIES: usize = 6;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long a connection may take, and the first byte of an answer.
const CONNECT: Duration = Duration::from_secs(20);
const FIRST_BYTE: Duration = Duration::from_secs(300);
/// What of an error's body is quoted.
const QUOTED: u64 = 2000;

/// What is needed to use an API.
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
    client: Agent,
}

/// One call, as an API wants it.
struct Call {
    url: String,
    headers: Vec<(&'static str, String)>,
    body: Value,
}

/// What a piece of a stream says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Piece {
    text: Option<String>,
    tokens_in: Option<u64>,
    tokens_out: Option<u64>,
    /// It ended because it was too long.
    cut_off: bool,
    /// It ended because the model may not or will not say more.
    refused: Option<String>,
    /// Something went wrong; whether another try may help.
    error: Option<(String, bool)>,
    /// Nothing follows.
    done: bool,
}

/// Why a call failed.
#[derive(Debug)]
struct Failed {
    message: String,
    again: bool,
    /// How long the server wants to be left alone.
    pause: Option<Duration>,
}

impl Failed {
    fn final_one(message: impl Into<String>) -> Self {
        Self { message: message.into(), again: false, pause: None }
    }
}

impl Api {
    pub(crate) fn new(access: Access) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(FIRST_BYTE))
            .user_agent(concat!("cliq/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { access, client: config.into() }
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
                error: Some((format!("a piece of the answer is no JSON: {shown}"), true)),
                ..Piece::default()
            };
        };
        match self.access.kind {
            ApiKind::Anthropic => anthropic::piece(&value),
            ApiKind::OpenAi => openai::piece(&value),
            ApiKind::Gemini => gemini::piece(&value),
        }
    }

    fn try_once(&self, call: &Call, display: &mut Display<'_>) -> Result<Answer, Failed> {
        let mut request = self.client.post(&call.url);
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        let response = request.send_json(&call.body).map_err(|error| {
            let (name, base) = (self.access.name, &self.access.base);
            Failed {
                message: format!("{name} cannot be reached at {base}: {error}"),
                again: is_passing(&error),
                pause: None,
            }
        })?;
        if response.status() != StatusCode::OK {
            return Err(self.refusal(response));
        }
        let whole = response
            .headers()
            .get("content-type")
            .and_then(|v| v.to_str().ok())
            .is_some_and(|v| v.starts_with("application/json"));
        let mut answer = Answer::default();
        let mut outcome = Ok(());
        let mut ended = false;
        let mut take = |piece: Piece| {
            answer.tokens_in = piece.tokens_in.or(answer.tokens_in);
            answer.tokens_out = piece.tokens_out.or(answer.tokens_out);
            if let Some(text) = &piece.text {
                display.say(text);
                answer.text.push_str(text);
            }
            ended |= piece.done;
            if let Some((message, again)) = piece.error {
                outcome =
                    Err(Failed { message: format!("{}: {message}", self.access.name), again, pause: None });
            } else if let Some(why) = piece.refused {
                outcome = Err(Failed::final_one(format!("{} ended its answer: {why}", self.access.name)));
            } else if piece.cut_off {
                outcome = Err(Failed::final_one(format!(
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
            sse::read(BufReader::new(body), |data| take(self.piece(data)))
        };
        outcome?;
        let broken = |what: String| Failed {
            message: format!("the answer of {} broke off: {what}", self.access.name),
            again: true,
            pause: None,
        };
        read.map_err(|error| broken(error.to_string()))?;
        if !ended {
            return Err(broken("its end is missing".to_owned()));
        }
        Ok(answer)
    }

    /// What a status other than 200 means.
    fn refusal(&self, response: Response<Body>) -> Failed {
        let status = response.status();
        let pause = response.headers().get("retry-after").and_then(|v| v.to_str().ok()?.trim().parse().ok());
        let pause = pause.and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
        let mut body = String::new();
        let _ = response.into_body().into_reader().take(QUOTED).read_to_string(&mut body);
        let said = serde_json::from_str::<Value>(&body).ok();
        let said = said.as_ref().and_then(|value| {
            let value = value.get(0).unwrap_or(value);
            value
                .pointer("/error/message")
                .or_else(|| value.get("message"))
                .or_else(|| value.get("error"))?
                .as_str()
        });
        let said = said.unwrap_or(body.trim());
        let name = self.access.name;
        let hint = match status.as_u16() {
            401 | 403 => format!(" (check its key: the environment, or `agents.{name}.api_key`)"),
            404 => format!(
                " (check `agents.{name}.model`, here {}, and `agents.{name}.base_url`)",
                self.access.model
            ),
            _ => String::new(),
        };
        let again = matches!(status.as_u16(), 408 | 409 | 425 | 429) || status.is_server_error();
        Failed { message: format!("{name} answered {status}: {said}{hint}"), again, pause }
    }
}

/// Whether the same may succeed a moment later.
fn is_passing(error: &ureq::Error) -> bool {
    matches!(
        error,
        ureq::Error::Io(_)
            | ureq::Error::Timeout(_)
            | ureq::Error::ConnectionFailed
            | ureq::Error::HostNotFound
    )
}

impl Model for Api {
    fn ask(&self, conversation: &Conversation, display: &mut Display<'_>) -> Result<Answer, AnyError> {
        if let Some(key) = &self.access.key {
            display.hide(key.reveal());
        }
        display.act(&format!("asking {}", self.access.model));
        let call = self.call(conversation);
        let backoff = ExponentialBuilder::new()
            .with_min_delay(FIRST_PAUSE)
            .with_max_delay(LONGEST_PAUSE)
            .with_max_times(TRIES - 1)
            .with_jitter();
        let display = RefCell::new(display);
        // What the server asks for goes before what we would do.
        let wanted = Rc::new(Cell::new(None));
        let asked = Rc::clone(&wanted);
        let result = (|| self.try_once(&call, &mut display.borrow_mut()))
            .retry(backoff)
            .when(|failed| failed.again)
            .notify(|failed, pause| {
                wanted.set(failed.pause.map(|pause| pause.min(LONGEST_PAUSE)));
                let seconds = wanted.get().unwrap_or(pause).as_secs_f32().round();
                display.borrow_mut().act(&format!("{}; trying again in {seconds} s", failed.message));
            })
            .sleep(move |pause| std::thread::sleep(asked.take().unwrap_or(pause)))
            .call();
        let display = display.into_inner();
        let answer = result.map_err(|failed| display.masked(&failed.message))?;
        display.finish();
        if let (Some(tokens_in), Some(tokens_out)) = (answer.tokens_in, answer.tokens_out) {
            display.note(&format!("[{tokens_in} tokens in, {tokens_out} out]"));
        }
        Ok(answer)
    }

    fn describe(&self) -> (&'static str, Option<String>) {
        let provider = match self.access.kind {
            ApiKind::Anthropic => "anthropic",
            ApiKind::OpenAi => "openai",
            ApiKind::Gemini => "google",
        };
        (provider, Some(self.access.model.clone()))
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
