//! Transcripts of model agents on disk (docs/models.md).

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{TranscriptBody, TranscriptEntry};

use crate::atomic::AppendedFile;
use crate::{FsError, IoContext, now, read_if_exists, write_atomic};

/// Maximum size of a transcript that is read, in bytes.
const LIMIT: u64 = 1 << 30;

/// A transcript that entries are appended to.
#[derive(Debug)]
pub struct TranscriptFile {
    file: AppendedFile,
}

impl TranscriptFile {
    /// Creates a transcript that begins with the given entries. Replaces a file of this name.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn create(path: &Utf8Path, entries: &[TranscriptEntry]) -> Result<Self, FsError> {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).at("create", dir)?;
        }
        let bytes: Vec<u8> = entries.iter().flat_map(TranscriptEntry::encode).collect();
        write_atomic(path, &bytes)?;
        Ok(Self { file: AppendedFile::open(path)? })
    }

    /// Appends entries with a single write, so that a reader finds all of them or none. They have the present time.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or only in part (a full disk).
    pub fn append(&mut self, bodies: &[TranscriptBody]) -> Result<(), FsError> {
        let ts = now();
        let line = |body: &TranscriptBody| TranscriptEntry { ts: ts.into(), body: body.clone() }.encode();
        self.file.append(&bodies.iter().flat_map(line).collect::<Vec<u8>>())
    }
}

/// Reads a transcript. Leaves out lines that are not entries, and an unterminated last line. Returns `None` if there is no file.
///
/// # Errors
/// Returns an error if the file cannot be read, is not regular or is larger than 1 GiB.
pub fn read_transcript(path: &Utf8Path) -> Result<Option<Vec<TranscriptEntry>>, FsError> {
    let Some(bytes) = read_if_exists(path, LIMIT)? else { return Ok(None) };
    let lines = bytes.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"));
    Ok(Some(lines.filter_map(|line| TranscriptEntry::decode(line).ok()).collect()))
}

/// Returns the transcripts of a phase in a directory, in the order of their activations, with the number of each.
///
/// # Errors
/// Returns an error if the directory exists and cannot be read.
pub fn transcripts_of(dir: &Utf8Path, phase: &str) -> Result<Vec<(u32, Utf8PathBuf)>, FsError> {
    let entries = match dir.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).at("read", dir),
    };
    let numbered = |entry: camino::Utf8DirEntry| {
        let number = entry.file_name().strip_prefix(phase)?.strip_prefix('.')?.strip_suffix(".jsonl")?;
        Some((number.parse().ok()?, entry.into_path()))
    };
    let mut found: Vec<(u32, Utf8PathBuf)> = entries.filter_map(Result::ok).filter_map(numbered).collect();
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use cliq_protocol::Role;

    use super::*;

    fn message(text: &str) -> TranscriptBody {
        TranscriptBody::Message {
            role: Role::Assistant,
            text: text.to_owned(),
            origin: None,
            steering: Vec::new(),
            images: Vec::new(),
        }
    }

    #[test]
    fn entries_survive_and_a_torn_line_is_left_out() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = Utf8Path::from_path(place.path()).expect("UTF-8").join("transcripts");
        let path = dir.join("work.2.jsonl");
        assert_eq!(read_transcript(&path).expect("read"), None);
        let mut file = TranscriptFile::create(&path, &[]).expect("created");
        file.append(&[message("a"), message("b")]).expect("written");
        crate::append_line(&path, b"{\"type\": \"unheard-of\", \"ts\": \"\"}\n").expect("written");
        crate::append_line(&path, b"{\"ts\":").expect("written");
        let entries = read_transcript(&path).expect("read").expect("there");
        assert_eq!(
            entries.iter().map(|entry| entry.body.clone()).collect::<Vec<_>>(),
            [message("a"), message("b")]
        );
        TranscriptFile::create(&dir.join("work.10.jsonl"), &entries).expect("created");
        TranscriptFile::create(&dir.join("work-2.1.jsonl"), &[]).expect("created");
        let found = transcripts_of(&dir, "work").expect("read");
        assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [2, 10]);
        assert_eq!(read_transcript(&found[1].1).expect("read").expect("there"), entries);
    }
}
