//! The file bridge: signals that come as files, for agents that can do no more than write one (docs/signals.md).
//!
//! A writer makes its file in `staging/` and renames it into the inbox. The bridge moves it to `processing/`, commits its row, and
//! removes it; what is refused goes to `failed/`, with a `.reason` beside it. Death between any two of these loses nothing, and
//! doubles nothing: the row records which file it came from.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_model::StoreError;

use crate::error::ErrorContext;
use crate::sentinel;
use crate::signal::{MAX_PAYLOAD, NewSignal};
use crate::store::Store;

/// Maximum length of the name of a refused file in bytes. File systems allow 255; a number and `.reason` are appended.
const LONGEST_NAME: usize = 200;

/// A directory that signal files come into.
#[derive(Debug, Clone)]
pub struct Inbox {
    root: Utf8PathBuf,
}

/// A file in an inbox that is not in the queue yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingFile {
    /// Path of the file.
    pub path: Utf8PathBuf,
    /// Signal that the file stands for, or the reason why it will be refused.
    pub signal: Result<NewSignal, String>,
}

/// Result of a pass of the bridge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BridgeReport {
    /// Signals that are in the queue now.
    pub signals: Vec<i64>,
    /// Files that were refused, with the reasons.
    pub refused: Vec<(String, String)>,
}

/// Files that a crash left half processed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Files that will be read again.
    pub moved: Vec<String>,
    /// Files that a newer one of the same name has replaced.
    pub discarded: Vec<String>,
}

impl Inbox {
    /// The inbox in this directory, `.cliq/signals/inbox` of a workspace.
    #[must_use]
    pub fn new(root: Utf8PathBuf) -> Self {
        Self { root }
    }

    /// Returns the inboxes of a project: its own, and those of the worktrees below `.worktrees`.
    #[must_use]
    pub fn all_of(project: &Utf8Path) -> Vec<Self> {
        let worktrees = project.join(".worktrees").read_dir_utf8().into_iter().flatten();
        let mut paths: Vec<Utf8PathBuf> =
            worktrees.filter_map(|entry| Some(entry.ok()?.into_path())).collect();
        paths.sort();
        paths.insert(0, project.to_owned());
        paths.iter().map(|path| Self::of(path)).collect()
    }

    /// The inbox of a workspace.
    #[must_use]
    pub fn of(workspace: &Utf8Path) -> Self {
        Self::new(workspace.join(cliq_fs::CliqDir::NAME).join("signals/inbox"))
    }

    /// Directory of the inbox.
    #[must_use]
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// Makes its directories.
    ///
    /// # Errors
    /// Returns an error if the directories cannot be created.
    pub fn ensure(&self) -> Result<(), StoreError> {
        for name in ["staging", "processing", "failed"] {
            let dir = self.root.join(name);
            fs::create_dir_all(&dir).at("create", &dir)?;
        }
        Ok(())
    }

