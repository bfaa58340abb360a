//! Calls of services that speak JSON.

use camino::Utf8Path;
use cliq_http::{Page, Request};
use serde_json::Value;

use crate::endpoint::Endpoint;
use crate::files::write;
use crate::{ConnectorError, Context, Entry, LocalFile, Source, Target};

/// Default maximum number of search results.
pub(crate) const RESULTS: usize = 100;
/// Maximum number of items of a list that belongs to one record, such as comments.
pub(crate) const ITEMS: usize = 10_000;

/// A service with its address and credentials.
pub(crate) struct Api {
    /// Name of the service in messages.
    pub(crate) name: &'static str,
    /// Possible cause if the service refuses a call.
    pub(crate) hint: &'static str,
    endpoint: Endpoint,
}

impl Api {
    pub(crate) fn new(cx: &Context<'_>, name: &'static str, base: &str, hint: &'static str) -> Self {
        Self { name, hint, endpoint: Endpoint::new(cx.client.clone(), base) }
    }

    /// Adds a header with a secret to all requests.
    pub(crate) fn with(self, name: &'static str, value: String) -> Self {
        Self { endpoint: self.endpoint.with(name, value), ..self }
    }

    /// Adds a user's name and key.
    pub(crate) fn with_basic(self, user: &str, key: &str) -> Self {
        Self { endpoint: self.endpoint.with_basic(&format!("{user}:{key}")), ..self }
    }

    /// The address of the service.
    pub(crate) fn base(&self) -> &str {
        self.endpoint.base()
    }

    /// An address: parts of a path, each encoded, and a query.
    pub(crate) fn at(&self, parts: &[&str], query: &[(&str, &str)]) -> String {
        self.endpoint.at(parts, query)
    }

    /// Adds credentials to a request, and the name of the service to its errors.
    fn prepared(&self, request: Request) -> Request {
        let request = self.endpoint.authorized(request);
        let host = request.host();
        request.called(format!("{} ({host})", self.name))
    }

    /// Sends a request and returns the response body.
    pub(crate) fn call(&self, request: Request) -> Result<Value, ConnectorError> {
        self.endpoint
            .client
            .json(&self.prepared(request))
            .map_err(|error| ConnectorError::from(error).hint_on_refusal(self.hint))
    }

    pub(crate) fn get(&self, url: impl Into<String>) -> Result<Value, ConnectorError> {
        self.call(Request::get(url))
    }

    /// Reads page after page. `read` gives the items of a page, and the request for the next one.
    pub(crate) fn pages(
        &self,
        first: Request,
        limit: usize,
        mut read: impl FnMut(&Value) -> (Vec<Value>, Option<Request>),
    ) -> Result<(Vec<Value>, bool), ConnectorError> {
        let items = self.endpoint.client.pages(self.prepared(first), limit, |value, _| {
            let (items, next) = read(&value);
            Ok(Page { items, next: next.map(|next| self.prepared(next)) })
        });
        let items = items.map_err(|error| ConnectorError::from(error).hint_on_refusal(self.hint))?;
        Ok((items.items, items.more))
    }
}

/// A text of an answer; an empty one counts as none.
pub(crate) fn text(value: &Value, pointer: &str) -> Option<String> {
    match value.pointer(pointer)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A list of an answer.
pub(crate) fn list(value: &Value, pointer: &str) -> Vec<Value> {
    value.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Keeps an answer as indented JSON, and begins its entry.
pub(crate) fn keep(
    cx: &Context<'_>,
    source: &Source,
    file: &Utf8Path,
    value: &Value,
) -> Result<Entry, ConnectorError> {
    keep_text(cx, source, file, &format!("{value:#}\n"), "application/json")
}

/// Keeps a text, and begins its entry.
pub(crate) fn keep_text(
    cx: &Context<'_>,
    source: &Source,
    file: &Utf8Path,
    text: &str,
    content_type: &str,
) -> Result<Entry, ConnectorError> {
    write(file, text.as_bytes())?;
    Ok(Entry {
        reference: source.reference.clone().unwrap_or_default(),
        file: cx.shown(file),
        size: text.len() as u64,
        content_type: Some(content_type.to_owned()),
        ..Entry::default()
    })
}

/// Begins the entry of a publication.
pub(crate) fn published(cx: &Context<'_>, target: &Target, file: &LocalFile, url: Option<String>) -> Entry {
    Entry {
        reference: target.reference.clone().unwrap_or_default(),
        file: cx.shown(&file.path),
        size: file.size,
        content_type: Some(file.content_type().to_owned()),
        url,
        ..Entry::default()
    }
}
