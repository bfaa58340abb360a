//! Files of steering messages: the inbox of a run, and the tail of a growing file (docs/steering.md).

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{MAX_STEERING_MESSAGES, MAX_STEERING_TEXT, RunId, SteeringMessage};

use crate::atomic::write_at_once;
use crate::read::open_regular;
use crate::{CliqDir, FsError, IoContext, open_append, read_if_exists};

/// Time for which the lock of an inbox is retried. Senders hold it for a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum size of a steering file in bytes. JSON escapes a byte of text with at most six.
const MAX_BYTES: u64 = (MAX_STEERING_MESSAGES * (6 * MAX_STEERING_TEXT + 4096)) as u64;

/// Exclusive access to the inbox of a run: the file through which senders pass messages to its orchestrator.
///
/// Readers need no access: lines are appended with one write each.
#[derive(Debug)]
pub struct SteeringInbox {
    path: Utf8PathBuf,
    file: File,
    messages: Vec<SteeringMessage>,
}

impl SteeringInbox {
    /// Path of the inbox of a run.
    #[must_use]
    pub fn path_of(dir: &CliqDir, run_id: &RunId) -> Utf8PathBuf {
        dir.steering(run_id).join("inbox.jsonl")
    }

    /// Opens the inbox of a run, and creates it if it is missing. Waits up to 5 seconds for other senders.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened or locked in time, or is larger than 200 messages can be.
    pub fn open(dir: &CliqDir, run_id: &RunId) -> Result<Self, FsError> {
        let path = Self::path_of(dir, run_id);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).at("create", parent)?;
        }
        let file = open_append(&path)?;
        lock(&file).at("lock", &path)?;
        let bytes = read_if_exists(&path, MAX_BYTES)?.unwrap_or_default();
        let messages = decode(&bytes).filter_map(Result::ok).collect();
        Ok(Self { path, file, messages })
    }

    /// Waits until no sender has access, for at most 5 seconds. Does nothing if there is no inbox.
    pub fn wait_for_senders(dir: &CliqDir, run_id: &RunId) {
        let path = Self::path_of(dir, run_id);
        if path.exists()
            && let Ok(file) = open_append(&path)
        {
            let _ = lock(&file);
        }
    }

    /// Messages in the inbox, oldest first.
    #[must_use]
    pub fn messages(&self) -> &[SteeringMessage] {
        &self.messages
    }

    /// Appends a message.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn append(&mut self, message: SteeringMessage) -> Result<(), FsError> {
        let mut line = encode(&message);
        if self.has_torn_end().at("read", &self.path)? {
            line.insert(0, b'\n');
        }
        write_at_once(&mut self.file, &line).at("append to", &self.path)?;
        self.messages.push(message);
        Ok(())
    }

    /// Removes a message that its sender takes back. No orchestrator reads the inbox meanwhile.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn remove(&mut self, id: &str) -> Result<(), FsError> {
        self.messages.retain(|message| message.id != id);
        let bytes: Vec<u8> = self.messages.iter().flat_map(encode).collect();
        self.file.set_len(0).and_then(|()| self.file.write_all(&bytes)).at("write", &self.path)
    }

    /// Whether the last line has no newline: its sender was killed or the disk was full.
    fn has_torn_end(&self) -> io::Result<bool> {
        let (mut file, size) = open_regular(&self.path).map_err(io::Error::other)?;
        if size == 0 {
            return Ok(false);
        }
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        Ok(last != *b"\n")
    }
}

/// Reader of a growing file of steering messages. Keeps its offset and reads only new lines.
#[derive(Debug)]
pub struct SteeringTail {
    path: Utf8PathBuf,
    offset: u64,
    /// Size of the file when it was read last, in bytes. Beyond `offset` there is a line that is not whole.
    size: u64,
    inode: Option<u64>,
}

impl SteeringTail {
    /// A reader at the start of a file that need not exist yet.
    #[must_use]
    pub fn new(path: &Utf8Path) -> Self {
        Self { path: path.to_owned(), offset: 0, size: 0, inode: None }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Whether the file has grown or become shorter since it was read. Does not read it.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.path.symlink_metadata().is_ok_and(|meta| meta.len() != self.size)
    }

