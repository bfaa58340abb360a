//! A real PostgreSQL server.

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::not_run;

/// The user that the server runs as where the test is root, which PostgreSQL refuses: `nobody`.
const UNPRIVILEGED: u32 = 65534;

/// A PostgreSQL server with its own data, on a loopback port. It ends when this is dropped.
#[derive(Debug)]
pub struct PostgresServer {
    dir: tempfile::TempDir,
    programs: PathBuf,
    port: u16,
    databases: AtomicU32,
}

impl PostgresServer {
    /// Starts a server. Where PostgreSQL is not installed, records that the test could not be run.
    #[must_use]
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            not_run("there is no PostgreSQL here (initdb, pg_ctl)");
            return None;
        };
        let dir = if is_root() { reachable_dir() } else { tempfile::tempdir().expect("a directory") };
        if is_root() {
            chown(dir.path(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).expect("the directory is ours");
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let server = Self { dir, programs, port, databases: AtomicU32::new(0) };
        let data = server.data();
        server.program(
            "initdb",
            &["-D", &data, "-U", "cliq", "--auth=trust", "-E", "UTF8", "--locale=C", "-N"],
        );
        server.begin();
        Some(server)
    }

    /// Starts the server after [`Self::stop`], on the same port with the same data.
    pub fn begin(&self) {
        let (data, port) = (self.data(), self.port);
        let options = format!("-p {port} -k '' -c listen_addresses=127.0.0.1 -c max_connections=200");
        let log = format!("{}/log", self.dir.path().display());
        self.program("pg_ctl", &["-D", &data, "-w", "-s", "-l", &log, "-o", &options, "start"]);
    }

    /// Ends the server as a crash does: transactions under way are lost.
    pub fn stop(&self) {
        self.program("pg_ctl", &["-D", &self.data(), "-w", "-s", "-m", "immediate", "stop"]);
    }

    /// Makes an empty database and gives its address.
    #[must_use]
    pub fn database(&self) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        format!("postgresql://cliq@127.0.0.1:{}/{name}", self.port)
    }

    /// The port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs a statement in a database, by its name or its address.
    pub fn sql(&self, database: &str, statement: &str) {
        let name = database.rsplit('/').next().unwrap_or(database);
        let port = self.port.to_string();
        let arguments = [
            "-h",
            "127.0.0.1",
            "-p",
            &port,
            "-U",
            "cliq",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            statement,
            name,
        ];
        self.program("psql", &arguments);
    }

    fn data(&self) -> String {
        self.dir.path().join("data").display().to_string()
    }

    fn program(&self, name: &str, arguments: &[&str]) {
        let output = self.run(name, arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} {arguments:?}: {error}");
    }

    fn run(&self, name: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.programs.join(name));
        command.args(arguments).current_dir(self.dir.path()).stdin(Stdio::null());
        if is_root() {
            command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
        }
        // A server inherits what it is started with: it would keep a pipe open for as long as it lives.
        if arguments.last() == Some(&"start") {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        command.output().expect("the program of PostgreSQL starts")
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let _ = self.run("pg_ctl", &["-D", &self.data(), "-w", "-s", "-m", "immediate", "stop"]);
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Creates a directory that another user can enter: the directory for temporary files may be below a home that only its owner enters.
fn reachable_dir() -> tempfile::TempDir {
    let is_reachable = |dir: &Path| {
        let may_enter =
            |dir: &Path| dir.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o001 != 0);
        dir.canonicalize().is_ok_and(|dir| dir.ancestors().all(may_enter))
    };
    let usual = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
    let mut candidates = std::iter::once(std::env::temp_dir()).chain(usual).filter(|dir| is_reachable(dir));
    let found = candidates.find_map(|dir| tempfile::tempdir_in(dir).ok());
    found.expect("a directory that the user of PostgreSQL can enter")
}

/// The directory of the server's programs: the newest that Debian's packages put there, or that of the PATH.
fn programs() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    versions.sort();
    let found = versions.into_iter().rev().find(|dir| dir.join("initdb").exists());
    found.or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).find(|dir: &PathBuf| Path::new(dir).join("initdb").exists())
    })
}
