//! The Agent Client Protocol over standard input and output.
//!
//! - [`lines`] and [`rpc`] are the transport, for both directions: lines that keep their bytes, and JSON-RPC messages.
//! - [`client`] drives agents: a pure machine, and a driver for tokio.
//! - [`agent`] is the other side, an agent for editors: a pure machine.
//! - [`schema`] has the types of version 1 of the protocol.

pub mod agent;
mod calls;
pub mod client;
pub mod lines;
pub mod rpc;

pub use agent_client_protocol_schema::v1 as schema;
pub use calls::{Answered, Calls};
pub use lines::{Line, LineReader, LineSplitter, MAX_LINE};
pub use rpc::{Id, Incoming, InvalidReason, MAX_VALUES, Message, RpcError};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
