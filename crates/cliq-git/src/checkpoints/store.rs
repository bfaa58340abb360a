//! The store: its files, its records, comparisons and pruning.

use std::fs::{self, File};
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};

use super::private::Git;
use super::record::{Checkpoint, Label, Unit};
use crate::bytes::parts;

/// Reason why a checkpoint cannot be taken, compared or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The program `git` is missing.
    #[error("checkpoints need the program `git`, which is not installed")]
    NoGit,
    /// Git failed.
    #[error("git {call} failed in the store of checkpoints: {reason}")]
    Git {
        /// Subcommand.
        call: String,
        /// Reason.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("cannot access {path}: {source}")]
    Io {
        /// Path of the file.
        path: Utf8PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// The record of checkpoints is damaged.
    #[error("line {line} of {path} is not a checkpoint: {reason}")]
    Record {
        /// Path of the file.
        path: Utf8PathBuf,
        /// Line, 1-based.
        line: usize,
        /// Reason.
        reason: String,
    },
}

/// Bounds of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest file whose content is stored, in bytes.
    pub max_file_bytes: u64,
    /// Age of the oldest checkpoint that is kept, in seconds.
    pub max_age_secs: u64,
    /// Size of the store above which old checkpoints are removed, in bytes.
    pub max_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_file_bytes: 50 << 20, max_age_secs: 30 * 24 * 3600, max_bytes: 2 << 30 }
    }
}

/// Kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The file is new.
    Added,
    /// Content or type differs.
    Modified,
    /// The file is gone.
    Deleted,
}

impl ChangeKind {
    /// Letter of the kind, as in `git status`.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Deleted => 'D',
        }
    }
}

/// A file that differs between two checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Change {
    /// Path within the workspace. Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// Kind.
    pub kind: ChangeKind,
}

/// Form of differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceForm {
    /// Patch with prefixes `a/` and `b/`.
    Patch,
    /// Numbers of lines, as `git diff --numstat -z` prints them.
    Counts,
}

/// Store of checkpoints of a workspace.
#[derive(Debug)]
pub struct Store {
    pub(crate) dir: Utf8PathBuf,
    pub(crate) workspace: Utf8PathBuf,
    /// Repositories of the workspace, relative to it; empty for the workspace itself.
    pub(crate) roots: Vec<String>,
    pub(crate) limits: Limits,
    /// Value of `PATH`, to find git.
    pub(crate) path: Option<String>,
    pub(crate) in_use: Mutex<()>,
}

impl Store {
    /// Returns the store of a workspace. Nothing is created before the first checkpoint. `roots` are the repositories of the workspace,
    /// relative to it; the empty path is the workspace itself. Repositories inside these are found.
    #[must_use]
    pub fn new(dir: &Utf8Path, workspace: &Utf8Path, roots: &[String], limits: Limits) -> Self {
        let (dir, workspace) = (dir.to_owned(), workspace.to_owned());
        Self { dir, workspace, roots: roots.to_vec(), limits, path: None, in_use: Mutex::new(()) }
    }

    /// The same with a value of `PATH`, to find git. Without it, git is looked for where the system does.
    #[must_use]
    pub fn with_path(self, path: Option<String>) -> Self {
        Self { path, ..self }
    }

