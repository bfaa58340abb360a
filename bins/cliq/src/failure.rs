//! Errors at the edge: the message for the person, and the exit code. `docs/exit-codes.md` documents each.

use std::io;
use std::process::ExitCode;

use cliq_eval::EvalError;
use cliq_fs::{FsError, LockError};
use cliq_lifecycle::{PlanState, StepError};
use cliq_model::StoreError;
use cliq_orchestrator::{JournalError, ResumeError, StartError, SteerError, TmuxError};
use cliq_packages::{PackageError, RegistryError};
use cliq_project::internals::PlanCommandError;
use cliq_project::{InvalidTeam, ProjectError};
use cliq_settings::SettingsError;
use cliq_workflow::LoadError;

use crate::{render, ui};

/// Reason why a command ends without having done what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
    /// A team with errors, which are shown first.
    team: Option<Box<InvalidTeam>>,
}

/// Class of a failure. Determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something could not be done: 1.
    Failed,
    /// The call or the team is wrong: 2.
    Usage,
    /// The rules forbid it now: 4.
    Refused,
    /// The reader of the output has closed it. That is not a failure of the command: 0.
    BrokenPipe,
}

impl Failure {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { kind: Kind::Failed, message: message.into(), hint: None, team: None }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, message: message.into(), hint: None, team: None }
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { kind: Kind::Refused, message: message.into(), hint: None, team: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Class of the failure.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns all of the failure as plain text: the errors of a team with their places, the message, the hint.
    pub(crate) fn sentences(&self) -> String {
        let mut lines = Vec::new();
        if let Some(team) = &self.team {
            lines.extend(team.diagnostics.iter().map(|problem| {
                let before = team.text.get(..problem.span.start).unwrap_or_default();
                let line = before.matches('\n').count() + 1;
                let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
                format!("{}:{line}:{column}: {}; {}", team.file, problem.message, problem.help)
            }));
        }
        if !self.message.is_empty() {
            lines.push(self.message.clone());
        }
        lines.extend(self.hint.clone());
        cliq_protocol::without_credentials(&lines.join("\n")).into_owned()
    }

    fn code(&self) -> u8 {
        match self.kind {
            Kind::BrokenPipe => 0,
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::Refused => 4,
        }
    }

    /// Prints the message and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if self.kind == Kind::BrokenPipe {
            return ExitCode::SUCCESS;
        }
        if let Some(team) = &self.team {
            render::diagnostics::show(&team.text, &team.file, &team.diagnostics);
        }
        if !self.message.is_empty() {
            ui::error(&self.message);
        }
        if let Some(hint) = &self.hint {
            ui::hint(hint);
        }
        ExitCode::from(self.code())
    }

    /// A failure that is reported already.
    pub(crate) fn reported(kind: Kind) -> Self {
        Self { kind, message: String::new(), hint: None, team: None }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let kind = if error.kind() == io::ErrorKind::BrokenPipe { Kind::BrokenPipe } else { Kind::Failed };
        Self { kind, message: error.to_string(), hint: None, team: None }
    }
}

impl From<FsError> for Failure {
    fn from(error: FsError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        let hint = match error {
            JournalError::Broken { .. } => Some("`cliq clean` puts the broken run away".to_owned()),
            _ => None,
        };
        Self { kind: Kind::Failed, message: error.to_string(), hint, team: None }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::NoTeam(_) => Self::usage(error.to_string())
                .hint("name a folder with a team.yml; `cliq team create NAME` makes one, `cliq team list` shows those there are"),
            LoadError::LinkLeavesTeam { .. } => Self::usage(error.to_string()),
            LoadError::NotUtf8 { .. } => Self::usage(error.to_string()).hint("save the file as UTF-8"),
            _ => Self::failed(error.to_string()),
        }
    }
}

impl From<EvalError> for Failure {
    fn from(error: EvalError) -> Self {
        match error {
            EvalError::Busy(_) => Self::refused(error.to_string()),
            EvalError::Unknown(_) => {
                Self::usage(error.to_string()).hint("`cliq eval list` shows all evaluations")
            }
            EvalError::Expression { .. }
            | EvalError::Baseline { .. }
            | EvalError::Suite { .. }
            | EvalError::FolderInside { .. } => Self::usage(error.to_string()),
            EvalError::Project(error) => error.into(),
            EvalError::Settings(error) => error.into(),
            EvalError::Store(error) => error.into(),
            EvalError::File(error) => error.into(),
            _ => Self::failed(error.to_string()),
        }
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { .. } => Self::refused(error.to_string())
                .hint("`cliq status --watch` follows it, `cliq cancel` stops it"),
            _ => Self::failed(error.to_string()),
        }
    }
}

