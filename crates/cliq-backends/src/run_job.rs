//! Description of a run for a backend.

use std::collections::BTreeMap;

use cliq_fs::{CliqDir, SharedPath};
use cliq_orchestrator::Journal;
use cliq_project::{Project, ProjectError, RunSpec, RunStart, Settings};
use cliq_protocol::RunId;
use cliq_workflow::ValidatedWorkflow;

use crate::run_mode::{RunMode, words};

/// Run for a backend: its project, its arguments, and what it needs of this host.
///
/// ```no_run
/// use cliq_backends::RunJob;
/// use cliq_project::{Environment, Host, Project, RunSpec, RunStart};
///
/// let host = Host::new(Environment::of_process(), "/usr/local/bin/cliq".into());
/// let project = Project::open("/home/ada/shop".into(), host)?;
/// let job = RunJob::builder(&project)
///     .with_start(RunStart::Fresh)
///     .with_spec(RunSpec { max_parallel: Some(2), ..RunSpec::default() })
///     .build()?;
/// println!("run {}", job.run_id);
/// # Ok::<(), cliq_project::ProjectError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunJob {
    /// Project of the run.
    pub project: Project,
    /// Workflow of the run.
    pub workflow: ValidatedWorkflow,
    /// Settings of the run.
    pub settings: Settings,
    /// Id of the run.
    pub run_id: RunId,
    /// Whether the run is active already and is only followed.
    pub is_active: bool,
    /// Start or resumption.
    pub start: RunStart,
    /// Description of the run.
    pub spec: RunSpec,
    /// Behaviour of the process of the run.
    pub mode: RunMode,
    /// Work of the `cliq` in a container or Job.
    work: Work,
}

#[derive(Debug, Clone)]
enum Work {
    /// `cliq run`
    Run,
    /// Another command, such as the agent of a plan, with its variables and paths.
    Command { arguments: Vec<String>, variables: BTreeMap<String, String>, paths: Vec<SharedPath> },
}

impl RunJob {
    /// Returns a builder for a run of the project's assembled team.
    pub fn builder(project: &Project) -> RunJobBuilder {
        RunJobBuilder {
            project: project.clone(),
            team: None,
            start: RunStart::Fresh,
            spec: RunSpec::default(),
            mode: RunMode::default(),
            run_id: None,
            active: None,
        }
    }

    /// Describes the run of another command of `cliq`, which a container or Job executes. `arguments` receives the run id.
    #[doc(hidden)]
    #[must_use]
    pub fn of_command(
        project: &Project,
        workflow: ValidatedWorkflow,
        settings: &Settings,
        arguments: impl FnOnce(&RunId) -> Vec<String>,
        variables: BTreeMap<String, String>,
        paths: Vec<SharedPath>,
        active: Option<RunId>,
    ) -> Self {
        let is_active = active.is_some();
        let run_id = active.unwrap_or_else(cliq_fs::new_run_id);
        let work = Work::Command { arguments: arguments(&run_id), variables, paths };
        let (project, settings) = (project.clone(), settings.clone());
        let (start, spec, mode) = (RunStart::Fresh, RunSpec::default(), RunMode::default());
        Self { project, workflow, settings, run_id, is_active, start, spec, mode, work }
    }

    /// Project directory of the run.
    #[must_use]
    pub fn dir(&self) -> &CliqDir {
        self.project.dir()
    }

