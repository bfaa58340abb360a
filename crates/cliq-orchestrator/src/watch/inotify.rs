//! By inotify, which is read as any other file descriptor of the runtime.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;

/// Watches any number of directories for as long as it lives.
///
/// A notification is a hint: it may come twice, late, or not at all (network file systems). A subscriber looks at the
/// file itself, and also reads it at intervals without a notification.
#[derive(Debug)]
pub struct DirectoryWatch {
    fd: Arc<AsyncFd<OwnedFd>>,
    dirs: Arc<Mutex<Watched>>,
    task: JoinHandle<()>,
}

/// The watched directories by the number that the system gave them.
type Watched = HashMap<i32, Utf8PathBuf>;

impl DirectoryWatch {
    /// Calls `changed` with each file of a watched directory that was created, written or renamed into place; with `None` when
    /// events were lost and anything may have changed. Needs a tokio runtime with IO.
    ///
    /// # Errors
    /// The system has no more watches, in its own words. Polling then has to do.
    pub fn new(changed: impl Fn(Option<&Utf8Path>) + Send + Sync + 'static) -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        #[expect(
            deprecated,
            reason = "its replacement is unsafe for the sake of types that lie about their descriptor; an OwnedFd does not"
        )]
        let fd = Arc::new(AsyncFd::with_interest(fd, Interest::READABLE)?);
        let dirs: Arc<Mutex<Watched>> = Arc::default();
        let (reader, known) = (Arc::clone(&fd), Arc::clone(&dirs));
        let task = tokio::spawn(async move {
            while let Ok(mut ready) = reader.readable().await {
                match ready.try_io(|fd| read(fd.get_ref(), &known, &changed)) {
                    // Nothing more for now.
                    Err(_) | Ok(Ok(())) => {}
                    Ok(Err(_)) => return changed(None),
                }
            }
        });
        Ok(Self { fd, dirs, task })
    }

    /// Watches a directory too.
    ///
    /// # Errors
    /// The system cannot watch it, in its own words. Polling then has to do.
    pub fn add(&self, dir: &Utf8Path) -> io::Result<()> {
        // What is created may be a FIFO or a link, of which nothing is heard later.
        let what = WatchFlags::CREATE | WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO;
        // Held over both, so that no event comes before its directory is known.
        let mut dirs = self.dirs.lock().unwrap_or_else(PoisonError::into_inner);
        let number = inotify::add_watch(self.fd.get_ref(), dir.as_std_path(), what | WatchFlags::ONLYDIR)?;
        dirs.insert(number, dir.to_owned());
        Ok(())
    }

    /// Watches a directory no more.
    pub fn remove(&self, dir: &Utf8Path) {
        let mut dirs = self.dirs.lock().unwrap_or_else(PoisonError::into_inner);
        let number = dirs.iter().find(|(_, known)| *known == dir).map(|(number, _)| *number);
        if let Some(number) = number {
            dirs.remove(&number);
            // It may be gone, and the watch with it.
            let _ = inotify::remove_watch(self.fd.get_ref(), number);
        }
    }
}

impl Drop for DirectoryWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads until there is nothing more, which is `WouldBlock`.
fn read(fd: &OwnedFd, dirs: &Mutex<Watched>, changed: &dyn Fn(Option<&Utf8Path>)) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(fd, &mut buffer);
    loop {
        let event = reader.next()?;
        if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
            changed(None);
            continue;
        }
        let mut dirs = dirs.lock().unwrap_or_else(PoisonError::into_inner);
        if event.events().contains(ReadFlags::IGNORED) {
            // The directory is gone, or is watched no more.
            dirs.remove(&event.wd());
            continue;
        }
        let name = event.file_name().and_then(|name| name.to_str().ok());
        let file = dirs.get(&event.wd()).zip(name).map(|(dir, name)| dir.join(name));
        drop(dirs);
        if let Some(file) = file {
            changed(Some(&file));
        }
    }
}
