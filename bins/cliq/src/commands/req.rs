//! `cliq req`

use std::io::Read;
use std::process::ExitCode;

use camino::Utf8Path;

use crate::args::ReqArgs;
use crate::failure::Failure;
use crate::{project, ui};

/// The most bytes of a requirement.
const LIMIT: u64 = 64 << 20;

pub(super) fn run(args: &ReqArgs) -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let text = match (&args.message, &args.file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => read(file)?,
        (None, None) => return Err(Failure::usage("say what is to be done: -m TEXT or -f FILE")),
    };
    project.set_requirement(&text)?;
    // The last run is put aside, and what it waited for with it.
    if let Some(home) = &project.host().home {
        crate::reviews::cancel_left_over(home, project.dir().workspace())?;
    }
    ui::line(format!("the requirement is in {}", project.dir().requirement()))?;
    ui::line(if project.has_team() {
        "next: `cliq run`"
    } else {
        "next: `cliq assemble TEAM`, then `cliq run`"
    })?;
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Utf8Path) -> Result<String, Failure> {
    if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    let bytes = cliq_fs::read_limited(file, LIMIT).map_err(|error| Failure::usage(error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{file} is not UTF-8")))
}
