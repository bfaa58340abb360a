//! Resolving a team with the teams of its team phases: which version of each, from where (docs/packages.md, "Which version is taken").

#[cfg(feature = "packages")]
use std::cell::OnceCell;
use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_packages::{
    Cache, Content, Digest, FileDigests, GitSource, Lock, LockedTeam, NamedSource, Origin, Pick, Range,
    Repository, Source,
};
use cliq_protocol::{PhaseName, TeamName, without_credentials};
use cliq_workflow::{Diagnostic, ValidatedWorkflow};

use super::files::parts;
use super::git::temporary;
use crate::teams::FoundTeam;
use crate::{Host, ProjectError};

/// Choice of versions.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Choice<'a> {
    /// The locked versions, and no others.
    Locked(&'a Lock),
    /// The locked versions where they fit, else new ones.
    Prefer(Option<&'a Lock>),
    /// New versions of some teams (of all, if none is named), and the locked ones of the others.
    Update {
        /// The lock.
        lock: &'a Lock,
        /// Names of the teams.
        names: &'a [TeamName],
    },
}

impl<'a> Choice<'a> {
    /// The locked team that is taken for a name.
    fn locked(self, name: &TeamName, range: Option<&Range>) -> Option<&'a LockedTeam> {
        self.lock_of(name)?.find(name, range)
    }

    fn lock_of(self, name: &TeamName) -> Option<&'a Lock> {
        match self {
            Self::Locked(lock) => Some(lock),
            Self::Prefer(lock) => lock,
            Self::Update { lock, names } => (!names.is_empty() && !names.contains(name)).then_some(lock),
        }
    }

    /// The locked team with an origin.
    fn locked_at(self, is_it: impl Fn(&Origin) -> bool) -> Option<&'a LockedTeam> {
        let lock = match self {
            Self::Locked(lock) | Self::Prefer(Some(lock)) | Self::Update { lock, .. } => lock,
            Self::Prefer(None) => return None,
        };
        let team = lock.teams.iter().find(|team| is_it(&team.origin))?;
        self.lock_of(&team.name).map(|_| team)
    }

    fn is_locked(self) -> bool {
        matches!(self, Self::Locked(_))
    }
}

/// A team that was resolved, with the teams of its team phases.
#[derive(Debug)]
pub(crate) struct ResolvedTeam {
    /// Team as found.
    pub(crate) found: FoundTeam,
    /// The team.
    pub(crate) workflow: ValidatedWorkflow,
    /// Warnings about its team.yml.
    pub(crate) warnings: Vec<Diagnostic>,
    /// Range that was asked for.
    pub(crate) requested: Option<Range>,
    /// Path in the folder of the team around, if it is part of that folder.
    pub(crate) part: Option<Utf8PathBuf>,
    /// Teams of its team phases.
    pub(crate) teams: Vec<(PhaseName, ResolvedTeam)>,
}

impl ResolvedTeam {
    /// Files of the team, with those of the teams that are part of its folder, within the limits of a package.
    pub(crate) fn content(&self) -> Result<Content, ProjectError> {
        let mut content = Content::default();
        for (within, team) in self.parts() {
            let parts = parts(&team.workflow);
            content
                .read_parts(team.found.folder.dir(), &within, parts.iter().map(String::as_str))
                .map_err(|source| ProjectError::TeamFiles { team: self.workflow.name.to_string(), source })?;
        }
        Ok(content)
    }

    /// Digests of the same files, without limits.
    fn digests(&self) -> Result<FileDigests, ProjectError> {
        let mut digests = FileDigests::default();
        for (within, team) in self.parts() {
            let parts = parts(&team.workflow);
            digests.read_parts(team.found.folder.dir(), &within, parts.iter().map(String::as_str))?;
        }
        Ok(digests)
    }

    /// The team and those that are part of its folder, at every depth, by their path in the folder.
    fn parts(&self) -> BTreeMap<Utf8PathBuf, &Self> {
        let mut found = BTreeMap::from([(Utf8PathBuf::new(), self)]);
        for (_, team) in &self.teams {
            if let Some(part) = &team.part {
                found.extend(team.parts().into_iter().map(|(within, team)| (part.join(within), team)));
            }
        }
        found
    }

