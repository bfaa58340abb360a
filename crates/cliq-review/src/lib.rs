//! Reviews by people (docs/reviews.md). Pure: no files, no clock, no network; time comes in with each event.
//!
//! A [`Review`] is one question to people: shall the run go on? [`Review::step`] takes an event and gives the review that follows from it,
//! or says why the event is refused. [`Content`] is what reviewers are shown; it never changes. An [`AuditRecord`] is the record of a review
//! that is over; the records of a run are a hash chain. A [`ReviewStore`] keeps reviews; [`Reviews`] is how programs reach them, here or on
//! another machine.

mod ask;
mod audit;
mod comment;
mod content;
mod fate;
mod hunk;
mod id;
mod machine;
#[cfg(feature = "test-util")]
mod memory;
mod notice;
mod patch;
mod people;
mod place;
mod refusal;
mod review;
mod store;
mod via;
mod wait;

pub use audit::{AuditFile, AuditRecord, ChainProblem, next_record, read_record, verify_chain};
pub use comment::{AcceptedComment, Comment, EarlierComment, Fate, answer_to, guidance};
pub use content::{Artifact, ArtifactView, Content, Diff, FileDiff, PriorHandoff, TimelineEntry};
pub use fate::{FileBefore, fate_of};
pub use hunk::{HunkLine, LineKind, hunk_lines};
pub use id::{LinkToken, ReviewId, hash};
pub use machine::Event;
pub use notice::{Notice, NoticeKind, NoticeState};
pub use patch::{fill_in, numstat};
pub use people::{Channel, Directory, DirectoryError, Person};
pub use place::{Place, PlaceError, Side, place_in};
pub use refusal::Refusal;
pub use review::{
    AcceptedAnswer, Answer, AuditReference, Choice, Link, NewReview, Outcome, Review, ReviewState,
};
pub use store::{ReviewFilter, ReviewStore, Reviews, ReviewsError, StoredReviews};
pub use via::Via;
pub use wait::{Delivery, Moment, Pages, ReviewWait, WaitEffect, WaitEvent, Waker};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
