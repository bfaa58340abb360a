//! Tests of the public surface of cliq-coder, in one program: each program costs a link.

mod machine;
mod outcomes;
mod tools;
