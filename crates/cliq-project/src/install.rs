//! Installing a team for all projects, from a folder or a git repository.

use std::fs;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::IoContext;
use cliq_git::{CloneRequest, Git, GitError, PROGRAM};
use cliq_workflow::{Diagnostic, TeamFolder};

use crate::team_files::{check_files, copy_tree};
use crate::{Host, ProjectError};

/// Time limit for `git clone`.
const CLONE_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// A team that was installed.
#[derive(Debug)]
#[non_exhaustive]
pub struct InstalledTeam {
    /// Name of the team.
    pub name: String,
    /// Version of the team, if it has one.
    pub version: Option<String>,
    /// Whether it replaces another copy, and the version of that copy.
    pub replaced: Option<Option<String>>,
    /// Folder in the cliq home.
    pub place: Utf8PathBuf,
    /// The text of its team.yml, for its warnings.
    pub text: String,
    /// Warnings about its team.yml.
    pub warnings: Vec<Diagnostic>,
}

impl Host {
    /// Installs a team for all projects. `source` is a folder, or the address of a git repository, with `#BRANCH` or `#TAG`.
    /// `fetching` is called with the address before it is fetched, which may take long.
    ///
    /// # Errors
    /// The team cannot be fetched or read, has errors, has links that leave its folder, or cannot be written.
    pub fn install_team(
        &self,
        source: &str,
        fetching: impl FnOnce(&str),
    ) -> Result<InstalledTeam, ProjectError> {
        let temporary = tempfile::tempdir()?;
        let dir = if is_git(source) {
            let into = Utf8Path::from_path(temporary.path())
                .ok_or_else(|| ProjectError::NotUtf8("the temporary directory".to_owned()))?
                .join("team");
            self.clone_repository(source, &into, fetching)?;
            into
        } else {
            Utf8PathBuf::from(source)
        };
        let found = self.load_team(&dir)?;
        let checked = found.folder.check();
        let Some(workflow) = checked.workflow else {
            let team = found.invalid(checked.diagnostics);
            return Err(ProjectError::TeamInvalid { subject: source.to_owned(), team });
        };
        check_files(found.folder.dir())?;
        let place =
            self.home.as_ref().ok_or(ProjectError::NoHome)?.join("teams").join(workflow.name.as_str());
        let old = TeamFolder::load(&place).ok().map(|folder| folder.check().workflow);
        let replaced = old.map(|old| old.and_then(|old| old.version).map(|version| version.to_string()));
        replace_folder(found.folder.dir(), &place)?;
        Ok(InstalledTeam {
            name: workflow.name.to_string(),
            version: workflow.version.map(|version| version.to_string()),
            replaced,
            place,
            text: found.folder.text().to_owned(),
            warnings: checked.diagnostics,
        })
    }

    /// A shallow copy of a repository. No code of it is executed.
    fn clone_repository(
        &self,
        source: &str,
        into: &Utf8Path,
        fetching: impl FnOnce(&str),
    ) -> Result<(), ProjectError> {
        let program = self.environment.find_program(PROGRAM).ok_or(ProjectError::NoGit)?;
        let (url, branch) = match source.split_once('#') {
            Some((url, branch)) => (url, Some(branch)),
            None => (source, None),
        };
        fetching(url);
        let git = Git::new(".").with_program(program).with_timeout(CLONE_TIMEOUT);
        let request = CloneRequest { url, into: into.as_std_path(), branch, is_shallow: true, host: None };
        cliq_git::clone(&git, &request).map_err(|error| {
            let message = match error {
                GitError::TimedOut { seconds, .. } => format!("it took longer than {} min", seconds / 60),
                error => error.output(),
            };
            ProjectError::GitFailed { url: url.to_owned(), message }
        })
    }
}

fn is_git(source: &str) -> bool {
    let url = source.split('#').next().unwrap_or(source);
    url.contains("://")
        || url.starts_with("git@")
        || url.ends_with(".git") && !Utf8Path::new(url).join("team.yml").exists()
}

/// Replaces `place` by a copy of `from` with renames, so that a reader finds the old folder or the new one.
fn replace_folder(from: &Utf8Path, place: &Utf8Path) -> Result<(), ProjectError> {
    let parent = place.parent().unwrap_or(place);
    fs::create_dir_all(parent).at("create", parent)?;
    let staging = tempfile::Builder::new().prefix(".tmp-").tempdir_in(parent)?;
    let staged = Utf8Path::from_path(staging.path())
        .ok_or_else(|| ProjectError::NotUtf8(parent.to_string()))?
        .to_owned();
    let (new, old) = (staged.join("new"), staged.join("old"));
    copy_tree(from, &new)?;
    if place.exists() {
        fs::rename(place, &old).at("move away", place)?;
    }
    if let Err(error) = fs::rename(&new, place) {
        let _ = fs::rename(&old, place);
        return Err(error).at("create", place).map_err(Into::into);
    }
    Ok(())
}
