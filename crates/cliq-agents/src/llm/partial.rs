//! Answers that a limit ended.

use std::fmt;

use cliq_sdk::{Handoff, LimitReached, StandardContext};

use crate::AnyError;

/// Error of a model that a limit ended, with the text of its last reply.
#[derive(Debug)]
pub(crate) struct PartialAnswer {
    /// Text of the last reply, which may be empty.
    pub(crate) text: String,
    pub(crate) reached: LimitReached,
}

impl fmt::Display for PartialAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reached.fmt(f)
    }
}

impl std::error::Error for PartialAnswer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.reached)
    }
}

/// Sends a partial handoff if the error is a limit. Returns the error, or the one of sending.
pub(super) fn send_partial(ctx: &StandardContext, error: AnyError) -> AnyError {
    let Some(partial) = error.downcast_ref::<PartialAnswer>() else { return error };
    let handoff = Handoff::text(partial.text.trim()).with_limited(partial.reached.limited.clone());
    match ctx.send(&handoff) {
        Ok(()) => error,
        Err(failed) => failed.into(),
    }
}
