//! The JSON-RPC binding, for both versions.

use std::fmt::Write;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use cliq_a2a::{A2aError, Call, ErrorKind, EventNumber, Version};
use futures_util::stream;
use serde_json::{Value, json};

use super::A2aCaller;
use super::agent::{self, Reply, execute, may};
use super::stream::{Piece, TaskStream};
use crate::app::App;
use cliq_web::Problem;
use cliq_web::read_json_body;

/// The header that names the version, also as a parameter of the address.
pub(super) const VERSION: &str = "a2a-version";

/// `POST /a2a/jsonrpc`
pub(super) async fn call(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let caller = A2aCaller::from_request_parts(&mut parts, &app).await?;
    let is_json =
        parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|given| {
            let given = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            given == "application/json" || given == "application/a2a+json"
        });
    if !is_json {
        return Err(Problem::media_type("application/json"));
    }
    let bytes = read_json_body(body).await?;
    let header = version_of(&parts.headers, parts.uri.query());
    let last_event_id = last_event_id(&parts.headers);
    let (mut version, parsed) = (Version::V0_3, parse(&bytes));
    let (id, result) = match parsed {
        Ok((id, method, params)) => {
            let spoken = Version::of_request(header.as_deref(), &method)
                .map_err(|error| unsupported(&app, &error.to_string()));
            // An error about a version that is not spoken is written in the newest.
            version = spoken.as_ref().copied().unwrap_or(Version::V1_0);
            let spoken = spoken.and_then(|version| self::spoken(&app, version).map(|()| version));
            match spoken.and_then(|version| prepare(version, &method, &params, last_event_id)) {
                Ok(request) if !may(&caller, &request.call) => return Err(not_allowed(&caller)),
                Ok(request) => (id, execute(&app, &caller, request).await),
                Err(error) => (id, Err(error)),
            }
        }
        Err((id, error)) => (id, Err(error)),
    };
    Ok(match result {
        Ok(Reply::Result(result)) => json_response(&json!({"jsonrpc": "2.0", "id": id, "result": result})),
        Ok(Reply::Stream(stream)) => {
            let id = id.to_string();
            event_stream(stream, move |item| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{item}}}"#))
        }
        Err(error) => {
            json_response(&json!({"jsonrpc": "2.0", "id": id, "error": error.to_json_rpc(version)}))
        }
    })
}

/// Checks that the agent speaks a version (`server.a2a.versions`).
pub(super) fn spoken(app: &App, version: Version) -> Result<(), A2aError> {
    if versions(app).contains(&version) {
        return Ok(());
    }
    Err(unsupported(app, &format!("version {} of A2A is not supported", version.as_str())))
}

fn versions(app: &App) -> &[Version] {
    app.options.a2a.as_ref().map(|options| options.versions.as_slice()).unwrap_or_default()
}

/// Returns the error for a version that is not spoken, with those that are.
pub(super) fn unsupported(app: &App, message: &str) -> A2aError {
    let mut known: Vec<&str> = versions(app).iter().map(|version| version.as_str()).collect();
    known.sort_unstable_by(|a, b| b.cmp(a));
    let message = format!("{message}: this agent supports {}", known.join(" and "));
    A2aError::new(ErrorKind::VersionNotSupported, message).with("supportedVersions", known.join(", "))
}

fn prepare(
    version: Version,
    method: &str,
    params: &Value,
    last_event_id: Result<Option<EventNumber>, A2aError>,
) -> Result<agent::Request, A2aError> {
    let call = Call::parse(version, method, params)?;
    Ok(agent::Request { version, call, last_event_id: last_event_id? })
}

/// The token does not allow the call.
pub(super) fn not_allowed(caller: &A2aCaller) -> Problem {
    let scope = caller.0.scope.as_str();
    Problem::forbidden(format!("the token has the scope `{scope}`, and this needs `run`"))
}

/// The id, the method and the parameters of a request.
#[expect(clippy::result_large_err, reason = "both are answered at once, and neither is passed on")]
fn parse(bytes: &[u8]) -> Result<(Value, String, Value), (Value, A2aError)> {
    let value = cliq_protocol::lenient_json(bytes).map_err(|error| {
        (Value::Null, A2aError::new(ErrorKind::ParseError, format!("the body is not JSON: {error}")))
    })?;
    let invalid = |id: &Value, message: &str| (id.clone(), A2aError::new(ErrorKind::InvalidRequest, message));
    let Value::Object(mut object) = value else {
        return Err(invalid(&Value::Null, "a request is an object; lists of requests are not taken"));
    };
    let id = object.remove("id").unwrap_or(Value::Null);
    if !(id.is_null() || id.is_string() || id.is_number()) {
        return Err(invalid(&Value::Null, "`id` must be a text, a number or null"));
    }
    if object.get("jsonrpc").is_none_or(|version| version != "2.0") {
        return Err(invalid(&id, "`jsonrpc` must be \"2.0\""));
    }
    let Some(Value::String(method)) = object.remove("method") else {
        return Err(invalid(&id, "`method` must be a text"));
    };
    Ok((id, method, object.remove("params").unwrap_or(Value::Null)))
}

/// The version that a request names: in a header, or as a parameter of the address.
pub(super) fn version_of(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    if let Some(value) = headers.get(VERSION) {
        return Some(value.to_str().unwrap_or("?").to_owned());
    }
    let pairs: Vec<(String, String)> = serde_urlencoded::from_str(query?).ok()?;
    pairs.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(VERSION)).map(|(_, value)| value)
}

/// The last update that the caller has.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<EventNumber>, A2aError> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let number = value.to_str().ok().and_then(EventNumber::parse);
    number.map(Some).ok_or_else(|| A2aError::wrong("Last-Event-ID", "is not the id of a task update"))
}

fn json_response(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// A stream as server-sent events. `wrap` makes the text of an item.
pub(super) fn event_stream(stream: TaskStream, wrap: impl Fn(&str) -> String + Send + 'static) -> Response {
    let body =
        Body::from_stream(stream::unfold((stream, wrap, true), async |(mut stream, wrap, is_first)| {
            let bytes = match stream.next().await? {
                // What happened together is sent together.
                Piece::Items(items) => {
                    let mut text = if is_first { "retry: 1000\n".to_owned() } else { String::new() };
                    for (item, number) in items {
                        let id = number.map(|number| format!("id: {number}\n")).unwrap_or_default();
                        let _ = write!(text, "{id}data: {}\n\n", wrap(&item));
                    }
                    text.into()
                }
                Piece::Idle => Bytes::from_static(b": still here\n\n"),
                Piece::Stopping => Bytes::from_static(b": the server stops\n\n"),
            };
            Some((Ok::<Bytes, std::convert::Infallible>(bytes), (stream, wrap, false)))
        }));
    // A proxy that collects what it passes on would keep updates back.
    ([("content-type", "text/event-stream"), ("x-accel-buffering", "no")], body).into_response()
}
