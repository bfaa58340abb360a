//! Test support for several crates. For tests only: functions panic on errors.
#![expect(clippy::expect_used, clippy::print_stderr, reason = "a failure here is the failure of a test")]

mod not_run;
mod postgres;
mod teams;

pub use not_run::not_run;
pub use postgres::PostgresServer;
pub use teams::chain;
