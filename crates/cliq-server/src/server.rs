//! The server as a whole: what it needs at its start, and its end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::http::Uri;
use axum::response::Response;
use camino::Utf8PathBuf;
use cliq_dashboard::ReviewSite;
use cliq_gateway::Store;
use cliq_model::{AuditStore, EvaluationStore, RunStore, SignInStore, StoreError, TaskStore, TriggerStore};
use cliq_review::{ReviewStore, StoredReviews};
use cliq_supervisor::Supervisor;
use cliq_supervisor::internals::Duty;
use cliq_triggers::{Engine, EngineOptions, StartError, TriggersCheck};
use cliq_web::{Core, People};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_http::compression::CompressionLayer;

use crate::a2a::card_document::CardCache;
use crate::a2a::mesh::status::Meshes;
use crate::access::{AllowedHosts, Gatekeeper, Provider, guard, session_router};
use crate::access_log::AccessLog;
use crate::app::App;
use crate::certificate::Tls;
use crate::listener::{self, Limits};
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use crate::run_figures::RunFigures;
use crate::{a2a, api, hooks, mcp};

/// Minimum time for which finished reviews are kept. Their records stay in their projects.
const REVIEWS: std::time::Duration = std::time::Duration::from_secs(30 * 86_400);
/// The fewest characters of `CLIQ_ADMIN_TOKEN`.
const MIN_ADMIN_TOKEN: usize = 16;

/// Reason why a server did not start. Each says how to mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address is not loopback, and nothing protects what is sent.
    #[error(
        "{0} can be reached from other machines, and tokens would be sent in the clear: give a certificate with --tls-cert and --tls-key, or say --insecure-http where a reverse proxy or a private network protects it"
    )]
    Insecure(SocketAddr),
    /// The address cannot be had.
    #[error(
        "cannot listen on {address}: {source}. Does another program use the port? --port chooses another one"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error("cannot use {file} for TLS: {message}")]
    Tls {
        /// The file.
        file: Utf8PathBuf,
        /// Problem of the file.
        message: String,
    },
    /// `CLIQ_ADMIN_TOKEN` is easy to guess.
    #[error("CLIQ_ADMIN_TOKEN has fewer than {MIN_ADMIN_TOKEN} characters: use a long random token")]
    WeakAdminToken,
    /// The triggers have errors.
    #[error("triggers.yml has errors")]
    Triggers(Box<TriggersCheck>),
    /// The triggers cannot be read.
    #[error("cannot read the triggers: {0}")]
    TriggersFile(String),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of the server cannot be made.
    #[error("cannot create {path}: {source}")]
    File {
        /// The file.
        path: Utf8PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

impl From<StartError> for ServerError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Invalid(checked) => Self::Triggers(checked),
            StartError::File(reason) => Self::TriggersFile(reason),
            StartError::Store(error) => Self::Store(error),
        }
    }
}

/// Store of a server.
pub trait ServerStore:
    RunStore + TaskStore + EvaluationStore + Store + ReviewStore + TriggerStore + AuditStore + SignInStore
{
}

impl<S> ServerStore for S where
    S: RunStore + TaskStore + EvaluationStore + Store + ReviewStore + TriggerStore + AuditStore + SignInStore
{
}

