//! Tests of the public surface of cliq-triggers, in one program: each program costs a link.

mod documents;
