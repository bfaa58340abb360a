//! Tests of the public surface of cliq-packages, in one program: each program costs a link.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

mod content;
mod formats;
mod source;
