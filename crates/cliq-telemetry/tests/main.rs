//! Tests of the crate as its users see it.

mod conventions;
mod options;
mod sample;
mod spans;
