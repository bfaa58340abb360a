//! Server that plays the wire formats of four model APIs from a script.
//!
//! [`ScriptedModel`] serves until it is dropped. [`Script`] has scenes: the first one whose texts are in the first message of a request
//! applies, and the number of replies in the request chooses the next one.

mod prefix;
mod request;
mod script;
mod server;
mod wire;

pub use script::{Behavior, Scene, Script, ScriptedCall, ScriptedReply};
pub use server::{RecordedRequest, ScriptedModel};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
