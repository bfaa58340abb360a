//! Channels: directories in which one phase leaves a handoff for another (seed 000, SPEC section 3).

use std::fs;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{DecodeError, Envelope, PhaseName};

use crate::atomic::copy_atomic;
use crate::{FsError, IoContext, read_if_exists, render_handoff, write_atomic};

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
    write_handoffs([channel], envelope)
}

/// Writes the same handoff into several channels, as [`write_handoff`] does. However big it is, it is made once, and in
/// memory once: further channels get copies that the system makes from file to file.
///
/// # Errors
/// A file cannot be written; an earlier handoff in its channel then stays whole.
pub fn write_handoffs<'a>(
    channels: impl IntoIterator<Item = &'a Utf8Path>,
    envelope: &Envelope,
) -> Result<(), FsError> {
    let mut channels = channels.into_iter().peekable();
    if channels.peek().is_none() {
        return Ok(());
    }
    // The one that programs read last: once it is there, both are.
    let files = [("handoff.md", render_handoff(envelope).into_bytes()), ("handoff.json", envelope.encode())];
    let mut first: Option<&Utf8Path> = None;
    for channel in channels {
        for (name, contents) in &files {
            let path = channel.join(name);
            let write = || match first {
                Some(first) if contents.len() > COPIED => copy_atomic(&first.join(name), &path),
                _ => write_atomic(&path, contents),
            };
            match write() {
                // Nearly always it is there.
                Err(error) if error.is_not_found() => {
                    create_channel(channel)?;
                    write()?;
                }
                other => other?,
            }
        }
        first.get_or_insert(channel);
    }
    Ok(())
}

/// From how many bytes on a file is copied by the system instead of being written again.
const COPIED: usize = 256 * 1024;

/// The handoff in a channel that `from` writes, of at most `limit` bytes; `None` where there is none.
///
/// Where only a `handoff.md` exists (a person put it there), its contents become the `text`.
///
/// # Errors
/// The file cannot be read, is no regular file, is too large, or is no envelope: the error names file, field and what was expected.
pub fn read_handoff(
    channel: &Utf8Path,
    from: &PhaseName,
    limit: u64,
) -> Result<Option<Envelope>, HandoffError> {
    let path = channel.join("handoff.json");
    if let Some(bytes) = read_if_exists(&path, limit)? {
        return Envelope::decode(&bytes).map(Some).map_err(|source| HandoffError::Decode { path, source });
    }
    let Some(bytes) = read_if_exists(&channel.join("handoff.md"), limit)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some(Envelope::standard(from.clone(), "person", None, Some(text))))
}
