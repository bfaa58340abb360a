//! Tests of the public surface of cliq-store, in one program: each program costs a link.

mod store;
