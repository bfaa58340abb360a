//! Tests of the public surface of cliq-a2a, in one program: each program costs a link.

mod calls;
mod small;
mod wire;
