//! Times as they are stored and sent: UTC, with milliseconds (SPEC section 2).

use std::time::Duration;

use jiff::Timestamp;

pub(crate) fn now() -> String {
    stamp(Timestamp::now())
}

pub(crate) fn ago(age: Duration) -> String {
    stamp(Timestamp::now().checked_sub(age).unwrap_or(Timestamp::MIN))
}

pub(crate) fn after(time: Duration) -> String {
    stamp(Timestamp::now().checked_add(time).unwrap_or(Timestamp::MAX))
}

/// Milliseconds since 1970 of a stored time.
pub(crate) fn millis(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Now, for reviews.
pub(crate) fn review_time() -> cliq_review::Time {
    cliq_review::Time::from_millis(cliq_fs::now_millis())
}
