//! `cliq demo --pull`: a run that fetches pages, works on them, and publishes what it made of them.

use std::fs;
use std::process::ExitCode;

use camino::Utf8Path;
use cliq_fs::IoContext;
use cliq_project::{PULL_DEMO_FILES, PULL_DEMO_TEAM, Project, RunOptions, RunStart, write_files};
use cliq_server::DemoSite;

use super::{assemble, run as run_command};
use crate::failure::Failure;
use crate::render::{progress::Progress, summary};
use crate::{project, ui};

const REQUIREMENT: &str = "A digest of the pages and the prices of the shop's site is published on it.\n";

pub(super) fn run(dir: &Utf8Path) -> Result<ExitCode, Failure> {
    fs::create_dir_all(dir).at("create", dir)?;
    write_files(dir, PULL_DEMO_FILES)?;
    write_files(&dir.join("team"), PULL_DEMO_TEAM.files)?;
    let site = DemoSite::start(&dir.join("site"))?;
    let project = Project::init(dir, project::host())?;
    let workflow = assemble::assemble(&project, dir.join("team").as_str())?.workflow;
    project.set_requirement(REQUIREMENT)?;
    ui::line(format!(
        "{dir}: a team, and a small site that is served on {} while the demo runs",
        site.url()
    ))?;
    ui::raw_styled(&workflow.to_text())?;
    ui::line("")?;
    let mut options = RunOptions::default();
    options.inputs.insert("site".to_owned(), site.url().to_owned());
    let plan = project.run_plan_of(workflow, &project.settings()?, &options)?;
    let mut progress = Progress::new(false, !ui::is_watched());
    let view = run_command::execute(project.host(), plan, &RunStart::Fresh, |record, view| {
        progress.show(record, view)
    })?;
    summary::show(&view, &project)?;
    if view.completed() {
        ui::line("\nlook at:")?;
        for (path, what) in [
            (".cliq/pull/", "the pages as markdown, and the price list as it is"),
            ("digest.md", "what the team made of them"),
            ("site/published/", "what was published"),
            (".cliq/pull/.manifest/fetch.jsonl", "what was fetched: address, time, size, SHA-256"),
            (".cliq/push/publish.jsonl", "what was published, and where"),
        ] {
            ui::line(format!("  {:<48} {what}", dir.join(path).as_str()))?;
        }
        ui::line("\n`docs/pull-push.md` describes sources and targets, `docs/connectors.md` the services.")?;
    }
    Ok(run_command::exit_code(view.pipeline_status()))
}
