//! Directories that hold what a remote folder holds.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

use crate::ConnectorError;
use crate::error::file_error;

/// Whether all files can be beside each other: no name twice, and none that is a directory too.
pub(crate) fn check_no_conflicts<'a>(
    paths: impl Iterator<Item = &'a Utf8Path>,
) -> Result<(), ConnectorError> {
    let mut files = BTreeSet::new();
    for path in paths {
        if !files.insert(path) {
            return Err(ConnectorError::new(format!(
                "there are two files {path}: rename one of them, or name each as a source of its own"
            )));
        }
    }
    for path in &files {
        let above =
            path.ancestors().skip(1).find(|above| !above.as_str().is_empty() && files.contains(above));
        if let Some(above) = above {
            return Err(ConnectorError::new(format!(
                "{above} is a file and a directory at the same time, because of {path}: rename one of them"
            )));
        }
    }
    Ok(())
}

/// Removes the files of a directory that are not in `keep`, and then the empty directories.
pub(crate) fn remove_others(dir: &Utf8Path, keep: &[Utf8PathBuf]) -> Result<(), ConnectorError> {
    let keep: BTreeSet<&Utf8Path> = keep.iter().map(Utf8PathBuf::as_path).collect();
    remove(dir, dir, &keep)
}

fn remove(root: &Utf8Path, dir: &Utf8Path, keep: &BTreeSet<&Utf8Path>) -> Result<(), ConnectorError> {
    let entries = dir.read_dir_utf8().map_err(|error| file_error("read", dir, &error))?;
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        let kind = entry.file_type().map_err(|error| file_error("read", path, &error))?;
        let relative = path.strip_prefix(root).unwrap_or(path);
        if kind.is_dir() {
            remove(root, path, keep)?;
            // It is kept where something is in it.
            let _ = std::fs::remove_dir(path);
        } else if !keep.contains(relative) {
            std::fs::remove_file(path).map_err(|error| file_error("remove", path, &error))?;
        }
    }
    Ok(())
}
