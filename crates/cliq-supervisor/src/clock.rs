//! The wall clock of the server.

use std::time::Duration;

use cliq_protocol::Timestamp;

/// Returns the current time.
#[must_use]
pub fn now() -> Timestamp {
    cliq_fs::now()
}

/// Returns the time that lies `age` in the past.
#[must_use]
pub fn ago(age: Duration) -> Timestamp {
    cliq_fs::now().before(age)
}

/// Returns the time that lies `delay` in the future.
#[must_use]
pub fn after(delay: Duration) -> Timestamp {
    cliq_fs::now().after(delay)
}
