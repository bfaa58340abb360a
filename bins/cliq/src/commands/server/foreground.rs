//! The server in this process.

use std::process::ExitCode;
use std::sync::Arc;

use cliq_fs::ProjectLock;
use cliq_model::{NewToken, Scope, TokenKind};
use cliq_server::Server;
use cliq_settings::Settings;
use cliq_store::{Options, SqlStore};
use tokio_util::sync::CancellationToken;

use super::super::background::held;
use super::super::signals::stop_by_signals;
use super::a2a;
use super::options::options_of;
use super::token::sign_in_link;
use crate::args::ServerRunArgs;
use crate::failure::Failure;
use crate::gateway::{self, home};
use crate::server_export::ServerExport;
use crate::server_record::{ServerRecord, server_dir};
use crate::ui::{self, paint};

/// A random text that gives all rights on this machine until the server stops.
fn session_token() -> Result<String, Failure> {
    let made = NewToken::generate(TokenKind::Api, "this machine", Scope::Admin, cliq_fs::now(), None);
    let (secret, _) = made.ok_or_else(|| Failure::failed("the system has no random numbers"))?;
    Ok(secret.reveal().to_owned())
}

/// Serves until a signal.
pub(super) fn run(args: &ServerRunArgs) -> Result<ExitCode, Failure> {
    if args.detached {
        // The terminal that started it may be closed.
        let _ = rustix::process::setsid();
    }
    let dir = server_dir()?;
    let _lock = ProjectLock::acquire(&dir).map_err(|error| held(error, "server"))?;
    let mut options = options_of(args)?;
    let settings = Settings::load(Some(&options.home), None)?;
    let export = ServerExport::start(&options.supervisor.host, &settings, &mut options.telemetry);
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
        stop_by_signals(&stop, args.detached)?;
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
    export.finish();
    Ok(ExitCode::SUCCESS)
}

/// Writes a line of the log. A log without a reader is no reason to stop.
fn print(text: &str) {
    let _ = ui::line(format!("{} {}", paint(ui::DIM, cliq_fs::now()), ui::plain(text)));
}
