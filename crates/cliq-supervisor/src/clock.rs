//! Timestamps as they are stored and sent: UTC with milliseconds (docs/protocol.md).

use std::time::Duration;

use jiff::Timestamp;

/// Returns the current time.
#[must_use]
pub fn now() -> String {
    format(Timestamp::now())
}

/// Returns the time that lies `age` in the past.
#[must_use]
pub fn ago(age: Duration) -> String {
    format(Timestamp::now().checked_sub(age).unwrap_or(Timestamp::MIN))
}

/// Returns the time that lies `delay` in the future.
#[must_use]
pub fn after(delay: Duration) -> String {
    format(Timestamp::now().checked_add(delay).unwrap_or(Timestamp::MAX))
}

/// Returns the milliseconds since 1970 of a stored timestamp, or `None` if the text is not a timestamp.
#[must_use]
pub fn millis(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// Returns the current time for reviews.
#[must_use]
pub fn review_time() -> cliq_review::Time {
    cliq_review::Time::from_millis(cliq_fs::now_millis())
}

fn format(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
