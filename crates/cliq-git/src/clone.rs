//! Copies of remote repositories.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::Path;

use crate::{Git, GitError};

/// Request for a copy of a repository. Submodules are not copied.
#[derive(Debug, Clone, Copy)]
pub struct CloneRequest<'a> {
    /// Address or path of the repository. Git never takes it for an option.
    pub url: &'a str,
    /// New directory.
    pub into: &'a Path,
    /// Branch or tag to check out, or `None` for the one that the repository names.
    pub branch: Option<&'a str>,
    /// Whether the copy has the newest commit only.
    pub is_shallow: bool,
    /// The only host to connect to, or `None` for all that the git configuration of the user allows.
    pub host: Option<PinnedHost<'a>>,
}

/// Host with the address to connect to: a name that resolves differently a moment later changes nothing.
#[derive(Debug, Clone, Copy)]
pub struct PinnedHost<'a> {
    /// Name of the host.
    pub name: &'a str,
    /// Port.
    pub port: u16,
    /// Address that was checked.
    pub address: IpAddr,
}

impl PinnedHost<'_> {
    /// Restricts git to https and ssh with this host, even if the git configuration allows more. Redirects and proxies are off.
    fn restrict(&self, git: Git) -> Git {
        let Self { name, port, address } = self;
        let resolved = match address {
            IpAddr::V4(v4) => format!("http.curloptResolve={name}:{port}:{v4}"),
            IpAddr::V6(v6) => format!("http.curloptResolve={name}:{port}:[{v6}]"),
        };
        let settings = [
            "protocol.allow=never",
            "protocol.https.allow=always",
            "protocol.ssh.allow=always",
            "http.followRedirects=false",
            "http.proxy=",
            &resolved,
        ];
        let ssh = format!("ssh -oBatchMode=yes -oHostName={address} -oHostKeyAlias={name}");
        settings.iter().fold(git, |git, setting| git.with_setting(*setting)).with_env("GIT_SSH_COMMAND", ssh)
    }
}

/// Copies a repository. No hook runs, and git asks for no password on a terminal.
///
/// # Errors
/// Returns an error if git fails or exceeds its deadline.
pub fn clone(git: &Git, request: &CloneRequest<'_>) -> Result<(), GitError> {
    let git = match &request.host {
        Some(host) => host.restrict(git.clone()),
        None => git.clone(),
    };
    let mut args: Vec<&OsStr> = ["clone", "--quiet", "--no-recurse-submodules"].map(OsStr::new).to_vec();
    if request.is_shallow {
        args.extend(["--depth", "1"].map(OsStr::new));
    }
    if let Some(branch) = request.branch {
        args.extend(["--branch", branch].map(OsStr::new));
    }
    args.extend([OsStr::new("--"), OsStr::new(request.url), request.into.as_os_str()]);
    git.run(args).map(drop)
}

/// Checks out a revision without a branch. The revision must not begin with `-`.
///
/// # Errors
/// Returns an error if git fails.
pub fn checkout_detached(git: &Git, revision: &str) -> Result<(), GitError> {
    git.run(["checkout", "--quiet", "--detach", revision, "--"]).map(drop)
}
