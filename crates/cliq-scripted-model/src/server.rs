//! The server: a port of this machine, until it is dropped.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::prefix::{Prefixes, are_bound, signature};
use crate::request::Api;
use crate::script::{Behavior, Script, ScriptedReply};
use crate::wire::{self, Reply};

/// Server of a script. Serves until it is dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    origin: String,
    shared: Arc<Shared>,
    _runtime: tokio::runtime::Runtime,
}

/// Request that a server received.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// Path with its query.
    pub path: String,
    /// Body.
    pub body: Value,
    /// Tokens of the request.
    pub tokens_in: u64,
    /// Tokens of its beginning that an earlier request had.
    pub tokens_cached: u64,
    /// Time at which it was received, in microseconds since the server was started.
    pub received_us: u64,
    /// Time at which the reply was ready.
    pub answered_us: u64,
}

#[derive(Debug)]
struct Shared {
    script: Script,
    behavior: Behavior,
    started: Instant,
    state: Mutex<Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    requests: Vec<RecordedRequest>,
    prefixes: Prefixes,
}

impl ScriptedModel {
    /// Serves a script on a free port of this machine.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub fn start(script: Script, behavior: Behavior) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener =
            runtime.block_on(tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))))?;
        let origin = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared { script, behavior, started: Instant::now(), state: Mutex::default() });
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Ok(Self { origin, shared, _runtime: runtime })
    }

    /// Base URL for an API: `anthropic`, `openai`, `openai-responses` or `gemini`.
    #[must_use]
    pub fn base(&self, api: &str) -> String {
        if api.starts_with("openai") { format!("{}/v1", self.origin) } else { self.origin.clone() }
    }

    /// Requests so far, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.state().requests.clone()
    }
}

impl Shared {
    fn micros(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn state(&self) -> MutexGuard<'_, Recorded> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn answer(state: State<Arc<Shared>>, uri: Uri, body: Bytes) -> Response {
    let shared = Arc::clone(&state);
    let received_us = shared.micros();
    let number = shared.state().requests.len();
    let response = reply(state, uri, body, received_us).await;
    let answered_us = shared.micros();
    if let Some(request) = shared.state().requests.get_mut(number) {
        request.answered_us = answered_us;
    }
    response
}

async fn reply(State(shared): State<Arc<Shared>>, uri: Uri, body: Bytes, received_us: u64) -> Response {
    let path = uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let api = match uri.path() {
        path if path.ends_with("/messages") => Api::Anthropic,
        path if path.ends_with("/chat/completions") => Api::OpenAi,
        path if path.ends_with("/responses") => Api::Responses,
        path if path.contains("/models/") && path.contains("enerateContent") => Api::Gemini,
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return failure(api, StatusCode::BAD_REQUEST, "the body is not JSON");
    };
    let request = api.parse(&body, &path);
    let (tokens_in, tokens_cached, number) = {
        let mut state = shared.state();
        let (tokens_in, tokens_cached) = state.prefixes.count(&request.blocks);
        state.requests.push(RecordedRequest {
            path,
            body,
            tokens_in,
            tokens_cached,
            received_us,
            answered_us: received_us,
        });
        (tokens_in, tokens_cached, state.requests.len())
    };
    if shared.behavior.limits_every.is_some_and(|every| number % every == 0) {
        let mut response = failure(api, StatusCode::TOO_MANY_REQUESTS, "too many requests");
        response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("0"));
        return response;
    }
    if shared.behavior.context_tokens.is_some_and(|limit| tokens_in > limit) {
        return failure(api, StatusCode::BAD_REQUEST, "prompt is too long for the context window");
    }
    if shared.behavior.binds_thinking && !are_bound(&request.blocks) {
        let why = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.";
        return failure(api, StatusCode::BAD_REQUEST, why);
    }
    let Some(scripted) = shared.script.reply(&request.first, request.replies) else {
        return failure(api, StatusCode::BAD_REQUEST, "the script has no scene for this request");
    };
    if scripted.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(scripted.delay_ms)).await;
    }
    let behavior = shared.behavior;
    let scripted = deviate(scripted, behavior);
    let signature = signature(&request.blocks);
    let reply = Reply {
        signature: &signature,
        text: &scripted.text,
        thinking: scripted.thinking.as_deref(),
        calls: &scripted.calls,
        is_cut_off: scripted.is_cut_off,
        number: request.replies,
        tokens_in,
        tokens_out: wire::tokens_of(&scripted),
        tokens_cached,
        behavior,
    };
    if behavior.is_whole || !request.is_streaming {
        return ([(header::CONTENT_TYPE, "application/json")], wire::whole(api, &reply).to_string())
            .into_response();
    }
    let mut text = wire::stream(api, &reply);
    if behavior.cuts_streams && number % 2 == 1 {
        text.truncate(text.len() / 2);
    }
    ([(header::CONTENT_TYPE, "text/event-stream")], text).into_response()
}

/// The reply as a server with deviations makes it.
fn deviate(reply: &ScriptedReply, behavior: Behavior) -> ScriptedReply {
    let mut reply = reply.clone();
    if behavior.has_no_parallel_calls {
        reply.calls.truncate(1);
    }
    if behavior.writes_calls_as_text {
        for call in reply.calls.drain(..) {
            let call = json!({"name": call.name, "arguments": call.arguments});
            reply.text += "\n<tool_call>\n";
            reply.text += &call.to_string();
            reply.text += "\n</tool_call>";
        }
    }
    reply
}

fn failure(api: Api, status: StatusCode, message: &str) -> Response {
    let body = wire::error(api, status.as_u16(), message).to_string();
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}
