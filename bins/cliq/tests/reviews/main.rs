//! People as gates: reviews of real runs, answered in each way, with agents, orchestrators and servers that are killed, and hostile content.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

mod a2a;
mod answers;
mod browser;
mod content;
mod crashes;
mod demo;
#[path = "../server/machine.rs"]
#[expect(dead_code, reason = "the tests of the server use more of it")]
mod machine;
mod notices;
mod pages;
mod parking;
mod parking_teams;
mod records;
mod runs;
mod servers;
mod waiting;
