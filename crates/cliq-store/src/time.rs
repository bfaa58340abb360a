//! Times as they are stored: UTC, with milliseconds (docs/protocol.md).

use std::time::Duration;

use jiff::Timestamp;

pub(crate) fn now() -> String {
    stamp(Timestamp::now())
}

pub(crate) fn now_millis() -> i64 {
    Timestamp::now().as_millisecond()
}

pub(crate) fn ago(age: Duration) -> String {
    stamp(Timestamp::now().checked_sub(age).unwrap_or(Timestamp::MIN))
}

fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
