//! Changes between two trees, written into a working tree.

use std::fs;

use crate::bytes::{parts, path_in, terminated};
use crate::{Git, GitError, lossy};

/// Makes the files of a working tree that differ between two trees those of the second. The index stays as it is.
///
/// Files outside of a sparse cone are written like others, so that the change is seen. For a deleted one, its mark `skip-worktree`
/// is removed from the index.
pub(crate) fn apply(git: &Git, old: &str, new: &str) -> Result<(), GitError> {
    let output = git.run(["diff-tree", "-r", "-z", "--no-renames", "--raw", old, new])?;
    let mut fields = parts(&output);
    let (mut written, mut removed) = (Vec::new(), Vec::new());
    while let (Some(info), Some(path)) = (fields.next(), fields.next()) {
        let is_link = info.starts_with(b":160000") || info.get(8..14) == Some(b"160000");
        if is_link {
            return Err(GitError::NotCarried {
                path: lossy(path),
                reason: "a submodule cannot be added or removed by a merge".to_owned(),
            });
        }
        if info.ends_with(b"D") { removed.push(path) } else { written.push(path) }
    }
    for name in &removed {
        let path = path_in(git.dir(), name);
        match fs::remove_file(&path) {
            // A file above it took its place, or nothing is there.
            Err(error)
                if !matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                return Err(GitError::io("remove", path)(error));
            }
            _ => {}
        }
        let mut parent = path.parent();
        while let Some(dir) = parent.filter(|dir| *dir != git.dir()) {
            if fs::remove_dir(dir).is_err() {
                break;
            }
            parent = dir.parent();
        }
    }
    let scratch = tempfile::tempdir().map_err(GitError::Start)?;
    let indexed = git.with_index(&scratch.path().join("index"));
    indexed.run(["read-tree", new])?;
    if !written.is_empty() {
        indexed
            .run_with(["checkout-index", "--force", "-z", "--stdin"], &terminated(written.iter().copied()))?;
    }
    show_removals(git, &removed)
}

/// Removes the mark `skip-worktree` of removed files, so that their removal is seen.
fn show_removals(git: &Git, removed: &[&[u8]]) -> Result<(), GitError> {
    if removed.is_empty()
        || !git.text(["config", "--bool", "core.sparseCheckout"]).is_ok_and(|is| is == "true")
    {
        return Ok(());
    }
    let marked = git.run(["ls-files", "-t", "-z"])?;
    let marked: Vec<&[u8]> = parts(&marked)
        .filter_map(|entry| entry.strip_prefix(b"S "))
        .filter(|path| removed.contains(path))
        .collect();
    if marked.is_empty() {
        return Ok(());
    }
    git.run_with(["update-index", "--no-skip-worktree", "-z", "--stdin"], &terminated(marked)).map(drop)
}
