//! Tests of the public surface of cliq-eval, in one program: each program costs a link.

mod honesty;
mod reference;
mod scheduler;
mod suites;
mod team_tests;
