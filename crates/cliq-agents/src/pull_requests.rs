//! Pull requests of the repository that a directory is in: `cliq tool run pr-exists` and `create-pr` (docs/connectors.md).

use camino::Utf8Path;
use cliq_connectors::code_host::{CodeHost, HostKind, NewPullRequest, PullRequest, Remote, Repository};
use cliq_http::{Client, Limits};
use cliq_settings::{BitbucketSettings, Environment, GithubSettings, GitlabSettings, Settings};
use url::Url;

use crate::AnyError;

/// Draft of a pull request. Missing parts come from the last commit and from the repository.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// The branch that it is for. Default: the one that the remote begins with.
    pub base: Option<String>,
    /// Title. Default: the subject of the last commit.
    pub title: Option<String>,
    /// Description in markdown. Default: the text of the last commit.
    pub body: Option<String>,
    /// Whether it is a draft.
    pub draft: bool,
    /// Labels.
    pub labels: Vec<String>,
    /// Requested reviewers.
    pub reviewers: Vec<String>,
}

/// The pull requests of a branch.
pub struct PullRequests {
    repository: Repository,
    remote_name: String,
    remote: Remote,
    host: CodeHost,
    branch: String,
}

impl PullRequests {
    /// Those of the repository that `dir` is in. Without `branch`, of the one that is checked out.
    ///
    /// # Errors
    /// The directory is in no repository, its remote is none of a code host that is known, or there is no token.
    pub fn open(
        dir: &Utf8Path,
        remote_name: &str,
        branch: Option<&str>,
        settings: &Settings,
        environment: &Environment,
    ) -> Result<Self, AnyError> {
        let repository = Repository::open(dir)?;
        let remote = repository.remote(remote_name)?;
        let set_url = |kind: HostKind| Url::parse(&host_settings(kind, settings).url?).ok();
        let kind = HostKind::of(&remote, set_url).ok_or_else(|| {
            format!(
                "{} is not a known code host: `cliq settings set -g integrations.gitlab.url https://{0}` says that it is GitLab; so for github and bitbucket",
                remote.host()
            )
        })?;
        let setting = format!("integrations.{}.token", kind.as_str());
        let token = kind.variables().iter().find_map(|variable| environment.get(variable)).map(str::to_owned);
        let token = token.or_else(|| host_settings(kind, settings).token);
        let token = token.ok_or_else(|| {
            format!(
                "there is no token for {}: `cliq settings set -g {setting} -` sets it, or the variable {}",
                remote.host(),
                kind.variables().join(" or ")
            )
        })?;
        // A server that stands for the host, such as a proxy: the address of its API.
        let api = environment.get(kind.api_variable()).map(|url| {
            Url::parse(url)
                .map_err(|error| format!("{} is not a valid address: {error}", kind.api_variable()))
        });
        let host = match api.transpose()? {
            Some(api) => CodeHost::at(Client::new(Limits::default()), kind, &remote, &api, &token),
            None => CodeHost::new(Client::new(Limits::default()), kind, &remote, set_url(kind), &token)
                .ok_or_else(|| format!("{} is not a host", remote.host()))?,
        };
        let branch = match branch {
            Some(branch) => branch.to_owned(),
            None => repository.branch()?,
        };
        Ok(Self { repository, remote_name: remote_name.to_owned(), remote, host, branch })
    }

    /// The branch.
    #[must_use]
    pub fn branch(&self) -> &str {
        &self.branch
    }