    /// Puts a file into the inbox, whole.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn put(&self, name: &str, contents: &str) -> Result<(), StoreError> {
        self.ensure()?;
        self.write_whole(&self.root.join(name), contents)
    }

    /// Replaces what is at this path, on the file system of the inbox: who sees the file sees all of it.
    fn write_whole(&self, path: &Utf8Path, contents: &str) -> Result<(), StoreError> {
        let staged = self.root.join("staging").join(uuid::Uuid::now_v7().simple().to_string());
        let write = || {
            let mut file = fs::File::create_new(&staged)?;
            file.write_all(contents.as_bytes())?;
            fs::rename(&staged, path)
        };
        write().inspect_err(|_| drop(fs::remove_file(&staged))).at("write", path)
    }

    /// Puts a signal into the inbox, under a name that no other file has.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn send(&self, signal: &NewSignal) -> Result<(), StoreError> {
        self.put(&sentinel::name(signal), &signal.payload_text())
    }

    /// After a crash: what was being processed is put back, to be read again. Where a newer file of the same name has come
    /// since, the old one is discarded.
    ///
    /// # Errors
    /// A file cannot be moved.
    pub fn recover(&self) -> Result<RecoveryReport, StoreError> {
        let mut recovered = RecoveryReport::default();
        let processing = self.root.join("processing");
        for name in files(&processing)? {
            let (from, to) = (processing.join(&name), self.root.join(&name));
            if to.exists() {
                remove(&from)?;
                recovered.discarded.push(name);
            } else {
                fs::rename(&from, &to).at("move", &from)?;
                recovered.moved.push(name);
            }
        }
        Ok(recovered)
    }

    /// Whether there are files to be brought in.
    #[must_use]
    pub fn has_files(&self) -> bool {
        files(&self.root).is_ok_and(|files| !files.is_empty())
    }

    /// Returns the files that the bridge has not brought in yet, with the signal that each stands for.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read.
    pub fn waiting(&self) -> Result<Vec<WaitingFile>, StoreError> {
        let read = |name: String| {
            let path = self.root.join(&name);
            let signal = self.read_signal(&path, &name);
            WaitingFile { path, signal }
        };
        Ok(files(&self.root)?.into_iter().map(read).collect())
    }

    /// Reads a file as a signal. `name` is its name in the inbox.
    fn read_signal(&self, file: &Utf8Path, name: &str) -> Result<NewSignal, String> {
        let size = fs::symlink_metadata(file).map_err(|error| format!("it cannot be read: {error}"))?.len();
        if size > MAX_PAYLOAD as u64 {
            return Err(format!("it has {size} bytes, more than {MAX_PAYLOAD}"));
        }
        let contents = cliq_fs::read_limited(file, MAX_PAYLOAD as u64)
            .map_err(|error| format!("it cannot be read: {}", error.source))?;
        sentinel::read(name, &String::from_utf8_lossy(&contents)).map_err(|why| why.to_string())
    }

    /// Brings all files that are there into the queue, the oldest first.
    ///
    /// # Errors
    /// The store cannot be written, or a file not be moved. What was not brought in stays where it is.
    pub async fn bridge(&self, store: &dyn Store, project: &str) -> Result<BridgeReport, StoreError> {
        let mut bridged = BridgeReport::default();
        let mut found = Vec::new();
        for name in files(&self.root)? {
            match fs::symlink_metadata(self.root.join(&name)) {
                Ok(meta) => found.push((meta.mtime(), meta.mtime_nsec(), name)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error).at("read", &self.root.join(name)),
            }
        }
        found.sort();
        if !found.is_empty() {
            self.ensure()?;
        }
        for (_, _, name) in found {
            let file = self.root.join("processing").join(&name);
            match fs::rename(self.root.join(&name), &file) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                other => other.at("move", &self.root.join(&name))?,
            }
            // Another one may have been renamed over the one that was listed.
            let meta = fs::symlink_metadata(&file).at("read", &file)?;
            match self.read_signal(&file, &name) {
                Ok(signal) => {
                    let identity = self.identity(&name, &meta);
                    let created = store.create_from_file(project, &signal, &identity).await;
                    match created {
                        Ok(id) => bridged.signals.push(id),
                        Err(error) => {
                            // It is not lost: the next time it is read again.
                            let _ = fs::rename(&file, self.root.join(&name));
                            return Err(error);
                        }
                    }
                    remove(&file)?;
                    // The next file of this name may get the same inode within the same tick of the clock.
                    store.forget_file(&identity).await?;
                }
                Err(why) => {
                    self.refuse(&file, &name, &why)?;
                    bridged.refused.push((name, why));
                }
            }
        }
        Ok(bridged)
    }

    /// The identity of this file, distinct from any other file, even one of the same name and contents. A move keeps it.
    fn identity(&self, name: &str, meta: &fs::Metadata) -> String {
        let (mtime, size) = (format!("{}.{:09}", meta.mtime(), meta.mtime_nsec()), meta.len());
        format!("{}|{name}|{}:{}|{mtime}|{size}", self.root, meta.dev(), meta.ino())
    }

    fn refuse(&self, file: &Utf8Path, name: &str, why: &str) -> Result<(), StoreError> {
        let failed = self.root.join("failed");
        // Room for what is put behind it.
        let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
        // What failed before under this name stays to be read.
        let names = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name}.{n}")));
        let free = names.map(|name| failed.join(name)).find(|path| !path.exists());
        let target = free.unwrap_or_else(|| failed.join(name));
        let reason = Utf8PathBuf::from(format!("{target}.reason"));
        let now = cliq_fs::now();
        self.write_whole(&reason, &format!("{now} {why}\n"))?;
        fs::rename(file, &target).at("move", file)
    }
}

/// The names of all that is not a directory in a directory; none where it is not there. Hidden files are temporary ones of
/// their writers.
fn files(dir: &Utf8Path) -> Result<Vec<String>, StoreError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).at("read", dir),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.at("read", dir)?;
        let is_file = match entry.file_type() {
            Ok(kind) => !kind.is_dir(),
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error).at("read", dir),
        };
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if is_file && !is_hidden {
            names.extend(readable_name(dir, &entry)?);
        }
    }
    names.sort();
    Ok(names)
}

/// The name of a file. One that is not UTF-8 is changed into one that is, in the file system too: a person has to read which file
/// was refused. `None` if it has gone, or another file has that name and comes first.
fn readable_name(dir: &Utf8Path, entry: &fs::DirEntry) -> Result<Option<String>, StoreError> {
    let name = match entry.file_name().into_string() {
        Ok(name) => return Ok(Some(name)),
        Err(name) => name.to_string_lossy().into_owned(),
    };
    let name = name[..name.floor_char_boundary(LONGEST_NAME)].to_owned();
    let path = dir.join(&name);
    if fs::symlink_metadata(&path).is_ok() {
        return Ok(None);
    }
    match fs::rename(entry.path(), &path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        renamed => renamed.at("move", &path).map(|()| Some(name)),
    }
}

fn remove(path: &Utf8Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok::<(), io::Error>(()),
        other => other,
    }
    .at("remove", path)
}
