//! `cliq contained`: the first thing that works in a container.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_project::{HANDOVER_LIMIT, Handover};

use crate::failure::Failure;
use crate::project;

/// Reads the handover from a file or from standard input, and becomes `cliq` with these arguments.
pub(super) fn run(file: Option<&Utf8Path>, arguments: &[String]) -> Result<ExitCode, Failure> {
    let (place, line) = match file {
        Some(file) => (file.to_string(), cliq_fs::read_limited(file, HANDOVER_LIMIT)?),
        None => {
            let mut line = Vec::new();
            BufReader::new(std::io::stdin().lock().take(HANDOVER_LIMIT)).read_until(b'\n', &mut line)?;
            ("standard input".to_owned(), line)
        }
    };
    let handover = Handover::decode(&line).map_err(|why| {
        Failure::usage(format!("{place}: {why}"))
            .hint("`cliq contained` is for what `cliq run --docker` and `cliq run --kubernetes` start")
    })?;
    let host = project::host();
    for dir in [host.environment.get("HOME").map(Utf8PathBuf::from), host.home.clone()].into_iter().flatten()
    {
        make_dir(&dir)?;
    }
    if let (Some(home), Some(settings)) = (&host.home, &handover.settings) {
        let path = home.join("settings.json");
        let written = fs::File::options().create(true).truncate(true).write(true).mode(0o600).open(&path);
        written
            .and_then(|mut file| file.write_all(settings.as_bytes()))
            .map_err(|error| Failure::failed(format!("cannot write {path}: {error}")))?;
    }
    let error = Command::new(project::own_program()?)
        .args(arguments)
        .envs(&handover.env)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .exec();
    Err(Failure::failed(format!("cannot start cliq: {error}")))
}

fn make_dir(dir: &Utf8Path) -> Result<(), Failure> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| Failure::failed(format!("cannot make {dir}: {error}")))
}
