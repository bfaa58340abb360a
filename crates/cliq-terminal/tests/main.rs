//! Tests of the terminal: what it shows at three sizes, what its keys do, and properties over random events.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

mod docs;
mod fixtures;
mod keys;
mod lines;
mod properties;
mod texts;
mod views;
