//! API of a code host.

use cliq_http::{Client, Request};
use serde_json::Value;
use url::Url;

use super::pull_request::CodeHostError;
use crate::endpoint::Endpoint;

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
pub(super) struct HostApi {
    endpoint: Endpoint,
    host: String,
    token: String,
}

impl std::fmt::Debug for HostApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostApi").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl HostApi {
    pub(super) fn new(client: Client, base: &Url, token: &str, header: TokenHeader) -> Self {
        let endpoint = Endpoint::new(client, base.as_str());
        let endpoint = match header {
            TokenHeader::PrivateToken => endpoint.with("private-token", token.to_owned()),
            TokenHeader::Authorization if token.contains(':') => endpoint.with_basic(token),
            TokenHeader::Authorization => endpoint.with("authorization", format!("Bearer {token}")),
        };
        let host = base.host_str().unwrap_or("the code host").to_owned();
        Self { endpoint, host, token: token.to_owned() }
    }

    /// An address: parts of a path, each encoded, and a query.
    pub(super) fn at(&self, parts: &[&str], query: &[(&str, &str)]) -> String {
        self.endpoint.at(parts, query)
    }

    pub(super) fn get(&self, url: String) -> Result<Value, CodeHostError> {
        self.call(Request::get(url))
    }

    /// Creates something: not repeated, because a second request would create a second one.
    pub(super) fn post(&self, url: String, body: &Value) -> Result<Value, CodeHostError> {
        self.call(Request::post(url).json(body))
    }

    fn call(&self, request: Request) -> Result<Value, CodeHostError> {
        // The token by itself too: `Basic` encodes it.
        Ok(self.endpoint.json(request.secret(&self.token))?)
    }

    fn missing(&self, field: &'static str) -> CodeHostError {
        CodeHostError::Answer { host: self.host.clone(), field }
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
