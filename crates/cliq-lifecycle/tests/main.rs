//! Tests of the public surface of cliq-lifecycle, in one program: each program costs a link.

mod machine;