    /// Lock of the team. `reference` is the reference by which it was found; folders below `workspace` are named by their relative path.
    pub(crate) fn lock(&self, reference: &str, workspace: &Utf8Path) -> Result<Lock, ProjectError> {
        let mut teams = BTreeMap::new();
        self.add_locked(&mut teams)?;
        let mut teams: Vec<LockedTeam> = teams.into_values().collect();
        for team in &mut teams {
            if let Origin::Folder { path } = &mut team.origin {
                *path = relative(path, workspace);
            }
        }
        Ok(Lock { format: 1, team: without_credentials(reference).into_owned(), teams })
    }

    fn add_locked(&self, teams: &mut BTreeMap<(String, Digest), LockedTeam>) -> Result<(), ProjectError> {
        if self.part.is_none() {
            let digests = self.digests()?;
            let digest = self.found.content.unwrap_or_else(|| digests.digest());
            let key = (self.workflow.name.to_string(), digest);
            let locked = teams.entry(key).or_insert_with(|| LockedTeam {
                name: self.workflow.name.clone(),
                version: self.workflow.version.clone(),
                origin: self.found.origin.clone(),
                content: digest,
                requested: Vec::new(),
                skills: digests.digests_below("skills"),
            });
            if let Some(range) = &self.requested
                && !locked.requested.contains(range)
            {
                locked.requested.push(range.clone());
                locked.requested.sort_by_key(ToString::to_string);
            }
        }
        self.teams.iter().try_for_each(|(_, team)| team.add_locked(teams))
    }

    /// The team and those of its team phases, at every depth, each name once.
    pub(crate) fn all(&self) -> Vec<&Self> {
        let mut all: Vec<&Self> = vec![self];
        for (_, team) in &self.teams {
            for team in team.all() {
                if all.iter().all(|known| known.workflow.name != team.workflow.name) {
                    all.push(team);
                }
            }
        }
        all
    }
}

