//! Resolution of conflicts: unmerged entries in the index, and whether each path was changed or confirmed since.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use serde::{Deserialize, Serialize};

use crate::bytes::{parts, path_in};
use crate::{Conflict, Git, GitError};

/// Maximum number of bytes of a file in which the merge's own conflict markers are looked for.
const MAX_MARKED: u64 = 64 << 20;
/// Maximum number of paths of one call. A path has at most 4096 bytes.
const MAX_PATHS: usize = 250;

/// Entry of an index before a conflict was recorded in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedEntry {
    repository: Vec<u8>,
    /// Line as `git ls-files --stage` prints it and `git update-index --index-info` reads it.
    line: Vec<u8>,
}

/// Conflicts by repository, each with git in it.
fn by_repository<'a>(git: &Git, conflicts: &'a [Conflict]) -> Vec<(Git, &'a [u8], Vec<&'a Conflict>)> {
    let mut repositories: BTreeMap<&[u8], Vec<&Conflict>> = BTreeMap::new();
    for conflict in conflicts {
        repositories.entry(&conflict.repository).or_default().push(conflict);
    }
    let open = |(name, conflicts): (&'a [u8], _)| {
        let dir = if name.is_empty() { git.dir().to_owned() } else { path_in(git.dir(), name) };
        (git.in_dir(dir).with_env("GIT_LITERAL_PATHSPECS", "1"), name, conflicts)
    };
    repositories.into_iter().map(open).collect()
}

/// Runs a command that lists files, for the paths of conflicts.
fn list(git: &Git, args: &[&str], conflicts: &[&Conflict]) -> Result<Vec<u8>, GitError> {
    let mut output = Vec::new();
    // A list of arguments has a limit.
    for some in conflicts.chunks(MAX_PATHS) {
        let paths = some.iter().map(|conflict| OsStr::from_bytes(&conflict.path));
        output.extend(git.run(args.iter().map(OsStr::new).chain([OsStr::new("--")]).chain(paths))?);
    }
    Ok(output)
}

/// Returns the entries of the paths in conflict, to be restored afterwards.
///
/// # Errors
/// Returns an error if git fails.
pub fn staged_entries(git: &Git, conflicts: &[Conflict]) -> Result<Vec<StagedEntry>, GitError> {
    let mut entries = Vec::new();
    for (git, repository, conflicts) in by_repository(git, conflicts) {
        let output = list(&git, &["ls-files", "--stage", "-z"], &conflicts)?;
        let known: BTreeSet<&[u8]> = conflicts.iter().map(|conflict| conflict.path.as_slice()).collect();
        // A path that is a directory here has other entries below it, which stay.
        let is_path = |line: &&[u8]| {
            line.iter().position(|byte| *byte == b'\t').is_some_and(|tab| known.contains(&line[tab + 1..]))
        };
        entries.extend(
            parts(&output)
                .filter(is_path)
                .map(|line| StagedEntry { repository: repository.to_vec(), line: line.to_vec() }),
        );
    }
    Ok(entries)
}

/// Records the conflicts in the index as unmerged entries, so that `git status` shows them and `git add` resolves them.
///
/// # Errors
/// Returns an error if git fails.
pub fn mark_unmerged(git: &Git, conflicts: &[Conflict]) -> Result<(), GitError> {
    for (git, _, conflicts) in by_repository(git, conflicts) {
        let lines: Vec<u8> = conflicts
            .iter()
            .flat_map(|conflict| {
                let stages = conflict.stages.iter().flat_map(|stage| {
                    let info = format!("{} {} {}\t", stage.mode, stage.object, stage.number);
                    [info.as_bytes(), &conflict.path, b"\0"].concat()
                });
                removal(conflict).into_iter().chain(stages).collect::<Vec<u8>>()
            })
            .collect();
        git.run_with(["update-index", "-z", "--index-info"], &lines)?;
    }
    Ok(())
}

/// Line that removes all entries of a path.
fn removal(conflict: &Conflict) -> Vec<u8> {
    let length = conflict.stages.first().map_or(40, |stage| stage.object.len());
    [format!("0 {} 0\t", "0".repeat(length)).as_bytes(), &conflict.path, b"\0"].concat()
}

