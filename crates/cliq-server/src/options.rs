//! Options of a server.

use std::net::SocketAddr;
use std::sync::Arc;

use camino::Utf8PathBuf;
use cliq_project::Host;
use cliq_review::Directory;
use cliq_settings::{OidcSettings, ReviewSettings, Secret, ServerSettings, Settings, TelemetrySettings};
use cliq_supervisor::{DelegationOptions, SupervisorOptions};
use cliq_telemetry::ProcessTelemetry;

use crate::a2a::TaskArtifacts;
use crate::a2a::options::A2aOptions;
use crate::access::{GroupScopes, OidcClient, OptionsError, ProviderOptions};

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
    /// Telemetry of the server itself, if it is exported.
    pub telemetry: Option<ProcessTelemetry>,
    /// Address of the page of a trace, with `{trace_id}` in the place of its id (`telemetry.trace_url`).
    pub trace_url: Option<String>,
}

impl ServerOptions {
    /// Returns the options that the settings define for a host.
    #[must_use]
    pub fn new(host: Host, home: Utf8PathBuf, address: SocketAddr, settings: &Settings) -> Self {
        let server = ServerSettings::read(settings);
        Self {
            admin_token: host.environment.get("CLIQ_ADMIN_TOKEN").map(Secret::new),
            supervisor: SupervisorOptions::new(host, &home, settings),
            home,
            address,
            tls: None,
            insecure_http: false,
            allowed_hosts: server.allowed_hosts,
            rate_limit: u32::try_from(server.rate_limit).unwrap_or(u32::MAX),
            max_connections: server.max_connections,
            a2a: None,
            public_url: server.public_url,
            provider: None,
            reviewers: ReviewSettings::read(settings).reviewers,
            telemetry: None,
            trace_url: TelemetrySettings::read(settings).trace_url,
        }
    }

    /// Adds the provider that the settings `server.oidc.*` define, if there is one.
    ///
    /// # Errors
    /// Returns an error if the settings are incomplete, or an address is not protected by TLS.
    pub fn with_provider(mut self, settings: &Settings) -> Result<Self, OptionsError> {
        // All fields are named, so a new setting does not compile until it has a use here.
        let OidcSettings {
            issuer,
            client_id,
            client_secret,
            label,
            scopes,
            groups_claim,
            admin_groups,
            edit_groups,
            run_groups,
            read_groups,
            session,
        } = OidcSettings::read(settings);
        let Some(issuer) = issuer else { return Ok(self) };
        let groups =
            GroupScopes { admin: admin_groups, edit: edit_groups, run: run_groups, read: read_groups };
        let public_url = ServerSettings::read(settings).public_url.unwrap_or_default();
        let client_id = client_id.unwrap_or_default();
        let client = OidcClient { issuer: &issuer, client_id: &client_id, public_url: &public_url };
        let mut options = ProviderOptions::new(client, groups)?;
        options.client_secret = client_secret.map(|secret| secret.reveal().to_owned());
        options.groups_claim = groups_claim;
        options.label = label;
        if !scopes.is_empty() {
            options.scopes = scopes;
        }
        options.session = session;
        self.provider = Some(options);
        Ok(self)
    }

    /// Returns the options of the supervisor, with those of tasks if the A2A agent is enabled.
    pub(crate) fn supervisor_options(&self) -> SupervisorOptions {
        let mut options = self.supervisor.clone();
        options.delegation = self.a2a.as_ref().map(|a2a| {
            DelegationOptions::new(&a2a.instance_id, a2a.workspace_root.clone())
                .with_repo_hosts(a2a.repo_hosts.clone())
        });
        // Without an agent too: tasks of an earlier server may be at work.
        let (host, instance_id) = (options.host.clone(), self.instance_id().to_owned());
        options.delegation_log = Some(Arc::new(TaskArtifacts { host, instance_id }));
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
