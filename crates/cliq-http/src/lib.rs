//! Outgoing HTTP (docs/pull-push.md): every call has a deadline, a bounded number of tries, and an error that names the host
//! and the status and never a secret.
//!
//! `Client` (feature `client`) sends a `Request`: into memory, as JSON, page by page, or streamed to a file. `Client::new` is for
//! addresses that a person set in settings or team.yml on their own machine. `Client::guarded` is for addresses that a caller chose:
//! it connects to public addresses only. Calls block their thread: an asynchronous program makes them on a thread of its own.
//! The [`Guard`] alone needs no client.

mod address;
#[cfg(feature = "client")]
mod calls;
#[cfg(feature = "client")]
mod download;
mod guard;
#[cfg(feature = "client")]
mod guarded_client;
#[cfg(feature = "client")]
mod pages;
#[cfg(feature = "client")]
mod request;
#[cfg(feature = "client")]
mod retry;
mod size;
#[cfg(feature = "client")]
mod sse;

pub use address::is_public;
#[cfg(feature = "client")]
pub use calls::{Answer, Client, Limits};
#[cfg(feature = "client")]
pub use download::{Download, part_file};
pub use guard::{CallerUrl, Guard, GuardError};
#[cfg(feature = "client")]
pub use pages::{Items, Page};
#[cfg(feature = "client")]
pub use request::{Repeat, Request};
#[cfg(feature = "client")]
pub use retry::{CallError, retry};
pub use size::size;
#[cfg(feature = "client")]
pub use sse::{SseEvent, read_events};

#[cfg(feature = "client")]
pub use ureq;

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
