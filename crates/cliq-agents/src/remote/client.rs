//! A client of A2A: discovery, and the methods that a phase needs, in 1.0 or 0.3.

use std::time::Duration;

use cliq_a2a::{AgentCard, StreamItem, Task, Version, wire};
use cliq_http::ureq::Body;
use cliq_http::ureq::http::Response;
use cliq_http::{CallError, Client as Http, Limits, Request, retry};
use cliq_protocol::{TraceContext, lenient_json};
use serde_json::{Value, json};

/// Deadline for the head of a response. A stream may be silent between updates for any time; the remote agent proves that it is
/// alive.
const FIRST_BYTE: Duration = Duration::from_secs(60);
/// Deadline for a cancellation: the process that sends it is about to be ended.
const CANCEL: Duration = Duration::from_millis(1500);
/// Maximum number of attempts of a call.
const TRIES: usize = 4;
/// The most bytes of a response that is not a stream.
const MAX_RESPONSE: u64 = 64 << 20;

/// A stream goes on for as long as its task.
fn limits() -> Limits {
    const LONG: Duration = Duration::from_secs(30 * 86_400);
    Limits { first_byte: FIRST_BYTE, idle: LONG, whole: LONG, ..Limits::default() }
}

/// A remote agent.
pub(super) struct Client {
    name: String,
    url: String,
    version: Version,
    streams: bool,
    token: Option<String>,
    /// Span that the calls belong to (docs/telemetry.md).
    trace: Option<TraceContext>,
}

/// Calls of one agent, from any thread.
pub(super) struct Session {
    agent: String,
    url: String,
    version: Version,
    streams: bool,
    token: Option<String>,
    trace: Option<TraceContext>,
    http: Http,
}

impl Client {
    /// Reads the card of the agent at an address: that of the card, or of the server.
    pub(super) fn discover(
        address: &str,
        token: Option<String>,
        trace: Option<TraceContext>,
    ) -> Result<Self, CallError> {
        let base = address.trim_end_matches('/');
        let card_url = if std::path::Path::new(base).extension().is_some_and(|end| end == "json") {
            base.to_owned()
        } else {
            format!("{base}{}", AgentCard::PATH)
        };
        let session = Session {
            agent: format!("the agent at {}", host(base)),
            url: card_url,
            version: Version::V1_0,
            streams: false,
            token,
            trace,
            http: Http::new(limits()),
        };
        let card = retry("a2a", TRIES, || session.get_json(), |_| {})?;
        let name = card["name"].as_str().unwrap_or(&session.agent).to_owned();
        let (url, version) = interface(&card).ok_or_else(|| {
            CallError::permanent(format!("{name} has no JSON-RPC interface of A2A 1.0 or 0.3"))
        })?;
        let streams = card["capabilities"]["streaming"] == true;
        Ok(Self { name, url, version, streams, token: session.token, trace })
    }

    /// The name of the agent, for people.
    pub(super) fn agent(&self) -> &str {
        &self.name
    }

    pub(super) fn session(&self) -> Session {
        Session {
            agent: self.name.clone(),
            url: self.url.clone(),
            version: self.version,
            streams: self.streams,
            token: self.token.clone(),
            trace: self.trace,
            http: Http::new(limits()),
        }
    }
}

/// The address of the newest JSON-RPC interface that a card names.
fn interface(card: &Value) -> Option<(String, Version)> {
    let interfaces = card["supportedInterfaces"].as_array().into_iter().flatten();
    let known =
        interfaces.filter(|interface| interface["protocolBinding"] == "JSONRPC").filter_map(|interface| {
            let version = Version::parse(interface["protocolVersion"].as_str()?).ok()?;
            Some((interface["url"].as_str()?.to_owned(), version))
        });
    let newest = known.max_by_key(|(_, version)| *version == Version::V1_0);
    newest.or_else(|| {
        // A card of 0.3.
        let transport = card["preferredTransport"].as_str().unwrap_or("JSONRPC");
        let mut others = card["additionalInterfaces"].as_array().into_iter().flatten();
        let url = if transport == "JSONRPC" {
            card["url"].as_str()
        } else {
            others.find(|other| other["transport"] == "JSONRPC").and_then(|other| other["url"].as_str())
        };
        url.map(|url| (url.to_owned(), Version::V0_3))
    })
}

/// The host of an address: the rest may be a secret.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

impl Session {
    /// Whether the agent streams.
    pub(super) fn streams(&self) -> bool {
        self.streams
    }

    /// An error of a stream that broke.
    pub(super) fn broken(&self, why: &str) -> CallError {
        CallError::new(format!("the stream of {} broke: {why}", self.agent), true)
    }

    fn open(&self, request: Request) -> Result<Response<Body>, CallError> {
        let request = request.called(format!("{} at {}", self.agent, host(&self.url)));
        let request = match &self.token {
            Some(token) => request.secret(token),
            None => request,
        };
        let opened = self.http.open(&request);
        opened.map_err(|error| CallError { message: request.redact(&error.message), ..error })
    }

    fn get_json(&self) -> Result<Value, CallError> {
        self.json(self.open(Request::get(&self.url))?)
    }

    fn json(&self, response: Response<Body>) -> Result<Value, CallError> {
        let read = response.into_body().with_config().limit(MAX_RESPONSE).read_to_vec();
        let bytes = read.map_err(|error| self.broken(&error.to_string()))?;
        lenient_json(&bytes)
            .map_err(|error| CallError::permanent(format!("{} answered no JSON: {error}", self.agent)))
    }

