//! `cliq demo`: a bundled team checks and repairs a folder of markdown pages.

use std::process::ExitCode;

use camino::Utf8Path;
use cliq_project::RunOptions;
use cliq_project::internals::{DEMO_FILES, DEMO_TEAM};

use super::stage::{self, Stage};
use crate::failure::Failure;
use crate::ui;

const REQUIREMENT: &str =
    "Every page in pages/ passes the checks in checks/. Say what was wrong and what was done.\n";
const RESULTS: [(&str, &str); 6] = [
    ("report.md", "what was wrong and what was done"),
    ("pages/", "the pages, repaired"),
    (".cliq/channels/quality--fixer/handoff.md", "verdict and feedback of the gate for the fixer"),
    (".cliq/channels/fixer--quality/handoff.md", "what the fixer answered"),
    (".cliq/signals/", "what each agent reported"),
    (".cliq/orchestrator.log", "the whole run, line by line"),
];

pub(super) fn run(dir: &Utf8Path) -> Result<ExitCode, Failure> {
    stage::write(dir, DEMO_FILES, &DEMO_TEAM)?;
    let stage = Stage::prepare(dir, REQUIREMENT)?;
    let pages = DEMO_FILES.iter().filter(|(path, _)| path.starts_with("pages/")).count();
    stage.introduce(&format!("{dir}: {pages} markdown pages, the checks they have to pass, and a team"))?;
    stage.run(dir, &RunOptions::default(), !ui::is_watched(), &RESULTS)
}
