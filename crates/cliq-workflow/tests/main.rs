//! Tests of the public surface of cliq-workflow, in one program: each program costs a link.

mod fixtures;
mod mutations;
mod rules;
mod shells;
mod templates;
