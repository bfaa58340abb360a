//! The wall clock, and ids that contain its time.

use std::time::{SystemTime, UNIX_EPOCH};

use cliq_protocol::{RunId, Timestamp};

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

/// Returns the id for a new run, a UUID of version 7. Ids that are made later are greater.
///
/// # Panics
/// Never: a UUID has the characters of an id.
#[must_use]
pub fn new_run_id() -> RunId {
    let id = uuid::Uuid::now_v7().hyphenated();
    RunId::parse_uuid(id.encode_lower(&mut uuid::Uuid::encode_buffer())).expect("a UUID is an id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_run_ids_increase() {
        let ids: Vec<RunId> = (0..1000).map(|_| new_run_id()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }
}
