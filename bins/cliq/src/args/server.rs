//! The command line of `cliq server`.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// Run in the foreground.
    Run {
        #[command(flatten)]
        options: ServerRunArgs,
    },
    /// Start in the background and print a link to the dashboard that signs in once.
    Start {
        #[command(flatten)]
        options: ServerRunArgs,
    },
    /// Stop. Runs continue, and the next server follows them.
    Stop,
    /// Show whether the server is running, and the number of runs.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a link to the dashboard that signs in once.
    Open,
    /// Print the server's log.
    Logs {
        /// The log of requests, a JSON object per line.
        #[arg(long)]
        access: bool,
        /// Follow until the server stops.
        #[arg(short, long)]
        follow: bool,
    },
    /// Inspect the A2A agent.
    #[command(subcommand)]
    A2a(A2aCommand),
    /// Create, list and revoke access tokens.
    #[command(subcommand)]
    Token(TokenCommand),
}

#[derive(Debug, Args)]
pub(crate) struct ServerRunArgs {
    /// The port. 0 takes a free one. Default: the setting `server.port`, 4100.
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// The address or name to listen on. Default: the setting `server.host`, 127.0.0.1.
    #[arg(long)]
    pub(crate) host: Option<String>,
    /// A TLS certificate, in PEM, with those that vouch for it.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<Utf8PathBuf>,
    /// The private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<Utf8PathBuf>,
    /// Allow plain HTTP beyond this machine: behind a reverse proxy, or in a private network.
    #[arg(long)]
    pub(crate) insecure_http: bool,
    /// Serve an A2A agent: callers with a token may run the teams of `server.a2a.advertise`.
    #[arg(long)]
    pub(crate) a2a: bool,
    /// Join this mesh of `server.a2a.meshes`; may be repeated. Implies --a2a. Without it, those that are `active` are joined.
    #[arg(long, value_name = "NAME")]
    pub(crate) mesh: Vec<String>,
    /// Leave the terminal: for `cliq server start`.
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum A2aCommand {
    /// Print the agent card of the present settings and teams.
    Card {
        /// Address of the server in the card. Default: that of the running server, else of the settings.
        #[arg(long)]
        url: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print its secret, once.
    Create {
        /// Label of the token.
        #[arg(long)]
        label: String,
        /// Scope of the token. Each scope includes the scopes before it.
        #[arg(long, value_enum, default_value_t = ScopeName::Read)]
        scope: ScopeName,
        /// Time to expiry, such as `90d`. Default: never.
        #[arg(long, value_name = "TIME", value_parser = cliq_workflow::parse_duration)]
        expires: Option<std::time::Duration>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List tokens, newest first, without their secrets.
    List {
        /// Sessions of browsers in place of tokens. `revoke` ends one.
        #[arg(long)]
        sessions: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token: it is refused from now on.
    Revoke {
        /// Id of the token, as listed.
        id: String,
    },
}

/// Scope of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeName {
    /// See everything but tokens.
    Read,
    /// Start, cancel and resume runs; change plans; emit signals.
    Run,
    /// Write, try, install and publish teams.
    Edit,
    /// Register projects; make and revoke tokens.
    Admin,
}
