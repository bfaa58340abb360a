//! Standard input of the process of a run: the description of the run.

use std::io::{Seek, Write};
use std::process::Stdio;

use camino::Utf8Path;
use cliq_fs::{FsError, IoContext};
use cliq_project::RunSpec;

/// Returns a file without a name that contains the description. It outlives the parent, and neither end waits for the other.
pub(crate) fn spec_input(spec: &RunSpec) -> Result<Stdio, FsError> {
    let place = Utf8Path::new("the description of the run");
    let mut file = tempfile::tempfile().at("create", place)?;
    file.write_all(&spec.encode()).at("write", place)?;
    file.rewind().at("read", place)?;
    Ok(file.into())
}
