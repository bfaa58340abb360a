//! Tests of the public surface of cliq-gate, in one program: each program costs a link.

mod properties;
mod steps;
