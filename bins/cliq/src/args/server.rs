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
    /// Start it in the background, and print a link to the dashboard that signs in once.
    Start {
        #[command(flatten)]
        options: ServerRunArgs,
    },
    /// Stop it. Runs go on; the next server follows them.
    Stop,
    /// Say whether it runs, and how many runs there are.
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
    /// Show what A2A callers see.
    #[command(subcommand)]
    A2a(A2aCommand),
    /// Make, list and revoke tokens of callers.
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
    /// Be an A2A agent: callers with a token may run the teams that `server.a2a.advertise` names.
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
    /// Print the agent card, made of the settings and the teams as they are now.
    Card {
        /// The address of the server that the card names. Default: that of the server that runs, else of the settings.
        #[arg(long)]
        url: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token. It is shown once.
    Create {
        /// Label of the token.
        #[arg(long)]
        label: String,
        /// Scope of the token. Each scope includes the scopes before it.
        #[arg(long, value_enum, default_value_t = ScopeName::Read)]
        scope: ScopeName,
        /// In what time it expires, such as `90d`. Default: never.
        #[arg(long, value_name = "TIME", value_parser = cliq_workflow::parse_duration)]
        expires: Option<std::time::Duration>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List tokens, newest first, without their secrets.
    List {
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
    /// Register projects; make and revoke tokens.
    Admin,
}
