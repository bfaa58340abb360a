//! Sandboxes: a hostile command tries to leave each profile, under each mechanism. docs/sandbox.md has the table of what must come out.

mod attacks;
mod builds;
mod command;
mod egress;
mod runs;
mod world;
