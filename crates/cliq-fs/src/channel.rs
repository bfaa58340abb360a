//! Channels: directories in which one phase leaves a handoff for another (seed 000, SPEC section 3).

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{DecodeError, Envelope, PhaseName};

use crate::{FsError, IoContext, render_handoff, write_atomic};

/// A handoff that is there and cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandoffError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FsError),
    /// The file is no handoff.
    #[error("{path} is no handoff: {source}")]
    Decode {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong with it.
        source: DecodeError,
    },
}

/// Creates the directory of a channel.
///
/// # Errors
/// It cannot be created.
pub fn create_channel(dir: &Utf8Path) -> Result<(), FsError> {
    match fs::create_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir_all(dir).at("create", dir),
        other => other.at("create", dir),
    }
}

/// Writes `handoff.json` and, for people, `handoff.md` into a channel, creating it where it is missing.
///
/// # Errors
/// A file cannot be written; an earlier handoff then stays whole.
pub fn write_handoff(channel: &Utf8Path, envelope: &Envelope) -> Result<(), FsError> {
    create_channel(channel)?;
    write_atomic(&channel.join("handoff.md"), render_handoff(envelope).as_bytes())?;
    // The one that programs read last: once it is there, both are.
    write_atomic(&channel.join("handoff.json"), &envelope.encode())
}

/// The handoff in a channel that `from` writes; `None` where there is none.
///
/// Where only a `handoff.md` exists (a person put it there), its contents become the `text`.
///
/// # Errors
/// The file cannot be read, or is no envelope: the error names file, field and what was expected.
pub fn read_handoff(channel: &Utf8Path, from: &PhaseName) -> Result<Option<Envelope>, HandoffError> {
    let path = channel.join("handoff.json");
    if let Some(bytes) = read_if_there(&path)? {
        return Envelope::decode(&bytes).map(Some).map_err(|source| HandoffError::Decode { path, source });
    }
    let Some(bytes) = read_if_there(&channel.join("handoff.md"))? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some(Envelope::standard(from.clone(), "person", None, Some(text))))
}

fn read_if_there(path: &Utf8Path) -> Result<Option<Vec<u8>>, FsError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at("read", path),
    }
}
