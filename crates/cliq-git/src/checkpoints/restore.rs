//! Restoring the files of a checkpoint.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::record::{Checkpoint, Label, Unit};
use super::store::{Change, CheckpointError, Store};
use crate::bytes::parts;

/// Result of a restoration.
#[derive(Debug)]
#[non_exhaustive]
pub struct Restored {
    /// Checkpoint of the state before: it can be restored in turn.
    pub before: Checkpoint,
    /// Files that were changed, from the state before to that of the checkpoint.
    pub changes: Vec<Change>,
}

impl Store {
    /// Makes the files of the workspace those of a checkpoint. Ignored files and files that are too large stay as they are. The state
    /// before is stored first, under `label` at the time `ts`.
    ///
    /// # Errors
    /// Returns an error if git or a file fails. Files that were restored until then stay restored; the state before can be restored.
    pub fn restore(&self, to: &Checkpoint, label: &Label, ts: &str) -> Result<Restored, CheckpointError> {
        let before = self.take(label, ts)?;
        let changes = self.changes(&before, to)?;
        let _guard = self.lock()?;
        for unit in &to.units {
            if before.tree_of(&unit.path) != Some(&unit.tree) {
                self.restore_unit(unit, before.tree_of(&unit.path), to)?;
            }
        }
        Ok(Restored { before, changes })
    }

    /// Writes the files of a checkpoint into another directory. The workspace stays as it is.
    ///
    /// # Errors
    /// Returns an error if git or a file fails.
    pub fn extract(&self, of: &Checkpoint, to: &camino::Utf8Path) -> Result<(), CheckpointError> {
        let _guard = self.lock()?;
        for unit in &of.units {
            let dir = Unit::dir(&unit.path, to);
            let io = |source| CheckpointError::Io { path: dir.clone(), source };
            fs::create_dir_all(&dir).map_err(io)?;
            // Git is started in this directory: a relative path would be taken from there.
            let dir = dir.canonicalize_utf8().map_err(io)?;
            let git = self.git_of(&unit.path, &dir);
            self.forget_tree(&unit.path);
            git.run(["read-tree", &unit.tree])?;
            git.run(["checkout-index", "--all", "--force"])?;
        }
        Ok(())
    }

    fn restore_unit(
        &self,
        unit: &Unit,
        before: Option<&str>,
        to: &Checkpoint,
    ) -> Result<(), CheckpointError> {
        let dir = Unit::dir(&unit.path, &self.workspace);
        let io = |path: &Path| {
            let path = camino::Utf8PathBuf::from(path.to_string_lossy().into_owned());
            move |source| CheckpointError::Io { path, source }
        };
        fs::create_dir_all(&dir).map_err(io(dir.as_std_path()))?;
        let empty = self.empty_tree()?;
        let old = before.unwrap_or(&empty);
        let raw =
            self.bare().run(["diff-tree", "-r", "-z", "--no-renames", "--name-status", old, &unit.tree])?;
        let (mut gone, mut written) = (Vec::new(), Vec::new());
        let mut fields = parts(&raw);
        while let (Some(kind), Some(file)) = (fields.next(), fields.next()) {
            if kind == b"D" { gone.push(file) } else { written.push(file) }
        }
        let prefix = if unit.path.is_empty() { String::new() } else { format!("{}/", unit.path) };
        // A file that was too large at the time of the checkpoint is not in its tree, and was not deleted.
        let is_large = |file: &[u8]| {
            let name = format!("{prefix}{}", String::from_utf8_lossy(file));
            to.large.iter().any(|large| large.path == name)
        };
        for file in gone.into_iter().filter(|file| !is_large(file)) {
            let relative = Path::new(OsStr::from_bytes(file));
            let path = dir.as_std_path().join(relative);
            if leads_through_link(dir.as_std_path(), relative) {
                continue;
            }
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(&path)(error)),
                _ => {}
            }
            // Git knows no empty directories.
            let mut parent = path.parent();
            while let Some(inner) = parent.filter(|inner| *inner != dir.as_std_path()) {
                if fs::remove_dir(inner).is_err() {
                    break;
                }
                parent = inner.parent();
            }
        }
        let git = self.git_of(&unit.path, &dir);
        self.forget_tree(&unit.path);
        git.run(["read-tree", &unit.tree])?;
        let list: Vec<u8> = written.iter().flat_map(|file| file.iter().copied().chain([0])).collect();
        git.run_with(["checkout-index", "--force", "--index", "-z", "--stdin"], &list).map(drop)
    }
}

/// Whether a directory on the way to a file is a symbolic link: the file is then another one.
fn leads_through_link(dir: &Path, relative: &Path) -> bool {
    let mut at: PathBuf = dir.to_owned();
    let parents = relative.parent().into_iter().flat_map(Path::components);
    for part in parents {
        if !matches!(part, Component::Normal(_)) {
            return true;
        }
        at.push(part);
        if fs::symlink_metadata(&at).is_ok_and(|metadata| metadata.is_symlink()) {
            return true;
        }
    }
    false
}
