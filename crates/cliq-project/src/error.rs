//! Reason why something could not be done with a project.

use std::io;

use camino::Utf8PathBuf;
use cliq_fs::{FsError, LockError};
use cliq_orchestrator::{JournalError, StartError, TmuxError};
use cliq_packages::{ContentError, SourceError};
use cliq_protocol::{PhaseName, without_credentials};
use cliq_settings::SettingsError;
use cliq_workflow::{Diagnostic, LoadError, count_by_severity};
use semver::Version;

/// A team that has errors, with all that is needed to show them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InvalidTeam {
    /// Path of team.yml.
    pub file: Utf8PathBuf,
    /// The text of its team.yml.
    pub text: String,
    /// Every problem, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reason why something could not be done with a project. Each message says what happened and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// There is no `.cliq` directory here or above.
    #[error("{0} is not inside a cliq project")]
    NoProject(Utf8PathBuf),
    /// No team is assembled.
    #[error("no team is assembled in this project")]
    NoTeam,
    /// The assembled team has errors.
    #[error("the assembled team {} cannot run: {}", .0.file, count_by_severity(&.0.diagnostics))]
    AssembledTeamInvalid(Box<InvalidTeam>),
    /// A team has errors.
    #[error("{subject} cannot run: {}", count_by_severity(&team.diagnostics))]
    TeamInvalid {
        /// The team, as the caller named it.
        subject: String,
        /// Errors of the team.
        team: Box<InvalidTeam>,
    },
    /// There is no team of this name.
    #[error("there is no team {name}")]
    UnknownTeam {
        /// Requested name.
        name: String,
        /// The most similar name, if any.
        nearest: Option<String>,
    },
    /// There is no agent of this name.
    #[error("cannot run with the agent `{name}`: there is no such agent")]
    UnknownAgent {
        /// Requested name.
        name: String,
        /// The most similar name, if any.
        nearest: Option<String>,
        /// All names, the most similar one first.
        known: Vec<String>,
    },
    /// The source of a team cannot be one.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// No setting says where the packages of a scope are.
    #[error("there is no team {name} here, and no registry is known for the scope @{scope}")]
    NoRegistry {
        /// Requested name.
        name: String,
        /// The scope.
        scope: String,
    },
    /// The installed team has another version.
    #[error("{name} is installed as {}, which is not in {range}", version.as_deref().unwrap_or("a team without a version"))]
    OtherVersionInstalled {
        /// Name of the team.
        name: String,
        /// Requested range.
        range: String,
        /// Installed version.
        version: Option<String>,
    },
    /// The build has no registries.
    #[error("{0} is in a registry, and this build of cliq has no registries (feature `packages`)")]
    NoPackages(String),
    /// A setting of packages has no valid value.
    #[error("the setting {key} cannot be used: {message}")]
    PackageSetting {
        /// Key of the setting.
        key: String,
        /// Problem.
        message: String,
    },
    /// A package is refused or cannot be fetched.
    #[cfg(feature = "packages")]
    #[error(transparent)]
    Package(#[from] Box<cliq_packages::PackageError>),
    /// The files of a package are those of another team.
    #[error("{package} is refused: its team.yml is that of {found}")]
    OtherPackage {
        /// Name and version of the package.
        package: String,
        /// Name and version in team.yml.
        found: String,
    },
    /// The lock names another registry than the settings.
    #[error("{name} is locked from {locked}, and registries.{scope} says {place}")]
    OtherRegistry {
        /// Name of the team.
        name: String,
        /// Scope of the team.
        scope: String,
        /// Repository in the lock.
        locked: String,
        /// Repository by the settings.
        place: String,
    },
    /// A team phase of a package names a folder outside of the package.
    #[error("{0} is not in the package: a team phase of a package names a folder in it, or another package")]
    LeavesPackage(String),
    /// A version is older than the one that is there.
    #[error("{name} {to} is refused: it is older than {from}, which is there")]
    Downgrade {
        /// Name of the team.
        name: String,
        /// Version that is there.
        from: Version,
        /// Older version.
        to: Version,
    },
    /// The files of a team cannot be those of a package.
    #[error("the files of {team} cannot be taken: {source}")]
    TeamFiles {
        /// Name of the team.
        team: String,
        /// Reason.
        source: ContentError,
    },
    /// A team cannot be published.
    #[error("{team} cannot be published: {why}")]
    Unpublishable {
        /// Name of the team.
        team: String,
        /// Reason.
        why: String,
    },
    /// The project has no lock.
    #[error("this project has no .cliq/team.lock")]
    NoLock,
    /// A team is not in the lock.
    #[error("{0} is not in .cliq/team.lock")]
    NotLocked(String),
    /// The teams are not those of the lock.
    #[error("the teams are not those of .cliq/team.lock: {}", differences.join("; "))]
    LockOutdated {
        /// Differences, as sentences.
        differences: Vec<String>,
    },
    /// The lock cannot be read or written.
    #[error(transparent)]
    TeamLock(#[from] cliq_packages::LockError),
    /// The team of a team phase cannot be used.
    #[error("team phase `{phase}`{}: {source}", team.as_ref().map(|team| format!(" of {team}")).unwrap_or_default())]
    TeamPhase {
        /// The phase.
        phase: PhaseName,
        /// The team that has the phase.
        team: Option<String>,
        /// Problem of the inner team.
        source: Box<ProjectError>,
    },
    /// A team would run within itself.
    #[error("{} runs {team}: a team cannot run within itself", chain.join(" runs "))]
    TeamCycle {
        /// The teams, from the outermost to the one that closes the cycle.
        chain: Vec<String>,
        /// The team that comes twice.
        team: String,
    },
    /// The team of a team phase is not assembled.
    #[error("its team is not assembled")]
    TeamPhaseNotAssembled,
    /// A team has a file that is neither a file nor a directory.
    #[error("{path} is {kind}: a team consists of files and directories")]
    NotAFile {
        /// The path.
        path: Utf8PathBuf,
        /// Kind of the file, with its article.
        kind: &'static str,
    },
    /// A team name that cannot be one.
    #[error("{name:?} is not a valid team name: {why}")]
    BadTeamName {
        /// The name.
        name: String,
        /// Reason.
        why: String,
    },
    /// A directory that should be empty is not.
    #[error("{0} is not empty")]
    NotEmpty(Utf8PathBuf),
    /// A directory cannot be used.
    #[error("cannot use {path}: {source}")]
    Unusable {
        /// The directory.
        path: Utf8PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// There is no cliq home.
    #[error("neither CLIQ_HOME nor HOME is set")]
    NoHome,
    /// A path is not UTF-8.
    #[error("{0} is not UTF-8")]
    NotUtf8(String),
    /// git is needed and not there.
    #[error("git is not installed, and installation from a repository requires it")]
    NoGit,
    /// git could not fetch a repository.
    #[error("git cannot fetch {}: {}", without_credentials(url), without_credentials(message))]
    GitFailed {
        /// The address, without a password.
        url: String,
        /// Message of git.
        message: String,
    },
    /// tmux is needed and not there.
    #[error("tmux is not installed, or is older than 3.2")]
    NoTmux,
    /// Programs that the team needs are missing.
    #[error("{team} needs programs that are not on the PATH: {}", programs.join(", "))]
    MissingPrograms {
        /// The team.
        team: String,
        /// The programs.
        programs: Vec<String>,
    },
    /// The requirement is empty.
    #[error("the requirement is empty")]
    EmptyRequirement,
    /// Nothing has run yet.
    #[error("nothing has run yet")]
    NoRun,
    /// The run does not exist.
    #[error("there is no run {id}{}", if kept.is_empty() { ": no earlier run is kept" } else { "" })]
    UnknownRun {
        /// Requested id.
        id: String,
        /// The runs that are kept.
        kept: Vec<String>,
    },
    /// Several runs begin with what was asked for.
    #[error("several runs begin with {id}")]
    AmbiguousRun {
        /// Requested id.
        id: String,
        /// The runs that are kept.
        kept: Vec<String>,
    },
    /// A steering message is not accepted.
    #[error(transparent)]
    Steer(#[from] cliq_orchestrator::SteerError),
    /// A run that is kept has no journal.
    #[error("{0} has no journal")]
    NoJournal(Utf8PathBuf),
    /// No agent works in a role of plans.
    #[error(
        "nobody works as {role}: `cliq settings set roles.{role}.agent NAME` or `roles.{role}.command 'COMMAND'` says who, or `default_agent` for all roles"
    )]
    NoAgentForRole {
        /// The role.
        role: String,
    },
    /// A role file of plans cannot be read.
    #[error("cannot read {path}, the role file of {role}: {message}")]
    RoleFile {
        /// The file.
        path: Utf8PathBuf,
        /// The role.
        role: String,
        /// Problem of the file.
        message: String,
    },
    /// The team of a team phase did not complete.
    #[error("team {team} {status}: {reason}")]
    TeamEnded {
        /// The team.
        team: String,
        /// End of the run.
        status: String,
        /// Reason.
        reason: String,
    },
    /// A sandbox cannot be enforced.
    #[error("{0}")]
    Sandbox(String),
    /// The run around a team phase was parked, and the run of its team with it.
    #[error("the run is parked")]
    TeamParked,
    /// No checkpoints are taken.
    #[error("this project has no checkpoints: {0}")]
    NoCheckpoints(String),
    /// The checkpoint does not exist.
    #[error("{0}")]
    NoCheckpoint(String),
    /// Nothing has run.
    #[error("nothing has run yet")]
    NothingRan,
    /// The store of checkpoints fails.
    #[error(transparent)]
    Checkpoint(#[from] cliq_git::checkpoints::CheckpointError),
    /// A model could not make or change a team.
    #[error("{0}")]
    Builder(String),
    /// A file of a team was changed by another writer since it was read.
    #[error("{0} was changed meanwhile")]
    ChangedMeanwhile(Utf8PathBuf),
    /// The workspace of a run with scripted agents cannot be made a git repository, which worktrees of items need.
    #[error("cannot make the workspace a git repository for the worktrees of items: {0}")]
    Repository(cliq_git::GitError),
    /// The team of an item cannot be copied.
    #[error("cannot copy the team of the phase to {path}: {source}")]
    CopyTeam {
        /// Directory of the item's team.
        path: camino::Utf8PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// A handoff cannot be read.
    #[error(transparent)]
    Handoff(#[from] cliq_fs::HandoffError),
    /// The SDK could not read or write a file of the protocol.
    #[error(transparent)]
    Sdk(#[from] cliq_sdk::SdkError),
    /// A team cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Settings cannot be read.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Something could not be done to a file.
    #[error(transparent)]
    File(#[from] FsError),
    /// The project is locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A run cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// tmux failed.
    #[error(transparent)]
    Tmux(#[from] TmuxError),
    /// The system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[cfg(feature = "packages")]
impl From<cliq_packages::PackageError> for ProjectError {
    fn from(error: cliq_packages::PackageError) -> Self {
        Self::Package(Box::new(error))
    }
}

impl ProjectError {
    /// The same error about the team that a person named so.
    pub(crate) fn named(self, source: &str) -> Self {
        match self {
            Self::TeamInvalid { team, .. } => Self::TeamInvalid { subject: source.to_owned(), team },
            error => error,
        }
    }

    /// The same error, as that of a team phase.
    pub(crate) fn of_team_phase(self, phase: &PhaseName, team: Option<&str>) -> Self {
        Self::TeamPhase { phase: phase.clone(), team: team.map(str::to_owned), source: Box::new(self) }
    }
}
