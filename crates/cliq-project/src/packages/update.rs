//! Updating the teams of a project: what would change, before it does.

use std::collections::{BTreeMap, BTreeSet};

use cliq_packages::{Content, Lock, LockedTeam};
use cliq_protocol::TeamName;
use semver::Version;

use super::resolve::{Choice, ResolvedTeam, Resolver};
use crate::assemble::lock_reference;
use crate::team_text::text_difference;
use crate::{AssembledTeam, Project, ProjectError};

/// New versions of teams, resolved and not yet assembled.
#[derive(Debug)]
#[non_exhaustive]
pub struct UpdatePlan {
    /// Teams that change. Empty if all are the newest of their range.
    pub updates: Vec<TeamUpdate>,
    team: ResolvedTeam,
    lock: Lock,
}

/// A team that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TeamUpdate {
    /// Name of the team.
    pub name: String,
    /// Locked version. `None` if the team is new, or has no version.
    pub from: Option<Version>,
    /// New version. `None` if the team is not used any more, or has no version.
    pub to: Option<Version>,
    /// Differences of its files in the unified form, by path. Binary files are named only.
    pub files: BTreeMap<String, String>,
    /// Permissions that the new version has and the locked one has not, as sentences.
    pub new_permissions: Vec<String>,
}

impl Project {
    /// The lock of the project. `None` if there is none.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn lock(&self) -> Result<Option<Lock>, ProjectError> {
        Ok(Lock::read(&self.dir().root().join(Lock::NAME))?)
    }

    /// Looks for new versions of teams (of all, if `names` is empty) in the ranges that are asked for. Changes nothing. `fetching` is called with
    /// what is fetched.
    ///
    /// # Errors
    /// The project has no lock, a name is not in it, a registry or a repository fails or offers older versions, or a package is refused.
    pub fn plan_update(
        &self,
        names: &[TeamName],
        fetching: &dyn Fn(&str),
    ) -> Result<UpdatePlan, ProjectError> {
        let lock = self.lock()?.ok_or(ProjectError::NoLock)?;
        for name in names {
            if lock.find(name, None).is_none() {
                return Err(ProjectError::NotLocked(name.to_string()));
            }
        }
        let reference = self.reference_of(&lock);
        let workspace = self.dir().workspace();
        let choice = Choice::Update { lock: &lock, names };
        let team = Resolver::new(self.host(), choice, fetching).within(workspace).resolve(&reference)?;
        let newer =
            Lock { team: lock.team.clone(), ..team.lock(&lock_reference(&reference, workspace), workspace)? };
        let updates = if lock.teams == newer.teams {
            Vec::new()
        } else {
            // The locked files may be gone: then every file is new.
            let locked = Resolver::new(self.host(), Choice::Locked(&lock), fetching).within(workspace);
            updates(locked.resolve(&reference).ok().as_ref(), &team, &changed(&lock, &newer))?
        };
        Ok(UpdatePlan { updates, team, lock: newer })
    }

    /// Assembles what was planned, and locks it.
    ///
    /// # Errors
    /// A run is under way, or a file cannot be written.
    pub fn apply_update(&self, plan: UpdatePlan) -> Result<AssembledTeam, ProjectError> {
        self.put(plan.team, Some(&plan.lock))
    }
}

/// A team as it is compared.
#[derive(Default)]
struct Side {
    content: Content,
    version: Option<Version>,
    /// Permissions, as sentences.
    permissions: Vec<String>,
}

/// The teams of a resolved team by name. Those that are part of a folder are among the files of the team around.
fn sides(team: Option<&ResolvedTeam>) -> Result<BTreeMap<String, Side>, ProjectError> {
    let mut sides = BTreeMap::new();
    let Some(team) = team else { return Ok(sides) };
    for (team, permissions) in team.all().into_iter().zip(team.permissions()) {
        if team.part.is_none() {
            let side = Side {
                // A folder may be larger than a package; its differences are not shown then.
                content: team.content().unwrap_or_default(),
                version: team.workflow.version.clone(),
                permissions: permissions.sentences(),
            };
            sides.insert(team.workflow.name.to_string(), side);
        }
    }
    Ok(sides)
}

/// Names of the teams whose files differ between two locks.
fn changed(old: &Lock, new: &Lock) -> BTreeSet<String> {
    let is_in = |lock: &Lock, team: &LockedTeam| {
        lock.teams.iter().any(|other| other.name == team.name && other.content == team.content)
    };
    let gone = old.teams.iter().filter(|team| !is_in(new, team));
    let added = new.teams.iter().filter(|team| !is_in(old, team));
    gone.chain(added).map(|team| team.name.to_string()).collect()
}

fn updates(
    old: Option<&ResolvedTeam>,
    new: &ResolvedTeam,
    changed: &BTreeSet<String>,
) -> Result<Vec<TeamUpdate>, ProjectError> {
    let (mut old, mut new) = (sides(old)?, sides(Some(new))?);
    let names: BTreeSet<String> = old.keys().chain(new.keys()).cloned().collect();
    let mut found = Vec::new();
    for name in names {
        let before = old.remove(&name).unwrap_or_default();
        let after = new.remove(&name).unwrap_or_default();
        let files = differences(&before.content, &after.content);
        // The locked files of a folder are not there any more.
        if files.is_empty() && before.version == after.version && !changed.contains(&name) {
            continue;
        }
        let is_new = |sentence: &String| !before.permissions.contains(sentence);
        let new_permissions = after.permissions.into_iter().filter(is_new).collect();
        found.push(TeamUpdate { name, from: before.version, to: after.version, files, new_permissions });
    }
    Ok(found)
}

fn differences(old: &Content, new: &Content) -> BTreeMap<String, String> {
    let paths: BTreeSet<_> = old.files().chain(new.files()).map(|(path, _)| path.to_owned()).collect();
    let bytes = |content: &Content, path: &camino::Utf8Path| {
        content.file(path).map(|file| (file.executable, file.bytes.clone()))
    };
    let mut found = BTreeMap::new();
    for path in paths {
        let (before, after) = (bytes(old, &path), bytes(new, &path));
        if before == after {
            continue;
        }
        let text = |side: &Option<(bool, Vec<u8>)>| {
            String::from_utf8(side.as_ref().map(|(_, bytes)| bytes.clone()).unwrap_or_default())
        };
        let difference = match (text(&before), text(&after)) {
            (Ok(old), Ok(new)) if old == new => "the permission to execute it changes\n".to_owned(),
            (Ok(old), Ok(new)) => text_difference(&old, &new),
            _ => "binary files differ\n".to_owned(),
        };
        found.insert(path.into_string(), difference);
    }
    found
}
