//! The wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

use cliq_protocol::Timestamp;

/// Milliseconds since 1970-01-01T00:00:00Z; 0 on a machine whose clock stands before that.
#[must_use]
pub fn now_millis() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Now.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::from_unix_millis(now_millis())
}
