//! Assembling a team: checking it, and copying it into the project with the teams of its team phases.

use std::fs;

use camino::Utf8Path;
use cliq_fs::{CliqDir, IoContext, ProjectLock, write_atomic};
use cliq_packages::{Cache, Lock, LockError, Origin, Source};
use cliq_workflow::{Diagnostic, TeamFolder, ValidatedWorkflow};
use serde_json::{Map, json};

use crate::packages::files::program_folders;
use crate::packages::resolve::{Choice, ResolvedTeam, Resolver, relative};
use crate::team_files::{copy_tree, remove_tree};
use crate::teams::FoundTeam;
use crate::{Host, Project, ProjectError};

/// A team that was assembled.
#[derive(Debug)]
#[non_exhaustive]
pub struct AssembledTeam {
    /// The team.
    pub workflow: ValidatedWorkflow,
    /// Team as found.
    pub found: FoundTeam,
    /// Warnings about its team.yml.
    pub warnings: Vec<Diagnostic>,
}

impl Project {
    /// Puts a team into the project, with the teams of its team phases. `reference` is `@scope/name`, `@scope/name@RANGE`, a path, or the address
    /// of a package or a git repository. Versions in the lock of the project are taken where they fit. The lock is not written.
    ///
    /// # Errors
    /// The team does not exist, it or a team of a team phase has errors or is refused, a file of a team is a link that leaves its folder, a
    /// run is under way, or a file cannot be written. Unless the latter, nothing has changed.
    pub fn assemble(&self, reference: &str) -> Result<AssembledTeam, ProjectError> {
        let lock = self.lock()?;
        let resolver = Resolver::new(self.host(), Choice::Prefer(lock.as_ref()), &|_| {});
        self.put(resolver.within(self.dir().workspace()).resolve(reference)?, None)
    }

    /// As [`Project::assemble`], and locks the teams that were taken. `fetching` is called with what is fetched.
    ///
    /// # Errors
    /// As for [`Project::assemble`].
    pub fn assemble_and_lock(
        &self,
        reference: &str,
        fetching: &dyn Fn(&str),
    ) -> Result<AssembledTeam, ProjectError> {
        let lock = match self.lock() {
            // A new one is what its error proposes.
            Err(ProjectError::TeamLock(LockError::Damaged { .. })) => None,
            lock => lock?,
        };
        let workspace = self.dir().workspace();
        let resolver = Resolver::new(self.host(), Choice::Prefer(lock.as_ref()), fetching).within(workspace);
        let team = resolver.resolve(reference)?;
        let lock = team.lock(&lock_reference(reference, workspace), workspace)?;
        self.put(team, Some(&lock))
    }

    /// Puts the locked teams into the project, and no others. `reference` may repeat what is locked.
    ///
    /// # Errors
    /// There is no lock, or a team is not what the lock says; else as for [`Project::assemble`].
    pub fn assemble_locked(
        &self,
        reference: Option<&str>,
        fetching: &dyn Fn(&str),
    ) -> Result<AssembledTeam, ProjectError> {
        let lock = self.lock()?.ok_or(ProjectError::NoLock)?;
        let workspace = self.dir().workspace();
        let reference = reference.map_or_else(|| self.reference_of(&lock), str::to_owned);
        let resolver = Resolver::new(self.host(), Choice::Locked(&lock), fetching).within(workspace);
        let team = resolver.resolve(&reference)?;
        let found = team.lock(&lock_reference(&reference, workspace), workspace)?;
        let differences = lock.differences(&found);
        if !differences.is_empty() {
            return Err(ProjectError::LockOutdated { differences });
        }
        self.put(team, None)
    }

    /// The reference of a lock, as it is found from any directory.
    pub(crate) fn reference_of(&self, lock: &Lock) -> String {
        match Source::parse(&lock.team) {
            Ok(Source::Folder(path)) => self.dir().workspace().join(path).into_string(),
            _ => lock.team.clone(),
        }
    }

