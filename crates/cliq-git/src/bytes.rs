//! Names as bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns a name for people: invalid UTF-8 is replaced by U+FFFD.
#[must_use]
pub fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Returns a path of a repository as a path of the file system.
pub(crate) fn path_in(dir: &Path, name: &[u8]) -> PathBuf {
    dir.join(OsStr::from_bytes(name))
}

/// Parts of an output that are separated by NUL, without empty ones.
pub(crate) fn parts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty())
}

/// Joins names with a NUL after each, as `-z --stdin` reads them.
pub(crate) fn terminated<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    names.into_iter().flat_map(|name| name.iter().copied().chain([0])).collect()
}

/// Name of a file within a repository below the workspace.
pub(crate) fn joined(prefix: &[u8], name: &[u8]) -> Vec<u8> {
    if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
}
