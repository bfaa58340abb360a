//! Triggers from outside: the built program, real clocks that are set, real senders, servers that are killed.

mod commands;
mod example;
mod files;
mod groups;
mod hook_kills;
mod hooks;
mod injections;
mod pages;
mod presets;
mod schedules;
pub(crate) mod sender;
mod week;
