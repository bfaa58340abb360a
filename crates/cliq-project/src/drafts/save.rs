//! Saving files of drafts. A save names the version that it replaces, and writers of a draft take turns.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;

use camino::Utf8Path;
use cliq_fs::{IoContext, write_atomic};

use super::{
    DraftError, DraftFile, DraftName, DraftPath, Drafts, MAX_FILE, MAX_FILES, is_file, paths, read,
    version_of,
};

/// Lock of the writers of drafts, free again when it is dropped or its process dies.
struct WriterLock(#[expect(dead_code, reason = "the lock is held by the open file")] File);

impl Drafts {
    fn lock(&self) -> Result<WriterLock, DraftError> {
        let path = self.root.join(".lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path).at("open", &path)?;
        file.lock().at("lock", &path)?;
        Ok(WriterLock(file))
    }

    /// Saves a file over the version that was read, or creates it if `version` is `None`. Returns the new version.
    ///
    /// # Errors
    /// There is no such draft; another version was saved or the file was removed since it was read; a new file is there already; a limit is
    /// exceeded; or the file cannot be written.
    pub fn save(
        &self,
        name: &DraftName,
        path: &DraftPath,
        text: &str,
        version: Option<&str>,
    ) -> Result<String, DraftError> {
        let file = (path.clone(), version.map(str::to_owned), text.to_owned());
        self.save_all(name, &[file])?;
        Ok(version_of(text.as_bytes()))
    }

    /// Saves several files, as [`Self::save`] does each of them: all of them or, if one cannot be saved over its version, none.
    ///
    /// # Errors
    /// As for [`Self::save`].
    pub fn save_all(
        &self,
        name: &DraftName,
        files: &[(DraftPath, Option<String>, String)],
    ) -> Result<(), DraftError> {
        let folder = self.existing(name)?;
        let _lock = self.lock()?;
        for (path, version, text) in files {
            if text.len() > MAX_FILE {
                return Err(DraftError::TooLarge { path: path.clone(), size: text.len() });
            }
            match (version, current(&folder, path)?) {
                (None, Some(_)) => return Err(DraftError::FileExists(path.clone())),
                (None, None) => make_room(&folder, path)?,
                (Some(_), None) => return Err(DraftError::Removed(path.clone())),
                (Some(version), Some(file)) => {
                    // The same text twice is no conflict.
                    if file.version != *version && file.version != version_of(text.as_bytes()) {
                        return Err(DraftError::Conflict(path.clone()));
                    }
                }
            }
        }
        for (path, _, text) in files {
            write(&folder.join(path.as_str()), text)?;
        }
        Ok(())
    }

    /// Removes a file of a draft.
    ///
    /// # Errors
    /// There is no such draft or file; another version was saved since it was read; it is team.yml; or it cannot be removed.
    pub fn remove_file(&self, name: &DraftName, path: &DraftPath, version: &str) -> Result<(), DraftError> {
        if path.as_str() == "team.yml" {
            return Err(DraftError::TeamFile);
        }
        let folder = self.existing(name)?;
        let _lock = self.lock()?;
        let file = current(&folder, path)?.ok_or_else(|| DraftError::UnknownFile(path.clone()))?;
        if file.version != version {
            return Err(DraftError::Conflict(path.clone()));
        }
        let place = folder.join(path.as_str());
        fs::remove_file(&place).at("remove", &place)?;
        // Directories without files are of no use; others stay.
        let mut parent = place.parent();
        while let Some(dir) = parent.filter(|dir| *dir != folder && fs::remove_dir(dir).is_ok()) {
            parent = dir.parent();
        }
        Ok(())
    }
}

/// Writes a file with the permissions that it had. A new program becomes executable.
fn write(file: &Utf8Path, text: &str) -> Result<(), DraftError> {
    let mode = match fs::metadata(file) {
        Ok(meta) => Some(meta.permissions()),
        Err(_) => text.starts_with("#!").then(|| fs::Permissions::from_mode(0o755)),
    };
    write_atomic(file, text.as_bytes())?;
    if let Some(mode) = mode {
        fs::set_permissions(file, mode).at("set the permissions of", file)?;
    }
    Ok(())
}

fn current(folder: &Utf8Path, path: &DraftPath) -> Result<Option<DraftFile>, DraftError> {
    if is_file(folder, path) { read(folder, path.clone()).map(Some) } else { Ok(None) }
}

/// Creates the directories of a new file.
fn make_room(folder: &Utf8Path, path: &DraftPath) -> Result<(), DraftError> {
    if paths(folder).len() >= MAX_FILES {
        return Err(DraftError::TooMany);
    }
    let mut place = folder.to_owned();
    let (parents, _) = path.as_str().rsplit_once('/').unwrap_or_default();
    for part in parents.split('/').filter(|part| !part.is_empty()) {
        place.push(part);
        match place.symlink_metadata() {
            Ok(meta) if meta.is_dir() => {}
            // A file or a link is in the way.
            Ok(_) => return Err(DraftError::FileExists(path.clone())),
            Err(_) => fs::create_dir(&place).at("create", &place)?,
        }
    }
    match folder.join(path.as_str()).symlink_metadata() {
        Ok(_) => Err(DraftError::FileExists(path.clone())),
        Err(_) => Ok(()),
    }
}
