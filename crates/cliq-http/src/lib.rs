//! Outgoing HTTP (docs/pull-push.md): every call has a deadline, a bounded number of tries, and an error that names the host
//! and the status and never a secret.
//!
//! [`Client`] sends a [`Request`]: into memory, as JSON, page by page, or streamed to a file. [`Client::new`] is for addresses that a
//! person set in settings or team.yml on their own machine. [`Client::guarded`] is for addresses that a caller chose: it connects
//! to public addresses only. Calls block their thread: an asynchronous program makes them on a thread of its own.

mod address;
mod calls;
mod download;
mod guard;
mod pages;
mod request;
mod retry;
mod sse;

pub use address::is_public;
pub use calls::{Answer, Client, Limits, size};
pub use download::{Download, part_file};
pub use guard::{CallerUrl, Guard, GuardError};
pub use pages::{Items, Page};
pub use request::{Repeat, Request};
pub use retry::{CallError, retry};
pub use sse::{SseEvent, read_events};

pub use ureq;

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