    /// Returns the messages that were appended since the last call. Lines that are not messages are returned as the reason. A missing
    /// file has no messages. A file that was replaced or has become shorter is read from its start.
    ///
    /// # Errors
    /// Returns an error if the file exists and cannot be read, or is larger than 200 messages can be.
    pub fn read_new(&mut self) -> Result<Vec<Result<SteeringMessage, String>>, FsError> {
        let (mut file, size) = match open_regular(&self.path) {
            Ok(opened) => opened,
            Err(error) if error.is_not_found() => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let inode = file.metadata().at("read", &self.path)?.ino();
        if size < self.offset || self.inode.is_some_and(|known| known != inode) {
            self.offset = 0;
        }
        (self.inode, self.size) = (Some(inode), size);
        if size == self.offset {
            return Ok(Vec::new());
        }
        if size > MAX_BYTES {
            let error =
                io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {MAX_BYTES} bytes"));
            return Err(error).at("read", &self.path);
        }
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(self.offset)).at("read", &self.path)?;
        file.take(size - self.offset).read_to_end(&mut bytes).at("read", &self.path)?;
        // A line that is still being written is read once it is whole.
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        self.offset += whole as u64;
        Ok(decode(&bytes[..whole]).collect())
    }
}

/// Returns a message as a line with its newline.
fn encode(message: &SteeringMessage) -> Vec<u8> {
    // A struct with text keys always becomes JSON.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Appends a message to the steering file of an activation.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn append_steering(path: &Utf8Path, message: &SteeringMessage) -> Result<(), FsError> {
    crate::append_line(path, &encode(message))
}

fn decode(bytes: &[u8]) -> impl Iterator<Item = Result<SteeringMessage, String>> + '_ {
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    lines.map(|line| serde_json::from_slice(line).map_err(|error| error.to_string()))
}

fn lock(file: &File) -> io::Result<()> {
    let last = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < last => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another process keeps it locked"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use cliq_protocol::{Timestamp, WireTime};

    use super::*;

    fn message(id: &str) -> SteeringMessage {
        let ts = WireTime::from(Timestamp::UNIX_EPOCH);
        SteeringMessage { id: id.into(), ts, from: "Ana".into(), text: "x".into(), phase: None }
    }

    fn project() -> (tempfile::TempDir, CliqDir) {
        let place = tempfile::tempdir().expect("a directory");
        let dir = CliqDir::create(Utf8Path::from_path(place.path()).expect("text")).expect("a project");
        (place, dir)
    }

    #[test]
    fn a_tail_returns_each_whole_line_once() {
        let (_place, dir) = project();
        let path = dir.root().join("s.jsonl");
        let mut tail = SteeringTail::new(&path);
        assert_eq!(tail.read_new().expect("read"), []);
        append_steering(&path, &message("1")).expect("written");
        let (half, rest) = (&encode(&message("2"))[..9], &encode(&message("2"))[9..]);
        crate::append_line(&path, half).expect("written");
        assert!(tail.has_changed());
        assert_eq!(tail.read_new().expect("read"), [Ok(message("1"))]);
        assert_eq!(tail.read_new().expect("read"), []);
        assert!(!tail.has_changed(), "half a line is no reason to read again");
        crate::append_line(&path, &[rest, b"nonsense\n", &encode(&message("3"))].concat()).expect("written");
        let news = tail.read_new().expect("read");
        assert_eq!((&news[0], &news[2]), (&Ok(message("2")), &Ok(message("3"))));
        assert!(news[1].is_err() && news.len() == 3);
        crate::write_atomic(&path, &encode(&message("4"))).expect("written");
        assert_eq!(tail.read_new().expect("read"), [Ok(message("4"))], "another file under the name");
    }

    #[test]
    fn an_inbox_survives_a_sender_that_was_killed() {
        let ((_place, dir), id) = (project(), RunId::parse("r").expect("an id"));
        SteeringInbox::open(&dir, &id).expect("an inbox").append(message("1")).expect("sent");
        let path = SteeringInbox::path_of(&dir, &id);
        crate::append_line(&path, b"{\"id\": \"to").expect("written");
        let mut inbox = SteeringInbox::open(&dir, &id).expect("an inbox");
        inbox.append(message("2")).expect("sent");
        drop(inbox);
        let mut inbox = SteeringInbox::open(&dir, &id).expect("an inbox");
        assert_eq!(inbox.messages(), [message("1"), message("2")]);
        inbox.remove("1").expect("removed");
        drop(inbox);
        assert_eq!(SteeringInbox::open(&dir, &id).expect("an inbox").messages(), [message("2")]);
    }
}
