//! Tests of the public surface of cliq-http, in one program: each program costs a link.

mod client;
mod guard;
