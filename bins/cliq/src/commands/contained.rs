//! `cliq contained`: the first program in a container or Job.

use std::process::ExitCode;

use camino::Utf8Path;

use crate::failure::Failure;
use crate::project;

/// Unpacks the handover from a file or from standard input, and becomes `cliq` with these arguments.
pub(super) fn run(file: Option<&Utf8Path>, arguments: &[String]) -> Result<ExitCode, Failure> {
    let mut host = project::host();
    host.program = project::own_program()?;
    match cliq_backends::internals::enter(&host, file, std::io::stdin().lock(), arguments) {
        Err(error) => Err(Failure::usage(error.to_string()).hint(error.hint().unwrap_or_default())),
        Ok(never) => match never {},
    }
}
