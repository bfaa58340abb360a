//! Commits of a working tree that no branch has.

use std::path::Path;

use crate::bytes::{path_in, terminated};
use crate::submodules::{Gitlink, gitlinks_of_index, gitlinks_of_tree, is_populated, record};
use crate::{Git, GitError, lossy};

/// Maximum depth of submodules within submodules.
pub(crate) const MAX_DEPTH: u32 = 8;

/// Ref of a repository in an item: the last commit that the item made itself, beside what it left uncommitted.
pub(crate) const OWN_COMMITS: &str = "refs/cliq/own";

/// Stores all files of a working tree as a commit, with its submodules. Its index is only copied, and no branch changes.
///
/// The parent is `parent` or the last commit. A submodule with uncommitted files is stored as such a commit too.
///
/// # Errors
/// Returns an error if git fails.
pub fn snapshot(git: &Git, parent: Option<&str>) -> Result<String, GitError> {
    snapshot_at(git, parent, 0)
}

/// Copies an index with its modification time. Git compares the content of a file that is not older than the index: with a later time,
/// a change in the same tick of the clock would be missed.
fn copy_index(from: &Path, to: &Path) -> std::io::Result<()> {
    let modified = std::fs::metadata(from)?.modified()?;
    std::fs::copy(from, to)?;
    std::fs::File::options().append(true).open(to)?.set_modified(modified)
}

fn snapshot_at(git: &Git, parent: Option<&str>, depth: u32) -> Result<String, GitError> {
    let scratch = tempfile::tempdir().map_err(GitError::Start)?;
    let index = scratch.path().join("index");
    let own = git.text(["rev-parse", "--path-format=absolute", "--git-path", "index"])?;
    match copy_index(Path::new(&own), &index) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(GitError::io("copy", own)(error));
        }
        _ => {}
    }
    let indexed = git.with_index(&index);
    let changed = [
        "ls-files",
        "-z",
        "--modified",
        "--others",
        "--exclude-standard",
        "--",
        ".",
        ":(exclude,top,literal).cliq",
    ];
    let files = indexed.run(changed)?;
    // Repositories inside end with a slash, and stay as they are.
    let files = terminated(crate::bytes::parts(&files).filter(|file| !file.ends_with(b"/")));
    indexed.run_with(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], &files)?;
    let before: Vec<Gitlink> =
        parent.map(|parent| gitlinks_of_tree(git, parent)).transpose()?.unwrap_or_default();
    let mut links = Vec::new();
    for link in gitlinks_of_index(&indexed)? {
        let dir = path_in(git.dir(), &link.path);
        if depth < MAX_DEPTH && is_populated(&dir) {
            let parent = before.iter().find(|before| before.path == link.path);
            let parent = parent.map(|parent| parent.commit.as_str());
            links.push(Gitlink { commit: snapshot_at(&git.in_dir(dir), parent, depth + 1)?, ..link });
        }
    }
    record(&indexed, &links)?;
    let tree = indexed.text(["write-tree"])?;
    let head = git.text(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).ok();
    let Some(parent) = parent.or(head.as_deref()) else {
        return git.text(["commit-tree", &tree, "-m", "cliq: workspace"]);
    };
    if git.text(["rev-parse", &format!("{parent}^{{tree}}")])? == tree && depth > 0 {
        return Ok(parent.to_owned());
    }
    git.text(["commit-tree", &tree, "-m", "cliq: workspace", "-p", parent])
}

/// Commits what is uncommitted in a worktree and its submodules, outside of a sparse cone too. Returns the commit.
///
/// No hook runs: the worktree's user may have written it.
///
/// # Errors
/// Returns an error if git fails, or if files lie in a submodule that is not checked out.
pub fn commit_worktree(git: &Git, message: &str) -> Result<String, GitError> {
    commit_at(git, message, 0)
}

fn commit_at(git: &Git, message: &str, depth: u32) -> Result<String, GitError> {
    let mut links = Vec::new();
    for link in gitlinks_of_index(git)? {
        let dir = path_in(git.dir(), &link.path);
        if depth < MAX_DEPTH && is_populated(&dir) {
            links.push(Gitlink { commit: commit_at(&git.in_dir(dir), message, depth + 1)?, ..link });
        } else if has_files(&dir) {
            return Err(GitError::NotCarried {
                path: lossy(&link.path),
                reason: "it is a submodule that is not checked out, and has files; run `git submodule update --init` in the workspace, then start the phase again".to_owned(),
            });
        }
    }
    git.run(["add", "--all", "--sparse"])?;
    record(git, &links)?;
    let tree = git.text(["write-tree"])?;
    let head = git.text(["rev-parse", "--verify", "HEAD^{commit}"])?;
    if git.text(["rev-parse", "HEAD^{tree}"])? == tree {
        return Ok(head);
    }
    if depth > 0 && git.text(["rev-parse", "--verify", "--quiet", OWN_COMMITS]).is_err() {
        git.run(["update-ref", OWN_COMMITS, &head])?;
    }
    let commit = git.text(["commit-tree", &tree, "-p", &head, "-m", message])?;
    git.run(["update-ref", "-m", message, "HEAD", &commit, &head])?;
    Ok(commit)
}

fn has_files(dir: &Path) -> bool {
    std::fs::symlink_metadata(dir).is_ok_and(|kind| !kind.is_dir())
        || std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}
