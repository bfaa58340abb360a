//! `cliq demo --review`: a run that asks a person, and follows the answer.

use std::fs;
use std::process::{Command, ExitCode, Stdio};

use camino::Utf8Path;
use cliq_fs::IoContext;
use cliq_project::{Project, REVIEW_DEMO_FILES, REVIEW_DEMO_TEAM, RunOptions, RunStart, write_files};

use super::{assemble, run as run_command};
use crate::failure::Failure;
use crate::render::{progress::Progress, summary};
use crate::{project, ui};

const REQUIREMENT: &str =
    "The menu has the dishes and prices of menu.csv, and is published once a person approves it.\n";

pub(super) fn run(dir: &Utf8Path) -> Result<ExitCode, Failure> {
    fs::create_dir_all(dir).at("create", dir)?;
    write_files(dir, REVIEW_DEMO_FILES)?;
    write_files(&dir.join("team"), REVIEW_DEMO_TEAM.files)?;
    commit(dir);
    let project = Project::init(dir, project::host())?;
    let workflow = assemble::assemble(&project, dir.join("team").as_str())?.workflow;
    project.set_requirement(REQUIREMENT)?;
    ui::line(format!("{dir}: a menu, its price list, and a team that asks you before it publishes"))?;
    ui::raw_styled(&workflow.to_text())?;
    ui::line("\nAnswer on the page whose link is shown, or in another terminal:")?;
    for command in ["show", "approve", "request-changes -m \"Say what is to be changed.\"", "reject"] {
        ui::line(format!("  cliq -C {dir} review {command}"))?;
    }
    ui::line("")?;
    let plan = project.run_plan_of(workflow, &project.settings()?, &RunOptions::default())?;
    let mut progress = Progress::new(false, false);
    let view = run_command::execute(project.host(), plan, &RunStart::Fresh, |record, view| {
        progress.show(record, view)
    })?;
    summary::show(&view, &project)?;
    if view.completed() {
        ui::line("\nlook at:")?;
        for (path, what) in [
            ("published/menu.md", "the menu, with what you filled in"),
            (".cliq/reviews/", "the record: who decided, when, what was shown"),
            ("team/team.yml", "the team"),
        ] {
            ui::line(format!("  {:<40} {what}", dir.join(path).as_str()))?;
        }
    }
    Ok(run_command::exit_code(view.pipeline_status()))
}

/// Makes the directory a git repository, so that the review shows what changed. Without git the demo works too.
fn commit(dir: &Utf8Path) {
    let author =
        ["-c", "user.name=cliq demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false"];
    let steps = [
        vec!["init", "-q"],
        vec!["add", "-A"],
        [&author[..], &["commit", "-qm", "The menu of last week"]].concat(),
    ];
    for step in steps {
        let mut git = Command::new("git");
        git.args(step).current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if !git.status().is_ok_and(|status| status.success()) {
            return;
        }
    }
}