/// Resolves teams.
pub(crate) struct Resolver<'a> {
    pub(crate) host: &'a Host,
    /// Workspace of the project: folders below it are locked by their relative path.
    pub(crate) workspace: Option<&'a Utf8Path>,
    pub(crate) choice: Choice<'a>,
    /// Called with what is fetched before it is fetched.
    pub(crate) fetching: &'a dyn Fn(&str),
    /// Whether the keys of signatures that no setting requires are named.
    #[cfg(feature = "packages")]
    pub(crate) names_signers: bool,
    #[cfg(feature = "packages")]
    pub(crate) packages: OnceCell<cliq_packages::Packages>,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(host: &'a Host, choice: Choice<'a>, fetching: &'a dyn Fn(&str)) -> Self {
        Self {
            host,
            workspace: None,
            choice,
            fetching,
            #[cfg(feature = "packages")]
            names_signers: false,
            #[cfg(feature = "packages")]
            packages: OnceCell::new(),
        }
    }

    /// The same, which names the keys of signatures that no setting requires.
    pub(crate) fn naming_signers(self) -> Self {
        #[cfg(feature = "packages")]
        return Self { names_signers: true, ..self };
        #[cfg(not(feature = "packages"))]
        self
    }

    pub(crate) fn within(mut self, workspace: &'a Utf8Path) -> Self {
        self.workspace = Some(workspace);
        self
    }

    /// Resolves the team that a person names.
    pub(crate) fn resolve(&self, reference: &str) -> Result<ResolvedTeam, ProjectError> {
        match Source::parse(reference)? {
            Source::Folder(path) => self.resolve_folder(&path),
            source => self.resolve_source(&source),
        }
    }

    /// Resolves the team in a folder.
    pub(crate) fn resolve_folder(&self, path: &Utf8Path) -> Result<ResolvedTeam, ProjectError> {
        let found = self.host.load_team(path)?;
        let subject = found.folder.file().to_string();
        self.complete(found, None, &subject)
    }

    /// Resolves the team of a source.
    pub(crate) fn resolve_source(&self, source: &Source) -> Result<ResolvedTeam, ProjectError> {
        self.complete(self.find(source, None)?, requested(source), &source.to_string())
    }

    /// Resolves the team of a source, with the teams of its team phases if all of them can be resolved.
    pub(crate) fn resolve_source_alone(&self, source: &Source) -> Result<ResolvedTeam, ProjectError> {
        self.resolve_alone(self.find(source, None)?, &source.to_string())
    }

    /// Resolves a team that was found, with the teams of its team phases if all of them can be resolved.
    pub(crate) fn resolve_alone(
        &self,
        found: FoundTeam,
        subject: &str,
    ) -> Result<ResolvedTeam, ProjectError> {
        let mut team = check(found, None, subject)?;
        let chain = &mut vec![team.workflow.name.to_string()];
        if self.add_teams(&mut team, None, chain).is_err() {
            team.teams.clear();
        }
        Ok(team)
    }

    fn complete(
        &self,
        found: FoundTeam,
        requested: Option<Range>,
        subject: &str,
    ) -> Result<ResolvedTeam, ProjectError> {
        let mut team = check(found, requested, subject)?;
        let installed = team.found.lock.clone();
        let chain = &mut vec![team.workflow.name.to_string()];
        self.add_teams(&mut team, installed.as_ref(), chain)?;
        Ok(team)
    }

    /// Resolves the teams of team phases at every depth. `chain` names the teams around, from the outermost.
    fn add_teams(
        &self,
        team: &mut ResolvedTeam,
        installed: Option<&Lock>,
        chain: &mut Vec<String>,
    ) -> Result<(), ProjectError> {
        let phases =
            team.workflow.phases().filter_map(|(_, phase)| Some((phase.name.clone(), phase.team.clone()?)));
        for (phase, reference) in phases.collect::<Vec<_>>() {
            let about = |error: ProjectError| error.of_team_phase(&phase, Some(team.workflow.name.as_str()));
            let (found, requested) = self.inner(&team.found, &reference, installed).map_err(about)?;
            let part = part_of(&team.found, &found);
            let mut inner = check(found, requested, &reference).map_err(about)?;
            let name = inner.workflow.name.to_string();
            if chain.contains(&name) {
                return Err(about(ProjectError::TeamCycle { chain: chain.clone(), team: name }));
            }
            inner.part = part;
            chain.push(name);
            let lock = inner.found.lock.clone();
            self.add_teams(&mut inner, lock.as_ref().or(installed), chain)?;
            chain.pop();
            team.teams.push((phase, inner));
        }
        Ok(())
    }

    /// The team of a team phase: `@scope/name` with or without a range, a path relative to the folder of the team around, the address of a
    /// package or a repository, or the name of an installed team of the scope `@local`.
    fn inner(
        &self,
        outer: &FoundTeam,
        reference: &str,
        installed: Option<&Lock>,
    ) -> Result<(FoundTeam, Option<Range>), ProjectError> {
        let source = if reference.starts_with('@') && !outer.folder.dir().join(reference).exists() {
            Source::Named(reference.parse()?)
        } else if reference.contains("://") || reference.starts_with("git@") {
            Source::parse(reference)?
        } else {
            let path = outer.folder.dir().join(reference);
            if path.exists() || reference.contains('/') {
                let found = self.host.load_team(&path)?;
                if outer.package.is_some() && part_of(outer, &found).is_none() {
                    return Err(ProjectError::LeavesPackage(reference.to_owned()));
                }
                return Ok((found, None));
            }
            Source::Named(format!("@local/{reference}").parse()?)
        };
        Ok((self.find(&source, installed)?, requested(&source)))
    }

    fn find(&self, source: &Source, installed: Option<&Lock>) -> Result<FoundTeam, ProjectError> {
        match source {
            Source::Folder(path) => self.host.load_team(path),
            Source::Git(git) => self.find_git(git),
            Source::Registry { repository, pick } => self.find_at(repository, pick),
            Source::Named(named) => self.find_named(named, installed),
        }
    }

    fn find_git(&self, source: &GitSource) -> Result<FoundTeam, ProjectError> {
        let plain = without_credentials(&source.url);
        let is_it = |origin: &Origin| matches!(origin, Origin::Git { url, reference, .. } if *url == plain && *reference == source.reference);
        let locked = self.choice.locked_at(is_it);
        match locked {
            Some(team) => self.restore(team, Some(source)),
            None if self.choice.is_locked() => {
                Err(ProjectError::NotLocked(Source::Git(source.clone()).to_string()))
            }
            None => self.clone_git(source, None),
        }
    }

    fn clone_git(&self, source: &GitSource, commit: Option<&str>) -> Result<FoundTeam, ProjectError> {
        (self.fetching)(&source.url);
        let (temporary, dir) = temporary()?;
        let origin = self.host.clone_team(source, commit, &dir)?;
        Ok(self.host.load_team(&dir)?.from(origin, None).kept_in(temporary))
    }

    fn find_at(&self, repository: &Repository, pick: &Pick) -> Result<FoundTeam, ProjectError> {
        let fits = |team: &LockedTeam| match (pick, &team.origin) {
            (Pick::Digest(digest), Origin::Registry { manifest, .. }) => manifest == digest,
            (Pick::Range(range), _) => team.version.as_ref().is_some_and(|version| range.contains(version)),
            (Pick::Digest(_), _) => false,
        };
        let locked = self
            .choice
            .locked_at(|origin| matches!(origin, Origin::Registry { repository: at, .. } if at == repository))
            .filter(|team| fits(team));
        match locked {
            Some(team) => self.restore(team, None),
            None if self.choice.is_locked() => Err(ProjectError::NotLocked(repository.to_string())),
            None => self.fetch(repository, None, pick),
        }
    }

    fn find_named(&self, named: &NamedSource, installed: Option<&Lock>) -> Result<FoundTeam, ProjectError> {
        let NamedSource { name, range } = named;
        let locked = self.choice.locked(name, range.as_ref());
        if let Some(LockedTeam { origin: Origin::Registry { repository, .. }, .. }) = locked {
            self.check_place(name, repository)?;
        }
        if self.choice.is_locked() {
            let team = locked.ok_or_else(|| ProjectError::NotLocked(named.to_string()))?;
            return self.restore(team, None);
        }
        let is_updated = matches!(self.choice, Choice::Update { .. }) && locked.is_none();
        let Some(range) = range else {
            // A name alone means what is locked, if that is a package, else the team of this machine.
            let package = locked.filter(|team| matches!(team.origin, Origin::Registry { .. }));
            if let Some(package) = package {
                return self.restore(package, None);
            }
            let updated = if is_updated { self.place_of_locked(name) } else { None };
            if let Some(place) = updated {
                return self.fetch_newest(&place, name, &Range::any());
            }
            if let Some(found) = self.host.find_local(name.as_str())? {
                return Ok(found);
            }
            return match (locked, self.place(name)?) {
                (Some(team), _) => self.restore(team, None),
                (None, Some(place)) => self.fetch_newest(&place, name, &Range::any()),
                (None, None) => Err(self.host.unknown_team(name.as_str())?),
            };
        };
        let known = locked.or_else(|| {
            if is_updated { None } else { installed.and_then(|lock| lock.find(name, Some(range))) }
        });
        if let Some(team) = known {
            return self.restore(team, None);
        }
        if let Some(place) = self.place(name)? {
            return self.fetch_newest(&place, name, range);
        }
        let local = self.host.find_local(name.as_str())?;
        let version = local.as_ref().and_then(|found| found.folder.check().workflow?.version);
        match local {
            Some(found) if version.as_ref().is_some_and(|version| range.contains(version)) => Ok(found),
            Some(_) => Err(ProjectError::OtherVersionInstalled {
                name: name.to_string(),
                range: range.to_string(),
                version: version.map(|v| v.to_string()),
            }),
            None => Err(ProjectError::NoRegistry { name: name.to_string(), scope: name.scope().to_owned() }),
        }
    }

    /// Checks that a lock, which comes with a project, does not choose another registry for a scope than the person.
    fn check_place(&self, name: &TeamName, locked: &Repository) -> Result<(), ProjectError> {
        match self.place(name)? {
            Some(place) if place != *locked => Err(ProjectError::OtherRegistry {
                name: name.to_string(),
                scope: name.scope().to_owned(),
                locked: locked.to_string(),
                place: place.to_string(),
            }),
            _ => Ok(()),
        }
    }

    /// The repository that a locked team came from, if it is a package.
    fn place_of_locked(&self, name: &TeamName) -> Option<Repository> {
        let Choice::Update { lock, .. } = self.choice else { return None };
        match &lock.find(name, None)?.origin {
            Origin::Registry { repository, .. } => Some(repository.clone()),
            Origin::Git { .. } | Origin::Folder { .. } | Origin::Bundled => None,
        }
    }

    /// The newest version of a package. While teams are updated, none older than the locked one.
    fn fetch_newest(
        &self,
        place: &Repository,
        name: &TeamName,
        range: &Range,
    ) -> Result<FoundTeam, ProjectError> {
        let found = self.fetch(place, Some(name), &Pick::Range(range.clone()))?;
        let older = match self.choice {
            Choice::Update { lock, .. } => lock.find(name, Some(range)).and_then(|team| team.version.clone()),
            Choice::Locked(_) | Choice::Prefer(_) => None,
        };
        let newer = found.package.as_ref().map(|(_, version)| version.clone());
        match (older, newer) {
            (Some(from), Some(to)) if to < from => {
                Err(ProjectError::Downgrade { name: name.to_string(), from, to })
            }
            _ => Ok(found),
        }
    }

    /// The locked team, with the files that the lock names.
    fn restore(&self, team: &LockedTeam, git: Option<&GitSource>) -> Result<FoundTeam, ProjectError> {
        let cache = self.host.home.as_deref().map(Cache::in_home);
        let found = match &team.origin {
            Origin::Registry { repository, manifest } => {
                self.fetch(repository, Some(&team.name), &Pick::Digest(*manifest))?
            }
            Origin::Git { url, reference, commit } => {
                match cache.and_then(|cache| cache.content(team.content)) {
                    Some(dir) => self.host.load_team(&dir)?.from(team.origin.clone(), None),
                    None => {
                        let source = GitSource { url: url.clone(), reference: reference.clone() };
                        self.clone_git(git.unwrap_or(&source), Some(commit))?
                    }
                }
            }
            Origin::Folder { path } => {
                let path = self.workspace.map_or_else(|| path.clone(), |workspace| workspace.join(path));
                self.host.load_team(&path)?
            }
            Origin::Bundled => match self.host.find_local(team.name.as_str())? {
                Some(found) => found,
                None => return Err(self.host.unknown_team(team.name.as_str())?),
            },
        };
        Ok(found)
    }

    #[cfg(not(feature = "packages"))]
    #[allow(clippy::unnecessary_wraps)]
    fn place(&self, _: &TeamName) -> Result<Option<Repository>, ProjectError> {
        Ok(None)
    }

    #[cfg(not(feature = "packages"))]
    fn fetch(
        &self,
        repository: &Repository,
        _: Option<&TeamName>,
        _: &Pick,
    ) -> Result<FoundTeam, ProjectError> {
        Err(ProjectError::NoPackages(repository.to_string()))
    }
}

