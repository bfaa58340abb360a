//! `cliq server`

mod a2a;
mod background;
mod record;
mod token;

use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::Arc;

use cliq_fs::{CliqDir, IoContext, LockError, ProjectLock};
use cliq_runs::{NewToken, RunStore, Scope, TokenKind};
use cliq_server::{SIGN_IN_PATH, Server, ServerError, ServerOptions, TlsFiles};
use cliq_settings::Settings;
use cliq_store::{Options, SqlStore};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::{ServerCommand, ServerRunArgs};
use crate::failure::Failure;
use crate::gateway::{self, home};
use crate::project;
use crate::ui::{self, paint};
use record::ServerRecord;

pub(super) use background::{checks, url};

pub(super) fn run(command: &ServerCommand) -> Result<ExitCode, Failure> {
    match command {
        ServerCommand::Run { options } => work(options),
        ServerCommand::Start { options } => background::start(options),
        ServerCommand::Stop => background::stop(),
        ServerCommand::Status { json } => background::status(*json),
        ServerCommand::Open => background::open(),
        ServerCommand::Logs { access, follow } => background::logs(*access, *follow),
        ServerCommand::A2a(command) => a2a::run(command),
        ServerCommand::Token(command) => token::run(command),
    }
}

/// `CLIQ_HOME/server`: its lock, its logs, the logs of its runs.
fn place() -> Result<CliqDir, Failure> {
    let home = home()?;
    let dir = home.join("server");
    std::fs::create_dir_all(&dir).at("create", &dir)?;
    Ok(CliqDir::at(&dir, &home)?)
}

fn held(error: LockError) -> Failure {
    match error {
        LockError::Held { holder, project } => {
            let who = holder.map_or(String::new(), |pid| format!(" (process {pid})"));
            Failure::refused(format!("another server{who} works for {project}"))
                .hint("`cliq server status` says more, `cliq server stop` stops it")
        }
        other => other.into(),
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Insecure(_) | ServerError::WeakAdminToken | ServerError::Tls { .. } => {
                Self::usage(error.to_string())
            }
            other => Self::failed(other.to_string()),
        }
    }
}

/// The options that arguments and settings give.
fn options_of(args: &ServerRunArgs) -> Result<ServerOptions, Failure> {
    let home = home()?;
    let settings = Settings::load(Some(&home), None)?;
    let port = match args.port {
        Some(port) => port,
        None => settings.count("server.port").and_then(|port| u16::try_from(port).ok()).ok_or_else(|| {
            Failure::usage("the setting `server.port` is no port").hint("ports are numbers from 1 to 65535")
        })?,
    };
    let name = args.host.clone().or_else(|| settings.text("server.host")).unwrap_or_default();
    let address: SocketAddr = (name.as_str(), port)
        .to_socket_addrs()
        .map_err(|error| Failure::usage(format!("cannot listen on {name}: {error}")))?
        .next()
        .ok_or_else(|| Failure::usage(format!("{name} has no address")))?;
    let mut options = ServerOptions::new(project::host(), home, address, &settings);
    options.allowed_hosts.push(name);
    options.supervisor.replica = a2a::instance_id(&options.home)?;
    options.insecure_http = args.insecure_http;
    options.tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(TlsFiles { certificate: certificate.clone(), key: key.clone() })
        }
        _ => None,
    };
    if args.a2a || !args.mesh.is_empty() {
        options.a2a =
            Some(a2a::options(&settings, &options.home, &options.supervisor.workspace_root, &args.mesh)?);
    }
    options.check()?;
    Ok(options)
}

/// A random text that gives all rights on this machine until the server stops.
fn session_token() -> Result<String, Failure> {
    let made = NewToken::generate(TokenKind::Api, "this machine", Scope::Admin, "", None);
    let (secret, _) = made.ok_or_else(|| Failure::failed("the system has no random numbers"))?;
    Ok(secret.reveal().to_owned())
}

fn work(args: &ServerRunArgs) -> Result<ExitCode, Failure> {
    if args.detached {
        // The terminal that started it may be closed.
        let _ = rustix::process::setsid();
    }
    let dir = place()?;
    let _lock = ProjectLock::acquire(&dir).map_err(held)?;
    let options = options_of(args)?;
    let a2a = a2a::summary(&options)?;
    let location = gateway::location()?;
    #[cfg(feature = "kubernetes")]
    if options.supervisor.runs_in_cluster {
        cliq_backends::Kubernetes::require_shared_database(gateway::location()?.is_shared())?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut store = Options::default();
        store.separate_reader = true;
        let store = Arc::new(SqlStore::open_with(&location, store).await?);
        let stop = CancellationToken::new();
        for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
            let (mut asked, stop) = (signal(kind)?, stop.clone());
            tokio::spawn(async move {
                while asked.recv().await.is_some() {
                    stop.cancel();
                }
            });
        }
        let token = session_token()?;
        let server = Server::bind(options, Arc::clone(&store), &token, stop).await?;
        let record =
            ServerRecord { pid: std::process::id(), port: server.address().port(), url: server.url(), token };
        let file = record.write(&home()?)?;
        print(&format!("serving {} on {}, process {}", store.location(), record.url, record.pid));
        if let Some(text) = a2a {
            print(&text);
        }
        if !args.detached {
            ui::line(format!("dashboard: {}", sign_in_link(store.as_ref(), &record.url).await?))?;
        }
        server.run().await;
        drop(file);
        print("stopped; runs go on, and the next server follows them");
        Ok::<_, Failure>(())
    })?;
    // What still runs in the background is of no use any more.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    Ok(ExitCode::SUCCESS)
}

/// Writes a line of the log. A log without a reader is no reason to stop.
fn print(text: &str) {
    let _ = ui::line(format!("{} {}", paint(ui::DIM, cliq_fs::now()), ui::plain(text)));
}

/// A link that signs a browser in, once, within 15 minutes.
async fn sign_in_link(store: &impl RunStore, url: &str) -> Result<String, Failure> {
    let now = token::in_future(std::time::Duration::ZERO);
    let expires = token::in_future(std::time::Duration::from_secs(15 * 60));
    let made = NewToken::generate(TokenKind::SignIn, "this machine", Scope::Admin, &now, Some(expires));
    let (secret, token) = made.ok_or_else(|| Failure::failed("the system has no random numbers"))?;
    store.add_token(&token).await?;
    Ok(format!("{url}{SIGN_IN_PATH}?code={}", secret.reveal()))
}
