//! Writing files whole, and lines at once.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{Mode, OFlags};

use crate::read::{describe_kind, open_regular};
use crate::{FsError, IoContext};

/// Prefix of the names of files that are being written.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// Replaces the contents of `path` atomically: a reader sees the old contents or the new, never a part.
///
/// The file is renamed into place and so survives the death of the process at any moment; it is not forced to the
/// disk, so a power failure may lose it ([`sync_file_system`]).
///
/// # Errors
/// The directory is not there or not writable, or the disk is full. The old contents stay.
pub fn write_atomic(path: &Utf8Path, contents: &[u8]) -> Result<(), FsError> {
    let dir = path.parent().unwrap_or(Utf8Path::new("."));
    let mut file = temporary_in(dir).at("write", path)?;
    file.write_all(contents).at("write", path)?;
    file.persist(path).map_err(|error| error.error).at("write", path)?;
    Ok(())
}

/// A temporary file that is to be renamed within its directory.
pub(crate) fn temporary_in(dir: &Utf8Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    // Readers may be other users, in containers for example: the usual mode, narrowed by the umask.
    builder.prefix(TEMPORARY).permissions(Permissions::from_mode(0o666));
    builder.tempfile_in(dir)
}

/// A file that only this user can read. Dropping it removes it. One that a killed process leaves goes with the temporaries
/// of the next start.
#[derive(Debug)]
pub struct PrivateFile(tempfile::NamedTempFile);

impl PrivateFile {
    /// Writes a new file with mode 0600 to a directory, under a name of its own.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(dir: &Utf8Path, contents: &[u8]) -> Result<Self, FsError> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(TEMPORARY).permissions(Permissions::from_mode(0o600));
        let mut file = builder.tempfile_in(dir).at("write", dir)?;
        let path = Utf8Path::from_path(file.path()).map(Utf8Path::to_owned);
        file.write_all(contents).at("write", path.as_deref().unwrap_or(dir))?;
        Ok(Self(file))
    }

    /// Path of the file.
    ///
    /// # Errors
    /// Returns an error if the path is not UTF-8.
    pub fn path(&self) -> io::Result<&Utf8Path> {
        Utf8Path::from_path(self.0.path()).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "the path of a temporary file is not UTF-8")
        })
    }
}

/// As [`write_atomic`], with the contents of another file, which pass through no memory of ours where the system can
/// copy by itself.
///
/// # Errors
/// As for [`write_atomic`]; or the other file cannot be read.
pub(crate) fn copy_atomic(from: &Utf8Path, path: &Utf8Path) -> Result<(), FsError> {
    let dir = path.parent().unwrap_or(Utf8Path::new("."));
    let mut file = temporary_in(dir).at("write", path)?;
    let (mut source, _) = open_regular(from)?;
    io::copy(&mut source, file.as_file_mut()).at("write", path)?;
    file.persist(path).map_err(|error| error.error).at("write", path)?;
    Ok(())
}

/// Waits until everything that was written to the file system of `dir` is on the disk, by any process: what agents wrote in
/// their workspace counts too.
///
/// # Errors
/// The directory cannot be opened, or the disk reports an error.
pub fn sync_file_system(dir: &Utf8Path) -> Result<(), FsError> {
    let dir_file = File::open(dir).at("open", dir)?;
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&dir_file).map_err(io::Error::from).at("sync", dir)?;
    #[cfg(not(target_os = "linux"))]
    {
        rustix::fs::sync();
        dir_file.sync_all().at("sync", dir)?;
    }
    Ok(())
}

/// Opens a file for append, and creates it where it is missing. Never waits, and never writes through a link: another
/// process may have left a FIFO or a link under this name (docs/decisions/0015-untrusted-files.md).
///
/// # Errors
/// Returns an error if the file cannot be opened or is not regular.
pub fn open_append(path: &Utf8Path) -> Result<File, FsError> {
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NONBLOCK
        | OFlags::NOFOLLOW
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let open = || {
        let file = File::from(rustix::fs::open(path.as_std_path(), flags, Mode::from_raw_mode(0o666))?);
        let kind = file.metadata()?.file_type();
        if kind.is_file() { Ok(file) } else { Err(not_regular(kind)) }
    };
    let explained = |error: io::Error| match std::fs::symlink_metadata(path) {
        Ok(meta) if !meta.is_file() => not_regular(meta.file_type()),
        _ => error,
    };
    open().map_err(explained).at("open", path)
}

fn not_regular(kind: std::fs::FileType) -> io::Error {
    io::Error::other(format!("it is {}; only a regular file is written", describe_kind(kind)))
}

/// Appends `line`, which must end in a newline, with a single write.
///
/// # Errors
/// The file cannot be opened or written, or only a part went in (a full disk).
pub fn append_line(path: &Utf8Path, line: &[u8]) -> Result<(), FsError> {
    let mut file = open_append(path)?;
    write_at_once(&mut file, line).at("append to", path)
}

/// A file that lines are appended to, each with a single write, and that stays open.
#[derive(Debug)]
pub struct AppendedFile {
    path: Utf8PathBuf,
    file: File,
}

impl AppendedFile {
    /// Opens it, or makes it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened for append.
    pub fn open(path: &Utf8Path) -> Result<Self, FsError> {
        let file = open_append(path)?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Appends `line`, which must end in a newline.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or only in part (a full disk).
    pub fn append(&mut self, line: &[u8]) -> Result<(), FsError> {
        write_at_once(&mut self.file, line).at("append to", &self.path)
    }
}

/// One `write`, because two writers with a handle opened for append then never mix within a line.
pub(crate) fn write_at_once(file: &mut impl Write, line: &[u8]) -> io::Result<()> {
    loop {
        match file.write(line) {
            Ok(n) if n == line.len() => return Ok(()),
            Ok(n) => {
                let message = format!("only {n} of {} bytes could be written", line.len());
                return Err(io::Error::new(io::ErrorKind::WriteZero, message));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
