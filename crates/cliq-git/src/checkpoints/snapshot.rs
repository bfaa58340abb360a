//! Snapshot of the files of a workspace.

use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};

use super::private::Git;
use super::record::{LargeFile, Unit};
use super::store::{CheckpointError, Store};
use crate::bytes::parts;

/// Directory that is never part of a snapshot, at the top of the workspace.
const PRIVATE: &str = ".cliq";

impl Store {
    /// Stores all files of the workspace. Returns the trees of its repositories, and the files that are too large.
    pub(crate) fn snapshot(&self) -> Result<(Vec<Unit>, Vec<LargeFile>), CheckpointError> {
        let (mut units, mut large) = (Vec::new(), Vec::new());
        let mut pending: Vec<String> = self.roots.clone();
        pending.reverse();
        while let Some(path) = pending.pop() {
            if !Unit::dir(&path, &self.workspace).is_dir()
                || units.iter().any(|unit: &Unit| unit.path == path)
            {
                continue;
            }
            let mut nested = Vec::new();
            let tree = self.snapshot_unit(&path, &mut nested, &mut large)?;
            units.push(Unit { path, tree });
            nested.reverse();
            pending.extend(nested);
        }
        units.sort_by(|a, b| a.path.cmp(&b.path));
        large.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((units, large))
    }

    /// Stores the files of one repository. Finds the repositories inside it.
    fn snapshot_unit(
        &self,
        path: &str,
        nested: &mut Vec<String>,
        large: &mut Vec<LargeFile>,
    ) -> Result<String, CheckpointError> {
        let dir = Unit::dir(path, &self.workspace);
        let git = self.git_of(path, &dir);
        let mut paths = self.changed(&git, path)?;
        paths.extend(self.tracked_and_ignored(&git, &dir, path));
        let (mut stored, mut dropped) = (Vec::new(), Vec::new());
        for file in paths {
            if let Some(repository) = file.strip_suffix(b"/") {
                nested.extend(std::str::from_utf8(repository).ok().map(|inner| join(path, inner)));
                continue;
            }
            let metadata = fs::symlink_metadata(dir.as_std_path().join(Path::new(OsStr::from_bytes(&file))));
            match metadata {
                Ok(metadata) if metadata.is_file() && metadata.len() > self.limits.max_file_bytes => {
                    let name = join(path, &String::from_utf8_lossy(&file));
                    large.push(LargeFile { path: name, bytes: metadata.len() });
                    dropped.push(file);
                }
                // Sockets and pipes are no files of a project.
                Ok(metadata) if !metadata.is_file() && !metadata.is_symlink() && !metadata.is_dir() => {}
                _ => stored.push(file),
            }
        }
        let tree_file = self.dir.join(format!("{}.tree", self.index_name(path)));
        let known = fs::read_to_string(&tree_file).ok().filter(|tree| !tree.trim().is_empty());
        if stored.is_empty()
            && dropped.is_empty()
            && let Some(tree) = known
        {
            return Ok(tree.trim().to_owned());
        }
        let list = |paths: Vec<Vec<u8>>| {
            paths.into_iter().flat_map(|mut path| {
                path.push(0);
                path
            })
        };
        // Once the index changes, the tree is another.
        let _ = fs::remove_file(&tree_file);
        if !dropped.is_empty() {
            let input: Vec<u8> = list(dropped).collect();
            git.run_with(["update-index", "--force-remove", "-z", "--stdin"], &input)?;
        }
        if !stored.is_empty() {
            let input: Vec<u8> = list(stored).collect();
            git.run_with(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], &input)?;
        }
        let tree = git.run(["write-tree"])?;
        let tree = String::from_utf8_lossy(&tree).trim().to_owned();
        fs::write(&tree_file, &tree).map_err(|source| CheckpointError::Io { path: tree_file, source })?;
        Ok(tree)
    }

    /// Files that differ from the index of the store, and new ones. A repository inside ends with `/`.
    fn changed(&self, git: &Git<'_>, path: &str) -> Result<Vec<Vec<u8>>, CheckpointError> {
        let mut args = vec!["ls-files", "-z", "--modified", "--others", "--exclude-standard", "--", "."];
        let private = format!(":(exclude,top,literal){PRIVATE}");
        if path.is_empty() {
            args.push(&private);
        }
        let output = git.run(&args)?;
        let mut paths: Vec<Vec<u8>> = parts(&output).map(<[u8]>::to_vec).collect();
        paths.sort_unstable();
        paths.dedup();
        Ok(paths)
    }

    /// Files that the project tracks although its rules ignore them. Its index is only read, without its configuration.
    fn tracked_and_ignored(&self, git: &Git<'_>, dir: &Utf8Path, path: &str) -> Vec<Vec<u8>> {
        let index = dir.join(".git/index");
        let Ok(modified) = fs::metadata(&index).and_then(|metadata| metadata.modified()) else {
            return Vec::new();
        };
        let memory = self.dir.join(format!("{}.ignored", self.index_name(path)));
        let stamp = format!("{modified:?}\0");
        let known =
            fs::read(&memory).ok().and_then(|bytes| bytes.strip_prefix(stamp.as_bytes()).map(<[u8]>::to_vec));
        let list = match known {
            Some(list) => list,
            None => {
                let project = Git {
                    store: git.store,
                    path: git.path,
                    work_tree: git.work_tree,
                    index: Some(index),
                    excludes: git.excludes.clone(),
                };
                // An index that needs other files of its repository cannot be read here: then only what is not ignored counts.
                let list = project
                    .run(["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"])
                    .unwrap_or_default();
                let _ = fs::write(&memory, [stamp.as_bytes(), &list].concat());
                list
            }
        };
        let is_private =
            |file: &[u8]| path.is_empty() && (file == PRIVATE.as_bytes() || file.starts_with(b".cliq/"));
        parts(&list).filter(|file| !is_private(file)).map(<[u8]>::to_vec).collect()
    }

    pub(crate) fn git_of<'a>(&'a self, path: &str, dir: &'a Utf8Path) -> Git<'a> {
        let excludes = dir.join(".git/info/exclude");
        Git {
            store: &self.dir,
            path: self.path.as_deref(),
            work_tree: Some(dir),
            index: Some(self.dir.join(self.index_name(path))),
            excludes: excludes.is_file().then_some(excludes),
        }
    }

    /// Name of the index of a repository.
    fn index_name(&self, path: &str) -> Utf8PathBuf {
        if path.is_empty() {
            return "index".into();
        }
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        format!("index-{:016x}", hasher.finish()).into()
    }

    /// Forgets the tree of a repository: its files were changed through the index.
    pub(crate) fn forget_tree(&self, path: &str) {
        let _ = fs::remove_file(self.dir.join(format!("{}.tree", self.index_name(path))));
    }
}

fn join(path: &str, inner: &str) -> String {
    if path.is_empty() { inner.to_owned() } else { format!("{path}/{inner}") }
}
