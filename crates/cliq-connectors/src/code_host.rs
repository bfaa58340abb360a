//! Pull requests of GitHub, GitLab and Bitbucket, and of their self-hosted servers (docs/connectors.md).

mod bitbucket;
mod git;
mod github;
mod gitlab;
mod host_api;
mod pull_request;
mod remote;

use cliq_http::Client;
use url::Url;

pub use git::{GitError, Repository};
use host_api::{HostApi, TokenHeader};
pub use pull_request::{CodeHostError, NewPullRequest, PullRequest};
pub use remote::{Remote, RemoteError};

/// A kind of code host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostKind {
    /// GitHub, or GitHub Enterprise Server.
    GitHub,
    /// GitLab.
    GitLab,
    /// Bitbucket in the cloud, or Bitbucket Data Center.
    Bitbucket,
}

impl HostKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::GitHub, Self::GitLab, Self::Bitbucket];

    /// The word for it, as in the settings `integrations.*`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Bitbucket => "bitbucket",
        }
    }

    /// The variables that may have its token, the first one first.
    #[must_use]
    pub fn variables(self) -> &'static [&'static str] {
        match self {
            Self::GitHub => &["GITHUB_TOKEN", "GH_TOKEN"],
            Self::GitLab => &["GITLAB_TOKEN"],
            Self::Bitbucket => &["BITBUCKET_TOKEN"],
        }
    }

    /// The variable that may have the address of its API, for servers that stand for it.
    #[must_use]
    pub fn api_variable(self) -> &'static str {
        match self {
            Self::GitHub => "GITHUB_API_URL",
            Self::GitLab => "GITLAB_API_URL",
            Self::Bitbucket => "BITBUCKET_API_URL",
        }
    }

    /// The name of the host that everybody may use.
    #[must_use]
    pub fn public_host(self) -> &'static str {
        match self {
            Self::GitHub => "github.com",
            Self::GitLab => "gitlab.com",
            Self::Bitbucket => "bitbucket.org",
        }
    }

    fn public_api(self) -> &'static str {
        match self {
            Self::GitHub => "https://api.github.com",
            Self::GitLab => "https://gitlab.com/api/v4",
            Self::Bitbucket => "https://api.bitbucket.org/2.0",
        }
    }

    /// The kind of host that a repository is on: by the address of a host of one's own that `url_of` gives, else by its name. `None` if
    /// neither says it.
    pub fn of(remote: &Remote, url_of: impl Fn(Self) -> Option<Url>) -> Option<Self> {
        let is_own = |kind: &Self| url_of(*kind).is_some_and(|url| url.host_str() == Some(remote.host()));
        let is_named = |kind: &Self| remote.host().split('.').any(|label| label.contains(kind.as_str()));
        Self::ALL.into_iter().find(is_own).or_else(|| Self::ALL.into_iter().find(is_named))
    }
}

/// A code host, for the holder of a token.
#[derive(Debug, Clone)]
pub struct CodeHost {
    kind: HostKind,
    is_cloud: bool,
    api: HostApi,
}

impl CodeHost {
    /// The host of a repository. `url` is the address of a host of one's own, or of its API. `None` if the repository's host is not a name.
    #[must_use]
    pub fn new(
        client: Client,
        kind: HostKind,
        remote: &Remote,
        url: Option<Url>,
        token: &str,
    ) -> Option<Self> {
        let is_public = remote.host() == kind.public_host();
        let base = if is_public {
            Url::parse(kind.public_api()).ok()?
        } else {
            let url = url.filter(|url| url.host_str() == Some(remote.host()));
            let mut base = match url {
                Some(url) => url,
                None => Url::parse(&format!("https://{}", remote.host())).ok()?,
            };
            if base.path() == "/" {
                base.set_path(match kind {
                    HostKind::GitHub => "/api/v3",
                    HostKind::GitLab => "/api/v4",
                    HostKind::Bitbucket => "/rest/api/1.0",
                });
            }
            base
        };
        Some(Self::at(client, kind, remote, &base, token))
    }

    /// The host of a repository, by the address of its API.
    #[must_use]
    pub fn at(client: Client, kind: HostKind, remote: &Remote, api: &Url, token: &str) -> Self {
        let header =
            if kind == HostKind::GitLab { TokenHeader::PrivateToken } else { TokenHeader::Authorization };
        let is_cloud =
            remote.host() == kind.public_host() || api.path().trim_end_matches('/').ends_with("/2.0");
        Self { kind, is_cloud, api: HostApi::new(client, api, token, header) }
    }

    /// The name of the holder of the token.
    ///
    /// # Errors
    /// The host cannot be reached, or refuses.
    pub fn who(&self) -> Result<String, CodeHostError> {
        let (path, field): (&[&str], _) = match (self.kind, self.is_cloud) {
            (HostKind::GitHub, _) => (&["user"], "/login"),
            (HostKind::GitLab, _) => (&["user"], "/username"),
            (HostKind::Bitbucket, true) => (&["user"], "/display_name"),
            // It does not say whose token it is. A list of projects shows that it takes it.
            (HostKind::Bitbucket, false) => {
                self.api.get(self.api.at(&["projects"], &[("limit", "1")]))?;
                return Ok("the holder of the token".to_owned());
            }
        };
        self.api.text(&self.api.get(self.api.at(path, &[]))?, field)
    }

    /// The open pull request of a branch.
    ///
    /// # Errors
    /// The host cannot be reached, refuses, or answers something else.
    pub fn find(&self, remote: &Remote, branch: &str) -> Result<Option<PullRequest>, CodeHostError> {
        match (self.kind, self.is_cloud) {
            (HostKind::GitHub, _) => github::find(&self.api, remote, branch),
            (HostKind::GitLab, _) => gitlab::find(&self.api, remote, branch),
            (HostKind::Bitbucket, true) => bitbucket::cloud::find(&self.api, remote, branch),
            (HostKind::Bitbucket, false) => bitbucket::server::find(&self.api, remote, branch),
        }
    }

    /// Makes a pull request, unless its branch has an open one. Gives it, and whether it is new. What failed is looked for again: the host may
    /// have made it, and its answer was lost.
    ///
    /// # Errors
    /// As for [`Self::find`].
    pub fn create(
        &self,
        remote: &Remote,
        new: &NewPullRequest,
    ) -> Result<(PullRequest, bool), CodeHostError> {
        if let Some(found) = self.find(remote, &new.branch)? {
            return Ok((found, false));
        }
        let made = match (self.kind, self.is_cloud) {
            (HostKind::GitHub, _) => github::create(&self.api, remote, new),
            (HostKind::GitLab, _) => gitlab::create(&self.api, remote, new),
            (HostKind::Bitbucket, true) => bitbucket::cloud::create(&self.api, remote, new),
            (HostKind::Bitbucket, false) => bitbucket::server::create(&self.api, remote, new),
        };
        match made {
            Ok(made) => Ok((made, true)),
            Err(error) => match self.find(remote, &new.branch) {
                Ok(Some(found)) => Ok((found, true)),
                _ => Err(error),
            },
        }
    }
}
