//! TLS: the certificate, and a renewed one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cliq_testkit::machine::{Machine, Running, wait_for};

/// Makes a certificate for this machine and its key. `false` without openssl: the test is recorded as one that could not be run.
fn certificate(files: &[PathBuf; 2]) -> bool {
    let [certificate, key] = files;
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout"])
        .arg(key)
        .arg("-out")
        .arg(certificate)
        .output();
    let is_made = made.is_ok_and(|output| output.status.success());
    if !is_made {
        cliq_testkit::not_run("there is no openssl to make a certificate");
    }
    is_made
}

fn arguments(files: &[PathBuf; 2]) -> [&str; 6] {
    let [certificate, key] = files.each_ref().map(|file| file.to_str().unwrap());
    ["--tls-cert", certificate, "--tls-key", key, "--host", "0.0.0.0"]
}

/// Asks a server for its health and trusts one certificate.
fn health(server: &Running, trusted: &Path) -> Vec<u8> {
    let port = server.url.rsplit(':').next().unwrap();
    let url = format!("https://127.0.0.1:{port}/healthz");
    Command::new("curl").args(["-sS", "--cacert"]).arg(trusted).arg(url).output().unwrap().stdout
}

#[test]
fn connections_are_encrypted_and_cookies_are_for_such() {
    let machine = Machine::new();
    let files = [machine.path("cert.pem"), machine.path("key.pem")];
    if !certificate(&files) {
        return;
    }
    let machine = machine.arguments(&arguments(&files));
    let server = machine.serve();
    assert!(server.url.starts_with("https://localhost:"));
    assert_eq!(health(&server, &files[0]), b"ok\n");
    let plain = server.url.replace("https://localhost", "http://127.0.0.1");
    assert!(!Command::new("curl").args(["-sS", &plain]).output().unwrap().status.success());
    let link = machine.ok(&["server", "open"]).trim().replace("localhost", "127.0.0.1");
    let answer = Command::new("curl").args(["-sSi", "--cacert"]).arg(&files[0]).arg(&link).output().unwrap();
    assert!(String::from_utf8_lossy(&answer.stdout).contains("; Secure"));
}

#[test]
fn renewed_certificate_is_used_without_a_restart() {
    let machine = Machine::new();
    let files = [machine.path("cert.pem"), machine.path("key.pem")];
    let renewed = [machine.path("new-cert.pem"), machine.path("new-key.pem")];
    if !certificate(&files) || !certificate(&renewed) {
        return;
    }
    let [old, new] = [machine.path("old.pem"), machine.path("trusted.pem")];
    fs::copy(&files[0], &old).unwrap();
    fs::copy(&renewed[0], &new).unwrap();
    let machine = machine.arguments(&arguments(&files));
    let server = machine.serve();
    assert_eq!(health(&server, &old), b"ok\n");
    let logged = |says: &str| {
        wait_for(says, || fs::read_to_string(machine.path("log")).unwrap().contains(says).then_some(()));
    };
    // The certificate first: it does not fit the key that is there.
    fs::rename(&renewed[0], &files[0]).unwrap();
    logged("the new certificate is not used");
    assert_eq!(health(&server, &old), b"ok\n");
    fs::rename(&renewed[1], &files[1]).unwrap();
    wait_for("the new certificate is used", || (health(&server, &new) == b"ok\n").then_some(()));
    assert_eq!(health(&server, &old), b"");
    // What is no certificate changes nothing.
    fs::write(&files[0], "").unwrap();
    logged("there is no certificate in it");
    assert_eq!(health(&server, &new), b"ok\n");
    // A FIFO does not keep the server from what comes after it.
    fs::remove_file(&files[0]).unwrap();
    assert!(Command::new("mkfifo").arg(&files[0]).status().unwrap().success());
    logged("it is no regular file");
    fs::remove_file(&files[0]).unwrap();
    assert!(certificate(&files));
    wait_for("a third certificate is used", || (health(&server, &files[0]) == b"ok\n").then_some(()));
}
