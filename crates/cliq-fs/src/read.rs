//! Reading files that other processes wrote, without trusting them (docs/decisions/0015-untrusted-files.md).
//!
//! An agent may leave anything under a name that cliq reads: a FIFO, on which an ordinary `open` waits for ever, a link to
//! `/dev/zero`, a directory, a link to a private file. These functions open without waiting, read regular files
//! only, follow links only where they stay within the project, and stop at a size.

use std::fs::{File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{Mode, OFlags};

use crate::{CliqDir, FsError, IoContext};

/// The most bytes of a file that other processes write, where no setting says otherwise: 1 GiB.
pub const DEFAULT_FILE_LIMIT: u64 = 1 << 30;

/// The environment variable that gives agents a limit other than [`DEFAULT_FILE_LIMIT`], in bytes.
pub const FILE_LIMIT_VARIABLE: &str = "CLIQ_MAX_FILE_BYTES";

/// Reads a regular file of at most `limit` bytes. A link may lead to any file of the same project: below the directory
/// that holds the nearest `.cliq` above `path`. Outside of projects a link may lead anywhere.
///
/// # Errors
/// The file is not there, is not a regular file, leads out of the project, or is larger than `limit`.
pub fn read_limited(path: &Utf8Path, limit: u64) -> Result<Vec<u8>, FsError> {
    let (file, size) = open_regular(path)?;
    read_open(&file, size, limit).at("read", path)
}

/// As [`read_limited`], where links may lead to files below `root` only. The links of `root` itself must be resolved.
///
/// # Errors
/// As for [`read_limited`]; [`FsError::leaves_root`] is true for a link that leads out of `root`.
pub fn read_within(path: &Utf8Path, root: &Utf8Path, limit: u64) -> Result<Vec<u8>, FsError> {
    let (file, size) = open(path, || Some(root.to_owned())).at("read", path)?;
    read_open(&file, size, limit).at("read", path)
}

/// As [`read_limited`]; `None` if there is no such file.
///
/// # Errors
/// As for [`read_limited`], save that the file is not there.
pub fn read_if_exists(path: &Utf8Path, limit: u64) -> Result<Option<Vec<u8>>, FsError> {
    match read_limited(path, limit) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// As [`read_limited`], as text. Bytes that are not UTF-8 are replaced.
///
/// # Errors
/// As for [`read_limited`].
pub fn read_text(path: &Utf8Path, limit: u64) -> Result<String, FsError> {
    let bytes = read_limited(path, limit)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Opens a regular file for reading, without waiting, and gives its size in bytes. Links as for [`read_limited`].
///
/// # Errors
/// The file is not there, is not a regular file, or leads out of the project.
pub fn open_regular(path: &Utf8Path) -> Result<(File, u64), FsError> {
    open(path, || project_of(path)).at("read", path)
}

/// The error of a link that leads out of the directory in which it belongs.
#[derive(Debug, thiserror::Error)]
#[error("it is a link that leads out of {root}, to {target}")]
pub(crate) struct LeavesRoot {
    root: Utf8PathBuf,
    target: Utf8PathBuf,
}

fn open(path: &Utf8Path, root: impl FnOnce() -> Option<Utf8PathBuf>) -> io::Result<(File, u64)> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match open_without_links(path, flags) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
        // There is a link on the way, or the system does not know the call.
        Err(_) => {
            let target = path.canonicalize_utf8()?;
            if let Some(root) = root()
                && !target.starts_with(&root)
            {
                return Err(io::Error::other(LeavesRoot { root, target }));
            }
            File::from(rustix::fs::open(target.as_std_path(), flags | OFlags::NOFOLLOW, Mode::empty())?)
        }
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        let kind = describe_kind(meta.file_type());
        return Err(io::Error::other(format!("it is {kind}; only a regular file is read")));
    }
    Ok((file, meta.len()))
}

#[cfg(target_os = "linux")]
fn open_without_links(path: &Utf8Path, flags: OFlags) -> io::Result<File> {
    use rustix::fs::{CWD, ResolveFlags, openat2};
    let file = openat2(CWD, path.as_std_path(), flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    Ok(File::from(file))
}

#[cfg(target_os = "macos")]
fn open_without_links(path: &Utf8Path, flags: OFlags) -> io::Result<File> {
    // `O_NOFOLLOW_ANY` of <sys/fcntl.h>: no link in any part of the path.
    let flags = flags | OFlags::from_bits_retain(0x2000_0000);
    Ok(File::from(rustix::fs::open(path.as_std_path(), flags, Mode::empty())?))
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn open_without_links(_: &Utf8Path, _: OFlags) -> io::Result<File> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// The directory that holds the nearest `.cliq` above a path, with its links resolved. `None` outside of projects.
fn project_of(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let cliq = path.ancestors().skip(1).find(|dir| dir.file_name() == Some(CliqDir::NAME))?;
    cliq.parent()?.canonicalize_utf8().ok()
}

fn read_open(file: &File, size: u64, limit: u64) -> io::Result<Vec<u8>> {
    let too_large = || {
        io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {limit} bytes, which is the limit (setting `max_file_bytes`)"),
        )
    };
    if size > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    // Some files grow while they are read, and some have no end.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
}

/// The kind of a file with its article, for errors: `a FIFO`, `a directory`.
#[must_use]
pub fn describe_kind(kind: FileType) -> &'static str {
    if kind.is_file() {
        "a file"
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "no regular file"
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn project() -> (tempfile::TempDir, Utf8PathBuf) {
        let guard = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(guard.path()).unwrap().canonicalize_utf8().unwrap();
        fs::create_dir_all(dir.join("p/.cliq/channels/a--b")).unwrap();
        fs::write(dir.join("secret"), "s").unwrap();
        fs::write(dir.join("p/notes"), "n").unwrap();
        (guard, dir)
    }

    fn error(path: &Utf8Path) -> String {
        read_limited(path, 10).unwrap_err().to_string()
    }

    #[test]
    fn links_may_not_leave_the_project() {
        let (_guard, dir) = project();
        let handoff = dir.join("p/.cliq/channels/a--b/handoff.json");
        symlink(dir.join("secret"), &handoff).unwrap();
        assert!(error(&handoff).contains("leads out of"), "{}", error(&handoff));
        fs::remove_file(&handoff).unwrap();
        symlink("../../../notes", &handoff).unwrap();
        assert_eq!(read_limited(&handoff, 10).unwrap(), b"n");
        // A directory on the way counts like the file itself.
        fs::remove_dir_all(dir.join("p/.cliq/channels")).unwrap();
        fs::create_dir_all(dir.join("elsewhere/a--b")).unwrap();
        fs::write(dir.join("elsewhere/a--b/handoff.json"), "e").unwrap();
        symlink(dir.join("elsewhere"), dir.join("p/.cliq/channels")).unwrap();
        assert!(error(&handoff).contains("leads out of"), "{}", error(&handoff));
    }

    #[test]
    fn only_regular_files_are_read() {
        let (_guard, dir) = project();
        let path = dir.join("p/.cliq/channels/a--b/handoff.json");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path.as_std_path(),
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o644),
            0,
        )
        .unwrap();
        assert!(error(&path).contains("a FIFO"), "{}", error(&path));
        assert!(error(&dir.join("p/.cliq")).contains("a directory"));
        let device = dir.join("zero");
        symlink("/dev/zero", &device).unwrap();
        assert!(error(&device).contains("a device"), "outside of projects links are followed");
        let circle = dir.join("circle");
        symlink(&circle, &circle).unwrap();
        assert!(read_limited(&circle, 10).is_err());
        assert!(read_if_exists(&dir.join("none"), 10).unwrap().is_none());
    }

    #[test]
    fn large_files_are_refused() {
        let (_guard, dir) = project();
        let path = dir.join("large");
        fs::write(&path, "01234567890").unwrap();
        assert!(error(&path).contains("more than 10 bytes"), "{}", error(&path));
        fs::write(&path, "0123456789").unwrap();
        assert_eq!(read_limited(&path, 10).unwrap().len(), 10);
    }
}