    /// The host and the path of the repository, for people.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}/{}", self.remote.host(), self.remote.path())
    }

    /// The open pull request of the branch.
    ///
    /// # Errors
    /// The host cannot be reached, refuses, or answers something else.
    pub fn find(&self) -> Result<Option<PullRequest>, AnyError> {
        Ok(self.host.find(&self.remote, &self.branch)?)
    }

    /// Makes a pull request, unless the branch has an open one. Gives it, and whether it is new.
    ///
    /// # Errors
    /// The branch has not been pushed, or is the one that the pull request would be for; and as for [`Self::find`].
    pub fn create(&self, draft: Draft) -> Result<(PullRequest, bool), AnyError> {
        if let Some(found) = self.find()? {
            return Ok((found, false));
        }
        let base = match draft.base {
            Some(base) => base,
            None => self.repository.default_branch(&self.remote_name)?.ok_or_else(|| {
                format!("the branch that `{}` begins with is not known: `--base BRANCH` names the one to merge into", self.remote_name)
            })?,
        };
        if base == self.branch {
            return Err(format!(
                "`{base}` cannot be merged into itself: `git switch -c BRANCH` makes a branch"
            )
            .into());
        }
        if !self.repository.is_pushed(&self.remote_name, &self.branch)? {
            return Err(format!(
                "`{0}` has no branch `{1}` yet: `git push -u {0} {1}` pushes it",
                self.remote_name, self.branch
            )
            .into());
        }
        let (subject, text) = self.repository.last_commit()?;
        let new = NewPullRequest {
            branch: self.branch.clone(),
            base,
            title: draft.title.unwrap_or(subject),
            body: draft.body.unwrap_or(text),
            draft: draft.draft,
            labels: draft.labels,
            reviewers: draft.reviewers,
        };
        Ok(self.host.create(&self.remote, &new)?)
    }
}

/// Asks a code host who the holder of the token is.
///
/// # Errors
/// There is no token, or the host refuses.
pub fn test(kind: &str, settings: &Settings, environment: &Environment) -> Result<String, AnyError> {
    let kind = HostKind::ALL
        .into_iter()
        .find(|known| known.as_str() == kind)
        .ok_or_else(|| format!("there is no code host `{kind}`"))?;
    let setting = format!("integrations.{}.token", kind.as_str());
    let token = kind.variables().iter().find_map(|variable| environment.get(variable)).map(str::to_owned);
    let HostSettings { token: own_token, url: own_url } = host_settings(kind, settings);
    let token = token.or(own_token);
    let token = token.ok_or_else(|| {
        format!(
            "there is no token: `cliq settings set -g {setting} -` sets it, or the variable {}",
            kind.variables().join(" or ")
        )
    })?;
    let url = own_url.as_deref().and_then(|url| Url::parse(url).ok());
    let host = url
        .as_ref()
        .and_then(|url| url.host_str().map(str::to_owned))
        .unwrap_or_else(|| kind.public_host().to_owned());
    let remote = Remote::parse(&format!("https://{host}/a/b"))?;
    let client = Client::new(Limits::default());
    let code_host = match environment.get(kind.api_variable()) {
        Some(api) => CodeHost::at(client, kind, &remote, &Url::parse(api)?, &token),
        None => CodeHost::new(client, kind, &remote, url, &token).ok_or("the address has no host")?,
    };
    Ok(format!("signed in as {}", code_host.who()?))
}

/// Settings of a code host.
struct HostSettings {
    token: Option<String>,
    url: Option<String>,
}

fn host_settings(kind: HostKind, settings: &Settings) -> HostSettings {
    let (token, url) = match kind {
        HostKind::GitHub => {
            let GithubSettings { token, url } = GithubSettings::read(settings);
            (token, url)
        }
        HostKind::GitLab => {
            let GitlabSettings { token, url } = GitlabSettings::read(settings);
            (token, url)
        }
        HostKind::Bitbucket => {
            let BitbucketSettings { token, url } = BitbucketSettings::read(settings);
            (token, url)
        }
    };
    HostSettings { token: token.map(|token| token.reveal().to_owned()), url }
}

/// The variables that code hosts look at.
pub(crate) fn variables() -> impl Iterator<Item = &'static str> {
    let kinds = [HostKind::GitHub, HostKind::GitLab, HostKind::Bitbucket];
    kinds.into_iter().flat_map(|kind| kind.variables().iter().copied().chain([kind.api_variable()]))
}
