//! Timestamps as they are stored and sent: UTC with milliseconds (docs/protocol.md).

use std::time::Duration;

use cliq_protocol::Timestamp;

/// Returns the current time.
#[must_use]
pub fn now() -> String {
    cliq_fs::now().to_string()
}

/// Returns the time that lies `age` in the past.
#[must_use]
pub fn ago(age: Duration) -> String {
    cliq_fs::now().before(age).to_string()
}

/// Returns the time that lies `delay` in the future.
#[must_use]
pub fn after(delay: Duration) -> String {
    cliq_fs::now().after(delay).to_string()
}

/// Returns the milliseconds since 1970 of a stored timestamp, or `None` if the text is not a timestamp.
#[must_use]
pub fn millis(text: &str) -> Option<i64> {
    Timestamp::parse(text).ok().map(Timestamp::unix_millis)
}
