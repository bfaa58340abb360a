//! Guard of a client: the address that is checked is the one that is connected to.

use std::net::SocketAddr;

use ureq::Agent;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use crate::guard::Guard;

impl Guard {
    /// A client that connects only to addresses that this guard allows: the address that is checked is the one that is connected to.
    pub(crate) fn agent(&self, config: Config) -> Agent {
        Agent::with_parts(config, DefaultConnector::default(), GuardedResolver { guard: self.clone() })
    }
}

/// Resolves a host and refuses it where an address of it is not allowed.
#[derive(Debug)]
struct GuardedResolver {
    guard: Guard,
}

impl Resolver for GuardedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let addresses = DefaultResolver::default().resolve(uri, config, timeout)?;
        let host = uri.host().unwrap_or_default();
        let checked = self.guard.check(host, addresses.iter().map(SocketAddr::ip));
        // An error that does not count as transient would hide a name that is mended later: it is one of the caller's choice.
        checked.map_err(|error| ureq::Error::Other(Box::new(error)))?;
        Ok(addresses)
    }
}
