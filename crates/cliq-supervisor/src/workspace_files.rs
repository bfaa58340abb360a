//! Files of a run's workspace that callers may read.
//!
//! Agents write there, so nothing is trusted: links must stay within the workspace, only regular files are opened, and settings are
//! never returned.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use cliq_fs::CliqDir;

/// Maximum size of a file that is returned, in bytes.
pub const MAX_FILE: u64 = 64 << 20;

/// Reason why a file is not returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The path does not exist, leaves the workspace, or is hidden from callers.
    #[error("there is no such file in the workspace")]
    NotFound,
    /// The path is not a regular file, or the file exceeds the limit.
    #[error("it is not a regular file, or too large to be sent")]
    NotReadable,
}

/// Returns the absolute path of a file or directory of the workspace, with links resolved.
///
/// # Errors
/// Returns an error if the path does not exist, leaves the workspace, or is hidden from callers.
pub fn locate(workspace: &Utf8Path, relative: &str) -> Result<Utf8PathBuf, FileError> {
    let missing = || FileError::NotFound;
    let path = Utf8Path::new(relative);
    let plain = |c: Utf8Component<'_>| matches!(c, Utf8Component::Normal(_) | Utf8Component::CurDir);
    if relative.contains('\0') || !path.components().all(plain) {
        return Err(missing());
    }
    let root = workspace.canonicalize_utf8().map_err(|_| missing())?;
    let found = root.join(path).canonicalize_utf8().map_err(|_| missing())?;
    let within = found.strip_prefix(&root).map_err(|_| missing())?;
    if is_hidden(within) { Err(missing()) } else { Ok(found) }
}

/// Whether a path may contain secrets: project settings, or messages and signals with the links of reviewers.
fn is_hidden(path: &Utf8Path) -> bool {
    let mut parts = path.components().map(|part| part.as_str());
    let in_cliq = parts.any(|part| part == CliqDir::NAME);
    let is_channel = |part: &str| matches!(part, "messages" | "signals");
    in_cliq && (path.file_name().is_some_and(|name| name.starts_with("settings")) || parts.any(is_channel))
}

/// Reads a regular file of the workspace.
///
/// # Errors
/// Returns an error if there is no such file, or the file exceeds [`MAX_FILE`].
pub fn read(workspace: &Utf8Path, relative: &str) -> Result<Vec<u8>, FileError> {
    let path = locate(workspace, relative)?;
    cliq_fs::read_limited(&path, MAX_FILE)
        .map_err(|error| if error.is_not_found() { FileError::NotFound } else { FileError::NotReadable })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_and_no_settings() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temporary.path()).unwrap().join("w");
        std::fs::create_dir_all(root.join(".cliq/teams/a")).unwrap();
        std::fs::write(root.join("a.txt"), "a").unwrap();
        std::fs::write(root.join(".cliq/settings.json"), "{}").unwrap();
        std::fs::write(root.join(".cliq/journal.jsonl"), "j").unwrap();
        std::fs::write(temporary.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink(temporary.path().join("secret"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(root.join(".cliq/settings.json"), root.join("config")).unwrap();
        assert_eq!(read(&root, "a.txt").unwrap(), b"a");
        assert_eq!(read(&root, "./.cliq/journal.jsonl").unwrap(), b"j");
        for path in [
            "../secret",
            "link",
            "/etc/passwd",
            ".cliq/settings.json",
            "config",
            ".cliq/../.cliq/settings.json",
            "a.txt\0",
            "no",
            "",
            "..",
            ".cliq",
        ] {
            assert!(read(&root, path).is_err(), "{path}");
        }
    }
}
