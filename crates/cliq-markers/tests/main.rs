//! Tests of the public surface of cliq-markers, in one program: each program costs a link.

mod body;
mod markers;
