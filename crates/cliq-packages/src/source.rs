//! Sources of teams: a folder, a git repository, a registry, a name (docs/packages.md, "Sources").

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{TeamName, TeamNameError, without_credentials};
use semver::Version;
use serde::{Deserialize, Serialize};

use crate::{Digest, DigestError, Range, RangeError};

/// Source of a team, as a person writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A folder, or its team.yml.
    Folder(Utf8PathBuf),
    /// A git repository, with `#REF`.
    Git(GitSource),
    /// A package in a registry: `oci://HOST/PATH:VERSION`.
    Registry {
        /// The repository.
        repository: Repository,
        /// The version.
        pick: Pick,
    },
    /// A package by name: `@scope/name` or `@scope/name@RANGE`.
    Named(NamedSource),
}

/// A git repository, and what is taken of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSource {
    /// The address, with the credentials that it was given.
    pub url: String,
    /// A branch, a tag or a commit. `None` for the default branch.
    pub reference: Option<String>,
}

/// A package by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSource {
    /// The name.
    pub name: TeamName,
    /// The range. `None` if none was written.
    pub range: Option<Range>,
}

/// Version of a package in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pick {
    /// The newest version of a range.
    Range(Range),
    /// The manifest with this digest.
    Digest(Digest),
}

/// The text is not a source of a team.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The name is not one.
    #[error("{text:?} is not the name of a team: {why}")]
    Name {
        /// The name.
        text: String,
        /// The rule that it breaks.
        why: TeamNameError,
    },
    /// The range is not one.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// The digest is not one.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// The address of a repository is not one.
    #[error("{text:?} is not the address of a repository: {why}; write `oci://HOST/PATH`")]
    Repository {
        /// The address.
        text: String,
        /// Reason.
        why: &'static str,
    },
    /// The address is that of a hub.
    #[error(
        "{0} is the address of a hub, which this version of cliq does not know; write `@scope/name@RANGE`, and set registries.SCOPE"
    )]
    Hub(String),
    /// The version after the address is not one.
    #[error("{0:?} is not a version: write `oci://HOST/PATH:1.2.3` or `oci://HOST/PATH@sha256:DIGEST`")]
    Version(String),
}

impl FromStr for NamedSource {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let rest = text.strip_prefix('@').unwrap_or(text);
        let (name, range) = match rest.split_once('@') {
            Some((name, range)) => (format!("@{name}"), Some(range.parse()?)),
            None => (text.to_owned(), None),
        };
        let name = TeamName::parse(&name).map_err(|why| SourceError::Name { text: name, why })?;
        Ok(Self { name, range })
    }
}

impl fmt::Display for NamedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_str())?;
        self.range.as_ref().map_or(Ok(()), |range| write!(f, "@{range}"))
    }
}

impl Source {
    /// Parses a source. A path that exists is a folder, even if it begins with `@` or ends with `.git`.
    ///
    /// # Errors
    /// The text has the form of a name or of an address of a registry, and breaks one of their rules.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        if let Some(rest) = text.strip_prefix("oci://") {
            return Self::registry(rest);
        }
        if text.starts_with("hub://") {
            return Err(SourceError::Hub(text.to_owned()));
        }
        let url = text.split('#').next().unwrap_or(text);
        let is_git = url.contains("://")
            || url.starts_with("git@")
            || url.ends_with(".git") && !Utf8Path::new(url).join("team.yml").exists();
        if is_git {
            let (url, reference) = match text.split_once('#') {
                Some((url, reference)) => {
                    (url, Some(reference.to_owned()).filter(|reference| !reference.is_empty()))
                }
                None => (text, None),
            };
            return Ok(Self::Git(GitSource { url: url.to_owned(), reference }));
        }
        if text.starts_with('@') && !Utf8Path::new(text).exists() {
            return Ok(Self::Named(text.parse()?));
        }
        Ok(Self::Folder(text.into()))
    }

    fn registry(rest: &str) -> Result<Self, SourceError> {
        let wrong = |why| SourceError::Repository { text: "oci://…".to_owned(), why };
        let host = rest.split('/').next().unwrap_or(rest);
        if host.contains('@') {
            return Err(wrong(
                "credentials are those of Docker (`docker login HOST`), not part of the address",
            ));
        }
        if host.len() == rest.len() {
            return Err(wrong("it has no path"));
        }
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse()?)),
            None => (rest, None),
        };
        // The last colon after the last slash: one before it begins a port.
        let name_at = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (address, version) = match rest[name_at..].rfind(':') {
            Some(colon) => (&rest[..name_at + colon], Some(&rest[name_at + colon + 1..])),
            None => (rest, None),
        };
        let repository = Repository::parse_address(address)?;
        let pick = match (digest, version) {
            (Some(digest), _) => Pick::Digest(digest),
            (None, Some(text)) => {
                let version = Version::parse(text).map_err(|_| SourceError::Version(text.to_owned()))?;
                Pick::Range(Range::exactly(&version))
            }
            (None, None) => Pick::Range(Range::any()),
        };
        Ok(Self::Registry { repository, pick })
    }
}

