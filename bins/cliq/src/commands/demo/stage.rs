//! Common steps of the demos that run a bundled team: files, team, run, list of results.

use std::fs;
use std::process::ExitCode;

use camino::Utf8Path;
use cliq_fs::IoContext;
use cliq_project::internals::{BundledTeam, write_files};
use cliq_project::{Project, RunOptions, RunStart};
use cliq_workflow::ValidatedWorkflow;

use crate::commands::assemble;
use crate::commands::execution::{execute, exit_code};
use crate::failure::Failure;
use crate::render::{progress::Progress, summary};
use crate::{project, ui};

/// Writes the files of a demo and of its team.
pub(super) fn write(dir: &Utf8Path, files: &[(&str, &str)], team: &BundledTeam) -> Result<(), Failure> {
    fs::create_dir_all(dir).at("create", dir)?;
    write_files(dir, files)?;
    Ok(write_files(&dir.join("team"), team.files)?)
}

/// Project of a demo, ready to run.
pub(super) struct Stage {
    project: Project,
    workflow: ValidatedWorkflow,
}

impl Stage {
    /// Makes the directory a project with the team and a requirement.
    pub(super) fn prepare(dir: &Utf8Path, requirement: &str) -> Result<Self, Failure> {
        Self::prepare_with(dir, dir.join("team").as_str(), requirement)
    }

    /// Makes the directory a project with an installed team and a requirement.
    pub(super) fn prepare_with(dir: &Utf8Path, team: &str, requirement: &str) -> Result<Self, Failure> {
        let project = Project::init(dir, project::host())?;
        let workflow = assemble::assemble(&project, team)?.workflow;
        project.set_requirement(requirement)?;
        Ok(Self { project, workflow })
    }

    /// Sets a setting of the project.
    pub(super) fn set(&self, key: &str, value: &str) -> Result<(), Failure> {
        Ok(cliq_settings::set(&self.project.dir().settings(), key, value)?)
    }

    /// Prints the introduction and the phases of the team.
    pub(super) fn introduce(&self, introduction: &str) -> Result<(), Failure> {
        ui::line(introduction)?;
        Ok(ui::raw_styled(&self.workflow.to_text())?)
    }

    /// Runs the team and shows it. If it completes, prints which files to read, each with its content.
    pub(super) fn run(
        self,
        dir: &Utf8Path,
        options: &RunOptions,
        plain: bool,
        results: &[(&str, &str)],
    ) -> Result<ExitCode, Failure> {
        ui::line("")?;
        let Self { project, workflow } = self;
        let plan = project.run_plan_of(workflow, &project.settings()?, options)?;
        let mut progress = Progress::new(false, plain);
        let view =
            execute(project.host(), plan, &RunStart::Fresh, |record, view| progress.show(record, view))?;
        summary::show(&view, &project)?;
        if view.completed() {
            look_at(dir, results)?;
        }
        Ok(exit_code(view.pipeline_status()))
    }
}

/// Prints which files to read, each with its content.
pub(super) fn look_at(dir: &Utf8Path, results: &[(&str, &str)]) -> Result<(), Failure> {
    ui::line("\nlook at:")?;
    let rows = results.iter().map(|(path, content)| (dir.join(path).into_string(), content));
    let rows: Vec<_> = rows.collect();
    let width = rows.iter().map(|(path, _)| path.len()).max().unwrap_or(0);
    for (path, content) in rows {
        ui::line(format!("  {path:<width$}  {content}"))?;
    }
    Ok(())
}
