//! What a server is started with.

use std::net::SocketAddr;
use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_http::Guard;
use cliq_project::Host;
use cliq_runs::{Recovery, Run, RunOrigin};
use cliq_settings::{Secret, Settings};

use crate::a2a::A2aOptions;

/// The files of a TLS certificate, in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate, with those that vouch for it.
    pub certificate: Utf8PathBuf,
    /// Its private key.
    pub key: Utf8PathBuf,
}

/// What a server is started with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The host: environment of runs, cliq home, the `cliq` program that runs teams.
    pub host: Host,
    /// The cliq home.
    pub home: Utf8PathBuf,
    /// Where it listens. Port 0 takes a free one.
    pub address: SocketAddr,
    /// TLS, where it is wanted.
    pub tls: Option<TlsFiles>,
    /// Whether plain HTTP beyond loopback is wanted.
    pub insecure_http: bool,
    /// Names by which clients may call the server, beside `localhost` and addresses.
    pub allowed_hosts: Vec<String>,
    /// The most runs at the same time.
    pub max_runs: usize,
    /// What is done with a run whose orchestrator died.
    pub recovery: Recovery,
    /// How long runs are kept after their end.
    pub retention: Duration,
    /// The directory of workspaces that are made for runs.
    pub workspace_root: Utf8PathBuf,
    /// The most requests per second from one address, after a burst of twice as many.
    pub rate_limit: u32,
    /// The most open connections.
    pub max_connections: usize,
    /// A token with all rights, from `CLIQ_ADMIN_TOKEN`.
    pub admin_token: Option<Secret>,
    /// Whether callers of A2A get what agents print.
    pub workflow_streaming: bool,
    /// The name of this server among several on one database: the same after each start in the same home.
    pub replica: String,
    /// How long it may be silent before the others take over what it has.
    pub lease: Duration,
    /// Whether all of them see the same workspaces at the same paths.
    pub shared_workspaces: bool,
    /// Whether runs work as Jobs of a cluster (`kubernetes.enabled`).
    pub runs_in_cluster: bool,
    /// What the server is started with as an A2A agent; `None`: it is none.
    pub a2a: Option<A2aOptions>,
}

impl ServerOptions {
    /// The options that the settings give, on this host.
    #[must_use]
    pub fn new(host: Host, home: Utf8PathBuf, address: SocketAddr, settings: &Settings) -> Self {
        let recovery = match settings.text("server.recovery").as_deref() {
            Some("resume") => Recovery::Resume,
            _ => Recovery::Fail,
        };
        let count = |key: &str, default: usize| settings.count(key).unwrap_or(default);
        let root = settings.text("server.workspace_root").map(Utf8PathBuf::from);
        Self {
            admin_token: host.environment.get("CLIQ_ADMIN_TOKEN").map(Secret::new),
            workspace_root: root.unwrap_or_else(|| home.join("workspaces")),
            host,
            home,
            address,
            tls: None,
            insecure_http: false,
            allowed_hosts: settings.list("server.allowed_hosts"),
            max_runs: count("server.max_runs", 4),
            recovery,
            retention: settings.duration("server.retention").unwrap_or(Duration::from_secs(7 * 86_400)),
            rate_limit: u32::try_from(count("server.rate_limit", 500)).unwrap_or(u32::MAX),
            max_connections: count("server.max_connections", 2000),
            workflow_streaming: settings.flag("server.workflow_streaming"),
            replica: cliq_runs::RunId::generate().to_string(),
            lease: settings.duration("server.lease").unwrap_or(Duration::from_secs(15)),
            shared_workspaces: settings.flag("server.shared_workspaces"),
            runs_in_cluster: settings.flag("kubernetes.enabled"),
            a2a: None,
        }
    }

    /// The name of this cliq for callers of A2A.
    pub(crate) fn instance_id(&self) -> &str {
        self.a2a.as_ref().map_or("cliq", |a2a| &a2a.instance_id)
    }

    /// The name of this cliq where a run is a task of A2A.
    pub(crate) fn task_instance(&self, run: &Run) -> Option<&str> {
        (run.origin == RunOrigin::A2a).then(|| self.instance_id())
    }

    /// Which hosts the repositories of a run may come from although their addresses are private.
    pub(crate) fn repository_guard(&self, run: &Run) -> Guard {
        let hosts =
            self.a2a.as_ref().filter(|_| run.origin == RunOrigin::A2a).map(|a2a| a2a.repo_hosts.clone());
        Guard { allow_private: false, allowed_hosts: hosts.unwrap_or_default() }
    }

    /// The directory of the logs of orchestrators: where all servers see it that see the workspaces.
    pub(crate) fn log_dir(&self) -> Utf8PathBuf {
        if self.shared_workspaces { self.workspace_root.join(".logs") } else { self.dir().join("runs") }
    }

    /// The directory of the server's own files.
    #[must_use]
    pub fn dir(&self) -> Utf8PathBuf {
        self.home.join("server")
    }
}
