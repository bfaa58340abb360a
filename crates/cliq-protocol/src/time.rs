//! Timestamps as they stand on the wire.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A point in time as text: UTC, ISO-8601 with milliseconds and `Z` (SPEC section 2).
///
/// Text of others is kept verbatim, even if it is not a time: a timestamp informs people and decides nothing, so a malformed
/// one must not cost a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(String);

impl Timestamp {
    /// The time that lies `millis` milliseconds after 1970-01-01T00:00:00Z. Times that no calendar shows
    /// (before year -9999, after 9999) come out as the nearest that it does.
    #[must_use]
    pub fn from_unix_millis(millis: i64) -> Self {
        let time = jiff::Timestamp::from_millisecond(millis).unwrap_or(if millis < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        });
        Self(format!("{time:.3}"))
    }

    /// Takes a text as it stands.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Milliseconds since 1970, where the text is a time.
    #[must_use]
    pub fn unix_millis(&self) -> Option<i64> {
        self.0.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
