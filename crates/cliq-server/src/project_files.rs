//! Files of a run's workspace that callers may see.
//!
//! Agents write there, so nothing is trusted: a path stays within the workspace after its links, only regular files are opened,
//! settings are never shown.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use cliq_fs::CliqDir;

use crate::problem::Problem;

/// The most bytes of a file that is shown or sent.
pub(crate) const MAX_FILE: u64 = 64 << 20;

/// The file or directory at a path relative to the workspace, with its links resolved.
pub(crate) fn locate(workspace: &Utf8Path, relative: &str) -> Result<Utf8PathBuf, Problem> {
    let missing = || Problem::not_found("there is no such file in the workspace");
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

/// Whether a path in the workspace may have secrets: settings of the project; messages to agents and their signals, in which links of
/// reviewers are.
fn is_hidden(path: &Utf8Path) -> bool {
    let mut parts = path.components().map(|part| part.as_str());
    let in_cliq = parts.any(|part| part == CliqDir::NAME);
    let is_channel = |part: &str| matches!(part, "messages" | "signals");
    in_cliq && (path.file_name().is_some_and(|name| name.starts_with("settings")) || parts.any(is_channel))
}

/// Reads a regular file of the workspace.
pub(crate) fn read(workspace: &Utf8Path, relative: &str) -> Result<Vec<u8>, Problem> {
    let path = locate(workspace, relative)?;
    cliq_fs::read_limited(&path, MAX_FILE).map_err(|error| {
        if error.is_not_found() {
            Problem::not_found("there is no such file in the workspace")
        } else {
            Problem::not_found("it is no regular file, or too large to be sent")
        }
    })
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
