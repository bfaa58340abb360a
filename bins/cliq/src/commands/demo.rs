//! `cliq demo`: whole runs that need no model and no account.

mod model;
mod pages;
mod plan;
mod pull;
mod review;
mod stage;

use std::process::ExitCode;

use camino::Utf8PathBuf;
use cliq_project::is_empty_dir;

use crate::args::ModelApi;
use crate::failure::Failure;

pub(super) fn run(
    dir: Option<Utf8PathBuf>,
    plan: bool,
    review: bool,
    pull: bool,
    model: Option<ModelApi>,
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
    if let Some(api) = model {
        return model::run(&dir, api);
    }
    match (plan, review, pull) {
        (true, _, _) => plan::run(&dir),
        (_, true, _) => review::run(&dir),
        (_, _, true) => pull::run(&dir),
        _ => pages::run(&dir),
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
