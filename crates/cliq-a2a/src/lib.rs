//! The A2A protocol (Agent2Agent), versions 0.3 and 1.0 (docs/a2a.md). Pure: no server, no clock, no files.
//!
//! * `model.rs`: messages, tasks, artifacts, free of any version. `wire/` reads and writes them in the format of a version.
//! * `call.rs`: requests, parsed from a method and its parameters. `error.rs`: errors of requests.
//! * `card.rs`, `skill.rs`, `advertise.rs`, `signature.rs`: the description that the agent publishes of itself.
//! * `request.rs`: the pipeline that a message asks for. `updates.rs`: updates of a task with their numbers.

mod advertise;
mod call;
mod card;
mod error;
mod model;
mod request;
mod signature;
mod skill;
mod updates;
mod version;
pub mod wire;

pub use advertise::Advertise;
pub use call::{Call, Listing, SendRequest};
pub use card::{AgentCard, Provider};
pub use error::{A2aError, ErrorKind, Violation};
pub use model::{
    Artifact, Authentication, Content, Message, Part, PushConfig, Role, Status, StreamItem, Task, TaskState,
};
pub use request::PipelineRequest;
pub use signature::{SignatureError, SigningKey};
pub use skill::Skill;
pub use updates::{EventNumber, TaskContext, Update, UpdateDraft};
pub use version::{UnsupportedVersion, Version};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
