//! Calls of the APIs of code hosts: JSON in, JSON out.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cliq_http::{Client, Request};
use serde_json::Value;
use url::Url;

use super::pull_request::CodeHostError;

/// Header that carries a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenHeader {
    /// `Authorization: Bearer`; `Basic` where the token is a name and a password.
    Authorization,
    /// `PRIVATE-TOKEN`.
    PrivateToken,
}

/// The API of a host.
#[derive(Clone)]
pub(super) struct Calls {
    client: Client,
    base: Url,
    header: (&'static str, String),
    token: String,
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

impl Calls {
    pub(super) fn new(client: Client, base: Url, token: &str, header: TokenHeader) -> Self {
        let header = match header {
            TokenHeader::PrivateToken => ("private-token", token.to_owned()),
            TokenHeader::Authorization if token.contains(':') => {
                ("authorization", format!("Basic {}", STANDARD.encode(token)))
            }
            TokenHeader::Authorization => ("authorization", format!("Bearer {token}")),
        };
        Self { client, base, header, token: token.to_owned() }
    }

    /// An address below the base: each part is encoded.
    pub(super) fn at(&self, parts: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(parts);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    pub(super) fn get(&self, url: &Url) -> Result<Value, CodeHostError> {
        self.call(Request::get(url.as_str()))
    }

    /// Sends something that makes something: a second one would make a second.
    pub(super) fn post(&self, url: &Url, body: &Value) -> Result<Value, CodeHostError> {
        self.call(Request::post(url.as_str()).json(body))
    }

    fn call(&self, request: Request) -> Result<Value, CodeHostError> {
        let (name, value) = &self.header;
        let request =
            request.secret_header(*name, value).secret(&self.token).header("accept", "application/json");
        Ok(self.client.json(&request)?)
    }

    fn missing(&self, field: &'static str) -> CodeHostError {
        CodeHostError::Answer { host: self.base.host_str().unwrap_or("the code host").to_owned(), field }
    }

    /// A field of an answer.
    pub(super) fn text(&self, value: &Value, pointer: &'static str) -> Result<String, CodeHostError> {
        value.pointer(pointer).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| self.missing(pointer))
    }

    /// A number of an answer.
    pub(super) fn number(&self, value: &Value, pointer: &'static str) -> Result<u64, CodeHostError> {
        value.pointer(pointer).and_then(Value::as_u64).ok_or_else(|| self.missing(pointer))
    }

    /// A list of an answer; the answer itself for an empty pointer.
    pub(super) fn list<'a>(
        &self,
        value: &'a Value,
        pointer: &'static str,
    ) -> Result<&'a Vec<Value>, CodeHostError> {
        value.pointer(pointer).and_then(Value::as_array).ok_or_else(|| self.missing(pointer))
    }
}
