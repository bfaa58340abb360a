//! The guard for addresses that a caller chose (docs/decisions/0023-addresses-of-callers.md): no request leaves for a private network.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use url::{Host, Url};

use crate::address::is_public;

/// The longest address that is taken, in bytes.
const MAX_URL: usize = 4096;

/// Addresses that callers may choose. By default only public ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guard {
    /// Whether private addresses are allowed for every host.
    pub allow_private: bool,
    /// Hosts that may have private addresses: `hooks.internal`, or `*.internal` for all below it.
    pub allowed_hosts: Vec<String>,
}

/// An address of the right form. Whether its host is public is checked when it is resolved, each time again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerUrl {
    url: Url,
}

/// Reason why an address is refused. Names the host, never the whole address: its query may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// The text is not a URL.
    #[error("it is not a valid http or https address: {0}")]
    Malformed(String),
    /// The scheme is not allowed.
    #[error("its scheme is `{0}`: only http and https are allowed")]
    Scheme(String),
    /// The URL contains a user name or password.
    #[error("it must not contain a user name or a password")]
    Credentials,
    /// The host has no address.
    #[error("its host {host} has no address: {message}")]
    Unknown {
        /// The host.
        host: String,
        /// Message of the resolver.
        message: String,
    },
    /// The host has an address that is not public.
    #[error("its host {host} has an address that is not public")]
    Private {
        /// The host.
        host: String,
    },
}

impl CallerUrl {
    /// The address as text, in its normal form: hosts in lower case, numeric hosts as IP addresses.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The host, for people.
    #[must_use]
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }
}

impl Guard {
    /// Checks the form of an address: http or https, a host, no credentials. Resolves nothing.
    ///
    /// # Errors
    /// The form is wrong.
    pub fn parse(&self, text: &str) -> Result<CallerUrl, GuardError> {
        if text.len() > MAX_URL {
            return Err(GuardError::Malformed(format!("it has more than {MAX_URL} characters")));
        }
        // The parser would drop these silently: what is checked must be what was sent.
        if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f || byte == b'\\') {
            return Err(GuardError::Malformed(
                "it contains blanks, control characters or backslashes".into(),
            ));
        }
        let url = Url::parse(text).map_err(|error| GuardError::Malformed(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(GuardError::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(GuardError::Credentials);
        }
        match url.host() {
            None => Err(GuardError::Malformed("it has no host".into())),
            Some(Host::Domain(name)) if name.is_empty() || name.len() > 253 => {
                Err(GuardError::Malformed("its host is not a name".into()))
            }
            Some(_) => Ok(CallerUrl { url }),
        }
    }

    /// Resolves the host of an address, and checks each of its addresses.
    ///
    /// # Errors
    /// The host is unknown, or has an address that is not allowed.
    pub fn resolve(&self, url: &CallerUrl) -> Result<Vec<SocketAddr>, GuardError> {
        let port = url.url.port_or_known_default().unwrap_or(443);
        let unknown = |message: String| GuardError::Unknown { host: url.host().to_owned(), message };
        let addresses: Vec<SocketAddr> = match url.url.host() {
            Some(Host::Ipv4(v4)) => vec![SocketAddr::new(IpAddr::V4(v4), port)],
            Some(Host::Ipv6(v6)) => vec![SocketAddr::new(IpAddr::V6(v6), port)],
            Some(Host::Domain(name)) => {
                (name, port).to_socket_addrs().map_err(|error| unknown(error.to_string()))?.collect()
            }
            None => Vec::new(),
        };
        if addresses.is_empty() {
            return Err(unknown("none".to_owned()));
        }
        self.check(url.host(), addresses.iter().map(SocketAddr::ip))?;
        Ok(addresses)
    }

    /// Checks the addresses of a host: all of them must be allowed.
    ///
    /// # Errors
    /// One is not allowed.
    pub fn check(&self, host: &str, mut addresses: impl Iterator<Item = IpAddr>) -> Result<(), GuardError> {
        if self.allow_private || self.allows_host(host) || addresses.all(is_public) {
            return Ok(());
        }
        Err(GuardError::Private { host: host.to_owned() })
    }

    /// Whether a host may have private addresses.
    #[must_use]
    pub fn allows_host(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.allowed_hosts.iter().any(|allowed| {
            let allowed = allowed.to_ascii_lowercase();
            match allowed.strip_prefix("*.") {
                Some(parent) => {
                    host.strip_suffix(parent).is_some_and(|head| head.ends_with('.') && head.len() > 1)
                }
                None => host == allowed,
            }
        })
    }
}
