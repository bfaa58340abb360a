//! Tests of the public surface of cliq-review, in one program: each program costs a link.

mod audit;
mod lines;
mod machine;
mod steps;
mod store;
mod wait;
