//! Notification that a process has read a file. An agent that reads its steering file has received the lines in it.

#[cfg(target_os = "linux")]
pub(crate) use linux::ReadWatch;
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::ReadWatch;

/// Lines of a file that a process has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileRead {
    /// Name of the file in the watched directory.
    pub(crate) name: String,
    /// Number of lines that had been appended when the file was read.
    pub(crate) lines: usize,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;

    use camino::Utf8Path;
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use super::FileRead;

    /// Watches the files of one directory. Only the orchestrator writes them: one line, then it closes the file.
    #[derive(Debug)]
    pub(crate) struct ReadWatch {
        fd: AsyncFd<OwnedFd>,
        /// Number of lines of each file, in the order of the system's events: a read counts for the lines before it only.
        lines: HashMap<String, usize>,
    }

    impl ReadWatch {
        /// Watches a directory. Needs a tokio runtime with IO.
        ///
        /// # Errors
        /// Returns an error if the system cannot watch the directory, or has no more watches.
        pub(crate) fn new(dir: &Utf8Path) -> io::Result<Self> {
            let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            // The end of a write separates it from the next: the system merges equal events that follow each other.
            let flags = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::ACCESS;
            inotify::add_watch(&fd, dir.as_std_path(), flags | WatchFlags::ONLYDIR)?;
            #[expect(
                deprecated,
                reason = "its replacement is unsafe for the sake of types that lie about their descriptor; an OwnedFd does not"
            )]
            let fd = AsyncFd::with_interest(fd, Interest::READABLE)?;
            Ok(Self { fd, lines: HashMap::new() })
        }

        /// Waits for reads. Nothing is lost if the future is dropped.
        pub(crate) async fn next(&mut self) -> Vec<FileRead> {
            loop {
                let Ok(mut ready) = self.fd.readable().await else { return std::future::pending().await };
                ready.clear_ready();
                drop(ready);
                let reads = self.take();
                if !reads.is_empty() {
                    return reads;
                }
            }
        }

        /// Returns the reads since the last call, without waiting.
        pub(crate) fn take(&mut self) -> Vec<FileRead> {
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut reader = inotify::Reader::new(self.fd.get_ref(), &mut buffer);
            let mut reads: Vec<FileRead> = Vec::new();
            // Ends with `WouldBlock`. Events that the system lost are not made up for: the message stays pending.
            while let Ok(event) = reader.next() {
                let Some(name) = event.file_name().and_then(|name| name.to_str().ok()) else { continue };
                if event.events().contains(ReadFlags::MODIFY) {
                    *self.lines.entry(name.to_owned()).or_default() += 1;
                } else if event.events().contains(ReadFlags::ACCESS)
                    && let Some(&lines) = self.lines.get(name)
                {
                    reads.retain(|read| read.name != name);
                    reads.push(FileRead { name: name.to_owned(), lines });
                }
            }
            reads
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod unsupported {
    use std::io;

    use camino::Utf8Path;

    use super::FileRead;

    /// Other systems do not report reads: a message stays pending until the next activation receives it.
    #[derive(Debug)]
    pub(crate) struct ReadWatch;

    impl ReadWatch {
        pub(crate) fn new(_: &Utf8Path) -> io::Result<Self> {
            Err(io::Error::from(io::ErrorKind::Unsupported))
        }

        pub(crate) async fn next(&mut self) -> Vec<FileRead> {
            std::future::pending().await
        }

        pub(crate) fn take(&mut self) -> Vec<FileRead> {
            Vec::new()
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use camino::Utf8Path;

    use super::*;

    #[tokio::test]
    async fn a_read_counts_for_the_lines_before_it() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = Utf8Path::from_path(place.path()).expect("text");
        let (a, b) = (dir.join("a"), dir.join("b"));
        let mut watch = ReadWatch::new(dir).expect("a watch");
        let read = |path: &Utf8Path| drop(std::fs::read(path).expect("read"));
        for path in [&a, &b] {
            std::fs::write(path, "").expect("made");
            read(path);
        }
        assert_eq!(watch.take(), [], "an empty file has no lines");
        for _ in 0..3 {
            cliq_fs::append_line(&a, b"line\n").expect("written");
        }
        assert_eq!(watch.take(), [], "no process has read it");
        read(&a);
        cliq_fs::append_line(&a, b"line\n").expect("written");
        cliq_fs::append_line(&b, b"line\n").expect("written");
        assert_eq!(watch.next().await, [FileRead { name: "a".into(), lines: 3 }]);
        read(&b);
        read(&a);
        let reads = watch.next().await;
        assert_eq!(reads, [FileRead { name: "b".into(), lines: 1 }, FileRead { name: "a".into(), lines: 4 }]);
    }
}