/// A server that is ready to serve.
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Listens, takes up the runs that go on, and starts those that wait. `session_token` gives all rights: it is for the file
    /// that only the owner of the home can read. Needs a tokio runtime with IO and time.
    ///
    /// # Errors
    /// The options are insecure, the address is taken, the certificate is wrong, or the database cannot be read. Nothing goes
    /// on then.
    pub async fn bind<S: ServerStore + 'static>(
        options: ServerOptions,
        store: Arc<S>,
        session_token: &str,
        stopping: CancellationToken,
    ) -> Result<Self, ServerError> {
        options.check()?;
        let (address, admin_token) = (options.address, options.admin_token());
        let tls = options.tls.as_ref().map(Tls::read).transpose()?;
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|source| ServerError::Listen { address, source })?;
        let address = listener.local_addr().map_err(|source| ServerError::Listen { address, source })?;
        let dir = options.dir();
        std::fs::create_dir_all(&dir).map_err(|source| ServerError::File { path: dir.clone(), source })?;
        let log = dir.join("access.log");
        let access_log = AccessLog::open(&log).map_err(|source| ServerError::File { path: log, source })?;
        let runs: Arc<dyn RunStore> = store.clone();
        let hosts = AllowedHosts::new(options.allowed_hosts.iter().cloned());
        let gatekeeper =
            Gatekeeper::new(Arc::clone(&runs), session_token, admin_token, hosts, options.rate_limit);
        let metrics = Arc::new(Metrics::new(options.telemetry.as_ref()));
        let mut supervision = options.supervisor_options();
        supervision.observer =
            Some(Arc::new(RunFigures::new(supervision.host.clone(), Arc::clone(&metrics))));
        let supervisor = Supervisor::start(supervision, Arc::clone(&runs)).await?;
        // It starts no more runs as soon as the server stops; what is under way is waited for at the end.
        let (stopped, ending) = (stopping.clone(), supervisor.clone());
        tokio::spawn(async move {
            stopped.cancelled().await;
            ending.begin_stop();
        });
        let own = url_of(address, tls.is_some());
        let public = options.a2a.as_ref().and_then(|a2a| a2a.public_url.clone());
        let public = public.or_else(|| options.public_url.clone());
        let triggers = Engine::start(
            EngineOptions { home: options.home.clone() },
            store.clone(),
            Arc::clone(&runs),
            supervisor.clone(),
            stopping.clone(),
        )
        .await?;
        let core = Core {
            runs,
            signals: store.clone(),
            evaluations: store.clone(),
            audit: store.clone(),
            sign_ins: store.clone(),
            triggers,
            people: People::new(options.reviewers.clone()),
            reviews: Arc::new(StoredReviews::new(supervisor.reviews(store.clone()), cliq_fs::now)),
            supervisor,
            trace_url: options.trace_url.clone(),
            stopping,
        };
        let app = App {
            core: Arc::new(core),
            provider: options.provider.clone().map(|options| Arc::new(Provider::new(options))),
            base_url: public.map_or(own, |url| url.trim_end_matches('/').to_owned()),
            card: CardCache::default(),
            meshes: Meshes::default(),
            readiness: tokio::sync::Mutex::default(),
            options,
            tasks: store,
            gatekeeper,
            metrics,
            access_log,
            started: Instant::now(),
        };
        Ok(Self { app: Arc::new(app), listener, address, tls })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        url_of(self.address, self.tls.is_some())
    }

    /// Serves until the stop token is cancelled. New requests are then refused, streams end with a hint to come back, and what is under
    /// way has ten seconds. Runs go on.
    pub async fn run(self) {
        let stopping = self.app.core.stopping.clone();
        let app = Arc::clone(&self.app);
        let tidy = tokio::spawn(async move {
            let mut duty = Duty::new("reviews");
            loop {
                tokio::time::sleep(std::time::Duration::from_secs(60)).await;
                app.gatekeeper.tidy();
                if !duty.is_own(app.core.runs.as_ref(), app.core.supervisor.options()).await.unwrap_or(false)
                {
                    continue;
                }
                let age = app.core.supervisor.options().retention.max(REVIEWS);
                if let Err(error) = app.core.reviews.remove_before(cliq_fs::now().before(age)).await {
                    tracing::error!(%error, "old reviews cannot be removed; it is tried again");
                }
            }
        });
        let pushes = tokio::spawn(a2a::deliver(Arc::clone(&self.app)));
        let meshes = tokio::spawn(a2a::join(Arc::clone(&self.app)));
        let figures = tokio::spawn(export_figures(Arc::clone(&self.app)));
        let (tls, renewal) =
            self.tls.map(|tls| (tls.acceptor, tokio::spawn(tls.certificate.follow()))).unzip();
        let limits = Limits { max_connections: self.app.options.max_connections, tls };
        let metrics = Arc::clone(&self.app.metrics);
        // In a task, as the thread that waits for the server would have to wake up for each connection.
        let serving =
            tokio::spawn(listener::serve(self.listener, router(&self.app), limits, metrics, stopping));
        if let Err(error) = serving.await {
            tracing::error!(%error, "the server ends: connections cannot be taken any more");
        }
        tidy.abort();
        // A delivery that is under way has until its deadline, or is repeated by the next server.
        pushes.abort();
        figures.abort();
        renewal.inspect(tokio::task::JoinHandle::abort);
        let _ = meshes.await;
        self.app.core.triggers.stop().await;
        self.app.core.supervisor.stop().await;
        if self.app.options.telemetry.is_some() {
            update_figures(&self.app).await;
        }
    }
}