    fn post(&self, method: &str, params: &Value, last: Option<&str>) -> Result<Response<Body>, CallError> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut request = Request::post(&self.url)
            .header("a2a-version", self.version.as_str())
            .header("accept", "application/json, text/event-stream")
            .json(&body);
        if let Some(token) = &self.token {
            request = request.secret_header("authorization", format!("Bearer {token}"));
        }
        // The work of the other agent is part of the trace.
        if let Some(context) = self.trace {
            request = request.header("traceparent", context.to_string());
        }
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        self.open(request)
    }

    fn call(&self, method: &str, params: &Value) -> Result<Value, CallError> {
        let response = self.post(method, params, None)?;
        self.result(self.json(response)?)
    }

    /// The result of a JSON-RPC response.
    fn result(&self, mut response: Value) -> Result<Value, CallError> {
        if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
            let said = error["message"].as_str().unwrap_or("no message");
            let message = format!("{} refused: {said}", self.agent);
            // Internal errors may pass; all others are about the request.
            return Err(CallError::new(message, error["code"] == -32603));
        }
        Ok(response["result"].take())
    }

    /// The parameters of sending a message, which is written in 1.0.
    fn parameters(&self, message: &Value) -> Value {
        match self.version {
            Version::V1_0 => json!({"message": message, "configuration": {"returnImmediately": true}}),
            Version::V0_3 => {
                let read = wire::read_messages(Version::V1_0, &json!([message]));
                let message = read.first().map(|message| wire::write_message(Version::V0_3, message));
                json!({"message": message, "configuration": {"blocking": false}})
            }
        }
    }

    fn method(&self, v1_0: &'static str, v0_3: &'static str) -> &'static str {
        match self.version {
            Version::V1_0 => v1_0,
            Version::V0_3 => v0_3,
        }
    }

    /// Sends a message. Gives the task, or a message where the agent makes none.
    pub(super) fn send(&self, message: &Value) -> Result<StreamItem, CallError> {
        let method = self.method("SendMessage", "message/send");
        let result = retry("a2a", TRIES, || self.call(method, &self.parameters(message)), |_| {})?;
        wire::read_send_response(self.version, &result).map_err(|error| self.nonsense(&error))
    }

    /// Sends a message and opens the stream of its task.
    pub(super) fn send_streaming(&self, message: &Value) -> Result<Response<Body>, CallError> {
        let method = self.method("SendStreamingMessage", "message/stream");
        self.stream(method, &self.parameters(message), None)
    }

    /// Opens the stream of a task after the update `last`.
    pub(super) fn subscribe(&self, id: &str, last: Option<&str>) -> Result<Response<Body>, CallError> {
        self.stream(self.method("SubscribeToTask", "tasks/resubscribe"), &json!({"id": id}), last)
    }

    fn stream(&self, method: &str, params: &Value, last: Option<&str>) -> Result<Response<Body>, CallError> {
        let response = self.post(method, params, last)?;
        let kind =
            response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return Ok(response);
        }
        let result = self.result(self.json(response)?);
        Err(match result {
            Err(error) => error,
            Ok(_) => CallError::permanent(format!("{} answered {method} without a stream", self.agent)),
        })
    }

    /// Parses the payload of a stream event.
    pub(super) fn item(&self, data: &str) -> Result<StreamItem, CallError> {
        let value =
            lenient_json(data.as_bytes()).map_err(|error| self.broken(&format!("no JSON: {error}")))?;
        let result = self.result(value)?;
        wire::read_stream_item(self.version, &result).map_err(|error| self.nonsense(&error))
    }

    /// A task as it is now.
    pub(super) fn get(&self, id: &str) -> Result<Task, CallError> {
        let result = self.call(self.method("GetTask", "tasks/get"), &json!({"id": id}))?;
        wire::read_task(self.version, &result).map_err(|error| self.nonsense(&error))
    }

    /// Asks the agent to stop a task. Nothing waits for the outcome: the request is on its way.
    pub(super) fn cancel(&self, id: &str) {
        let quick = Self {
            agent: self.agent.clone(),
            url: self.url.clone(),
            version: self.version,
            streams: false,
            token: self.token.clone(),
            trace: self.trace,
            http: Http::new(Limits { connect: CANCEL, whole: CANCEL, ..limits() }),
        };
        if let Err(error) = quick.call(self.method("CancelTask", "tasks/cancel"), &json!({"id": id})) {
            tracing::debug!(%error, "the remote task may go on");
        }
    }

    fn nonsense(&self, error: &cliq_a2a::A2aError) -> CallError {
        CallError::permanent(format!("{} does not speak A2A {}: {error}", self.agent, self.version.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_interface_is_chosen() {
        let both = json!({"url": "http://h/old", "supportedInterfaces": [
            {"url": "http://h/3", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": "http://h/r", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": "http://h/1", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
        assert_eq!(interface(&both), Some(("http://h/1".to_owned(), Version::V1_0)));
        let old = json!({"protocolVersion": "0.3.0", "url": "http://h/a"});
        assert_eq!(interface(&old), Some(("http://h/a".to_owned(), Version::V0_3)));
        let grpc = json!({"url": "http://h/g", "preferredTransport": "GRPC", "additionalInterfaces": [
            {"url": "http://h/j", "transport": "JSONRPC"}]});
        assert_eq!(interface(&grpc), Some(("http://h/j".to_owned(), Version::V0_3)));
        assert_eq!(interface(&json!({})), None);
        assert_eq!(host("https://u.example/x?k=hush"), "u.example");
    }
}
