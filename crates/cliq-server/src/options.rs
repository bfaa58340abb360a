//! Options of a server.

use std::net::SocketAddr;

use camino::Utf8PathBuf;
use cliq_project::Host;
use cliq_review::Directory;
use cliq_settings::{Secret, Settings};
use cliq_supervisor::{SupervisorOptions, TaskOptions};

use crate::a2a::options::A2aOptions;
use crate::access::{GroupScopes, OptionsError, ProviderOptions};

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
    /// Address by which browsers and senders of webhooks reach the server, such as that of a reverse proxy.
    pub public_url: Option<String>,
    /// Provider by which people sign in, if there is one.
    pub provider: Option<ProviderOptions>,
    /// Directory of reviewers.
    pub reviewers: Directory,
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
            public_url: settings.text("server.public_url"),
            provider: None,
            reviewers: settings.reviewers(),
        }
    }

    /// Adds the provider that the settings `server.oidc.*` define, if there is one.
    ///
    /// # Errors
    /// Returns an error if the settings are incomplete, or an address is not protected by TLS.
    pub fn with_provider(mut self, settings: &Settings) -> Result<Self, OptionsError> {
        let Some(issuer) = settings.text("server.oidc.issuer") else { return Ok(self) };
        let groups = GroupScopes {
            admin: settings.list("server.oidc.admin_groups"),
            run: settings.list("server.oidc.run_groups"),
            read: settings.list("server.oidc.read_groups"),
        };
        let text = |key: &str| settings.text(key).unwrap_or_default();
        let (client_id, public_url) = (text("server.oidc.client_id"), text("server.public_url"));
        let mut options = ProviderOptions::new(&issuer, &client_id, &public_url, groups)?;
        options.client_secret =
            settings.secret("server.oidc.client_secret").map(|secret| secret.reveal().to_owned());
        options.groups_claim = text("server.oidc.groups_claim");
        options.label = text("server.oidc.label");
        let scopes = settings.list("server.oidc.scopes");
        if !scopes.is_empty() {
            options.scopes = scopes;
        }
        if let Some(session) = settings.duration("server.oidc.session") {
            options.session = session;
        }
        self.provider = Some(options);
        Ok(self)
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
