//! Options of a server.

use std::net::SocketAddr;

use camino::Utf8PathBuf;
use cliq_project::Host;
use cliq_settings::{Secret, Settings};
use cliq_supervisor::{SupervisorOptions, TaskOptions};

use crate::a2a::options::A2aOptions;

/// Files of a TLS certificate, in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// Certificate chain.
    pub certificate: Utf8PathBuf,
    /// Private key.
    pub key: Utf8PathBuf,
}

/// Options of a server (settings `server.*`).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Options of the supervisor: runs, workspaces, replicas.
    pub supervisor: SupervisorOptions,
    /// The cliq home.
    pub home: Utf8PathBuf,
    /// Listening address. Port 0 takes a free port.
    pub address: SocketAddr,
    /// Certificate, or `None` for plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Whether plain HTTP is allowed on an address other than loopback.
    pub insecure_http: bool,
    /// Names by which clients may call the server, besides `localhost` and addresses.
    pub allowed_hosts: Vec<String>,
    /// Maximum number of requests per second from one address, after a burst of twice as many.
    pub rate_limit: u32,
    /// Maximum number of open connections.
    pub max_connections: usize,
    /// Token with all rights, from `CLIQ_ADMIN_TOKEN`.
    pub admin_token: Option<Secret>,
    /// Options of the A2A agent, or `None` if the agent is disabled.
    pub a2a: Option<A2aOptions>,
}

impl ServerOptions {
    /// Returns the options that the settings define for a host.
    #[must_use]
    pub fn new(host: Host, home: Utf8PathBuf, address: SocketAddr, settings: &Settings) -> Self {
        let count = |key: &str, default: usize| settings.count(key).unwrap_or(default);
        Self {
            admin_token: host.environment.get("CLIQ_ADMIN_TOKEN").map(Secret::new),
            supervisor: SupervisorOptions::new(host, &home, settings),
            home,
            address,
            tls: None,
            insecure_http: false,
            allowed_hosts: settings.list("server.allowed_hosts"),
            rate_limit: u32::try_from(count("server.rate_limit", 500)).unwrap_or(u32::MAX),
            max_connections: count("server.max_connections", 2000),
            a2a: None,
        }
    }

    /// Returns the options of the supervisor, with those of tasks if the A2A agent is enabled.
    pub(crate) fn supervisor_options(&self) -> SupervisorOptions {
        let mut options = self.supervisor.clone();
        options.tasks = self.a2a.as_ref().map(|a2a| TaskOptions {
            instance_id: a2a.instance_id.clone(),
            workspace_root: a2a.workspace_root.clone(),
            repo_hosts: a2a.repo_hosts.clone(),
        });
        options
    }

    /// Name of this cliq for A2A callers.
    pub(crate) fn instance_id(&self) -> &str {
        self.a2a.as_ref().map_or("cliq", |a2a| &a2a.instance_id)
    }

    /// Directory of the server's own files.
    #[must_use]
    pub fn dir(&self) -> Utf8PathBuf {
        self.home.join("server")
    }
}
