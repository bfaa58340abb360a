//! Outside content (docs/pull-push.md): [`pull()`] makes it files, [`push()`] publishes files, [`connector::run`] does what a
//! connector's phase says, and [`code_host`] has the pull requests of code hosts. Every service is a small module over the client of
//! `cliq-http`: deadlines, retries, size caps, and errors that name host and status and never a secret.
//!
//! Calls block their thread. What is set comes in through [`Context`]: nothing here reads the environment or the home directory.

mod api;
mod append;
pub mod code_host;
mod confluence;
pub mod connector;
mod context;
pub mod convert;
mod curl;
mod datadog;
mod document;
mod endpoint;
mod entry;
mod error;
mod files;
mod folder;
mod google;
mod hubspot;
mod jira;
mod ledger;
mod progress;
mod pull;
mod pulled;
mod push;
mod s3;
mod service;
mod sharepoint;
mod web;
mod zendesk;

pub use context::{Bounds, Context, Lookup, Progress};
pub use entry::{Entry, Format, Mode, Source, Target};
pub use error::ConnectorError;
pub use files::{LocalFile, Publishable, inside};
pub use google::{DevicePrompt, sign_in};
pub use pull::{Activation, Location, S3Location, pull};
pub use pulled::{PullRecord, Validators};
pub use push::{Destination, Preview, Publisher, PushRecord, State, preview, push};

/// Parsers for the fuzz targets. No part of the interface.
#[doc(hidden)]
pub mod fuzz {
    pub use crate::convert::html_to_markdown;
}

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
