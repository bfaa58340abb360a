//! One orchestrator per project: a lock that a process holds, not a stale file (docs/exit-codes.md).

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use rustix::fs::{Mode, OFlags};

use crate::read::describe_kind;
use crate::{CliqDir, FsError, IoContext};

/// Time for which a held lock is retried. A child that the holder was about to start when it was killed inherits the lock until it
/// executes another program, and a process that looks up the holder takes the lock for a moment.
const PATIENCE: Duration = Duration::from_secs(1);

/// The project's lock. It is free again when this is dropped or the process dies, however it dies.
#[derive(Debug)]
pub struct ProjectLock {
    _file: File,
}

/// Reason why the lock cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process holds it.
    #[error("another cliq{} is running in {project}", holder.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Held {
        /// The process that holds it, where it has said so.
        holder: Option<u32>,
        /// The project's directory.
        project: camino::Utf8PathBuf,
    },
    /// The lock file cannot be used.
    #[error(transparent)]
    File(#[from] FsError),
}

impl ProjectLock {
    /// Takes the lock of a project. Waits a second at most.
    ///
    /// # Errors
    /// Another process holds it, or the lock file cannot be opened.
    pub fn acquire(dir: &CliqDir) -> Result<Self, LockError> {
        Ok(Self { _file: acquire(dir, &dir.lock_file())? })
    }

    /// Checks that no process holds the lock of a project, without taking the lock: [`ProjectLock::holder`] in other processes stays
    /// `None`. Waits a second at most.
    ///
    /// # Errors
    /// Another process holds it, or the lock file cannot be opened.
    pub fn check(dir: &CliqDir) -> Result<(), LockError> {
        let last = Instant::now() + PATIENCE;
        loop {
            match Self::holder(dir)? {
                None => return Ok(()),
                Some(_) if Instant::now() < last => std::thread::sleep(Duration::from_millis(10)),
                Some(holder) => return Err(LockError::Held { holder, project: dir.workspace().to_owned() }),
            }
        }
    }

    /// The process that holds the lock of a project: `None` if none does, `Some(None)` where it has not said who it is.
    ///
    /// # Errors
    /// The lock file cannot be opened.
    pub fn holder(dir: &CliqDir) -> Result<Option<Option<u32>>, FsError> {
        holder(&dir.lock_file())
    }
}

/// The lock of who follows a run that works elsewhere, in a container or a cluster. It is held from before the run begins: one that waits for its turn
/// can be cancelled, and no other is started beside it.
#[derive(Debug)]
pub struct FollowerLock {
    _file: File,
}

impl FollowerLock {
    /// Takes the lock of a project's follower. Waits a second at most.
    ///
    /// # Errors
    /// Another process holds it, or the lock file cannot be opened.
    pub fn acquire(dir: &CliqDir) -> Result<Self, LockError> {
        Ok(Self { _file: acquire(dir, &dir.follower_lock())? })
    }

    /// The process that holds it, as for [`ProjectLock::holder`].
    ///
    /// # Errors
    /// The lock file cannot be opened.
    pub fn holder(dir: &CliqDir) -> Result<Option<Option<u32>>, FsError> {
        holder(&dir.follower_lock())
    }
}

fn acquire(dir: &CliqDir, path: &Utf8Path) -> Result<File, LockError> {
    let mut file = open(path, OFlags::RDWR | OFlags::CREATE).at("open", path)?;
    match lock(&file) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = file.read_to_string(&mut text);
            return Err(LockError::Held {
                holder: text.trim().parse().ok(),
                project: dir.workspace().to_owned(),
            });
        }
        Err(TryLockError::Error(error)) => Err(error).at("lock", path)?,
    }
    // Only for people who wonder who holds it; the lock itself is what counts.
    let _ =
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}

fn holder(path: &Utf8Path) -> Result<Option<Option<u32>>, FsError> {
    let mut file = match open(path, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).at("open", path),
    };
    // A shared lock, so that two who ask at once do not take each other for an orchestrator.
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = file.read_to_string(&mut text);
            Ok(Some(text.trim().parse().ok()))
        }
        Err(TryLockError::Error(error)) => Err(error).at("lock", path),
    }
}

/// Opens the lock file without waiting: another process may have left something else under this name.
pub(crate) fn open(path: &Utf8Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path.as_std_path(), flags, Mode::from_raw_mode(0o666))?);
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    Err(io::Error::other(format!("it is {}; remove it", describe_kind(kind))))
}

fn lock(file: &File) -> Result<(), TryLockError> {
    let last = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < last => {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}
