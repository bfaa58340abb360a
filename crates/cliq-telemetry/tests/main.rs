//! Tests of the crate as its users see it.

#[cfg(feature = "otlp")]
mod client;
mod conventions;
mod measurements;
mod options;
mod sample;
mod spans;
