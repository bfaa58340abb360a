//! `cliq demo`: the bundled team on real files.

use std::fs;
use std::io::IsTerminal;
use std::process::ExitCode;

use camino::Utf8PathBuf;
use cliq_fs::IoContext;

use super::{assemble, init, req, run as run_command};
use crate::failure::Failure;
use crate::render::{progress::Progress, summary};
use crate::teams::{self, DEMO, DEMO_FILES};
use crate::{project, settings, ui};

const REQUIREMENT: &str =
    "Every page in pages/ passes the checks in checks/. Say what was wrong and what was done.\n";

pub(super) fn run(dir: Option<Utf8PathBuf>, plan: bool) -> Result<ExitCode, Failure> {
    let dir = match dir {
        Some(dir) => dir,
        None => free_name()?,
    };
    if !project::is_empty_dir(&dir).map_err(|error| Failure::usage(format!("cannot use {dir}: {error}")))? {
        return Err(
            Failure::refused(format!("{dir} is not empty")).hint("name a new directory: `cliq demo DIR`")
        );
    }
    if plan {
        return super::demo_plan::run(&dir);
    }
    fs::create_dir_all(&dir).at("create", &dir)?;
    teams::write_files(&dir, DEMO_FILES)?;
    teams::write_files(&dir.join("team"), DEMO.files)?;
    let cliq = init::create(&dir)?;
    let workflow = assemble::into(&cliq, dir.join("team").as_str())?;
    req::set(&cliq, REQUIREMENT)?;
    ui::line(format!("{dir}: {} markdown pages, the checks they have to pass, and a team", pages()))?;
    ui::raw_styled(&workflow.to_text())?;
    ui::line("")?;
    let plan = project::plan(&cliq, workflow, &settings::load(Some(&cliq))?);
    let view = run_command::execute(
        plan,
        &run_command::Begin::Anew,
        Progress::new(false, !std::io::stdout().is_terminal()),
    )?;
    summary::show(&view, &cliq)?;
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
    Ok(run_command::exit_code(&view))
}

fn pages() -> usize {
    DEMO_FILES.iter().filter(|(path, _)| path.starts_with("pages/")).count()
}

fn free_name() -> Result<Utf8PathBuf, Failure> {
    let names = std::iter::once("cliq-demo".to_owned()).chain((2..1000).map(|n| format!("cliq-demo-{n}")));
    for name in names.map(Utf8PathBuf::from) {
        if project::is_empty_dir(&name).unwrap_or(false) {
            return Ok(name);
        }
    }
    Err(Failure::refused("there are a thousand demos here already")
        .hint("name a new directory: `cliq demo DIR`"))
}