impl fmt::Display for Source {
    /// Writes the source without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => f.write_str(path.as_str()),
            Self::Git(GitSource { url, reference }) => {
                f.write_str(&without_credentials(url))?;
                reference.as_ref().map_or(Ok(()), |reference| write!(f, "#{reference}"))
            }
            Self::Registry { repository, pick: Pick::Range(range) } if *range == Range::any() => {
                write!(f, "{repository}")
            }
            Self::Registry { repository, pick: Pick::Range(range) } => write!(f, "{repository}:{range}"),
            Self::Registry { repository, pick: Pick::Digest(digest) } => write!(f, "{repository}@{digest}"),
            Self::Named(named) => write!(f, "{named}"),
        }
    }
}

/// A repository of a registry: `oci://HOST/PATH`, or a place that holds repositories.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Repository(Arc<Place>);

#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Place {
    host: String,
    path: String,
}

impl Repository {
    /// Host and port.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.0.host
    }

    /// Path below the host.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// The repository of a name below this place.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        Self(Arc::new(Place {
            host: self.0.host.clone(),
            path: format!("{}/{}", self.0.path, name.to_lowercase()),
        }))
    }

    fn parse_address(address: &str) -> Result<Self, SourceError> {
        let wrong = |why| SourceError::Repository { text: format!("oci://{address}"), why };
        let (host, path) = address.split_once('/').ok_or_else(|| wrong("it has no path"))?;
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let is_host = |name: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
            !name.is_empty() && name.bytes().all(plain)
        };
        let is_bracketed = |name: &str| {
            let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            inner.is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
        };
        if !is_host(name) && !is_bracketed(name) {
            return Err(wrong("its host has other signs than letters, digits, `.` and `-`"));
        }
        if let Some((_, port)) = host.rsplit_once(':').filter(|_| !host.ends_with(']'))
            && port.parse::<u16>().is_err()
        {
            return Err(wrong("its port is not a number up to 65535"));
        }
        let is_part = |part: &str| {
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            let inner = |byte: u8| plain(byte) || matches!(byte, b'.' | b'_' | b'-');
            part.bytes().all(inner)
                && part.bytes().next().is_some_and(plain)
                && part.bytes().last().is_some_and(plain)
        };
        if !path.split('/').all(is_part) || path.len() > 200 {
            return Err(wrong(
                "each part of its path consists of lower-case letters, digits, `.`, `_` and `-`",
            ));
        }
        Ok(Self(Arc::new(Place { host: host.to_owned(), path: path.to_owned() })))
    }
}

impl FromStr for Repository {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let wrong = |why| SourceError::Repository { text: text.to_owned(), why };
        let address = text.strip_prefix("oci://").ok_or_else(|| wrong("it does not begin with `oci://`"))?;
        Self::parse_address(address.trim_end_matches('/'))
    }
}

impl TryFrom<String> for Repository {
    type Error = SourceError;

    fn try_from(text: String) -> Result<Self, SourceError> {
        text.parse()
    }
}

impl From<Repository> for String {
    fn from(repository: Repository) -> Self {
        repository.to_string()
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oci://{}/{}", self.0.host, self.0.path)
    }
}
