//! `cliq server` from outside: the built program, real runs, real clients, processes that are killed.

mod api;
mod browser;
mod crashes;
mod drafts;
mod generated_client;
mod mcp;
mod operations;
mod outcomes;
pub(crate) mod parking;
mod parking_kills;
mod postgres;
mod readers;
mod recovery;
mod replicas;
mod schema;
mod security;
mod sign_in;
mod steering;
mod stuck;
mod studio;
mod tls;
