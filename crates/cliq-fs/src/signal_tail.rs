//! Reading a signal channel as it grows (docs/protocol.md).

use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{Line, StreamDecoder};

use crate::{FsError, IoContext, open_regular};

const CHUNK: usize = 64 * 1024;

/// The reading end of a signal channel: keeps its offset and reads only what is new.
#[derive(Debug)]
pub struct SignalTail {
    path: Utf8PathBuf,
    decoder: StreamDecoder,
    inode: Option<u64>,
}

impl SignalTail {
    /// A reader at the start of a file that need not exist yet.
    #[must_use]
    pub fn new(path: &Utf8Path) -> Self {
        Self { path: path.to_owned(), decoder: StreamDecoder::new(), inode: None }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Hands every line that was finished since the last call to `each`. Uses constant memory.
    ///
    /// A file that is shorter than what was read, or another file under the same name, was replaced and is read from
    /// its start. A file that is not there has nothing new.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn read_new(&mut self, mut each: impl FnMut(Line)) -> Result<(), FsError> {
        let mut file = match open_regular(&self.path) {
            Ok((file, _)) => file,
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        };
        let meta = file.metadata().at("read", &self.path)?;
        let replaced =
            self.inode.is_some_and(|inode| inode != meta.ino()) || meta.len() < self.decoder.offset();
        if replaced {
            self.decoder = StreamDecoder::new();
        }
        self.inode = Some(meta.ino());
        if meta.len() == self.decoder.offset() {
            return Ok(());
        }
        file.seek(SeekFrom::Start(self.decoder.offset())).at("read", &self.path)?;
        let mut buffer = vec![0; CHUNK];
        // No further than it now goes: a writer that never pauses must not keep the reader here.
        let mut rest = meta.len() - self.decoder.offset();
        while rest > 0 {
            let size = usize::try_from(rest).unwrap_or(CHUNK).min(CHUNK);
            match file.read(&mut buffer[..size]) {
                Ok(0) => return Ok(()),
                Ok(n) => {
                    self.decoder.feed(&buffer[..n], &mut each);
                    rest -= n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).at("read", &self.path),
            }
        }
        Ok(())
    }
}
