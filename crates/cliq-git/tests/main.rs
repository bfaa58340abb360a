//! Tests of the public surface of cliq-git, in one program: each program costs a link.

mod checkpoints;
mod common;
mod conflicts;
mod repositories;
