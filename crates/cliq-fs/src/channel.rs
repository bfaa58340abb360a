//! Channels: directories in which one phase leaves a handoff for another (docs/protocol.md).

use std::fs;
use std::io::{self, BufWriter, Write};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{DecodeError, Envelope, PhaseName};
use tempfile::NamedTempFile;

use crate::atomic::{copy_atomic, temporary_in};
use crate::markdown::write_markdown;
use crate::{FsError, IoContext, read_if_exists, write_atomic};

/// A handoff that is there and cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandoffError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FsError),
    /// The file is not a handoff.
    #[error("{path} is not a valid handoff: {source}")]
    Decode {
        /// The file.
        path: Utf8PathBuf,
        /// Decoding error.
        source: DecodeError,
    },
}

/// Creates the directory of a channel.
///
/// # Errors
/// Returns an error if the channel cannot be created.
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

/// Writes the same handoff into several channels, as [`write_handoff`] does. However large it is, it is made once and is
/// in memory once: a large one is written to the first channel piece by piece, and the system copies it to the others.
///
/// # Errors
/// A file cannot be written; an earlier handoff in its channel then stays whole.
pub fn write_handoffs<'a>(
    channels: impl IntoIterator<Item = &'a Utf8Path>,
    envelope: &Envelope,
) -> Result<(), FsError> {
    let channels: Vec<&Utf8Path> = channels.into_iter().collect();
    // The file that programs read comes last: once it is there, both are.
    spread(&channels, "handoff.md", |out| write_markdown(envelope, out))?;
    spread(&channels, "handoff.json", |out| envelope.write_to(out))
}

/// Whether a channel has the text of this handoff and no more: its writer died between the two files.
///
/// # Errors
/// A file is there and cannot be read.
pub fn is_half_written(channel: &Utf8Path, envelope: &Envelope, limit: u64) -> Result<bool, FsError> {
    if channel.join("handoff.json").exists() {
        return Ok(false);
    }
    let mut own = Vec::new();
    write_markdown(envelope, &mut own).at("write", channel)?;
    Ok(read_if_exists(&channel.join("handoff.md"), limit)?.is_some_and(|found| found == own))
}

/// Writes a file of the same contents into several channels.
fn spread(
    channels: &[&Utf8Path],
    name: &str,
    write: impl FnOnce(&mut Spool<'_>) -> io::Result<()>,
) -> Result<(), FsError> {
    let Some((first, others)) = channels.split_first() else { return Ok(()) };
    let path = first.join(name);
    let mut spool = Spool { dir: first, memory: Vec::new(), file: None };
    write(&mut spool).at("write", &path)?;
    match spool.file {
        None => {
            for channel in channels {
                // Nearly always the channel is there.
                match write_atomic(&channel.join(name), &spool.memory) {
                    Err(error) if error.is_not_found() => {
                        create_channel(channel)?;
                        write_atomic(&channel.join(name), &spool.memory)?;
                    }
                    other => other?,
                }
            }
        }
        Some(file) => {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error).at("write", &path)?;
            file.persist(&path).map_err(|error| error.error).at("write", &path)?;
            for channel in others {
                create_channel(channel)?;
                copy_atomic(&path, &channel.join(name))?;
            }
        }
    }
    Ok(())
}

/// The most bytes that are kept in memory. A larger file is written piece by piece and copied by the system.
const IN_MEMORY: usize = 256 * 1024;

/// Keeps what is written in memory as long as it is small, and then in a temporary file of a channel.
struct Spool<'a> {
    dir: &'a Utf8Path,
    memory: Vec<u8>,
    file: Option<BufWriter<NamedTempFile>>,
}

impl Write for Spool<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.file {
            return file.write(bytes);
        }
        if self.memory.len() + bytes.len() <= IN_MEMORY {
            self.memory.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        std::fs::create_dir_all(self.dir)?;
        let mut file = BufWriter::with_capacity(IN_MEMORY, temporary_in(self.dir)?);
        file.write_all(&std::mem::take(&mut self.memory))?;
        self.file.insert(file).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// The handoff in a channel that `from` writes, of at most `limit` bytes; `None` if there is none.
///
/// If only a `handoff.md` exists (placed there by a person), its content becomes the `text`.
///
/// # Errors
/// The file cannot be read, is not a regular file, is too large, or is not an envelope: the error names file, field and what was expected.
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
