//! The options of the server, of arguments and settings.

use std::net::{SocketAddr, ToSocketAddrs};

use cliq_server::{ServerError, ServerOptions, TlsFiles};
use cliq_settings::{ServerSettings, Settings};

use super::a2a;
use crate::args::ServerRunArgs;
use crate::commands::trigger;
use crate::failure::Failure;
use crate::gateway::home;
use crate::project;

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Insecure(_) | ServerError::WeakAdminToken | ServerError::Tls { .. } => {
                Self::usage(error.to_string())
            }
            ServerError::Triggers(checked) => trigger::invalid(&checked),
            other => Self::failed(other.to_string()),
        }
    }
}

/// Returns the options that arguments and settings give.
pub(super) fn options_of(args: &ServerRunArgs) -> Result<ServerOptions, Failure> {
    let home = home()?;
    let settings = Settings::load(Some(&home), None)?;
    let server = ServerSettings::read(&settings);
    let port = match args.port {
        Some(port) => port,
        None => u16::try_from(server.port).map_err(|_| {
            Failure::usage("the setting `server.port` is not a port")
                .hint("ports are numbers from 1 to 65535")
        })?,
    };
    let name = args.host.clone().unwrap_or(server.host);
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
    options = options.with_provider(&settings).map_err(|error| Failure::usage(error.to_string()))?;
    options.allowed_hosts.extend(server.public_url.as_deref().and_then(public_host));
    options.check()?;
    trigger::check(&options.home)?;
    Ok(options)
}

/// Returns the name by which browsers and senders of webhooks reach the server.
fn public_host(url: &str) -> Option<String> {
    let rest = url.split_once("://")?.1;
    let host = rest.split(['/', '?', '#']).next()?;
    let name =
        host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name);
    Some(name.to_owned())
}
