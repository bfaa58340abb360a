//! Points in time.

use std::fmt;

use cliq_protocol::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A point in time, in milliseconds since 1970. In JSON it is a text: UTC, ISO-8601.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// The time so many milliseconds after 1970.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn millis(self) -> i64 {
        self.0
    }

    /// The time so much later.
    #[must_use]
    pub fn after(self, duration: std::time::Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// As text.
    #[must_use]
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_unix_millis(self.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().fmt(f)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.timestamp().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Timestamp::deserialize(deserializer)?;
        text.unix_millis()
            .map(Self)
            .ok_or_else(|| D::Error::custom(format!("{:?} is not a time", text.as_str())))
    }
}
