//! The rendered agent card.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

/// A rendered agent card.
#[derive(Debug, Clone)]
pub(crate) struct CardDocument {
    pub(crate) value: Value,
    /// Names of the offered teams.
    pub(crate) teams: Vec<String>,
    pub(super) text: Bytes,
    pub(super) etag: String,
    /// Time of the first rendering with this content.
    pub(super) modified: Timestamp,
}

/// The most recent agent card, with the time of its rendering.
#[derive(Debug, Default)]
pub(crate) struct CardCache(pub(super) Mutex<Option<(Instant, Arc<CardDocument>)>>);
