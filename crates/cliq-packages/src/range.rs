//! Ranges of versions, and the choice of a version (docs/packages.md, "Versions").

use std::fmt;
use std::str::FromStr;

use semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};

/// A range of versions: `^1.2`, `~1.2`, `>=1, <3`, `1` (any 1.x.y), `1.2.3` (this version only), `*` (any).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Range(VersionReq);

/// The text is not a range of versions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a range of versions: write `^1.2`, `~1.2`, `1.2.3` or `*` ({why})")]
pub struct RangeError {
    text: String,
    why: String,
}

impl Range {
    /// The range that contains every version without a pre-release.
    #[must_use]
    pub fn any() -> Self {
        Self(VersionReq::STAR)
    }

    /// The range that contains one version.
    #[must_use]
    pub fn exactly(version: &Version) -> Self {
        Self::from_str(&version.to_string()).unwrap_or_else(|_| Self::any())
    }

    /// Whether the range contains a version. A pre-release is contained only if the range names one of the same version.
    #[must_use]
    pub fn contains(&self, version: &Version) -> bool {
        self.0.matches(version)
    }

    /// Returns the newest version of the range.
    #[must_use]
    pub fn newest<'a>(&self, versions: impl IntoIterator<Item = &'a Version>) -> Option<&'a Version> {
        versions.into_iter().filter(|version| self.contains(version)).max()
    }
}

impl FromStr for Range {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        // As for packages named `@scope/name@1.2.3` elsewhere, a whole version means itself.
        let exact = Version::parse(text).is_ok().then(|| format!("={text}"));
        let range = VersionReq::parse(exact.as_deref().unwrap_or(text));
        range.map(Self).map_err(|error| RangeError { text: text.to_owned(), why: error.to_string() })
    }
}

impl TryFrom<String> for Range {
    type Error = RangeError;

    fn try_from(text: String) -> Result<Self, RangeError> {
        text.parse()
    }
}

impl From<Range> for String {
    fn from(range: Range) -> Self {
        range.to_string()
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        // An exact version is written as it is read.
        match text.strip_prefix('=').filter(|rest| Version::parse(rest).is_ok()) {
            Some(version) => f.write_str(version),
            None => f.write_str(&text),
        }
    }
}

/// A part of a version that `cliq team version` raises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// First number: what used the team may have to change.
    Major,
    /// Second number: the team can do more.
    Minor,
    /// Third number: the team does the same, better.
    Patch,
}

impl Part {
    /// Returns the next version. A pre-release ends with the version that it came before.
    #[must_use]
    pub fn raise(self, version: &Version) -> Version {
        let &Version { major, minor, patch, .. } = version;
        let is_before = !version.pre.is_empty();
        match self {
            Self::Major if is_before && minor == 0 && patch == 0 => Version::new(major, 0, 0),
            Self::Minor if is_before && patch == 0 => Version::new(major, minor, 0),
            Self::Patch if is_before => Version::new(major, minor, patch),
            Self::Major => Version::new(major.saturating_add(1), 0, 0),
            Self::Minor => Version::new(major, minor.saturating_add(1), 0),
            Self::Patch => Version::new(major, minor, patch.saturating_add(1)),
        }
    }
}
