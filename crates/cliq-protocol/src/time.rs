//! Timestamps as they stand on the wire.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time as text: UTC, ISO-8601 with milliseconds and `Z` (docs/protocol.md).
///
/// Text of others is kept verbatim, even if it is not a time: a timestamp informs people and decides nothing, so a malformed
/// one must not cost a message.
#[derive(Debug, Clone)]
pub struct Timestamp {
    text: String,
    /// The time, if the text was made from it: parsing takes longer than all else that a view does with an event.
    millis: Option<i64>,
}

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
        Self { text: format!("{time:.3}"), millis: Some(time.as_millisecond()) }
    }

    /// Takes a text as it stands.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self { text: text.into(), millis: None }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Milliseconds since 1970, where the text is a time.
    #[must_use]
    pub fn unix_millis(&self) -> Option<i64> {
        self.millis.or_else(|| Some(self.text.parse::<jiff::Timestamp>().ok()?.as_millisecond()))
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Timestamp {}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from_text)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_a_text_is_that_it_was_made_from() {
        for millis in [i64::MIN, -1, 0, 1, 1_764_000_000_123, i64::MAX] {
            let made = Timestamp::from_unix_millis(millis);
            let read: Timestamp = serde_json::from_value(serde_json::json!(made)).expect("a text");
            assert_eq!(made, read);
            assert_eq!(made.unix_millis(), read.unix_millis(), "{made}");
        }
        assert_eq!(Timestamp::from_text("yesterday").unix_millis(), None);
    }
}