    /// Git for calls without files.
    pub(crate) fn bare(&self) -> Git<'_> {
        Git { store: &self.dir, path: self.path.as_deref(), work_tree: None, index: None, excludes: None }
    }

    /// Directory of the store.
    #[must_use]
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// All checkpoints, oldest first.
    ///
    /// # Errors
    /// Returns an error if the record cannot be read, or a line of it is damaged. A torn last line is ignored.
    pub fn list(&self) -> Result<Vec<Checkpoint>, CheckpointError> {
        let path = self.record();
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(CheckpointError::Io { path, source }),
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let decode = |(n, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| CheckpointError::Record {
                path: path.clone(),
                line: n + 1,
                reason: error.to_string(),
            })
        };
        whole.lines().enumerate().map(decode).collect()
    }

    /// Takes a checkpoint. `ts` is its time in ISO-8601.
    ///
    /// # Errors
    /// Returns an error if git or a file of the store fails.
    pub fn take(&self, label: &Label, ts: &str) -> Result<Checkpoint, CheckpointError> {
        let _guard = self.lock()?;
        let (units, large) = self.snapshot()?;
        let last = self.list()?.last().map_or(0, |checkpoint| checkpoint.id);
        let checkpoint = Checkpoint { id: last + 1, ts: ts.to_owned(), label: label.clone(), units, large };
        self.append(&checkpoint)?;
        Ok(checkpoint)
    }

    /// Returns the files that differ between two checkpoints, in the order of their paths.
    ///
    /// # Errors
    /// Returns an error if git fails.
    pub fn changes(&self, from: &Checkpoint, to: &Checkpoint) -> Result<Vec<Change>, CheckpointError> {
        let mut changes = Vec::new();
        for (path, old, new) in self.pairs(from, to)? {
            let raw =
                self.bare().run(["diff-tree", "-r", "-z", "--no-renames", "--name-status", &old, &new])?;
            let mut fields = parts(&raw);
            while let (Some(kind), Some(file)) = (fields.next(), fields.next()) {
                let kind = match kind.first() {
                    Some(b'A') => ChangeKind::Added,
                    Some(b'D') => ChangeKind::Deleted,
                    _ => ChangeKind::Modified,
                };
                let file = String::from_utf8_lossy(file);
                let path = if path.is_empty() { file.into_owned() } else { format!("{path}/{file}") };
                changes.push(Change { path, kind });
            }
        }
        Ok(changes)
    }

    /// Returns the differences between two checkpoints as a patch, or as a summary of lines per file.
    ///
    /// # Errors
    /// Returns an error if git fails.
    pub fn diff(
        &self,
        from: &Checkpoint,
        to: &Checkpoint,
        stat: bool,
        colour: bool,
    ) -> Result<Vec<u8>, CheckpointError> {
        let mut out = Vec::new();
        for (path, old, new) in self.pairs(from, to)? {
            let within = if path.is_empty() { String::new() } else { format!("{path}/") };
            let mut args = vec!["diff-tree", "-r", "-M", "--no-ext-diff", "--no-textconv"];
            args.push(if stat { "--stat=120" } else { "-p" });
            args.push(if colour { "--color=always" } else { "--color=never" });
            let (source, target) = (format!("--src-prefix=a/{within}"), format!("--dst-prefix=b/{within}"));
            args.extend([source.as_str(), target.as_str(), old.as_str(), new.as_str()]);
            let text = self.bare().run(&args)?;
            if stat && !text.is_empty() && !path.is_empty() {
                out.extend(format!("{path}:\n").bytes());
            }
            out.extend(text);
        }
        for file in to.large.iter().filter(|file| !from.large.contains(file)) {
            out.extend(format!("{}: {} bytes, not stored\n", file.path, file.bytes).bytes());
        }
        Ok(out)
    }

    /// Returns the changed files of each repository that differs between two checkpoints, with their kinds: the path of the repository within the
    /// workspace, empty for the workspace itself, and the output of `git diff-tree --name-status -z`.
    ///
    /// # Errors
    /// Returns an error if git fails.
    pub fn names(
        &self,
        from: &Checkpoint,
        to: &Checkpoint,
    ) -> Result<Vec<(String, Vec<u8>)>, CheckpointError> {
        let names = |(repo, old, new): (String, String, String)| {
            let names = self.bare().run(["diff-tree", "-r", "-M", "-z", "--name-status", &old, &new])?;
            Ok((repo, names))
        };
        self.pairs(from, to)?.into_iter().map(names).collect()
    }

    /// Returns the differences in one repository between two checkpoints: of the given paths, or of all files if there are none. The paths are
    /// relative to the repository.
    ///
    /// # Errors
    /// Returns an error if git fails.
    pub fn differences(
        &self,
        from: &Checkpoint,
        to: &Checkpoint,
        repo: &str,
        paths: &[&str],
        form: DifferenceForm,
    ) -> Result<Vec<u8>, CheckpointError> {
        let Some((_, old, new)) = self.pairs(from, to)?.into_iter().find(|(path, ..)| path == repo) else {
            return Ok(Vec::new());
        };
        let mut args = vec!["diff-tree", "-r", "-M", "--no-ext-diff", "--no-textconv", "--color=never"];
        match form {
            DifferenceForm::Patch => args.extend(["-p", "--src-prefix=a/", "--dst-prefix=b/"]),
            DifferenceForm::Counts => args.extend(["--numstat", "-z"]),
        }
        args.extend([old.as_str(), new.as_str(), "--"]);
        let literal: Vec<String> = paths.iter().map(|path| format!(":(literal){path}")).collect();
        args.extend(literal.iter().map(String::as_str));
        self.bare().run(&args)
    }

    /// Returns the content of a file in a checkpoint, or `None` if the checkpoint has no such file or the file has more than `limit`
    /// bytes.
    ///
    /// # Errors
    /// Returns an error if git fails.
    pub fn read_file(
        &self,
        of: &Checkpoint,
        path: &str,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, CheckpointError> {
        let within = |unit: &&Unit| unit.path.is_empty() || Utf8Path::new(path).starts_with(&unit.path);
        let Some(unit) = of.units.iter().filter(within).max_by_key(|unit| unit.path.len()) else {
            return Ok(None);
        };
        let inner = path.get(unit.path.len()..).unwrap_or_default().trim_start_matches('/');
        // One line for the file: mode, type, id, size and name.
        let listed = self.bare().run(["ls-tree", "-l", "-z", unit.tree.as_str(), "--", inner])?;
        let listed = String::from_utf8_lossy(&listed);
        let mut words = listed.split_whitespace().skip(1);
        let (Some("blob"), Some(id), Some(size)) = (words.next(), words.next(), words.next()) else {
            return Ok(None);
        };
        if size.parse::<u64>().map_or(true, |size| size > limit) {
            return Ok(None);
        }
        self.bare().run(["cat-file", "blob", id]).map(Some)
    }

    /// Returns the trees of each repository in two checkpoints that differ. A repository that is missing in one has the empty tree.
    fn pairs(
        &self,
        from: &Checkpoint,
        to: &Checkpoint,
    ) -> Result<Vec<(String, String, String)>, CheckpointError> {
        let mut paths: Vec<&str> =
            from.units.iter().chain(&to.units).map(|unit| unit.path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        let mut empty = None;
        let mut pairs = Vec::new();
        for path in paths {
            if from.tree_of(path) == to.tree_of(path) {
                continue;
            }
            if empty.is_none() && (from.tree_of(path).is_none() || to.tree_of(path).is_none()) {
                empty = Some(self.empty_tree()?);
            }
            let tree = |of: &Checkpoint| {
                of.tree_of(path).map(str::to_owned).or_else(|| empty.clone()).unwrap_or_default()
            };
            pairs.push((path.to_owned(), tree(from), tree(to)));
        }
        Ok(pairs)
    }

    pub(crate) fn empty_tree(&self) -> Result<String, CheckpointError> {
        let id = self.bare().run(["mktree"])?;
        Ok(String::from_utf8_lossy(&id).trim().to_owned())
    }

    /// Removes checkpoints that are too old, and the oldest while the store is too large. `age_secs` returns the age in seconds for the time of
    /// a checkpoint. Returns the number of checkpoints that were removed.
    ///
    /// # Errors
    /// Returns an error if git or a file of the store fails.
    pub fn prune(&self, age_secs: impl Fn(&str) -> u64) -> Result<usize, CheckpointError> {
        if !self.record().exists() {
            return Ok(0);
        }
        let _guard = self.lock()?;
        let all = self.list()?;
        let mut kept: Vec<Checkpoint> = all
            .iter()
            .filter(|checkpoint| age_secs(&checkpoint.ts) <= self.limits.max_age_secs)
            .cloned()
            .collect();
        let size = size_of(&self.dir);
        if kept.len() == all.len() && size <= self.limits.max_bytes {
            return Ok(0);
        }
        self.keep(&kept)?;
        while size_of(&self.dir) > self.limits.max_bytes && !kept.is_empty() {
            kept.drain(..kept.len().div_ceil(2));
            self.keep(&kept)?;
        }
        Ok(all.len() - kept.len())
    }

    /// Keeps these checkpoints only.
    fn keep(&self, kept: &[Checkpoint]) -> Result<(), CheckpointError> {
        // The record first: objects without a record do no harm.
        let lines: Vec<u8> = kept.iter().flat_map(encode).collect();
        let temporary = self.record().with_extension("new");
        let io = |path: &Utf8Path| {
            let path = path.to_owned();
            move |source| CheckpointError::Io { path, source }
        };
        fs::write(&temporary, lines).map_err(io(&temporary))?;
        fs::rename(&temporary, self.record()).map_err(io(&temporary))?;
        let mut trees: Vec<&str> =
            kept.iter().flat_map(|checkpoint| &checkpoint.units).map(|unit| unit.tree.as_str()).collect();
        trees.sort_unstable();
        trees.dedup();
        let git = self.bare();
        let old = git.run(["for-each-ref", "--format=%(refname)", "refs/kept"])?;
        let old = String::from_utf8_lossy(&old).into_owned();
        let stale = old.lines().filter(|name| !trees.iter().any(|tree| name.ends_with(tree)));
        let mut commands: String = stale.map(|name| format!("delete {name}\n")).collect();
        commands.extend(trees.iter().map(|tree| format!("update refs/kept/{tree} {tree}\n")));
        git.run_with(["update-ref", "--stdin"], commands.as_bytes())?;
        git.run(["gc", "--quiet", "--prune=now"]).map(drop)
    }

    pub(crate) fn record(&self) -> Utf8PathBuf {
        self.dir.join("checkpoints.jsonl")
    }

    fn append(&self, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        let path = self.record();
        let io = |source| CheckpointError::Io { path: path.clone(), source };
        let mut file = File::options().create(true).append(true).open(&path).map_err(io)?;
        file.write_all(&encode(checkpoint)).map_err(io)
    }

    /// Locks the store against other threads and processes. Creates it if it is missing.
    pub(crate) fn lock(&self) -> Result<StoreGuard<'_>, CheckpointError> {
        let guard = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        self.create()?;
        let path = self.dir.join("cliq.lock");
        let io = |source| CheckpointError::Io { path: path.clone(), source };
        let file = File::options().create(true).append(true).open(&path).map_err(io)?;
        file.lock().map_err(io)?;
        self.mend()?;
        Ok(StoreGuard { _guard: guard, _file: file })
    }

    fn create(&self) -> Result<(), CheckpointError> {
        let attributes = self.dir.join("info/attributes");
        if attributes.exists() {
            return Ok(());
        }
        let io = |source| CheckpointError::Io { path: attributes.clone(), source };
        fs::create_dir_all(&self.dir).map_err(io)?;
        self.bare().run(["init", "--quiet", "--bare", "--template="])?;
        fs::create_dir_all(self.dir.join("info")).map_err(io)?;
        // Files are stored as they are: no filters, no conversions. It comes last, so that a store that is there is whole.
        let text = "* -text -eol -crlf -ident -filter -working-tree-encoding !diff !merge\n";
        fs::write(&attributes, text).map_err(io)
    }

    /// Removes what a process that was killed left behind.
    fn mend(&self) -> Result<(), CheckpointError> {
        let record = self.record();
        let io = |source| CheckpointError::Io { path: record.clone(), source };
        for entry in self.dir.read_dir_utf8().map_err(io)?.flatten() {
            if entry.file_name().ends_with(".lock") && entry.file_name() != "cliq.lock" {
                let _ = fs::remove_file(entry.path());
            }
        }
        if let Ok(bytes) = fs::read(&record)
            && bytes.last().is_some_and(|byte| *byte != b'\n')
        {
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let file = File::options().write(true).open(&record).map_err(io)?;
            file.set_len(whole as u64).map_err(io)?;
        }
        Ok(())
    }
}

/// Lock of a store. Dropping it releases the lock.
pub(crate) struct StoreGuard<'a> {
    _guard: std::sync::MutexGuard<'a, ()>,
    _file: File,
}

impl Unit {
    /// Directory of the repository.
    pub(crate) fn dir(path: &str, workspace: &Utf8Path) -> Utf8PathBuf {
        if path.is_empty() { workspace.to_owned() } else { workspace.join(path) }
    }
}

fn encode(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut line = serde_json::to_vec(checkpoint).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Size of the files in a directory, in bytes.
fn size_of(dir: &Utf8Path) -> u64 {
    let entries = dir.read_dir_utf8().into_iter().flatten().flatten();
    let size = |entry: camino::Utf8DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_of(entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}
