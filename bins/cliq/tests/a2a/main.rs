//! The server as an A2A agent: clients that others wrote, both versions of the protocol, streams that break, push notifications.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

mod agent;
mod builder;
mod card;
mod clients;
#[path = "../server/machine.rs"]
#[expect(dead_code, reason = "the tests of the server use more of it")]
mod machine;
mod mesh;
mod owners;
mod protocol;
mod push;
mod remote;
mod replicas;
mod repositories;
mod streams;
mod tasks;
