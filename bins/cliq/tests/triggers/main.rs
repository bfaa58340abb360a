//! Triggers from outside: the built program, real clocks that are set, real senders, servers that are killed.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

mod commands;
mod example;
mod files;
mod groups;
mod hook_kills;
mod hooks;
mod injections;
#[path = "../server/machine.rs"]
#[expect(dead_code, reason = "the tests of the server use more of it")]
mod machine;
mod pages;
mod presets;
mod schedules;
mod sender;
mod week;
