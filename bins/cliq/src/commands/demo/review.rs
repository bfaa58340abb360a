//! `cliq demo --review`: a run that asks a person and follows the answer.

use std::process::ExitCode;

use camino::Utf8Path;
use cliq_project::RunOptions;
use cliq_project::internals::{REVIEW_DEMO_FILES, REVIEW_DEMO_TEAM};

use super::stage::{self, Stage};
use crate::failure::Failure;
use crate::ui;

const REQUIREMENT: &str =
    "The menu has the dishes and prices of menu.csv, and is published once a person approves it.\n";
const RESULTS: [(&str, &str); 3] = [
    ("published/menu.md", "the menu, with what you filled in"),
    (".cliq/reviews/", "the record: who decided, when, what was shown"),
    ("team/team.yml", "the team"),
];

pub(super) fn run(dir: &Utf8Path) -> Result<ExitCode, Failure> {
    stage::write(dir, REVIEW_DEMO_FILES, &REVIEW_DEMO_TEAM)?;
    commit(dir);
    let stage = Stage::prepare(dir, REQUIREMENT)?;
    stage
        .introduce(&format!("{dir}: a menu, its price list, and a team that asks you before it publishes"))?;
    ui::line("\nAnswer on the page whose link is shown, or in another terminal:")?;
    for command in ["show", "approve", "request-changes -m \"Say what is to be changed.\"", "reject"] {
        ui::line(format!("  cliq -C {dir} review {command}"))?;
    }
    stage.run(dir, &RunOptions::default(), false, &RESULTS)
}

/// Makes the directory a git repository, so that the review shows the changes. The demo works without git too.
fn commit(dir: &Utf8Path) {
    let author = ("cliq demo", "demo@localhost");
    let _ = cliq_git::init_with_commit(&cliq_git::Git::new(dir), author, "The menu of last week");
}
