//! Steering the run of a project (docs/steering.md).

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::CliqDir;
use cliq_orchestrator::internals::accepts_steering;
use cliq_orchestrator::{SteerError, SteeringReceipt, steer};
use cliq_protocol::NewSteering;
use cliq_settings::{A2aSettings, Settings};

use crate::host::workspace_root;
use crate::{Host, Project, ProjectError};

impl Host {
    /// Returns the project of a run: that of the directory `here` if it has a record of the run, or the workspace that a server of this
    /// machine made for the run. A workspace is found by the whole id only.
    ///
    /// # Errors
    /// Returns an error if `here` is not inside a project and there is no such workspace.
    #[doc(hidden)]
    pub fn project_of_run(&self, here: &Utf8Path, run: Option<&str>) -> Result<Project, ProjectError> {
        let project = Project::discover(here, self.clone());
        let is_here = project.as_ref().is_ok_and(|project| project.recorded_run(run).is_ok());
        match run.filter(|_| !is_here).and_then(|run| self.workspace_of(run)) {
            Some(workspace) => Project::open(&workspace, self.clone()),
            None => project,
        }
    }

    /// Returns the workspace that a server of this machine made for a run.
    fn workspace_of(&self, run: &str) -> Option<Utf8PathBuf> {
        // An id, and no path out of the directory.
        let is_id = !run.is_empty() && run.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let home = self.home.as_deref().filter(|_| is_id)?;
        let settings = Settings::load(Some(home), None).ok()?;
        let of_tasks = A2aSettings::read(&settings).workspace_root.map(Utf8PathBuf::from);
        let roots = std::iter::once(workspace_root(home, &settings)).chain(of_tasks);
        roots.map(|root| root.join(run)).find(|path| path.join(CliqDir::NAME).is_dir())
    }
}

impl Project {
    /// Sends a steering message to the last run, or to the run whose id begins with `run`. Blocks until the run's journal contains the
    /// message.
    ///
    /// # Errors
    /// Returns an error if there is no such run, it has ended, it takes no such message, or a file cannot be written.
    pub fn steer(&self, run: Option<&str>, new: NewSteering) -> Result<SteeringReceipt, ProjectError> {
        let record = self.recorded_run(run)?;
        let run_id = record.journal.run_id().ok_or(ProjectError::NoRun)?;
        if record.place != self.dir().root() {
            return Err(SteerError::Ended(run_id.clone()).into());
        }
        if let Some(phase) = new.phase() {
            accepts_steering(&self.workflow()?, phase)?;
        }
        Ok(steer(self.dir(), run_id, new)?)
    }
}
