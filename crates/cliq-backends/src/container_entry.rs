//! First program in a container or Job: unpacks the handover and becomes the `cliq` that works.

use std::convert::Infallible;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::IoContext;
use cliq_project::Host;
use cliq_project::internals::{HANDOVER_LIMIT, Handover};

use crate::error::BackendError;
use crate::spec_input::spec_input;

/// Reads the handover from a file, or from `input` without one, and becomes `cliq` with these arguments. Returns only on failure.
///
/// # Errors
/// Returns an error if the handover is invalid, the home cannot be prepared, or the program cannot be started.
pub fn enter(
    host: &Host,
    file: Option<&Utf8Path>,
    input: impl Read,
    arguments: &[String],
) -> Result<Infallible, BackendError> {
    let (source, line) = match file {
        Some(file) => (file.to_string(), cliq_fs::read_limited(file, HANDOVER_LIMIT)?),
        None => {
            let mut line = Vec::new();
            let source = "standard input".to_owned();
            let mut reader = BufReader::new(input.take(HANDOVER_LIMIT));
            reader.read_until(b'\n', &mut line).at("read", Utf8Path::new(&source))?;
            (source, line)
        }
    };
    let handover = Handover::decode(&line).map_err(|why| BackendError::Unprepared {
        message: format!("{source}: {why}"),
        hint: "`cliq contained` is for what `cliq run --docker` and `cliq run --kubernetes` start",
    })?;
    let dirs = [host.environment.get("HOME").map(Utf8PathBuf::from), host.home.clone()];
    for dir in dirs.into_iter().flatten() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).at("create", &dir)?;
    }
    if let (Some(home), Some(settings)) = (&host.home, &handover.settings) {
        let path = home.join("settings.json");
        let opened = fs::File::options().create(true).truncate(true).write(true).mode(0o600).open(&path);
        opened.and_then(|mut file| file.write_all(settings.as_bytes())).at("write", &path)?;
    }
    let stdin = match &handover.spec {
        Some(spec) => spec_input(spec)?,
        None => Stdio::null(),
    };
    let source = Command::new(&host.program)
        .args(arguments)
        .envs(&handover.env)
        .env("NO_COLOR", "1")
        .stdin(stdin)
        .exec();
    Err(BackendError::Spawn { program: host.program.to_string(), source })
}