    /// Returns the arguments of the `cliq` in a container or Job, after those of `cliq contained`.
    #[cfg_attr(
        not(any(feature = "docker", feature = "kubernetes")),
        expect(dead_code, reason = "for containers")
    )]
    pub(crate) fn contained_arguments(&self) -> Vec<String> {
        let mut arguments = words(&["--"]);
        match &self.work {
            Work::Run => {
                arguments.extend(words(&["run", "--headless", "--json", "--no-docker", "--yes"]));
                arguments.extend(self.mode.arguments(&self.run_id, &self.start));
            }
            Work::Command { arguments: command, .. } => arguments.extend(command.iter().cloned()),
        }
        arguments
    }

    /// Returns the description of the run for the `cliq` in a container or Job, or `None` if the work is another command.
    #[cfg_attr(
        not(any(feature = "docker", feature = "kubernetes")),
        expect(dead_code, reason = "for containers")
    )]
    pub(crate) fn handed_spec(&self) -> Option<RunSpec> {
        match &self.work {
            Work::Run => Some(self.spec.clone()),
            Work::Command { .. } => None,
        }
    }

    /// Returns the variables of this host that the run may need.
    #[cfg_attr(
        not(any(feature = "docker", feature = "kubernetes")),
        expect(dead_code, reason = "for containers")
    )]
    pub(crate) fn variables(&self) -> Result<BTreeMap<String, String>, ProjectError> {
        match &self.work {
            Work::Run => self.project.variables_for_container(),
            Work::Command { variables, .. } => Ok(variables.clone()),
        }
    }

    /// Returns the paths that the run needs besides its workspace.
    #[cfg_attr(
        not(any(feature = "docker", feature = "kubernetes")),
        expect(dead_code, reason = "for containers")
    )]
    pub(crate) fn paths(&self) -> Vec<SharedPath> {
        match &self.work {
            Work::Run => self.project.paths_for_container(),
            Work::Command { paths, .. } => paths.clone(),
        }
    }
}

/// Builder of a [`RunJob`].
#[derive(Debug, Clone)]
#[must_use]
pub struct RunJobBuilder {
    project: Project,
    team: Option<(ValidatedWorkflow, Settings)>,
    start: RunStart,
    spec: RunSpec,
    mode: RunMode,
    run_id: Option<RunId>,
    active: Option<RunId>,
}

impl RunJobBuilder {
    /// Sets the assembled team and the settings of the project, if they are loaded already.
    pub fn with_team(mut self, workflow: ValidatedWorkflow, settings: Settings) -> Self {
        self.team = Some((workflow, settings));
        self
    }

    /// Sets the start or resumption. Default: [`RunStart::Fresh`].
    pub fn with_start(mut self, start: RunStart) -> Self {
        self.start = start;
        self
    }

    /// Sets the description of the run.
    pub fn with_spec(mut self, spec: RunSpec) -> Self {
        self.spec = spec;
        self
    }

    /// Sets the behaviour of the process of the run.
    pub fn with_mode(mut self, mode: RunMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the id of the run. A run of this id begins once only.
    pub fn with_run_id(mut self, run_id: impl Into<Option<RunId>>) -> Self {
        self.run_id = run_id.into();
        self
    }

    /// Sets the id of a run that is active already, which is then only followed.
    pub fn with_active(mut self, active: impl Into<Option<RunId>>) -> Self {
        self.active = active.into();
        self
    }

    /// Returns the job.
    ///
    /// # Errors
    /// Returns an error if the project has no assembled team, the team or the settings have errors, or the journal of the run to
    /// resume cannot be read.
    pub fn build(self) -> Result<RunJob, ProjectError> {
        let Self { project, team, start, spec, mode, run_id, active } = self;
        let (workflow, settings) = match team {
            Some(team) => team,
            None => (project.workflow()?, project.settings()?),
        };
        let is_active = active.is_some();
        let run_id = match (active.or(run_id), &start) {
            (Some(id), _) => id,
            (None, RunStart::Resume { .. }) => last_run_id(&project)?.unwrap_or_else(cliq_fs::new_run_id),
            (None, RunStart::Fresh | RunStart::Changed) => cliq_fs::new_run_id(),
        };
        Ok(RunJob { project, workflow, settings, run_id, is_active, start, spec, mode, work: Work::Run })
    }
}

/// Returns the id of the last run of a project, from its journal.
///
/// # Errors
/// Returns an error if the journal cannot be read.
pub fn last_run_id(project: &Project) -> Result<Option<RunId>, ProjectError> {
    let journal = Journal::read(&project.dir().journal())?;
    Ok(journal.and_then(|journal| journal.run_id().cloned()))
}
