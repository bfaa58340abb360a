//! `cliq demo`: the bundled team on real files.

use std::fs;
use std::process::ExitCode;

use camino::Utf8PathBuf;
use cliq_fs::IoContext;
use cliq_project::{DEMO_FILES, DEMO_TEAM, Project, RunOptions, RunStart, is_empty_dir, write_files};

use super::{assemble, run as run_command};
use crate::failure::Failure;
use crate::render::{progress::Progress, summary};
use crate::{project, ui};

const REQUIREMENT: &str =
    "Every page in pages/ passes the checks in checks/. Say what was wrong and what was done.\n";

pub(super) fn run(
    dir: Option<Utf8PathBuf>,
    plan: bool,
    review: bool,
    pull: bool,
) -> Result<ExitCode, Failure> {
    let dir = match dir {
        Some(dir) => dir,
        None => free_name()?,
    };
    if !is_empty_dir(&dir).map_err(|error| Failure::usage(format!("cannot use {dir}: {error}")))? {
        return Err(
            Failure::refused(format!("{dir} is not empty")).hint("name a new directory: `cliq demo DIR`")
        );
    }
    if plan {
        return super::demo_plan::run(&dir);
    }
    if review {
        return super::demo_review::run(&dir);
    }
    if pull {
        return super::demo_pull::run(&dir);
    }
    fs::create_dir_all(&dir).at("create", &dir)?;
    write_files(&dir, DEMO_FILES)?;
    write_files(&dir.join("team"), DEMO_TEAM.files)?;
    let project = Project::init(&dir, project::host())?;
    let workflow = assemble::assemble(&project, dir.join("team").as_str())?.workflow;
    project.set_requirement(REQUIREMENT)?;
    ui::line(format!("{dir}: {} markdown pages, the checks they have to pass, and a team", pages()))?;
    ui::raw_styled(&workflow.to_text())?;
    ui::line("")?;
    let plan = project.run_plan_of(workflow, &project.settings()?, &RunOptions::default())?;
    let mut progress = Progress::new(false, !ui::is_watched());
    let view = run_command::execute(project.host(), plan, &RunStart::Fresh, |record, view| {
        progress.show(record, view)
    })?;
    summary::show(&view, &project)?;
    if view.completed() {
        ui::line("\nlook at:")?;
        for (path, what) in [
            ("report.md", "what was wrong and what was done"),
            ("pages/", "the pages, repaired"),
            (".cliq/channels/quality--fixer/handoff.md", "what the gate told the fixer"),
            (".cliq/channels/fixer--quality/handoff.md", "what the fixer answered"),
            (".cliq/signals/", "what each agent reported"),
            (".cliq/orchestrator.log", "the whole run, line by line"),
        ] {
            ui::line(format!("  {:<58} {what}", dir.join(path).as_str()))?;
        }
    }
    Ok(run_command::exit_code(view.pipeline_status()))
}

fn pages() -> usize {
    DEMO_FILES.iter().filter(|(path, _)| path.starts_with("pages/")).count()
}

fn free_name() -> Result<Utf8PathBuf, Failure> {
    let names = std::iter::once("cliq-demo".to_owned()).chain((2..1000).map(|n| format!("cliq-demo-{n}")));
    for name in names.map(Utf8PathBuf::from) {
        if is_empty_dir(&name).unwrap_or(false) {
            return Ok(name);
        }
    }
    Err(Failure::refused("there are a thousand demos here already")
        .hint("name a new directory: `cliq demo DIR`"))
}
