//! Copying the files of a team, and refusing links that leave its folder.

use std::fs;

use camino::Utf8Path;
use cliq_fs::IoContext;
use cliq_workflow::LoadError;

use crate::ProjectError;

/// Checks every file below a team folder: links may only lead to files of the team, and nothing may be a FIFO, a socket or
/// a device (docs/decisions/0015-untrusted-files.md). Otherwise a team could bring along files of this machine, or block a reader.
pub(crate) fn check_files(dir: &Utf8Path) -> Result<(), ProjectError> {
    let root = dir.canonicalize_utf8().at("find", dir)?;
    match cliq_workflow::link_that_leaves(&root, &root) {
        Some(path) => Err(LoadError::LinkLeavesTeam { path }.into()),
        None => check_kinds(&root),
    }
}

fn check_kinds(dir: &Utf8Path) -> Result<(), ProjectError> {
    for entry in dir.read_dir_utf8().at("read", dir)? {
        let entry = entry.at("read", dir)?;
        let (path, kind) = (entry.path(), entry.file_type().at("read", entry.path())?);
        if kind.is_dir() {
            if entry.file_name() != ".git" {
                check_kinds(path)?;
            }
        } else if !kind.is_file() && !kind.is_symlink() {
            let kind = cliq_fs::describe_kind(kind);
            return Err(ProjectError::NotAFile { path: path.to_owned(), kind });
        }
    }
    Ok(())
}

/// Copies a file or a directory with all below it. Permissions stay, links are replaced by the files they lead to. A source
/// that does not exist is skipped.
pub(crate) fn copy_tree(from: &Utf8Path, to: &Utf8Path) -> Result<(), ProjectError> {
    let Ok(meta) = fs::metadata(from) else { return Ok(()) };
    if meta.is_file() {
        let parent = to.parent().unwrap_or(to);
        fs::create_dir_all(parent).at("create", parent)?;
        fs::copy(from, to).at("copy", from)?;
        return Ok(());
    }
    if !meta.is_dir() {
        // Copying a FIFO would wait for a writer.
        let kind = cliq_fs::describe_kind(meta.file_type());
        return Err(ProjectError::NotAFile { path: from.to_owned(), kind });
    }
    fs::create_dir_all(to).at("create", to)?;
    for entry in from.read_dir_utf8().at("read", from)? {
        let entry = entry.at("read", from)?;
        if entry.file_name() != ".git" {
            copy_tree(entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Removes a directory, if it is there.
pub(crate) fn remove_tree(dir: &Utf8Path) -> Result<(), ProjectError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).at("remove", dir).map_err(Into::into)
        }
        _ => Ok(()),
    }
}
