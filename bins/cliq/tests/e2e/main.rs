//! The built binaries, end to end: real processes in temporary directories.

mod bad_agents;
mod cancel;
mod cli;
mod crashes;
mod demo;
mod env;
mod explain;
mod foreign_agents;
mod gates;
mod hostile_files;
mod layering;
mod markers;
mod mcp;
mod models;
mod notifications;
mod plans;
mod rerun;
mod resume;
mod runs;
mod server;
mod settings;
mod signals;
mod sub_teams;
mod teams;
mod tmux;
mod worked_example;
