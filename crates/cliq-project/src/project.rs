//! A project: its `.cliq` directory, its settings, its assembled team, its last run.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, write_atomic};
use cliq_orchestrator::{Journal, RunView};
use cliq_protocol::PhaseName;
use cliq_settings::Settings;
use cliq_workflow::{EntryFile, TeamFiles, TeamFolder, ValidatedWorkflow};

use crate::error::InvalidTeam;
use crate::host::Host;
use crate::{ProjectError, agents};

/// A cliq project on a host: a workspace with a `.cliq` directory.
///
/// ```
/// use cliq_project::{Environment, Host, Project, ProjectError};
///
/// # let place = tempfile::tempdir()?;
/// # let workspace = camino::Utf8Path::from_path(place.path()).ok_or("not UTF-8")?;
/// let host = Host::new(Environment::of_process(), "/usr/local/bin/cliq".into());
/// let missing = Project::open(workspace, host.clone()).unwrap_err();
/// assert!(missing.to_string().contains(".cliq"));
///
/// let project = Project::init(workspace, host)?;
/// project.set_requirement("Add a search field.")?;
/// assert!(!project.has_team(), "nothing is assembled yet");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Project {
    dir: CliqDir,
    settings_file: Utf8PathBuf,
    host: Host,
}

impl Project {
    /// The project in a workspace.
    ///
    /// # Errors
    /// The workspace has no `.cliq` directory.
    pub fn open(workspace: &Utf8Path, host: Host) -> Result<Self, ProjectError> {
        Ok(Self::of(CliqDir::open(workspace)?, host))
    }

    /// The project of `start` or of the nearest directory above it.
    ///
    /// # Errors
    /// There is none.
    pub fn discover(start: &Utf8Path, host: Host) -> Result<Self, ProjectError> {
        let dir = CliqDir::discover(start).ok_or_else(|| ProjectError::NoProject(start.to_owned()))?;
        Ok(Self::of(dir, host))
    }

    /// Makes a workspace a project: creates the missing parts of `.cliq`.
    ///
    /// # Errors
    /// Something cannot be created.
    pub fn init(workspace: &Utf8Path, host: Host) -> Result<Self, ProjectError> {
        let dir = CliqDir::create(workspace)?;
        if !dir.id_file().exists() {
            // The last bytes of such an id are random; six characters tell projects apart for people.
            let id = uuid::Uuid::now_v7().simple().to_string();
            write_atomic(&dir.id_file(), format!("cliq-{}\n", &id[26..]).as_bytes())?;
        }
        if !dir.settings().exists() {
            write_atomic(&dir.settings(), b"{}\n")?;
        }
        host.register(dir.workspace());
        Ok(Self::of(dir, host))
    }

    /// As [`Project::init`], for a workspace that exists for one run: it is not registered in the cliq home.
    ///
    /// # Errors
    /// Something cannot be created.
    #[doc(hidden)]
    pub fn init_for_run(workspace: &Utf8Path, host: Host) -> Result<Self, ProjectError> {
        let dir = CliqDir::create(workspace)?;
        write_atomic(&dir.settings(), b"{}\n")?;
        Ok(Self::of(dir, host))
    }

    /// The project of a `.cliq` directory.
    #[must_use]
    pub fn of(dir: CliqDir, host: Host) -> Self {
        let settings_file = dir.settings();
        let host = Host { project_settings: Some(settings_file.clone()), ..host };
        Self { settings_file, dir, host }
    }

    /// The same project and settings with another `.cliq` directory: that of a team phase, or of an agent of a plan.
    #[doc(hidden)]
    #[must_use]
    pub fn with_dir(&self, dir: CliqDir) -> Self {
        Self { dir, settings_file: self.settings_file.clone(), host: self.host.clone() }
    }

    /// The team of a team phase, as a project of its own with the settings of this one. It may not be assembled.
    #[must_use]
    pub fn team_phase(&self, phase: &PhaseName) -> Self {
        self.with_dir(self.dir.team_of(phase))
    }

    /// The `.cliq` directory.
    #[must_use]
    pub fn dir(&self) -> &CliqDir {
        &self.dir
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The settings that hold in the project.
    ///
    /// # Errors
    /// A settings file cannot be read or has an error.
    pub fn settings(&self) -> Result<Settings, ProjectError> {
        Ok(Settings::load(self.host.home.as_deref(), Some(&self.settings_file))?)
    }

    /// Whether a team is assembled.
    #[must_use]
    pub fn has_team(&self) -> bool {
        self.dir.team_file().exists()
    }

    /// The assembled team.
    ///
    /// # Errors
    /// None is assembled, or it has errors.
    pub fn workflow(&self) -> Result<ValidatedWorkflow, ProjectError> {
        self.workflow_with([])
    }

    /// As [`Project::workflow`], where these agents are known beside the installed ones.
    pub(crate) fn workflow_with(
        &self,
        agents: impl IntoIterator<Item = String>,
    ) -> Result<ValidatedWorkflow, ProjectError> {
        if !self.has_team() {
            return Err(ProjectError::NoTeam);
        }
        let (usable, broken) = agents::usable_and_broken(&self.host);
        let known = usable.into_iter().chain(agents).collect();
        let folder =
            TeamFolder::load(self.dir.root())?.with_installed_agents(known).with_broken_agents(broken);
        // The entries of its agents lie in .cliq/team, as `agents.json` says; they were checked when it was assembled.
        let checked = cliq_workflow::check(folder.text(), &AssembledFiles(&folder));
        checked.workflow.ok_or_else(|| {
            ProjectError::AssembledTeamInvalid(Box::new(InvalidTeam {
                file: folder.file().to_owned(),
                text: folder.text().to_owned(),
                diagnostics: checked.diagnostics,
            }))
        })
    }

    /// The last run, from its journal. `None` if nothing has run.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn last_run(&self, workflow: &ValidatedWorkflow) -> Result<Option<(Journal, RunView)>, ProjectError> {
        let Some(journal) = Journal::read(&self.dir.journal())? else { return Ok(None) };
        if journal.records.is_empty() {
            return Ok(None);
        }
        let mut view = RunView::new(workflow);
        journal.records.iter().for_each(|record| view.apply(record));
        Ok(Some((journal, view)))
    }
}

/// The files of an assembled team: entries of agents lie one directory deeper than in the team folder.
struct AssembledFiles<'a>(&'a TeamFolder);

impl TeamFiles for AssembledFiles<'_> {
    fn has_role(&self, name: &str) -> bool {
        self.0.has_role(name)
    }
    fn role_names(&self) -> Vec<String> {
        self.0.role_names()
    }
    fn role_texts(&self) -> Vec<String> {
        self.0.role_texts()
    }
    fn entry(&self, path: &Utf8Path) -> EntryFile {
        self.0.entry(&Utf8Path::new("team").join(path))
    }
    fn installed_agents(&self) -> Vec<String> {
        self.0.installed_agents()
    }
    fn broken_agent(&self, name: &str) -> Option<String> {
        self.0.broken_agent(name)
    }
}