/// Restores the entries of the index that were there before the conflicts were recorded.
///
/// # Errors
/// Returns an error if git fails.
pub fn restore_entries(git: &Git, conflicts: &[Conflict], entries: &[StagedEntry]) -> Result<(), GitError> {
    for (git, repository, conflicts) in by_repository(git, conflicts) {
        let removed = conflicts.iter().flat_map(|conflict| removal(conflict));
        let restored = entries
            .iter()
            .filter(|entry| entry.repository == repository)
            .flat_map(|entry| entry.line.iter().copied().chain([0]));
        let lines: Vec<u8> = removed.chain(restored).collect();
        git.run_with(["update-index", "-z", "--index-info"], &lines)?;
    }
    Ok(())
}

/// Returns the conflicts that are not resolved.
///
/// A conflict is resolved if its path is in the index without unmerged entries and as it is in the working tree (`git add`), if it is
/// in neither (`git rm`), or if the path was changed after the merge wrote it. Of a changed file, the lines with which this merge marked
/// the conflict have to be gone; lines that only look like conflict markers are content.
///
/// # Errors
/// Returns an error if git fails.
pub fn unresolved<'a>(git: &Git, conflicts: &'a [Conflict]) -> Result<Vec<&'a Conflict>, GitError> {
    let mut open = Vec::new();
    for (git, _, conflicts) in by_repository(git, conflicts) {
        let stages = list(&git, &["ls-files", "--stage", "-z"], &conflicts)?;
        let (mut staged, mut unmerged) = (BTreeSet::new(), BTreeSet::new());
        for line in parts(&stages) {
            let Some(tab) = line.iter().position(|byte| *byte == b'\t') else { continue };
            let (info, path) = (&line[..tab], &line[tab + 1..]);
            if info.ends_with(b" 0") {
                staged.insert(path)
            } else {
                unmerged.insert(path)
            };
        }
        let edited = list(&git, &["ls-files", "--modified", "--deleted", "-z"], &conflicts)?;
        let edited: BTreeSet<&[u8]> = parts(&edited).collect();
        let mut written = BTreeMap::new();
        for conflict in conflicts {
            if conflict.is_gone() {
                continue;
            }
            let path = conflict.path.as_slice();
            let is_there = fs::symlink_metadata(path_in(git.dir(), path)).is_ok();
            let is_confirmed = !unmerged.contains(path)
                && if staged.contains(path) { !edited.contains(path) } else { !is_there };
            if is_confirmed {
                continue;
            }
            if !written.contains_key(&conflict.tree) {
                written.insert(&conflict.tree, Written::read(&git, conflict)?);
            }
            let is_changed =
                written.get(&conflict.tree).is_some_and(|written| written.differs(path, is_there));
            if !is_changed || has_own_markers(&git, conflict) {
                open.push(conflict);
            }
        }
    }
    Ok(open)
}

/// Files of a tree that a merge wrote, compared with the working tree.
struct Written {
    paths: BTreeSet<Vec<u8>>,
    changed: BTreeSet<Vec<u8>>,
}

impl Written {
    fn read(git: &Git, conflict: &Conflict) -> Result<Self, GitError> {
        let scratch = tempfile::tempdir().map_err(GitError::Start)?;
        let indexed = git.clone().with_index(&scratch.path().join("index"));
        indexed.run(["read-tree", &conflict.tree])?;
        let set = |output: Vec<u8>| parts(&output).map(<[u8]>::to_vec).collect();
        Ok(Self {
            paths: set(indexed.run(["ls-files", "-z"])?),
            changed: set(indexed.run(["ls-files", "--modified", "--deleted", "-z"])?),
        })
    }

    fn differs(&self, path: &[u8], is_there: bool) -> bool {
        if self.paths.contains(path) { self.changed.contains(path) } else { is_there }
    }
}

/// Whether a file has a line by which this merge marked a side: marker characters and the name of the side's commit.
fn has_own_markers(git: &Git, conflict: &Conflict) -> bool {
    let path = path_in(git.dir(), &conflict.path);
    let is_small_file =
        fs::symlink_metadata(&path).is_ok_and(|kind| kind.is_file() && kind.len() <= MAX_MARKED);
    if !conflict.kind.has_markers() || !is_small_file {
        return false;
    }
    let content = fs::read(&path).unwrap_or_default();
    content.split(|byte| *byte == b'\n').any(|line| {
        let marks = line.iter().take_while(|byte| matches!(byte, b'<' | b'>')).count();
        let name = line[marks..].strip_prefix(b" ").unwrap_or_default();
        marks > 0 && conflict.sides.iter().any(|side| name.starts_with(side.as_bytes()))
    })
}
