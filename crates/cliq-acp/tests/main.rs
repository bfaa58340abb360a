//! Tests of the crate against recorded and misbehaving agents.

mod records;
