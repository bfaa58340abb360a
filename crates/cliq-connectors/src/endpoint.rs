//! A JSON API: its address and the credentials of its calls.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cliq_http::{CallError, Client, Request};
use serde_json::Value;

/// Address and credentials of an API.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) client: Client,
    base: String,
    headers: Vec<(&'static str, String)>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Endpoint {
    pub(crate) fn new(client: Client, base: &str) -> Self {
        Self { client, base: base.trim_end_matches('/').to_owned(), headers: Vec::new() }
    }

    /// Adds a header with a secret to all requests.
    pub(crate) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Adds a user's name and key, `NAME:KEY`.
    pub(crate) fn with_basic(self, credentials: &str) -> Self {
        self.with("authorization", format!("Basic {}", STANDARD.encode(credentials)))
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// An address: parts of a path, each encoded, and a query.
    pub(crate) fn at(&self, parts: &[&str], query: &[(&str, &str)]) -> String {
        let mut url = self.base.clone();
        for part in parts {
            url.push('/');
            // These would lead up. Encoded twice, they are a name that nothing has.
            if matches!(*part, "." | "..") {
                url.push_str(&"%252E".repeat(part.len()));
                continue;
            }
            url.extend(
                url::form_urlencoded::byte_serialize(part.as_bytes()).map(|text| text.replace('+', "%20")),
            );
        }
        if !query.is_empty() {
            url.push('?');
            url.push_str(&url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish());
        }
        url
    }

    /// Adds the credentials to a request.
    pub(crate) fn authorized(&self, request: Request) -> Request {
        let request =
            self.headers.iter().fold(request, |request, (name, value)| request.secret_header(*name, value));
        request.header("accept", "application/json")
    }

    /// Sends a request and returns the response body.
    pub(crate) fn json(&self, request: Request) -> Result<Value, CallError> {
        self.client.json(&self.authorized(request))
    }
}
