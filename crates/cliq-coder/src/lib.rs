//! Model agents with tools (docs/models.md).
//!
//! [`Loop`] is the pure machine of model turns and tool calls: a fold of the lines of a transcript, which tells the next step. [`tools`]
//! has the built-in tools, [`ToolHost`] the process that they run in. Requests to models are not made here.

mod conversation;
mod host;
mod limits;
mod machine;
mod outcome;
pub mod tools;

pub use conversation::{Reply, Thinking, Turn};
pub use host::{HostCommand, ToolHost, serve};
pub use limits::Limits;
pub use machine::{Loop, REPETITIONS, Step};
pub use outcome::{Failure, Limit, Repeated};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
