//! Times as they are stored: UTC, with milliseconds (docs/protocol.md).

use std::time::Duration;

pub(crate) fn now() -> String {
    cliq_fs::now().to_string()
}

pub(crate) fn ago(age: Duration) -> String {
    cliq_fs::now().before(age).to_string()
}
