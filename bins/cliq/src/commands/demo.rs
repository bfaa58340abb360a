//! `cliq demo`: whole runs that need no model and no account.

mod model;
mod pages;
mod plan;
mod pull;
mod review;
mod stage;

use std::process::ExitCode;

use camino::Utf8PathBuf;
use cliq_project::internals::is_empty_dir;

use crate::args::DemoArgs;
use crate::failure::Failure;

pub(super) fn run(args: &DemoArgs) -> Result<ExitCode, Failure> {
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => free_name()?,
    };
    if !is_empty_dir(&dir).map_err(|error| Failure::usage(format!("cannot use {dir}: {error}")))? {
        return Err(
            Failure::refused(format!("{dir} is not empty")).hint("name a new directory: `cliq demo DIR`")
        );
    }
    match args {
        DemoArgs { model: Some(api), .. } => model::run(&dir, *api),
        DemoArgs { plan: true, .. } => plan::run(&dir),
        DemoArgs { review: true, .. } => review::run(&dir),
        DemoArgs { pull: true, .. } => pull::run(&dir),
        DemoArgs { eval: true, .. } => super::eval::demo(&dir),
        DemoArgs { .. } => pages::run(&dir),
    }
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
