//! Tests of the crate against recorded and misbehaving agents.

mod machine;
mod misbehaving;
mod records;
