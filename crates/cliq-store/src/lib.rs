//! The database of cliq: the signal queue, plans, runs with their events, registered projects, tokens, reviews, evaluations, triggers, the audit log (docs/decisions/0019-one-store-two-databases.md).
//!
//! [`SqlStore`] implements [`cliq_gateway::Store`], [`cliq_model::RunStore`], [`cliq_model::TaskStore`], [`cliq_model::EvaluationStore`], [`cliq_model::TriggerStore`], [`cliq_model::AuditStore`], [`cliq_model::SignInStore`] and [`cliq_review::ReviewStore`] for SQLite and PostgreSQL with the same statements;
//! the same tests run on both. No other crate knows SQL.
//!
//! Each function is one statement or one transaction: all of it happens, or nothing. A commit is on the disk before it is
//! reported. A connection that breaks is replaced at the next call.

mod audit;
mod cells;
mod connection;
mod error;
mod evaluations;
mod instances;
mod leases;
mod location;
mod migrations;
mod parking;
mod plans;
#[cfg_attr(not(feature = "postgres"), path = "postgres/absent.rs")]
mod postgres;
mod pushes;
mod queue;
mod reaper;
mod reviews;
mod rows;
mod run_change;
mod run_events;
mod runs;
mod select;
mod sign_ins;
mod signals;
mod sqlite;
mod sqlite_row;
mod statement;
mod store;
mod tasks;
mod time;
mod tokens;
mod triggers;
mod usage;
mod wake_file;

pub use location::{BadDatabaseUrl, Location};
pub use migrations::FORMAT;
pub use postgres::PostgresAddress;
pub use store::{Options, SqlStore};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
