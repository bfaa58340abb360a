//! Rules of the egress proxy: hosts by name, and which addresses a name may have.

use std::net::{IpAddr, SocketAddr};

use cliq_http::is_public;
use cliq_protocol::HostPattern;

/// Hosts that processes may reach.
#[derive(Debug, Clone)]
pub struct EgressRules {
    hosts: Vec<HostPattern>,
}

/// Connection that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The host is not listed.
    #[error("connect to {host}:{port}; allow it with `sandbox.network`")]
    Host {
        /// Requested host.
        host: String,
        /// Requested port.
        port: u16,
    },
    /// The host is listed, and has private addresses only, which are not.
    #[error(
        "connect to {host}:{port}, which has the private address {address}; allow it with this address in `sandbox.network`"
    )]
    PrivateAddress {
        /// Requested host.
        host: String,
        /// Requested port.
        port: u16,
        /// One of its addresses.
        address: IpAddr,
    },
}

impl EgressRules {
    /// Rules for a list of patterns.
    #[must_use]
    pub fn new(hosts: Vec<HostPattern>) -> Self {
        Self { hosts }
    }

    /// Checks a host by its name.
    ///
    /// # Errors
    /// Returns the refusal if no pattern matches.
    pub fn check_host(&self, host: &str, port: u16) -> Result<(), Refusal> {
        match self.names(host) {
            true => Ok(()),
            false => Err(Refusal::Host { host: host.to_owned(), port }),
        }
    }

    /// Returns those of a host's addresses that may be connected to: public ones, and private ones that are listed themselves.
    ///
    /// # Errors
    /// Returns the refusal if there are addresses and none may be used.
    pub fn check_addresses(
        &self,
        host: &str,
        port: u16,
        addresses: Vec<SocketAddr>,
    ) -> Result<Vec<SocketAddr>, Refusal> {
        let is_local = host.eq_ignore_ascii_case("localhost") && self.names("localhost");
        let may = |address: &SocketAddr| {
            let ip = address.ip();
            is_public(ip) || self.names(&ip.to_string()) || is_local && ip.is_loopback()
        };
        let first = addresses.first().map(SocketAddr::ip);
        let permitted: Vec<SocketAddr> = addresses.into_iter().filter(may).collect();
        match (permitted.is_empty(), first) {
            (true, Some(address)) => Err(Refusal::PrivateAddress { host: host.to_owned(), port, address }),
            _ => Ok(permitted),
        }
    }

    fn names(&self, host: &str) -> bool {
        self.hosts.iter().any(|pattern| pattern.matches(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(hosts: &[&str]) -> EgressRules {
        EgressRules::new(hosts.iter().map(|host| HostPattern::parse(host).expect("valid")).collect())
    }

    #[test]
    fn private_addresses_are_listed_one_by_one() {
        let address = |text: &str| vec![text.parse::<SocketAddr>().expect("an address")];
        let listed = rules(&["example.com", "*.corp.example", "10.1.2.3", "localhost"]);
        assert!(listed.check_host("EXAMPLE.com", 443).is_ok());
        assert!(listed.check_host("example.org", 443).is_err());
        assert!(listed.check_addresses("example.com", 443, address("93.184.216.34:443")).is_ok());
        for private in
            ["127.0.0.1:443", "169.254.169.254:443", "10.0.0.1:443", "[::1]:443", "[::ffff:127.0.0.1]:443"]
        {
            assert!(listed.check_addresses("example.com", 443, address(private)).is_err(), "{private}");
        }
        assert!(listed.check_addresses("git.corp.example", 443, address("10.1.2.3:443")).is_ok());
        assert!(listed.check_addresses("localhost", 80, address("127.0.0.1:80")).is_ok());
    }
}
