//! Text of a team: its team.yml and its roles, as they are written and compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{IoContext, write_atomic};
use cliq_workflow::{Diagnostic, EntryFile, TeamCheck, TeamFiles, TeamFolder};
use serde::Serialize;
use similar::TextDiff;

use crate::new_team::is_empty_dir;
use crate::packages::permissions::permissions_of;
use crate::{Host, ProjectError};

/// Returns the difference of two texts in the unified form, with two lines of context.
pub(crate) fn text_difference(old: &str, new: &str) -> String {
    TextDiff::from_lines(old, new).unified_diff().context_radius(2).to_string()
}

/// Text of a team: team.yml and the roles.
///
/// ```
/// use cliq_project::TeamText;
///
/// let old = TeamText::new("name: '@local/a'\n").with_role("writer", "Write.\n");
/// let new = old.clone().with_role("writer", "Write briefly.\n");
/// let differences = new.differences(&old);
/// assert_eq!(differences.keys().collect::<Vec<_>>(), ["roles/writer.md"]);
/// assert!(differences["roles/writer.md"].contains("+Write briefly."));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct TeamText {
    /// Text of team.yml.
    pub team_yml: String,
    /// Texts of the roles by name.
    pub roles: BTreeMap<String, String>,
    /// Names of the skills with the texts of their SKILL.md, for checks.
    #[serde(skip)]
    pub(crate) skills: Vec<(String, String)>,
}

impl TeamText {
    /// Returns a team without roles.
    #[must_use]
    pub fn new(team_yml: impl Into<String>) -> Self {
        Self { team_yml: team_yml.into(), ..Self::default() }
    }

    /// Sets the text of a role.
    #[must_use]
    pub fn with_role(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.roles.insert(name.into(), text.into());
        self
    }

    /// Returns the text of a team in a folder.
    #[must_use]
    pub fn of(folder: &TeamFolder) -> Self {
        let names = folder.role_names();
        let texts = folder.role_texts();
        Self {
            team_yml: folder.text().to_owned(),
            roles: names.into_iter().zip(texts).collect(),
            skills: folder.skills(),
        }
    }

    /// The files of the team: path below its folder, and text.
    fn files(&self) -> BTreeMap<String, &str> {
        let roles = self.roles.iter().map(|(name, text)| (format!("roles/{name}.md"), text.as_str()));
        roles.chain([("team.yml".to_owned(), self.team_yml.as_str())]).collect()
    }

    /// Returns the differences from another text in the unified form, by path below the folder.
    #[must_use]
    pub fn differences(&self, old: &Self) -> BTreeMap<String, String> {
        let (before, after) = (old.files(), self.files());
        let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let text = |files: &BTreeMap<String, &str>, path: &String| {
            files.get(path).copied().unwrap_or_default().to_owned()
        };
        let pairs = paths.into_iter().map(|path| (path.clone(), text(&before, path), text(&after, path)));
        pairs
            .filter(|(_, old, new)| old != new)
            .map(|(path, old, new)| (path, text_difference(&old, &new)))
            .collect()
    }

    /// Checks the team as one whose other files, such as programs, are there.
    #[must_use]
    pub fn check(&self, host: &Host) -> TeamCheck {
        cliq_workflow::check(&self.team_yml, &CheckedText { text: self, agents: host.agents_outside_teams() })
    }

    /// Returns the permissions of the team as sentences. Empty if it has errors.
    #[must_use]
    pub fn permissions(&self, host: &Host) -> Vec<String> {
        let workflow = self.check(host).workflow;
        let skills: Vec<String> = self.skills.iter().map(|(name, _)| name.clone()).collect();
        workflow.map(|workflow| permissions_of(&workflow, &skills).sentences()).unwrap_or_default()
    }

    /// Returns the permissions that this text has and another has not, as sentences.
    #[must_use]
    pub fn new_permissions(&self, old: &Self, host: &Host) -> Vec<String> {
        let before = old.permissions(host);
        self.permissions(host).into_iter().filter(|sentence| !before.contains(sentence)).collect()
    }

    /// Returns the warnings of the team.
    #[must_use]
    pub fn warnings(&self, host: &Host) -> Vec<Diagnostic> {
        self.check(host).diagnostics
    }

    /// Writes the team into a new folder.
    ///
    /// # Errors
    /// The folder is not empty, or a file cannot be written.
    pub fn create(&self, dir: &Utf8Path) -> Result<(), ProjectError> {
        let is_empty =
            is_empty_dir(dir).map_err(|source| ProjectError::Unusable { path: dir.to_owned(), source })?;
        if !is_empty {
            return Err(ProjectError::NotEmpty(dir.to_owned()));
        }
        fs::create_dir_all(dir.join("roles")).at("create", &dir.join("roles"))?;
        for (path, text) in self.files() {
            write_atomic(&dir.join(path), text.as_bytes())?;
        }
        Ok(())
    }

    /// Writes what differs from `old` into the folder that `old` was read from.
    ///
    /// # Errors
    /// A file is not as it was read, or cannot be written. Unless the latter, nothing was written.
    pub fn replace(&self, old: &Self, dir: &Utf8Path) -> Result<Vec<Utf8PathBuf>, ProjectError> {
        let (before, after) = (old.files(), self.files());
        let changed: Vec<(&String, &str)> = after
            .iter()
            .filter(|(path, text)| before.get(*path) != Some(text))
            .map(|(path, text)| (path, *text))
            .collect();
        for (path, _) in &changed {
            let file = dir.join(path);
            let is_same = match (fs::read_to_string(&file), before.get(*path)) {
                (Ok(text), Some(before)) => text == *before,
                (Err(error), None) => error.kind() == std::io::ErrorKind::NotFound,
                _ => false,
            };
            if !is_same {
                return Err(ProjectError::ChangedMeanwhile(file));
            }
        }
        fs::create_dir_all(dir.join("roles")).at("create", &dir.join("roles"))?;
        for (path, text) in &changed {
            write_atomic(&dir.join(path), text.as_bytes())?;
        }
        Ok(changed.into_iter().map(|(path, _)| Utf8PathBuf::from(path)).collect())
    }
}

/// Text of a team as its files.
struct CheckedText<'a> {
    text: &'a TeamText,
    agents: Vec<String>,
}

impl TeamFiles for CheckedText<'_> {
    fn has_role(&self, name: &str) -> bool {
        self.text.roles.contains_key(name)
    }
    fn role_names(&self) -> Vec<String> {
        self.text.roles.keys().cloned().collect()
    }
    fn role_texts(&self) -> Vec<String> {
        self.text.roles.values().cloned().collect()
    }
    fn skills(&self) -> Vec<(String, String)> {
        self.text.skills.clone()
    }
    fn entry(&self, _: &Utf8Path) -> EntryFile {
        EntryFile::Unknown
    }
    fn installed_agents(&self) -> Vec<String> {
        self.agents.clone()
    }
}
