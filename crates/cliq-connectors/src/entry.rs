//! Entries of `sources` and `targets`, as team.yml has them with their templates replaced.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ConnectorError;

/// Whether a document is converted for readers, or kept as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Pages and PDF become markdown, sheets CSV.
    #[default]
    Auto,
    /// As it came.
    Raw,
}

/// Policy for a destination that already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Hash)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Something new is made. Where there is one of that name, it is an error.
    #[default]
    Create,
    /// Append to the existing content.
    Append,
    /// Replace the existing content, or create it.
    Replace,
}

/// A source.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Source {
    /// File name of the copy.
    pub name: String,
    /// Reference in the terms of the service.
    #[serde(default, rename = "ref")]
    pub reference: Option<String>,
    /// URL of the source.
    #[serde(default)]
    pub url: Option<String>,
    /// Format of the copy.
    #[serde(default)]
    pub format: Format,
    /// The HTTP method.
    #[serde(default)]
    pub method: Option<String>,
    /// HTTP headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The HTTP body.
    #[serde(default)]
    pub body: Option<String>,
    /// A span of time.
    #[serde(default)]
    pub window: Option<String>,
    /// The most results.
    #[serde(default, deserialize_with = "number")]
    pub limit: Option<usize>,
    /// Search query.
    #[serde(default)]
    pub object: Option<String>,
    /// Properties to fetch.
    #[serde(default)]
    pub properties: Vec<String>,
    /// Whether a caller chose the address.
    #[serde(default)]
    pub guarded: bool,
}

/// A target.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Target {
    /// The local file.
    #[serde(default)]
    pub file: Option<Utf8PathBuf>,
    /// Destination.
    #[serde(default)]
    pub to: Option<String>,
    /// Policy for an existing destination.
    #[serde(default)]
    pub mode: Option<Mode>,
    /// Name at the destination. For connectors, the name of the entry in the handoff.
    #[serde(default)]
    pub name: Option<String>,
    /// Destination in the terms of the service.
    #[serde(default, rename = "ref")]
    pub reference: Option<String>,
    /// Destination as a URL.
    #[serde(default)]
    pub url: Option<String>,
    /// The HTTP method.
    #[serde(default)]
    pub method: Option<String>,
    /// HTTP headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The title of a page.
    #[serde(default)]
    pub title: Option<String>,
    /// The page that a new one is below.
    #[serde(default)]
    pub parent: Option<String>,
    /// Visibility of a comment.
    #[serde(default)]
    pub visibility: Option<String>,
    /// Whether a caller chose the address.
    #[serde(default)]
    pub guarded: bool,
    /// For a target that changes with the time: what does not change. Two targets with the same one are the same entry of team.yml.
    #[serde(default)]
    pub identity: Option<String>,
}

/// Numbers of team.yml arrive as numbers; with a template, as text.
fn number<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    let value = Option::<Value>::deserialize(from)?;
    let Some(value) = value else { return Ok(None) };
    let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
    let number = number.and_then(|number| usize::try_from(number).ok()).filter(|number| *number > 0);
    number.map(Some).ok_or_else(|| serde::de::Error::custom("`limit` is a whole number, at least 1"))
}

impl Source {
    /// Reads an entry.
    ///
    /// # Errors
    /// A field has the wrong type, or the name is none.
    pub fn read(value: &Value) -> Result<Self, ConnectorError> {
        let source = Self::deserialize(value)
            .map_err(|error| ConnectorError::new(format!("a source is wrong: {error}")))?;
        check_name(&source.name)?;
        Ok(source)
    }

    /// Returns the reference in the terms of the service.
    pub(crate) fn wanted(&self) -> Result<&str, ConnectorError> {
        let text = self.reference.as_deref().or(self.url.as_deref()).map(str::trim).unwrap_or_default();
        if text.is_empty() { Err(ConnectorError::new("it has no `ref`")) } else { Ok(text) }
    }

    /// Key in the handoff: the name without extension.
    #[must_use]
    pub fn key(&self) -> &str {
        self.name.split_once('.').map_or(self.name.as_str(), |(stem, _)| stem)
    }
}

impl Target {
    /// Reads an entry.
    ///
    /// # Errors
    /// A field has the wrong type.
    pub fn read(value: &Value) -> Result<Self, ConnectorError> {
        Self::deserialize(value).map_err(|error| ConnectorError::new(format!("a target is wrong: {error}")))
    }

    /// The local file.
    pub(crate) fn local(&self) -> Result<&Utf8PathBuf, ConnectorError> {
        self.file.as_ref().ok_or_else(|| ConnectorError::new("a target needs `file`"))
    }

    /// Returns the destination in the terms of the service.
    pub(crate) fn wanted(&self) -> Result<&str, ConnectorError> {
        let all = [&self.reference, &self.to, &self.url];
        let text = all.into_iter().flatten().map(|text| text.trim()).find(|text| !text.is_empty());
        text.ok_or_else(|| ConnectorError::new("it has no `ref`"))
    }

    /// The field that [`Self::wanted`] reads.
    pub(crate) fn place_mut(&mut self) -> Option<&mut String> {
        let all = [&mut self.reference, &mut self.to, &mut self.url];
        all.into_iter().flatten().find(|text| !text.trim().is_empty())
    }

    /// Key in the handoff.
    #[must_use]
    pub fn key(&self) -> String {
        let name = self.name.as_deref().or_else(|| self.file.as_ref()?.file_name()).unwrap_or("target");
        name.split_once('.').map_or(name, |(stem, _)| stem).to_owned()
    }

    /// The mode: a push makes something new where it does not say; a connector replaces what is there.
    pub(crate) fn mode(&self) -> Mode {
        self.mode.unwrap_or(if self.to.is_some() { Mode::Create } else { Mode::Replace })
    }
}

/// Whether a name can be a file of its directory.
fn check_name(name: &str) -> Result<(), ConnectorError> {
    let right = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.is_empty() && name.len() <= 200 && !name.starts_with('.') && name.chars().all(right) {
        Ok(())
    } else {
        Err(ConnectorError::new(format!(
            "{name:?} is not a valid source name: use letters, digits, `-`, `_` and `.`"
        )))
    }
}

/// Result of an entry: its part of the handoff's `data`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Entry {
    /// Source or destination, as in the entry.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The local file or directory, relative to the workspace.
    pub file: String,
    /// Size in bytes. For a directory, the sum of its files.
    pub size: u64,
    /// Media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// URL of the page for people, or of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Further fields from the service.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Entry {
    /// Adds what the service says, unless it says nothing.
    #[must_use]
    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        if !value.is_null() {
            self.more.insert(key.to_owned(), value);
        }
        self
    }
}