impl From<ProjectError> for Failure {
    fn from(error: ProjectError) -> Self {
        use ProjectError as P;
        let message = error.to_string();
        match error {
            P::NoProject(_) => Self::usage(message).hint("`cliq init` makes it one; `cliq demo` shows a whole run"),
            P::NoTeam => Self::usage(message).hint("`cliq assemble PATH` or `cliq assemble @scope/name` chooses one; `cliq team list` shows those there are"),
            P::AssembledTeamInvalid(team) => Self {
                team: Some(team),
                ..Self::reported(Kind::Usage).hint("mend the team where it comes from and assemble it again")
            },
            P::TeamInvalid { team, .. } => Self { team: Some(team), ..Self::usage(message) },
            P::UnknownTeam { nearest: Some(near), .. } => Self::usage(message).hint(format!("did you mean {near}?")),
            P::UnknownTeam { .. } => Self::usage(message)
                .hint("`cliq team list` shows the teams there are; a folder is named by its path"),
            P::UnknownAgent { nearest, known, .. } => {
                let meant = nearest.map_or(String::new(), |name| format!("did you mean `{name}`? "));
                Self::usage(message).hint(format!("{meant}the agents are: {}", known.join(", ")))
            }
            P::Source(_) | P::PackageSetting { .. } | P::NoPackages(_) | P::Unpublishable { .. } => Self::usage(message),
            P::NoRegistry { scope, .. } => Self::usage(message)
                .hint(format!("`cliq settings set --global registries.{scope} oci://HOST/PATH` sets one; `cliq team list` shows the teams there are")),
            P::OtherVersionInstalled { .. } => Self::usage(message)
                .hint("`cliq team install` another version, or set registries.SCOPE so that it can be fetched"),
            P::Package(error) => (*error).into(),
            P::OtherPackage { .. } => Self::refused(message),
            P::OtherRegistry { .. } => Self::refused(message).hint(
                "if the registry moved, remove .cliq/team.lock and assemble the team again; else ask who changed the lock",
            ),
            P::LockOutdated { .. } => Self::refused(message)
                .hint("`cliq team update` shows what differs; `cliq assemble TEAM` locks what is there"),
            P::NotLocked(_) => Self::refused(message).hint("`cliq assemble TEAM` locks what a team needs"),
            P::Downgrade { .. } => Self::refused(message)
                .hint("ask those who publish it where the newer version is; `cliq team install --allow-downgrade` installs it all the same, `cliq assemble @scope/name@VERSION` takes one version"),
            P::NoLock => Self::usage(message).hint("`cliq assemble TEAM` writes it"),
            P::TeamFiles { .. } | P::LeavesPackage(_) => Self::refused(message),
            P::TeamPhase { source, .. } => Self { message, ..Self::from(*source) },
            P::TeamCycle { .. } => Self::usage(message).hint("take one of them out of the circle"),
            P::TeamPhaseNotAssembled => {
                Self::usage(message).hint("assemble the team again: `cliq assemble`")
            }
            P::BadTeamName { .. } => Self::usage(message).hint("write `name` or `@scope/name`"),
            P::NotEmpty(_) => Self::refused(message).hint("choose another name, or remove the folder"),
            P::NoGit => Self::usage(message).hint("install git, or name a folder"),
            P::NoTmux => Self::usage(message).hint("install tmux, or use `--launcher process`"),
            P::MissingPrograms { .. } => {
                Self::usage(message).hint("install them, or take them out of `tools:` in team.yml")
            }
            P::EmptyRequirement => Self::usage(message).hint("`cliq req -m \"what is to be done\"`"),
            P::NoRun => Self::failed(message).hint("`cliq run` runs the team"),
            P::UnknownRun { kept, .. } | P::AmbiguousRun { kept, .. } if !kept.is_empty() => {
                Self::usage(message).hint(format!("these are kept: {}", kept.join(", ")))
            }
            P::NoHome
            | P::Unusable { .. }
            | P::NotAFile { .. }
            | P::UnknownRun { .. }
            | P::AmbiguousRun { .. }
            | P::NoAgentForRole { .. }
            | P::RoleFile { .. } => Self::usage(message),
            P::Load(error) => error.into(),
            P::Settings(error) => error.into(),
            P::File(error) => error.into(),
            P::Lock(error) => error.into(),
            P::Journal(error) => error.into(),
            P::Steer(error) => error.into(),
            P::Start(error) => error.into(),
            P::Tmux(error) => error.into(),
            P::Io(error) => error.into(),
            _ => Self::failed(message),
        }
    }
}

