//! Tests of the public surface of cliq-expr, in one program: each program costs a link.

mod expressions;
