//! Public and private addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is reachable on the public internet: neither private, loopback, link-local (cloud metadata), shared (CGNAT),
/// multicast, reserved nor for documentation. IPv6 addresses that embed an IPv4 address count as that one.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, _] = v4.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let reserved =
        a == 0 || a >= 240 || (a == 192 && b == 0 && c == 0) || (a == 198 && (18..20).contains(&b));
    // 6to4 relays (RFC 7526) and AS112 servers (RFC 7534) are special-purpose.
    let special = (a, b, c) == (192, 88, 99) || (a, b, c) == (192, 31, 196) || (a, b, c) == (192, 52, 193);
    !(v4.is_private()
        || v4.is_loopback()
        || v4.is_link_local()
        || v4.is_multicast()
        || v4.is_broadcast()
        || v4.is_documentation()
        || shared
        || reserved
        || special)
}

fn is_public_v6(v6: Ipv6Addr) -> bool {
    if let Some(v4) = v6.to_ipv4() {
        return is_public_v4(v4);
    }
    // Only 2000::/3 is allocated. Of it: 2001::/23 is special-purpose (Teredo embeds IPv4), 2001:db8::/32 and 3fff::/20 are for
    // documentation, 2002::/16 embeds IPv4.
    let [first, second, ..] = v6.segments();
    let special = first == 0x2001 && second < 0x0200;
    let documentation = (first == 0x2001 && second == 0x0db8) || (first == 0x3fff && second < 0x1000);
    (first & 0xe000) == 0x2000 && first != 0x2002 && !special && !documentation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "0.0.0.0",
            "0.1.2.3",
            "255.255.255.255",
            "224.0.0.1",
            "240.0.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "198.51.100.1",
            "203.0.113.1",
            "192.88.99.1",
            "::1",
            "::",
            "::7f00:1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "2002:7f00:1::",
            "2001::1",
            "ff02::1",
            "2001:db8::1",
            "3fff::1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in
            ["140.82.121.3", "1.1.1.1", "100.63.0.1", "172.32.0.1", "2606:4700::1111", "2001:4860::1"]
        {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