/// Keeps the figures that are exported up to date. The page `/metrics` updates them itself.
async fn export_figures(app: Arc<App>) {
    let Some(telemetry) = &app.options.telemetry else { return };
    loop {
        update_figures(&app).await;
        tokio::time::sleep(telemetry.metrics_interval).await;
    }
}

async fn update_figures(app: &App) {
    if let Err(error) = app.update_metrics().await {
        tracing::warn!(%error, "figures cannot be exported");
    }
}

fn url_of(address: SocketAddr, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    let port = address.port();
    match address.ip() {
        ip if ip.is_unspecified() => format!("{scheme}://localhost:{port}"),
        std::net::IpAddr::V4(v4) => format!("{scheme}://{v4}:{port}"),
        std::net::IpAddr::V6(v6) => format!("{scheme}://[{v6}]:{port}"),
    }
}

impl ServerOptions {
    /// Checks for errors that are known before the server starts.
    ///
    /// # Errors
    /// The options are insecure, or the certificate is wrong.
    pub fn check(&self) -> Result<(), ServerError> {
        if !self.address.ip().is_loopback() && self.tls.is_none() && !self.insecure_http {
            return Err(ServerError::Insecure(self.address));
        }
        if self.admin_token().is_some_and(|token| token.len() < MIN_ADMIN_TOKEN) {
            return Err(ServerError::WeakAdminToken);
        }
        self.tls.as_ref().map(Tls::read).transpose().map(drop)
    }

    fn admin_token(&self) -> Option<&str> {
        self.admin_token.as_ref().map(cliq_settings::Secret::reveal)
    }
}

/// All that the server answers.
fn router(app: &Arc<App>) -> Router {
    let site = ReviewSite { reviews: app.core.reviews.clone(), only: None };
    Router::new()
        .merge(api::router())
        .merge(cliq_dashboard::router(Arc::clone(&app.core)))
        .merge(cliq_dashboard::link_router(site))
        .merge(session_router())
        .merge(a2a::router())
        .merge(hooks::routes())
        .merge(mcp::routes(app))
        .fallback(not_found)
        // Not streams of events, and nothing small. Pages with secrets are shown once, and to who asked for them.
        .layer(axum::middleware::from_fn_with_state(Arc::clone(app), crate::trace::keep))
        .layer(CompressionLayer::new())
        .layer(axum::middleware::from_fn_with_state(Arc::clone(app), guard))
        .with_state(Arc::clone(app))
}

/// Responds to an unknown address: a problem document below `/api` and `/a2a`, a page for people elsewhere.
async fn not_found(visitor: Option<cliq_dashboard::Visitor>, uri: Uri) -> Response {
    let is_for_programs = |prefix: &str| {
        uri.path().strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let visitor = visitor.filter(|_| {
        !is_for_programs("/api")
            && !is_for_programs("/a2a")
            && !is_for_programs("/mcp")
            && !is_for_programs("/hooks")
    });
    cliq_dashboard::not_found(visitor).await
}
