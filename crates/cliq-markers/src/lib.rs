//! Markers: lines by which agents report their state to a coordinator (docs/protocol.md).
//!
//! An agent ends its answer with a line such as `READY_FOR_REVIEW: task-1` and the fields that go with it. [`scan`] finds
//! all markers of a text, in order, each with its body; [`Scan::decisive`] is the one that the coordinator acts upon, and
//! [`Marker::handler`] says how. [`MarkerKind::format`] is what a prompt quotes, and [`Writer`] writes one.
//!
//! Nothing here can fail: in any input, what is not a marker is text. What a marker lacks is a warning
//! ([`Marker::warnings`]).
//!
//! ```
//! use cliq_markers::{Handler, MarkerKind, scan};
//! let found = scan("I am done.\n\nREADY_FOR_REVIEW: task-1\n\nFiles Modified:\n- a.rs: new\n\nSummary: small\n");
//! let marker = found.decisive().expect("one is there");
//! assert_eq!((marker.kind, marker.id(), marker.line), (MarkerKind::ReadyForReview, Some("task-1"), 3));
//! assert_eq!(marker.handler(), Handler::DispatchCritic);
//! assert_eq!(marker.body().items("Files Modified"), ["a.rs: new"]);
//! assert_eq!(marker.body().value("Summary").as_deref(), Some("small"));
//! ```

mod body;
mod fields;
mod kind;
mod scan;
mod typed;
mod write;

pub use body::{Body, Section};
pub use fields::{Field, Shape};
pub use kind::{Agent, Handler, MarkerKind, Subject};
pub use scan::{Malformed, Marker, Scan, scan};
pub use typed::{CheckResult, Issue, Level};
pub use write::Writer;

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
