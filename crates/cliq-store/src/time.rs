//! Times as they are stored: UTC, with milliseconds (docs/protocol.md).

use std::time::Duration;

use cliq_protocol::Timestamp;

pub(crate) fn now() -> Timestamp {
    cliq_fs::now()
}

pub(crate) fn ago(age: Duration) -> Timestamp {
    cliq_fs::now().before(age)
}
