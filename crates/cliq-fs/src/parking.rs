//! Agreement of a run with the runs of its team phases that all of them wait: only then is the whole parked (docs/decisions/0033-waiting-is-a-state.md).

use std::fs::{File, TryLockError};

use rustix::fs::OFlags;

use crate::lock::open;
use crate::{CliqDir, FsError, IoContext};

/// Lock of a project whose runs may be parked. Free again when this is dropped or the process dies.
///
/// The run of a team phase, at any depth, holds a share from its start, except while it waits. The outermost run takes all of it before
/// it is parked. So no run of a team phase begins to work while the outermost run is being parked.
#[derive(Debug)]
pub struct ParkingLock {
    file: File,
}

impl ParkingLock {
    /// Opens the lock of a project. Takes nothing.
    ///
    /// # Errors
    /// The lock file cannot be opened.
    pub fn open(dir: &CliqDir) -> Result<Self, FsError> {
        let path = dir.parking_lock();
        Ok(Self { file: open(&path, OFlags::RDWR | OFlags::CREATE).at("open", &path)? })
    }

    /// Takes a share. Returns whether the run may work: `false` while the outermost run is parked.
    #[must_use]
    pub fn work(&self) -> bool {
        // A file system without locks has nothing that could be parked.
        !matches!(self.file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    /// Gives the share back.
    pub fn wait(&self) {
        // Fails only where nothing could be locked.
        let _ = self.file.unlock();
    }

    /// Takes the whole lock. Returns `false` while a run of a team phase works.
    #[must_use]
    pub fn park(&self) -> bool {
        self.file.try_lock().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_is_parked_only_while_no_part_works() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = CliqDir::create(place.path().try_into().expect("UTF-8")).expect("made");
        let inner = dir.team_of(&cliq_protocol::PhaseName::parse("inner").expect("a name"));
        assert_eq!(inner.parking_lock(), dir.parking_lock());
        let deepest = inner.team_of(&cliq_protocol::PhaseName::parse("deepest").expect("a name"));
        let locks = [&inner, &deepest].map(|dir| ParkingLock::open(dir).expect("opened"));
        let outermost = ParkingLock::open(&dir).expect("opened");
        assert!(locks.iter().all(ParkingLock::work));
        assert!(!outermost.park());
        locks[0].wait();
        assert!(!outermost.park(), "the deepest works");
        locks[1].wait();
        assert!(outermost.park());
        assert!(!locks.iter().any(ParkingLock::work), "the whole is parked");
        drop(outermost);
        assert!(locks.iter().all(ParkingLock::work));
    }
}
