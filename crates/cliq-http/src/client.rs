//! The client for addresses that a person set.

use std::time::Duration;

use ureq::Agent;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(20);

/// What servers see as the client's name.
pub(crate) const USER_AGENT: &str = concat!("cliq/", env!("CARGO_PKG_VERSION"));

/// A client that returns responses of any status. `first_byte` is the longest wait for the head of a response.
#[must_use]
pub fn client(first_byte: Duration) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(first_byte))
        .user_agent(USER_AGENT)
        .build();
    config.into()
}

/// Whether an error may be gone a moment later.
#[must_use]
pub fn is_transient(error: &ureq::Error) -> bool {
    matches!(
        error,
        ureq::Error::Io(_)
            | ureq::Error::Timeout(_)
            | ureq::Error::ConnectionFailed
            | ureq::Error::HostNotFound
    )
}
