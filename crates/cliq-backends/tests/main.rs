//! Tests of the public surface of cliq-backends, in one program: each program costs a link.

mod quick_run;
mod spec;
