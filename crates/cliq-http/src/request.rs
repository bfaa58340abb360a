//! A request as a value: it can be sent again, and knows what of it is secret.

use std::path::PathBuf;

use serde_json::Value;
use ureq::http::Method;

/// Body of a request.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Nothing,
    Bytes(Vec<u8>),
    /// A part of a file, which is read while it is sent.
    File {
        path: PathBuf,
        offset: u64,
        length: u64,
    },
}

/// Policy for repeated attempts of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// The same request twice does what one does: after any passing error it is tried again.
    Safe,
    /// A second one would make a second thing: it is tried again only where the server did not take it (429, 503, no connection).
    Refused,
}

/// A request.
#[derive(Clone)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) content: Content,
    pub(crate) repeat: Repeat,
    pub(crate) secrets: Vec<String>,
    pub(crate) who: Option<String>,
    pub(crate) answers: Vec<u16>,
    pub(crate) reopens: bool,
}

impl std::fmt::Debug for Request {
    /// Shows method and host only: headers and queries may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("host", &self.host())
            .finish_non_exhaustive()
    }
}

impl Request {
    /// A request without content. GET, HEAD, PUT and DELETE may be repeated; others not.
    #[must_use]
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        let repeat = if method.is_idempotent() { Repeat::Safe } else { Repeat::Refused };
        Self {
            method,
            url: url.into(),
            headers: Vec::new(),
            content: Content::Nothing,
            repeat,
            secrets: Vec::new(),
            who: None,
            answers: Vec::new(),
            reopens: false,
        }
    }

    /// Sends the request again at once if the server closed a kept connection before it answered. The server may then have received the
    /// request twice.
    #[must_use]
    pub fn reopened(mut self) -> Self {
        self.reopens = true;
        self
    }

    /// A GET request.
    #[must_use]
    pub fn get(url: impl Into<String>) -> Self {
        Self::new(Method::GET, url)
    }

    /// A POST request.
    #[must_use]
    pub fn post(url: impl Into<String>) -> Self {
        Self::new(Method::POST, url)
    }

    /// A PUT request.
    #[must_use]
    pub fn put(url: impl Into<String>) -> Self {
        Self::new(Method::PUT, url)
    }

    /// A PATCH request.
    #[must_use]
    pub fn patch(url: impl Into<String>) -> Self {
        Self::new(Method::PATCH, url)
    }

    /// A DELETE request.
    #[must_use]
    pub fn delete(url: impl Into<String>) -> Self {
        Self::new(Method::DELETE, url)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a header whose value no error shows.
    #[must_use]
    pub fn secret_header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let value = value.into();
        self.secret(value.clone()).header(name, value)
    }

    /// Keeps a text, such as a key in the address, out of errors.
    #[must_use]
    pub fn secret(mut self, text: impl Into<String>) -> Self {
        self.secrets.push(text.into());
        self
    }

    /// Sends JSON.
    #[must_use]
    pub fn json(mut self, value: &Value) -> Self {
        // Several times as fast as the text of a value, for the long conversations of models. A value always becomes JSON.
        self.content = Content::Bytes(serde_json::to_vec(value).unwrap_or_default());
        self.header("content-type", "application/json")
    }

    /// Sends a form.
    #[must_use]
    pub fn form(mut self, fields: &[(&str, &str)]) -> Self {
        let text = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.content = Content::Bytes(text.into_bytes());
        self.header("content-type", "application/x-www-form-urlencoded")
    }

    /// Sends bytes. The caller names their type.
    #[must_use]
    pub fn bytes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.content = Content::Bytes(bytes.into());
        self
    }

    /// Sends a part of a file, which is read while it is sent.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>, offset: u64, length: u64) -> Self {
        self.content = Content::File { path: path.into(), offset, length };
        self
    }

    /// Says what another try may do, where it differs from what the method says.
    #[must_use]
    pub fn repeat(mut self, repeat: Repeat) -> Self {
        self.repeat = repeat;
        self
    }

    /// Sets the name of the other side in errors. Default: the host.
    #[must_use]
    pub fn called(mut self, who: impl Into<String>) -> Self {
        self.who = Some(who.into());
        self
    }

    /// Statuses that are answers too, and no errors: what they mean is for the caller to say.
    #[must_use]
    pub fn answers(mut self, statuses: &[u16]) -> Self {
        self.answers = statuses.to_vec();
        self
    }

    /// The address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The host and a port that is not the usual one, for people.
    #[must_use]
    pub fn host(&self) -> String {
        host_of(&self.url)
    }

    pub(crate) fn who(&self) -> String {
        self.who.clone().unwrap_or_else(|| self.host())
    }

    /// A text without the secrets of this request.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in self.secrets.iter().filter(|secret| secret.len() > 3) {
            text = text.replace(secret.as_str(), "********");
            // `Bearer KEY`: servers quote the key alone.
            if let Some((_, key)) = secret.split_once(' ').filter(|(_, key)| key.len() > 3) {
                text = text.replace(key, "********");
            }
        }
        text
    }
}

/// The host of an address, with its port where it is not the usual one. Never its path or query.
pub(crate) fn host_of(text: &str) -> String {
    match url::Url::parse(text) {
        Ok(url) => match (url.host_str(), url.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (Some(host), None) => host.to_owned(),
            (None, _) => "the address".to_owned(),
        },
        Err(_) => "the address".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let request = Request::get("https://h.example:8443/hook/T0P?key=hush")
            .secret_header("authorization", "Bearer abcdef")
            .secret("hush");
        let said = request.redact("bad token abcdef (Bearer abcdef), key=hush");
        assert_eq!(said, "bad token ******** (********), key=********");
        assert_eq!(request.host(), "h.example:8443");
        let shown = format!("{request:?}");
        assert!(!shown.contains("T0P") && !shown.contains("abcdef"), "{shown}");
    }
}
