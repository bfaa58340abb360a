//! Calls of services that speak JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use camino::Utf8Path;
use cliq_http::{Client, Page, Request};
use serde_json::Value;

use crate::files::write;
use crate::{ConnectorError, Context, Entry, LocalFile, Source, Target};

/// Default maximum number of search results.
pub(crate) const RESULTS: usize = 100;
/// The most items of a list that belongs to one thing, such as comments.
pub(crate) const ITEMS: usize = 10_000;

/// A service with its address and credentials.
pub(crate) struct Api<'a> {
    /// Name of the service in messages.
    pub(crate) name: &'static str,
    /// Possible cause if the service refuses a call.
    pub(crate) hint: &'static str,
    client: &'a Client,
    base: String,
    headers: Vec<(&'static str, String)>,
}

impl<'a> Api<'a> {
    pub(crate) fn new(cx: &'a Context<'_>, name: &'static str, base: &str, hint: &'static str) -> Self {
        Self {
            name,
            hint,
            client: &cx.client,
            base: base.trim_end_matches('/').to_owned(),
            headers: Vec::new(),
        }
    }

    /// Adds a header with a secret to all requests.
    pub(crate) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Adds a user's name and key.
    pub(crate) fn with_basic(self, user: &str, key: &str) -> Self {
        let text = STANDARD.encode(format!("{user}:{key}"));
        self.with("authorization", format!("Basic {text}"))
    }

    /// The address of the service.
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

    fn authorized(&self, request: Request) -> Request {
        let request =
            self.headers.iter().fold(request, |request, (name, value)| request.secret_header(*name, value));
        let host = request.host();
        request.header("accept", "application/json").called(format!("{} ({host})", self.name))
    }

    /// Sends a request, and gives the answer as JSON.
    pub(crate) fn call(&self, request: Request) -> Result<Value, ConnectorError> {
        self.client
            .json(&self.authorized(request))
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
        let items = self.client.pages(self.authorized(first), limit, |value, _| {
            let (items, next) = read(&value);
            Ok(Page { items, next: next.map(|next| self.authorized(next)) })
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
