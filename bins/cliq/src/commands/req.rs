//! `cliq req`: what the team is to do.

use std::fs;
use std::io::Read;
use std::process::ExitCode;

use cliq_fs::{CliqDir, IoContext, ProjectLock, archive_run, write_atomic};
use cliq_orchestrator::Journal;

use crate::args::ReqArgs;
use crate::failure::Failure;
use crate::{project, ui};

pub(super) fn run(args: &ReqArgs) -> Result<ExitCode, Failure> {
    let dir = project::open()?;
    let mut text = match (&args.message, &args.file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) if file == "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        }
        (None, Some(file)) => {
            let bytes = fs::read(file).at("read", file).map_err(|error| Failure::usage(error.to_string()))?;
            String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{file} is not UTF-8")))?
        }
        (None, None) => return Err(Failure::usage("say what is to be done: -m TEXT or -f FILE")),
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the requirement is empty").hint("`cliq req -m \"what is to be done\"`"));
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    set(&dir, &text)?;
    ui::line(format!("the requirement is in {}", dir.requirement()))?;
    ui::line(if dir.team_file().exists() {
        "next: `cliq run`"
    } else {
        "next: `cliq assemble TEAM`, then `cliq run`"
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Sets the requirement. It is a new task: what the last run left is put aside.
pub(super) fn set(dir: &CliqDir, text: &str) -> Result<(), Failure> {
    let _lock = ProjectLock::acquire(dir)?;
    dir.ensure_layout()?;
    if dir.journal().exists() {
        let journal = Journal::read(&dir.journal()).ok().flatten();
        archive_run(dir, journal.as_ref().and_then(Journal::run_id).unwrap_or("unreadable"))?;
    }
    Ok(write_atomic(&dir.requirement(), text.as_bytes())?)
}