    /// Writes the files of a team that was resolved, and the lock.
    pub(crate) fn put(&self, team: ResolvedTeam, lock: Option<&Lock>) -> Result<AssembledTeam, ProjectError> {
        // A run that is under way reads these files.
        let _lock = ProjectLock::acquire(self.dir())?;
        put(&team, self.dir())?;
        if let Some(lock) = lock {
            keep_clones(self.host(), &team);
            lock.write(&self.dir().root().join(Lock::NAME))?;
        }
        Ok(AssembledTeam { workflow: team.workflow, found: team.found, warnings: team.warnings })
    }
}

/// The reference of a lock: a folder below the workspace is named by its relative path.
pub(crate) fn lock_reference(reference: &str, workspace: &Utf8Path) -> String {
    match Source::parse(reference) {
        Ok(Source::Folder(path)) => relative(&path, workspace).into_string(),
        _ => reference.to_owned(),
    }
}

/// Keeps the files of teams from git repositories, so that they need not be fetched again. Without room for them that is what happens.
fn keep_clones(host: &Host, team: &ResolvedTeam) {
    let Some(home) = &host.home else { return };
    for team in team.all() {
        if matches!(team.found.origin, Origin::Git { .. })
            && team.found.is_temporary()
            && let Ok(content) = team.content()
        {
            let _ = Cache::in_home(home).keep_content(&content);
        }
    }
}

fn put(team: &ResolvedTeam, dir: &CliqDir) -> Result<(), ProjectError> {
    fs::create_dir_all(dir.root()).at("create", dir.root())?;
    dir.ensure_layout()?;
    remove_tree(&dir.root().join("teams"))?;
    for (phase, inner) in &team.teams {
        put(inner, &dir.team_of(phase))?;
    }
    copy_team(&team.found.folder, &team.workflow, dir)
}

/// Writes the files of a team without those of its sub-teams.
pub(crate) fn copy_team(
    team: &TeamFolder,
    workflow: &ValidatedWorkflow,
    dir: &CliqDir,
) -> Result<(), ProjectError> {
    let root = dir.root();
    for old in [dir.roles(), root.join("team")] {
        remove_tree(&old)?;
    }
    copy_tree(&team.dir().join("roles"), &dir.roles())?;
    fs::create_dir_all(dir.roles()).at("create", &dir.roles())?;
    let mut tops = program_folders(workflow);
    if team.dir().join("skills").is_dir() {
        tops.insert("skills".to_owned());
    }
    for top in tops {
        copy_tree(&team.dir().join(&top), &root.join("team").join(&top))?;
    }
    copy_instructions(team, dir)?;
    let agents: Map<String, serde_json::Value> = workflow
        .agents
        .iter()
        .map(|(name, agent)| {
            (name.clone(), json!({"entry": format!("team/{}", agent.entry), "env": agent.env}))
        })
        .collect();
    write_atomic(&dir.agents_file(), format!("{:#}\n", serde_json::Value::Object(agents)).as_bytes())?;
    // Last: once team.yml is there, the team is complete.
    Ok(write_atomic(&dir.team_file(), team.text().as_bytes())?)
}

/// Copies `channels/*/instructions.md`.
fn copy_instructions(team: &TeamFolder, dir: &CliqDir) -> Result<(), ProjectError> {
    let channels = team.dir().join("channels");
    let Ok(entries) = channels.read_dir_utf8() else { return Ok(()) };
    for entry in entries.filter_map(Result::ok) {
        let from = entry.path().join("instructions.md");
        if from.is_file() && entry.file_name().contains("--") {
            let channel = dir.channels().join(entry.file_name());
            fs::create_dir_all(&channel).at("create", &channel)?;
            fs::copy(&from, channel.join("instructions.md")).at("copy", &from)?;
        }
    }
    Ok(())
}
