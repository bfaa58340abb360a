//! The lock of a project: the version and the digest of every team that is assembled in it (docs/packages.md, "The lock").

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{FsError, read_if_exists, write_atomic};
use cliq_protocol::TeamName;
use semver::Version;
use serde::{Deserialize, Serialize};

use crate::{Digest, Range, Repository};

/// Maximum number of bytes of a lock.
const MAX_BYTES: u64 = 16 << 20;

/// A team, where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Origin {
    /// A package of a registry.
    Registry {
        /// Repository of the package.
        repository: Repository,
        /// Digest of its manifest.
        manifest: Digest,
    },
    /// A commit of a git repository.
    Git {
        /// Address, without credentials.
        url: String,
        /// Branch, tag or commit that was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reference: Option<String>,
        /// Commit.
        commit: String,
    },
    /// A folder.
    Folder {
        /// Path: relative to the project if the folder is below it.
        path: Utf8PathBuf,
    },
    /// A team of the program.
    Bundled,
}

/// A team of a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedTeam {
    /// Name of the team.
    pub name: TeamName,
    /// Version of the team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// Origin of the team.
    pub origin: Origin,
    /// Digest of its files.
    pub content: Digest,
    /// Ranges that were asked for, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requested: Vec<Range>,
    /// Digests of its skills, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skills: BTreeMap<String, Digest>,
}

/// Lock of a project: `.cliq/team.lock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// Version of the format: 1.
    pub format: u32,
    /// Reference that was assembled, as a person wrote it, without credentials.
    pub team: String,
    /// The team and those of its team phases, sorted by name.
    pub teams: Vec<LockedTeam>,
}

/// A lock cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The file is not a lock.
    #[error("{path} is damaged: {message}; `cliq assemble TEAM` writes a new one")]
    Damaged {
        /// The file.
        path: Utf8PathBuf,
        /// Problem with its place.
        message: String,
    },
    /// The format is newer than this program.
    #[error("{path} has format {format}: this version of cliq reads format 1")]
    Newer {
        /// The file.
        path: Utf8PathBuf,
        /// Format of the file.
        format: u32,
    },
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FsError),
}

impl Lock {
    /// Name of the file in `.cliq`.
    pub const NAME: &str = "team.lock";

    /// Reads a lock. `None` if there is none.
    ///
    /// # Errors
    /// The file cannot be read or is not a lock.
    pub fn read(path: &Utf8Path) -> Result<Option<Self>, LockError> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let Some(bytes) = read_if_exists(path, MAX_BYTES)? else { return Ok(None) };
        let damaged =
            |error: serde_json::Error| LockError::Damaged { path: path.into(), message: error.to_string() };
        let Format { format } = serde_json::from_slice(&bytes).map_err(damaged)?;
        if format != 1 {
            return Err(LockError::Newer { path: path.into(), format });
        }
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    /// Writes the lock, if it differs from the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Utf8Path) -> Result<(), LockError> {
        let text = self.to_text();
        if read_if_exists(path, MAX_BYTES).ok().flatten().is_some_and(|old| old == text.as_bytes()) {
            return Ok(());
        }
        Ok(write_atomic(path, text.as_bytes())?)
    }

    /// The text of the file.
    #[must_use]
    pub fn to_text(&self) -> String {
        // Serializing these types to a string cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The locked team that a name and a range mean.
    #[must_use]
    pub fn find(&self, name: &TeamName, range: Option<&Range>) -> Option<&LockedTeam> {
        let fits = |team: &&LockedTeam| {
            team.name == *name
                && range
                    .is_none_or(|range| team.version.as_ref().is_some_and(|version| range.contains(version)))
        };
        self.teams.iter().filter(fits).max_by(|a, b| a.version.cmp(&b.version))
    }

    /// Teams whose version differs in another lock, with both versions. Teams with several versions are left out.
    #[must_use]
    pub fn version_changes<'a>(&'a self, other: &'a Self) -> Vec<(&'a TeamName, &'a Version, &'a Version)> {
        let only = |lock: &'a Self, name: &TeamName| {
            let mut teams = lock.teams.iter().filter(|team| team.name == *name);
            teams.next().filter(|_| teams.next().is_none())?.version.as_ref()
        };
        let change = |team: &'a LockedTeam| {
            let (from, to) = (only(self, &team.name)?, only(other, &team.name)?);
            (from != to).then_some((&team.name, from, to))
        };
        self.teams.iter().filter_map(change).collect()
    }

    /// Differences to a newer lock, as sentences for people. Empty if the same teams are locked.
    #[must_use]
    pub fn differences(&self, newer: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.team != newer.team {
            found.push(format!("it is for {}, not for {}", self.team, newer.team));
        }
        for team in &newer.teams {
            let same: Vec<_> = self.teams.iter().filter(|old| old.name == team.name).collect();
            if same.iter().any(|old| old.content == team.content && old.version == team.version) {
                continue;
            }
            match same.first() {
                None => found.push(format!("{} is not in it", team.name)),
                Some(old) if old.version != team.version => {
                    let text = |version: &Option<Version>| {
                        version.as_ref().map_or_else(|| "no version".to_owned(), ToString::to_string)
                    };
                    found.push(format!(
                        "{} has {} in it and {} now",
                        team.name,
                        text(&old.version),
                        text(&team.version)
                    ));
                }
                Some(old) => {
                    let skills = |lock: &LockedTeam, name: &str| lock.skills.get(name).copied();
                    let names = old.skills.keys().chain(team.skills.keys());
                    let changed = names.filter(|name| skills(old, name) != skills(team, name));
                    let changed: std::collections::BTreeSet<_> = changed.map(String::as_str).collect();
                    let skills = if changed.is_empty() {
                        String::new()
                    } else {
                        format!(" (skills: {})", changed.into_iter().collect::<Vec<_>>().join(", "))
                    };
                    let (old, new) = (old.content.short(), team.content.short());
                    found.push(format!(
                        "the files of {} are others: {old} in it, {new} now{skills}",
                        team.name
                    ));
                }
            }
        }
        for old in &self.teams {
            if newer.teams.iter().all(|team| team.name != old.name) {
                found.push(format!("{} is in it and is not used", old.name));
            }
        }
        found
    }
}
