//! Outside content: pull, push, connectors and tools, against servers that others wrote where there are any, and with every fault of a
//! network.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

mod agents;
mod demo;
mod documents;
#[path = "../e2e/env.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod env;
mod feature_dev;
mod google;
mod prism;
mod pull;
mod push;
mod s3;
mod services;
mod sharepoint;
mod site;
mod tools;
