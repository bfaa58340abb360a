//! Test support for several crates: temporary homes, servers and daemons of the built programs, PostgreSQL. For tests only: functions panic on errors.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failure here is the failure of a test"
)]

use std::path::{Path, PathBuf};

pub mod agent;
mod clock;
pub mod daemon;
pub mod env;
mod go;
pub mod machine;
mod not_run;
pub mod plan_agents;
mod postgres;
pub mod steps;
mod teams;
mod terminal;
pub mod wire;

pub use clock::Clock;
pub use go::go_program;
pub use not_run::not_run;
pub use postgres::PostgresServer;
pub use teams::chain;
pub use terminal::Terminal;

/// Returns the built `cliq`. Tests run beside it, in `deps`.
#[must_use]
pub fn program() -> PathBuf {
    let test = std::env::current_exe().expect("this program has a path");
    let target = test.ancestors().nth(2).expect("tests are in deps");
    target.join("cliq")
}

/// Returns a path below `target`, where `./test` installs tools.
#[must_use]
pub fn target(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(path)
}

/// Creates a directory that sandboxes show: below `target`, or below the home if the project is in a directory for temporary files, of which a
/// sandbox has its own.
#[must_use]
pub fn visible_dir() -> tempfile::TempDir {
    let target = target("tmp");
    std::fs::create_dir_all(&target).expect("a directory");
    let target = target.canonicalize().expect("it is there");
    let is_private = ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|dir| target.starts_with(dir));
    let dir = match std::env::home_dir() {
        Some(home) if is_private => home,
        _ => target,
    };
    tempfile::Builder::new().prefix(".cliq-test-").tempdir_in(dir).expect("a directory")
}
