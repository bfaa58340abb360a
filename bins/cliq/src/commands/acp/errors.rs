//! Failures as errors of the protocol.

use cliq_acp::RpcError;

use crate::failure::{Failure, Kind};

/// Returns a failure as an error: the message for people with its hint, and the places of errors in a team.
pub(super) fn of(failure: &Failure) -> RpcError {
    let code = match failure.kind() {
        Kind::Usage => RpcError::INVALID_PARAMS,
        Kind::Refused => RpcError::INVALID_REQUEST,
        Kind::Failed | Kind::BrokenPipe => RpcError::INTERNAL_ERROR,
    };
    RpcError::new(code, failure.sentences())
}
