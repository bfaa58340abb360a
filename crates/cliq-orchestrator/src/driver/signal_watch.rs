//! Notification of changes of signal files, on the runtime's own thread: no other thread has to wake up.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use camino::Utf8Path;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;

use super::shared::Wakers;

/// Watches a directory for as long as it lives.
#[derive(Debug)]
pub(super) struct Watch {
    task: JoinHandle<()>,
}

impl Watch {
    /// Wakes the waiter for a file of `dir` when that was written or renamed into place. It is a hint: it may come
    /// twice, late, or not at all.
    pub(super) fn new(dir: &Utf8Path, wakers: Wakers) -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let what = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO;
        inotify::add_watch(&fd, dir.as_std_path(), what | WatchFlags::ONLYDIR)?;
        #[expect(
            deprecated,
            reason = "its replacement is unsafe for the sake of types that lie about their descriptor; an OwnedFd does not"
        )]
        let fd = AsyncFd::with_interest(fd, Interest::READABLE)?;
        let dir = dir.to_owned();
        let task = tokio::spawn(async move {
            while let Ok(mut ready) = fd.readable().await {
                match ready.try_io(|fd| read(fd.get_ref(), &dir, &wakers)) {
                    // Nothing more for now.
                    Err(_) | Ok(Ok(())) => {}
                    Ok(Err(_)) => return wakers.wake(None),
                }
            }
        });
        Ok(Self { task })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads until there is nothing more, which is `WouldBlock`.
fn read(fd: &OwnedFd, dir: &Utf8Path, wakers: &Wakers) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(fd, &mut buffer);
    loop {
        let event = reader.next()?;
        if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
            wakers.wake(None);
        } else if let Some(name) = event.file_name().and_then(|name| name.to_str().ok()) {
            wakers.wake(Some(&dir.join(name)));
        }
    }
}