/// Checks a team that was found. Its team phases have no teams yet.
fn check(found: FoundTeam, requested: Option<Range>, subject: &str) -> Result<ResolvedTeam, ProjectError> {
    let checked = found.folder.check();
    let Some(workflow) = checked.workflow else {
        let team = found.invalid(checked.diagnostics);
        return Err(ProjectError::TeamInvalid { subject: subject.to_owned(), team });
    };
    if let Some((name, version)) = &found.package
        && (workflow.name != *name || workflow.version.as_ref() != Some(version))
    {
        let is = workflow.version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
        return Err(ProjectError::OtherPackage {
            package: format!("{name} {version}"),
            found: format!("{}{is}", workflow.name),
        });
    }
    Ok(ResolvedTeam {
        found,
        workflow,
        warnings: checked.diagnostics,
        requested,
        part: None,
        teams: Vec::new(),
    })
}

fn requested(source: &Source) -> Option<Range> {
    match source {
        Source::Named(named) => named.range.clone(),
        Source::Registry { pick: Pick::Range(range), .. } => Some(range.clone()),
        Source::Registry { .. } | Source::Git(_) | Source::Folder(_) => None,
    }
}

/// A path relative to the workspace, if it is below it, else absolute.
pub(crate) fn relative(path: &Utf8Path, workspace: &Utf8Path) -> Utf8PathBuf {
    let real = |path: &Utf8Path| path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    let path = real(path);
    match path.strip_prefix(real(workspace)) {
        Ok(below) if below.as_str().is_empty() => ".".into(),
        Ok(below) => below.to_owned(),
        Err(_) => path,
    }
}

/// The path of a team in the folder of the team around, if it lies there.
fn part_of(outer: &FoundTeam, inner: &FoundTeam) -> Option<Utf8PathBuf> {
    let real = |found: &FoundTeam| found.folder.dir().canonicalize_utf8().ok();
    let (outer, inner) = (real(outer)?, real(inner)?);
    let path = inner.strip_prefix(&outer).ok()?;
    (!path.as_str().is_empty()).then(|| path.to_owned())
}
