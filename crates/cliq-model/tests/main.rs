//! Tests of the public surface of cliq-model, in one program: each program costs a link.

mod events;
mod lifecycle;
mod parking;
mod steps;
