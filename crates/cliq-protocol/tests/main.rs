//! Tests of the public surface of cliq-protocol, in one program: each program costs a link.

mod bounds;
mod properties;
mod reviews;
mod transcripts;
mod values;
mod wire;
