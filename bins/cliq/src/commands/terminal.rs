//! `cliq ui`: the runs of this machine on the full screen, or as lines.

mod actions;
mod detail;
mod machine;
mod pages;
mod rows;
mod server_api;
mod starts;
mod texts;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cliq_project::Project;
use cliq_terminal::{Announcer, Options, Source, Theme};

pub(super) use machine::Machine;

use crate::args::UiArgs;
use crate::failure::Failure;
use crate::{project, ui};

/// Time between two looks at the runs for `--plain`.
const STEP: Duration = Duration::from_secs(1);
/// Number of earlier runs that are read at once for `--plain`.
const EARLIER: usize = 1000;

pub(super) fn run(args: &UiArgs) -> Result<ExitCode, Failure> {
    let machine = machine()?;
    if args.plain {
        return announce(&machine);
    }
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        return Err(Failure::usage("there is no terminal to show the runs on")
            .hint("`cliq runs` lists them, `cliq ui --plain` prints changes as lines"));
    }
    let source: Arc<dyn Source> = Arc::new(machine);
    let options = Options { theme: theme(), has_mouse: args.mouse, clock: cliq_fs::now };
    cliq_terminal::run(&source, options)?;
    Ok(ExitCode::SUCCESS)
}

/// As `cliq ui` without options, for `cliq` alone: in a directory, if one is given.
pub(crate) fn run_alone(dir: Option<&str>) -> ExitCode {
    if let Some(dir) = dir
        && let Err(error) = std::env::set_current_dir(dir)
    {
        return Failure::usage(format!("cannot work in {dir}: {error}")).report();
    }
    match run(&UiArgs::default()) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

/// Runs of this machine, with the project of this directory.
pub(super) fn machine() -> Result<Machine, Failure> {
    let here = Project::discover(&project::here()?, project::host()).ok();
    Ok(Machine::new(project::host(), here.map(|project| project.dir().workspace().to_owned())))
}

/// Styles that fit the terminal and the variables of the environment.
pub(super) fn theme() -> Theme {
    let choice = anstream::AutoStream::choice(&std::io::stdout());
    Theme::new(choice != anstream::ColorChoice::Never)
}

/// Prints what changes, until the reader is gone or the process is ended.
fn announce(machine: &Machine) -> Result<ExitCode, Failure> {
    let mut announcer = Announcer::default();
    loop {
        let list = machine.list(EARLIER);
        for line in announcer.lines(&list, cliq_fs::now()) {
            ui::line(line)?;
        }
        std::thread::sleep(STEP);
    }
}
