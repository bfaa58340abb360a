//! Reading a journal while its run goes on.

use std::fs::Metadata;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{IoContext, open_regular};

use super::{JournalError, decode_lines};
use crate::events::Record;

/// Follows a project's journal: gives each event once, as it comes.
///
/// ```
/// use cliq_orchestrator::{JournalFollower, JournalUpdate};
///
/// # let place = tempfile::tempdir()?;
/// # let workspace = camino::Utf8Path::from_path(place.path()).ok_or("not UTF-8")?;
/// let mut follower = JournalFollower::new(&workspace.join(".cliq/journal.jsonl"));
/// match follower.read()? {
///     // `Afresh`: another run has begun since.
///     JournalUpdate::More(records) | JournalUpdate::Afresh(records) => println!("{} events", records.len()),
///     _ => println!("nothing new"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct JournalFollower {
    path: Utf8PathBuf,
    /// The file that was read last: where it is on its file system, how many bytes and lines of it were read.
    seen: Option<FilePosition>,
}

#[derive(Debug, Clone, Copy)]
struct FilePosition {
    file: (u64, u64),
    offset: u64,
    lines: usize,
}

/// Update of a journal.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum JournalUpdate {
    /// There is no journal.
    None,
    /// Records appended since the last read. May be empty.
    More(Vec<Record>),
    /// All records: the journal belongs to another run, or is read for the first time.
    Afresh(Vec<Record>),
}

impl JournalFollower {
    /// Follows the journal at `path`, which need not be there yet.
    #[must_use]
    pub fn new(path: &Utf8Path) -> Self {
        Self { path: path.to_owned(), seen: None }
    }

    /// Reads what is new. A line that is still being written is read once it is whole.
    ///
    /// # Errors
    /// As for [`super::Journal::read`]. The next call reads from the start.
    pub fn read(&mut self) -> Result<JournalUpdate, JournalError> {
        let seen = self.seen.take();
        let mut file = match open_regular(&self.path) {
            Ok((file, _)) => file,
            Err(error) if error.is_not_found() => return Ok(JournalUpdate::None),
            Err(error) => return Err(error.into()),
        };
        let meta = file.metadata().at("read", &self.path)?;
        let same = seen.filter(|seen| seen.file == identity(&meta) && seen.offset <= meta.len());
        let from = same.unwrap_or(FilePosition { file: identity(&meta), offset: 0, lines: 0 });
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from.offset)).at("read", &self.path)?;
        file.read_to_end(&mut bytes).at("read", &self.path)?;
        let (records, read) = decode_lines(&self.path, &bytes, from.lines)?;
        let (offset, lines) = (from.offset + read as u64, from.lines + records.len());
        self.seen = Some(FilePosition { offset, lines, ..from });
        Ok(if same.is_some() { JournalUpdate::More(records) } else { JournalUpdate::Afresh(records) })
    }
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::events::RunEvent;

    fn line(reason: &str) -> (Record, Vec<u8>) {
        let event = RunEvent::OrchestratorFailed { reason: reason.to_owned() };
        let record = Record { ts: cliq_fs::now().into(), event };
        let line = record.encode();
        (record, line)
    }

    #[test]
    fn each_event_is_given_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = Utf8PathBuf::from_path_buf(dir.path().join("journal.jsonl")).expect("UTF-8");
        let mut follower = JournalFollower::new(&path);
        assert_eq!(follower.read().expect("read"), JournalUpdate::None);
        let ((one, first), (two, second), (three, third)) = (line("1"), line("2"), line("3"));
        let (half, rest) = second.split_at(10);
        fs::write(&path, [&first, half].concat()).expect("written");
        assert_eq!(follower.read().expect("read"), JournalUpdate::Afresh(vec![one.clone()]));
        assert_eq!(follower.read().expect("read"), JournalUpdate::More(vec![]));
        fs::write(&path, [&first, half, rest].concat()).expect("written");
        assert_eq!(follower.read().expect("read"), JournalUpdate::More(vec![two.clone()]));
        // A run that begins anew, in the same file or in another one.
        fs::write(&path, &first).expect("written");
        assert_eq!(follower.read().expect("read"), JournalUpdate::Afresh(vec![one]));
        let other = path.with_extension("other");
        fs::write(&other, [&second[..], &third].concat()).expect("written");
        fs::rename(&other, &path).expect("renamed");
        assert_eq!(follower.read().expect("read"), JournalUpdate::Afresh(vec![two, three]));
        fs::write(&path, [&second[..], &third, b"{\n"].concat()).expect("written");
        let error = follower.read().expect_err("broken").to_string();
        assert!(error.contains("journal.jsonl, line 3: "), "{error}");
        fs::remove_file(&path).expect("removed");
        assert_eq!(follower.read().expect("read"), JournalUpdate::None);
    }
}
