//! The address of a repository, as git has it.

use url::Url;

/// The address of a repository on a code host, without user and password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    host: String,
    path: String,
}

/// An address that is not one of a code host. It is not quoted: it may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the remote is not the address of a code host: {0}")]
pub struct RemoteError(&'static str);

impl Remote {
    /// Reads `https://HOST/PATH.git`, `ssh://git@HOST:PORT/PATH.git` or `git@HOST:PATH.git`.
    ///
    /// # Errors
    /// Returns an error for a local path, or an address without host or path.
    pub fn parse(address: &str) -> Result<Self, RemoteError> {
        let address = address.trim();
        let (host, path) = if address.contains("://") {
            let url = Url::parse(address).map_err(|_| RemoteError("it cannot be read"))?;
            if !matches!(url.scheme(), "https" | "http" | "ssh" | "git" | "git+ssh" | "ssh+git") {
                return Err(RemoteError("it begins with neither https:// nor ssh://"));
            }
            (url.host_str().unwrap_or_default().to_ascii_lowercase(), url.path().to_owned())
        } else {
            // As scp writes it. What has a slash before the colon is a path of this machine.
            let (host, path) = address.split_once(':').ok_or(RemoteError("it is a path of this machine"))?;
            if host.contains('/') {
                return Err(RemoteError("it is a path of this machine"));
            }
            (host.rsplit('@').next().unwrap_or_default().to_ascii_lowercase(), path.to_owned())
        };
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
        if host.is_empty() {
            return Err(RemoteError("it has no host"));
        }
        let parts = path.split('/').filter(|part| !part.is_empty()).count();
        if parts < 2 || path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(RemoteError("its path is not OWNER/REPOSITORY"));
        }
        Ok(Self { host, path: path.to_owned() })
    }

    /// The host, in lower case.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The path of the repository, such as `owner/repository`, without `.git`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Owner and name: all parts but the last, and the last.
    pub(crate) fn owner_and_name(&self) -> (&str, &str) {
        self.path.rsplit_once('/').unwrap_or(("", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let read =
            |address: &str| Remote::parse(address).map(|remote| format!("{} {}", remote.host, remote.path));
        for (address, expected) in [
            ("https://github.com/acme/shop.git", "github.com acme/shop"),
            ("https://GitHub.com/acme/shop", "github.com acme/shop"),
            ("https://user:secret@gitlab.com/group/sub/shop.git/", "gitlab.com group/sub/shop"),
            ("git@github.com:acme/shop.git", "github.com acme/shop"),
            ("ssh://git@git.example.com:7999/PROJ/shop.git", "git.example.com PROJ/shop"),
            ("git.example.com:acme/shop", "git.example.com acme/shop"),
            ("http://127.0.0.1:3000/acme/shop", "127.0.0.1 acme/shop"),
        ] {
            assert_eq!(read(address).as_deref(), Ok(expected), "{address}");
        }
        for address in [
            "",
            "/srv/git/shop.git",
            "../shop",
            "./a:b/c",
            "file:///srv/shop.git",
            "https://github.com/shop",
            "https:///a/b",
            "ext::sh -c x",
            "https://h/a/../b",
        ] {
            let said = read(address);
            assert!(said.is_err(), "{address}: {said:?}");
        }
        let said = Remote::parse("https://me:hush@github.com/shop").unwrap_err().to_string();
        assert!(!said.contains("hush"));
    }
}
