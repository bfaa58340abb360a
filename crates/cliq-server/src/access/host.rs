//! By which names the server may be called: the guard against DNS rebinding.
//!
//! A page of another site can point its own name at this server's address. The browser then takes the server for a part of
//! that site. The header `Host` still has the other name.

use std::net::{IpAddr, Ipv6Addr};

/// The names by which clients may call the server.
#[derive(Debug)]
pub(crate) struct AllowedHosts {
    names: Vec<String>,
}

impl AllowedHosts {
    /// `localhost` and these names. Addresses are always allowed: no site has one as its name.
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let names = names.into_iter().map(|name| name.to_ascii_lowercase());
        Self { names: names.chain(["localhost".to_owned()]).collect() }
    }

    /// Whether a `Host` header names this server.
    pub(crate) fn allows(&self, host: &str) -> bool {
        let Some(name) = name_of(host) else { return false };
        let is_address = name.parse::<IpAddr>().is_ok()
            || name
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
                .is_some_and(|v6| v6.parse::<Ipv6Addr>().is_ok());
        is_address || self.names.contains(&name)
    }
}

/// The name without the port, in lower case and without the dot at its end.
fn name_of(host: &str) -> Option<String> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    };
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    (is_port && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_sites_are_refused() {
        let hosts = AllowedHosts::new(["Cliq.Example".to_owned()]);
        for host in [
            "localhost",
            "localhost:4100",
            "127.0.0.1:4100",
            "[::1]:4100",
            "[::1]",
            "10.0.0.7",
            "cliq.example.",
            "CLIQ.example:443",
        ] {
            assert!(hosts.allows(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "evil.example:4100",
            "127.0.0.1.evil.example",
            "localhost:x",
            ":4100",
            "[::1",
            "a b",
        ] {
            assert!(!hosts.allows(host), "{host}");
        }
    }
}
