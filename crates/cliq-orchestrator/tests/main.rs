//! Tests of the public surface of cliq-orchestrator, in one program: each program costs a link.

mod engine;
mod events;
mod simulation;
