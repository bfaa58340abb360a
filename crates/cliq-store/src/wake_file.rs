//! Wake-ups of a process that waits for a review: a named pipe beside a SQLite database, into which each change of the review writes a
//! byte. So many processes can wait at no cost; inotify allows a user 128 of them.

use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_review::ReviewId;
use rustix::fs::{Mode, OFlags};

use crate::location::Location;

impl Location {
    /// Returns the named pipe for the changes of a review, which the process that waits for the review makes. `None` if another machine
    /// may change it.
    #[must_use]
    pub fn wake_file(&self, review: &ReviewId) -> Option<Utf8PathBuf> {
        match self {
            Self::Sqlite(path) => Some(path.parent()?.join("reviews").join(format!("{review}.wake"))),
            Self::Postgres(_) => None,
        }
    }
}

/// Wakes the process that waits, if there is one. A full pipe wakes it as well.
pub(crate) fn wake(file: &Utf8Path) {
    // A regular file under this name is left alone: opening one for writing without a reader succeeds.
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(opened) = rustix::fs::open(file.as_std_path(), flags, Mode::empty()) else { return };
    if rustix::fs::fstat(&opened)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_fifo())
    {
        let _ = std::fs::File::from(opened).write_all(&[0]);
    }
}
