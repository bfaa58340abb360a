//! Tests of the crate against recorded and misbehaving agents.

mod agent;
mod driver;
mod machine;
mod misbehaving;
mod records;
