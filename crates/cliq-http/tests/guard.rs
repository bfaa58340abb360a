//! Addresses that the guard allows: addresses chosen by attackers must not reach a private network.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use cliq_http::{Client, Guard, Limits, Request};

/// Each of these must be refused, by its form or when it is resolved. None may be connected to.
const HOSTILE: &[&str] = &[
    // Loopback in all spellings.
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.255.255.254/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0177.0.0.1/",
    "http://0x7f.0.0.1/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0/",
    "http://0.0.0.0/",
    "http://00000000000/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://127.0.0.1./",
    "http://①②⑦.0.0.1/",
    "http://127。0。0。1/",
    "http://%31%32%37.0.0.1/",
    "http://[::1]/",
    "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[0:0:0:0:0:ffff:7f00:0001]/",
    // Private networks.
    "http://10.0.0.1/",
    "http://10.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.0.1/",
    "http://192.168.257/",
    "http://3232235777/",
    "http://[::ffff:192.168.0.1]/",
    "http://[fc00::1]/",
    "http://[fd12:3456:789a::1]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fec0::1]/",
    // Metadata services.
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://[::ffff:169.254.169.254]/",
    "http://[fd00:ec2::254]/",
    "http://169.254.170.2/v2/credentials",
    "http://100.100.100.200/latest/meta-data/",
    // Shared, reserved, multicast, translated.
    "http://100.64.0.1/",
    "http://100.127.255.255/",
    "http://192.0.0.192/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b::a00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[ff02::1]/",
    // Credentials that hide the host.
    "http://example.com@127.0.0.1/",
    "http://user:password@example.com/",
    "http://example.com:80@127.0.0.1/",
    "http://example.com%40127.0.0.1/",
    "http://127.0.0.1#@example.com/",
    "http://127.0.0.1?@example.com/",
    "http://127.0.0.1\\@example.com/",
    "http://example.com\t@127.0.0.1/",
    // Other schemes and no addresses.
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_INFO",
    "ftp://127.0.0.1/",
    "dict://127.0.0.1:11211/stat",
    "data:text/plain,x",
    "javascript:alert(1)",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "ldap://127.0.0.1/",
    "jar:http://127.0.0.1!/",
    "//127.0.0.1/",
    "127.0.0.1",
    "",
    "http://",
    "http:///",
    "http://:80/",
    "http://[::1",
    "http://127.0.0.1:99999/",
    "http://exa mple.com/",
    "http://example.com/\r\nHost: 127.0.0.1",
    " http://example.com/",
];

#[test]
fn hostile_addresses_are_refused_and_never_connected_to() {
    // A connection here means that the guard let an address pass.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("nonblocking");
    let guard = Guard::default();
    let client = client(&guard);
    let call = |address: &str| client.send(&Request::get(address));
    assert!(HOSTILE.len() >= 60);
    for address in HOSTILE {
        let refused = guard.parse(address).and_then(|url| guard.resolve(&url));
        assert!(refused.is_err(), "{address:?} resolved to {refused:?}");
        // The client checks by itself: a caller's address may have changed since it was parsed.
        assert!(call(address).is_err(), "{address:?} was called");
    }
    let port = listener.local_addr().expect("address").port();
    for host in ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "0"] {
        assert!(call(&format!("http://{host}:{port}/")).is_err(), "{host}");
    }
    assert!(listener.accept().is_err(), "a connection was made");
}

/// A client that follows no redirect, as for push notifications.
fn client(guard: &Guard) -> Client {
    let limits = Limits { connect: Duration::from_secs(2), tries: 1, redirects: 0, ..Limits::default() };
    Client::guarded(limits, guard)
}

#[test]
fn redirects_are_not_followed() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("address").port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let _ = stream.read(&mut [0; 1024]);
        let response = "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(response.as_bytes()).expect("sent");
    });
    let guard = Guard { allow_private: true, ..Guard::default() };
    let answer = client(&guard).send(&Request::get(format!("http://127.0.0.1:{port}/")));
    assert_eq!(answer.expect("an answer").status, 302);
    server.join().expect("served");
}

#[test]
fn hosts_can_be_allowed() {
    let guard =
        Guard { allowed_hosts: vec!["hooks.internal".into(), "*.corp.example".into()], ..Guard::default() };
    for host in ["hooks.internal", "HOOKS.internal.", "a.corp.example", "a.b.corp.example"] {
        assert!(guard.allows_host(host), "{host}");
    }
    for host in [
        "corp.example",
        "xcorp.example",
        "evilhooks.internal",
        "hooks.internal.evil.example",
        ".corp.example",
    ] {
        assert!(!guard.allows_host(host), "{host}");
    }
    let local = Guard { allowed_hosts: vec!["127.0.0.1".into()], ..Guard::default() };
    let resolve = |text| local.resolve(&local.parse(text).expect("an address"));
    assert!(resolve("http://127.0.0.1:8080/").is_ok());
    assert!(resolve("http://127.0.0.2:8080/").is_err());
}

/// A name that has a public address beside a private one, as an attacker's name server gives it, is refused in any order.
#[test]
fn every_address_of_a_host_counts() {
    let guard = Guard::default();
    let addresses = |list: [&str; 2]| list.map(|text| text.parse().expect("an address")).into_iter();
    assert!(guard.check("h", addresses(["1.1.1.1", "2606:4700::1111"])).is_ok());
    for list in [["1.1.1.1", "127.0.0.1"], ["169.254.169.254", "1.1.1.1"], ["1.1.1.1", "::ffff:10.0.0.1"]] {
        assert!(guard.check("h", addresses(list)).is_err(), "{list:?}");
    }
}

#[test]
fn errors_do_not_show_the_query() {
    let guard = Guard::default();
    let url = guard.parse("http://127.0.0.1/hook?token=hush").expect("an address");
    assert!(!guard.resolve(&url).unwrap_err().to_string().contains("hush"));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,80}") {
        let _ = Guard::default().parse(&text);
    }
}
