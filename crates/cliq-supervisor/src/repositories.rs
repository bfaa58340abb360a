//! Repositories that are cloned into a workspace : https and ssh, public hosts, no credentials in logs.

use std::collections::BTreeSet;
use std::net::{IpAddr, ToSocketAddrs};
use std::time::Duration;

use camino::Utf8Path;
use cliq_git::{CloneRequest, Git, GitError, PROGRAM, PinnedHost};
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
    let program = host.environment.find_program(PROGRAM).ok_or(ProjectError::NoGit)?;
    let git = Git::new(".").with_program(program).with_timeout(PATIENCE);
    let into = workspace.join(repository.name);
    // What was checked is what is connected to, also when the name resolves differently a moment later.
    let pinned = PinnedHost { name: repository.host, port: repository.port, address };
    let request = CloneRequest {
        url: repository.url,
        into: into.as_std_path(),
        branch: None,
        is_shallow: true,
        host: Some(pinned),
    };
    cliq_git::clone(&git, &request).map_err(|error| {
        let message = match error {
            GitError::TimedOut { seconds, .. } => format!("it took longer than {seconds} s"),
            error => error.output(),
        };
        ProjectError::GitFailed { url: repository.url.to_owned(), message }
    })
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