impl From<PackageError> for Failure {
    fn from(error: PackageError) -> Self {
        use PackageError as P;
        let message = error.to_string();
        match error {
            P::NoRegistry(_) | P::NoVersion { .. } => Self::usage(message),
            P::Moved { .. } => Self::refused(message)
                .hint("ask those who publish it; if the new one is theirs, they publish a new version"),
            P::Unsigned { .. } | P::OtherSigner { .. } => Self::refused(message).hint(
                "if you trust who publishes it, add the public key to the setting; `@scope/name@VERSION` takes an earlier version",
            ),
            P::Format { .. }
            | P::OtherTeam { .. }
            | P::OtherVersion { .. }
            | P::Content { .. }
            | P::OtherContent { .. }
            | P::Exists { .. }
            | P::WouldBeUnsigned { .. }
            | P::Raced { .. }
            | P::Registry(RegistryError::Changed { .. } | RegistryError::TooLong { .. }) => {
                Self::refused(message)
            }
            P::Registry(RegistryError::NotFound { .. }) => Self::failed(message).hint(
                "`cliq team info` shows the versions of a package; if .cliq/team.lock names it, `cliq team update` takes another",
            ),
            P::Registry(RegistryError::Unreachable { .. }) => Self::failed(message).hint(
                "the settings registries.* say where packages are; SSL_CERT_FILE names other certificates, packages.plain_http hosts without TLS",
            ),
            P::Registry(_) | P::Signature(_) | P::File(_) => Self::failed(message),
            _ => Self::failed(message),
        }
    }
}

impl From<SteerError> for Failure {
    fn from(error: SteerError) -> Self {
        let message = error.to_string();
        match error {
            SteerError::Ended(_) => Self::refused(message)
                .hint("`cliq run --resume --from PHASE` runs a phase again; `cliq req` changes the task of the next run"),
            SteerError::TooMany => Self::refused(message).hint("write the guidance to a file of the workspace"),
            SteerError::Conflict(_) => Self::refused(message),
            SteerError::NoSuchPhase { .. } | SteerError::NoAgent(_) => Self::usage(message),
            SteerError::File(error) => error.into(),
            SteerError::Journal(error) => error.into(),
            _ => Self::failed(message),
        }
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::File { .. } | SettingsError::Unreadable(_) => Self::failed(error.to_string()),
            _ => Self::usage(error.to_string()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<StepError> for Failure {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Gateway(error) => error.into(),
            StepError::NoPlan { .. } => {
                Self::usage(error.to_string()).hint("`cliq plan list` shows those there are")
            }
            StepError::Exists { .. } => Self::refused(error.to_string()),
            StepError::Refused(why) => Self::refused(why),
            other => Self::failed(other.to_string()),
        }
    }
}

impl From<PlanCommandError> for Failure {
    fn from(error: PlanCommandError) -> Self {
        let message = error.to_string();
        match error {
            PlanCommandError::NotReady { plan, state } => Self::refused(message).hint(match state {
                PlanState::Done => format!("`cliq plan start-over {plan}` does it again"),
                PlanState::Cancelled => format!("`cliq plan reopen {plan}` takes it up again"),
                _ => format!("`cliq plan status {plan} --watch` follows it"),
            }),
            PlanCommandError::File(why) => Self::usage(why),
            PlanCommandError::Step(error) => error.into(),
            PlanCommandError::Project(error) => error.into(),
            _ => Self::failed(message),
        }
    }
}

impl From<TmuxError> for Failure {
    fn from(error: TmuxError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<ResumeError> for Failure {
    fn from(error: ResumeError) -> Self {
        let text = error.to_string();
        match error {
            ResumeError::Nothing => Self::refused(text).hint("`cliq run` starts one"),
            ResumeError::Completed => Self::refused(text).hint(
                "`cliq run --from PHASE` runs a phase and what depends on it again, `cliq req -m TEXT` starts a new task",
            ),
            ResumeError::OtherRun { .. } => Self::refused(text),
            ResumeError::TeamChanged => Self::refused(text).hint("`cliq run -f` starts anew"),
            _ => Self::usage(text),
        }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Plan(plan) => {
                Self::usage(format!("cannot start the run:\n  {}", plan.problems.join("\n  ")))
            }
            StartError::Lock(lock) => lock.into(),
            StartError::File(file) => file.into(),
            StartError::Journal(journal) => journal.into(),
            StartError::Resume(resume) => resume.into(),
            StartError::HasBegun(_) => Self::refused(error.to_string()),
            other => Self::failed(other.to_string()),
        }
    }
}

impl Failure {
    /// The message for the person.
    pub(crate) fn text(&self) -> &str {
        &self.message
    }
}
