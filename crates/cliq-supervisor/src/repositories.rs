//! Repositories that are cloned into a workspace (docs/a2a.md): https and ssh, public hosts, no credentials in logs.

use std::collections::BTreeSet;
use std::net::{IpAddr, ToSocketAddrs};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use cliq_http::Guard;
use cliq_project::{Host, ProjectError};

/// Time limit of a clone.
const PATIENCE: Duration = Duration::from_secs(600);

/// A repository that may be cloned.
struct Repository<'a> {
    url: &'a str,
    host: &'a str,
    port: u16,
    /// The directory that it is cloned into.
    name: &'a str,
}

/// Checks the form of a repository address and returns its host.
///
/// # Errors
/// Returns the reason for people. The message does not quote an address that may contain a password.
pub fn check_repository(url: &str) -> Result<String, String> {
    parse(url).map(|repository| repository.host.to_owned())
}

fn parse(url: &str) -> Result<Repository<'_>, String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("ssh://"));
    let Some(rest) = rest else {
        return Err("a repository is named by an https:// or ssh:// address".to_owned());
    };
    let (authority, path) = rest.split_once('/').ok_or("the address of a repository has no path")?;
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if user.is_some_and(|user| user.contains(':') || url.starts_with("https://")) {
        return Err("the address of a repository must not contain a password or token".to_owned());
    }
    let (host, port) =
        host.split_once(':').unwrap_or((host, if url.starts_with("ssh://") { "22" } else { "443" }));
    let port = port.parse().map_err(|_| "the port of the address is not a number")?;
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./~+".contains(&b));
    if host.is_empty() || host.starts_with('-') || !plain(host) || !plain(path) || path.contains("..") {
        return Err(format!("{host:?} and its path are not an address of a repository"));
    }
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name = name.strip_suffix(".git").unwrap_or(name);
    if name.is_empty() || name.starts_with('.') || name.starts_with('-') {
        return Err("the address of a repository has no name at its end".to_owned());
    }
    Ok(Repository { url, host, port, name })
}

/// The address that git is to connect to: one of the host's, all of which are allowed.
fn address_of(guard: &Guard, repository: &Repository<'_>) -> Result<IpAddr, String> {
    let unknown = |error: std::io::Error| format!("{}: {error}", repository.host);
    let addresses: Vec<IpAddr> = (repository.host, repository.port)
        .to_socket_addrs()
        .map_err(unknown)?
        .map(|address| address.ip())
        .collect();
    guard.check(repository.host, addresses.iter().copied()).map_err(|error| error.to_string())?;
    addresses.first().copied().ok_or_else(|| format!("{} has no address", repository.host))
}

/// Clones repositories, a directory each. `guard` says which hosts may have private addresses.
pub(crate) fn clone(
    host: &Host,
    guard: &Guard,
    repos: &[String],
    workspace: &Utf8Path,
) -> Result<(), ProjectError> {
    let mut names = BTreeSet::new();
    for url in repos {
        let failed = |message: String| ProjectError::GitFailed { url: url.clone(), message };
        let repository = parse(url).map_err(failed)?;
        if !names.insert(repository.name) {
            return Err(failed(format!("two repositories are named {}", repository.name)));
        }
        let address = address_of(guard, &repository).map_err(failed)?;
        clone_one(host, &repository, address, workspace)?;
    }
    Ok(())
}

fn clone_one(
    host: &Host,
    repository: &Repository<'_>,
    address: IpAddr,
    workspace: &Utf8Path,
) -> Result<(), ProjectError> {
    // What was checked is what is connected to, also when the name resolves differently a moment later.
    let (name, port) = (repository.host, repository.port);
    let resolved = match address {
        IpAddr::V4(v4) => format!("http.curloptResolve={name}:{port}:{v4}"),
        IpAddr::V6(v6) => format!("http.curloptResolve={name}:{port}:[{v6}]"),
    };
    let ssh = format!("ssh -oBatchMode=yes -oHostName={address} -oHostKeyAlias={name}");
    let git = host.environment.find_program("git").ok_or(ProjectError::NoGit)?;
    let log = workspace.join(".cliq").join(format!("clone-{}.log", repository.name));
    let mut command = Command::new(git);
    cliq_git::remove_local_variables(&mut command);
    let mut child = command
        // No other transport, for any configuration of git. No redirect to another host.
        .args([
            "-c",
            "protocol.allow=never",
            "-c",
            "protocol.https.allow=always",
            "-c",
            "protocol.ssh.allow=always",
        ])
        .args(["-c", "http.followRedirects=false", "-c", "http.proxy=", "-c", &resolved])
        .args(["clone", "--quiet", "--depth", "1", "--no-recurse-submodules", "--", repository.url])
        .arg(workspace.join(repository.name))
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_SSH_COMMAND", ssh)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log)?)
        .spawn()?;
    let deadline = Instant::now() + PATIENCE;
    let failed = |message: String| ProjectError::GitFailed { url: repository.url.to_owned(), message };
    loop {
        if let Some(status) = child.try_wait()? {
            let text = cliq_fs::read_text(&log, 64 * 1024).unwrap_or_default();
            return if status.success() { Ok(()) } else { Err(failed(text.trim().to_owned())) };
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Err(failed(format!("it took longer than {} s", PATIENCE.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses() {
        for url in
            ["https://github.com/a/b.git", "ssh://git@host.example/a/b", "https://host.example:8443/a/~b/c"]
        {
            assert!(check_repository(url).is_ok(), "{url}");
        }
        for url in [
            "",
            "file:///etc",
            "ext::sh -c id",
            "--upload-pack=x",
            "git@host:a/b",
            "http://host/a",
            "https://",
            "https://host",
            "https://-oProxyCommand=x/a",
            "https://u:p@host/a",
            "https://token@host/a",
            "https://host/../../a",
            "https://host/",
            "https://host/a b",
            "https://host/.git",
            "https://ho$t/a",
            "/etc",
            "https://host/a?x=1",
        ] {
            assert!(check_repository(url).is_err(), "{url}");
        }
        assert!(!check_repository("https://me:hush@host/a").unwrap_err().contains("hush"));
    }
}
