//! Requests to the provider: bounded in time and size, without redirects and repetitions.

use std::time::Duration;

use cliq_http::{CallError, Client, Limits, Request};
use openidconnect::{HttpRequest, HttpResponse};

/// Deadline of a request.
const WHOLE: Duration = Duration::from_secs(10);
/// Maximum size of a response, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Statuses with which a provider explains a refusal.
const REFUSALS: [u16; 3] = [400, 401, 403];

/// Returns the client for requests to a provider.
pub(crate) fn client() -> Client {
    Client::new(Limits {
        connect: WHOLE,
        first_byte: WHOLE,
        idle: WHOLE,
        whole: WHOLE,
        tries: 1,
        answer: MAX_BYTES,
        redirects: 0,
    })
}

/// Sends a request. An error shows neither bodies nor credentials.
pub(crate) fn send(client: &Client, request: HttpRequest) -> Result<HttpResponse, CallError> {
    let (parts, body) = request.into_parts();
    let mut call = Request::new(parts.method, parts.uri.to_string()).answers(&REFUSALS);
    for (name, value) in &parts.headers {
        let value = value.to_str().map_err(|error| CallError::permanent(format!("{name}: {error}")))?;
        call = if name == http::header::AUTHORIZATION {
            call.secret_header(name.as_str(), value)
        } else {
            call.header(name.as_str(), value)
        };
    }
    if !body.is_empty() {
        call = call.bytes(body);
    }
    let answer = client.send(&call)?;
    let mut response = http::Response::builder().status(answer.status);
    if let Some(headers) = response.headers_mut() {
        *headers = answer.headers;
    }
    response.body(answer.body).map_err(|error| CallError::permanent(error.to_string()))
}
