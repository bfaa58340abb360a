//! Tests of the public surface of cliq-supervisor, in one program: each program costs a link.

mod retention;
