//! Submodules: copies for worktrees from the local clones, and the way back of their commits.

use std::fs;
use std::path::Path;

use crate::bytes::{parts, path_in};
use crate::snapshot::MAX_DEPTH;
use crate::{Git, GitError, RepositoryLock};

/// Mode of a submodule in an index or a tree.
const GITLINK: &[u8] = b"160000 ";
/// Prefixes of settings that a copy of a submodule has from its original.
const COPIED_SETTINGS: [&str; 6] = ["user.", "remote.", "filter.", "lfs.", "core.autocrlf", "core.eol"];

/// Commit of a submodule in an index or a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gitlink {
    pub(crate) path: Vec<u8>,
    pub(crate) commit: String,
}

/// Submodules of an index, without those in conflict.
pub(crate) fn gitlinks_of_index(git: &Git) -> Result<Vec<Gitlink>, GitError> {
    let output = git.run(["ls-files", "--stage", "-z"])?;
    Ok(parts(&output).filter_map(|entry| gitlink(entry, 1, b" 0")).collect())
}

/// Submodules of a commit or a tree.
pub(crate) fn gitlinks_of_tree(git: &Git, tree: &str) -> Result<Vec<Gitlink>, GitError> {
    let output = git.run(["ls-tree", "-r", "-z", "--full-tree", tree])?;
    Ok(parts(&output).filter_map(|entry| gitlink(entry, 2, b"")).collect())
}

/// Reads `MODE[ TYPE] COMMIT[ STAGE]<tab>PATH`; `position` is that of the commit among the words.
fn gitlink(entry: &[u8], position: usize, stage: &[u8]) -> Option<Gitlink> {
    let tab = entry.starts_with(GITLINK).then(|| entry.iter().position(|byte| *byte == b'\t'))??;
    let info = std::str::from_utf8(&entry[..tab]).ok().filter(|info| info.as_bytes().ends_with(stage))?;
    let commit = info.split(' ').nth(position)?.to_owned();
    Some(Gitlink { path: entry[tab + 1..].to_vec(), commit })
}

/// Sets the commits of submodules in an index.
pub(crate) fn record(git: &Git, links: &[Gitlink]) -> Result<(), GitError> {
    if links.is_empty() {
        return Ok(());
    }
    let lines: Vec<u8> = links
        .iter()
        .flat_map(|link| [GITLINK, link.commit.as_bytes(), b"\t", link.path.as_slice(), b"\0"].concat())
        .collect();
    git.run_with(["update-index", "-z", "--index-info"], &lines).map(drop)
}

/// Whether a directory is a repository with a commit of its own. A symbolic link is none.
pub(crate) fn is_populated(dir: &Path) -> bool {
    fs::symlink_metadata(dir).is_ok_and(|kind| kind.is_dir())
        && fs::symlink_metadata(dir.join(".git")).is_ok()
        && Git::new(dir).run(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).is_ok()
}

/// Paths of the submodules that are checked out in a working tree.
///
/// # Errors
/// Returns an error if git fails.
pub fn populated(git: &Git) -> Result<Vec<Vec<u8>>, GitError> {
    let links = gitlinks_of_index(git)?.into_iter();
    Ok(links.map(|link| link.path).filter(|path| is_populated(&path_in(git.dir(), path))).collect())
}

/// Gives a worktree the submodules that are checked out in the workspace, each at the commit that the worktree's own commit names.
/// Nothing is downloaded: a copy reads the objects of the workspace's clone. Those that are there already are replaced.
///
/// # Errors
/// Returns an error if git fails.
pub fn copy_submodules(workspace: &Git, worktree: &Git) -> Result<(), GitError> {
    copy_at(workspace, worktree, 0)
}

fn copy_at(workspace: &Git, worktree: &Git, depth: u32) -> Result<(), GitError> {
    for link in gitlinks_of_tree(worktree, "HEAD")? {
        let (from, to) = (path_in(workspace.dir(), &link.path), path_in(worktree.dir(), &link.path));
        if depth == MAX_DEPTH || !is_populated(&from) {
            continue;
        }
        let (from, to) = (workspace.in_dir(from), worktree.in_dir(to));
        copy_one(&from, &to, &link.commit)?;
        copy_at(&from, &to, depth + 1)?;
    }
    Ok(())
}

fn copy_one(from: &Git, to: &Git, commit: &str) -> Result<(), GitError> {
    from.run(["cat-file", "-e", &format!("{commit}^{{commit}}")]).map_err(|_| GitError::NotCarried {
        path: to.dir().display().to_string(),
        reason: format!(
            "commit {commit} is not in the local clone; run `git submodule update --init` in the workspace"
        ),
    })?;
    match fs::remove_dir_all(to.dir()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(GitError::io("remove", to.dir())(error));
        }
        _ => {}
    }
    fs::create_dir_all(to.dir()).map_err(GitError::io("create", to.dir()))?;
    let format = from.text(["rev-parse", "--show-object-format"])?;
    to.run(["init", "--quiet", "--template=", &format!("--object-format={format}")])?;
    let path_of = |name: &str| from.text(["rev-parse", "--path-format=absolute", "--git-path", name]);
    let own = to.dir().join(".git");
    let alternates = own.join("objects/info/alternates");
    fs::create_dir_all(own.join("objects/info")).map_err(GitError::io("create", &alternates))?;
    fs::write(&alternates, format!("{}\n", path_of("objects")?))
        .map_err(GitError::io("write", &alternates))?;
    if let Ok(shallow) = fs::read(path_of("shallow")?) {
        fs::write(own.join("shallow"), shallow).map_err(GitError::io("write", own.join("shallow")))?;
    }
    let settings = from.run(["config", "--local", "--list", "-z"])?;
    for setting in parts(&settings) {
        let text = String::from_utf8_lossy(setting);
        // A setting without a value is a line without a line break.
        let (key, value) = text.split_once('\n').unwrap_or((&text, "true"));
        if COPIED_SETTINGS.iter().any(|prefix| key.starts_with(prefix)) {
            to.run(["config", "--add", key, value])?;
        }
    }
    to.run(["update-ref", "--no-deref", "HEAD", commit])?;
    to.run(["reset", "--quiet", "--hard"]).map(drop)
}

/// Checks out the commits that a worktree's own commit names in its submodules, after it moved forward. `from` has the new commits.
/// A submodule with changes or commits of its own is left as it is.
///
/// # Errors
/// Returns an error if git fails.
pub fn forward_submodules(from: &Git, worktree: &Git) -> Result<(), GitError> {
    for link in gitlinks_of_tree(worktree, "HEAD")? {
        let (source, dir) = (path_in(from.dir(), &link.path), path_in(worktree.dir(), &link.path));
        if !is_populated(&dir) || !is_populated(&source) {
            continue;
        }
        let git = worktree.in_dir(dir);
        let head = git.text(["rev-parse", "HEAD"])?;
        if head == link.commit {
            continue;
        }
        keep_commits(&git, &source, &link.commit)?;
        if is_ancestor(&git, &head, &link.commit)? && git.run(["status", "--porcelain", "-z"])?.is_empty() {
            git.run(["checkout", "--quiet", "--detach", &link.commit])?;
        }
    }
    Ok(())
}

/// Prepares a merge of a branch into another whose worktrees have submodules: brings the commits of the branch's submodules to those of the
/// other, and lets the branch's contain both if they diverged without a conflict. Returns the changed submodules of the branch.
///
/// # Errors
/// Returns an error if git fails.
pub fn join_submodules(target: &Git, branch: &Git) -> Result<Vec<String>, GitError> {
    let targets = gitlinks_of_tree(target, "HEAD")?;
    let mut changed = Vec::new();
    for link in gitlinks_of_tree(branch, "HEAD")? {
        let (to, from) = (path_in(target.dir(), &link.path), path_in(branch.dir(), &link.path));
        let Some(old) = targets.iter().find(|old| old.path == link.path && old.commit != link.commit) else {
            continue;
        };
        if !is_populated(&to) || !is_populated(&from) {
            continue;
        }
        let (to_git, from_git) = (target.in_dir(&to), branch.in_dir(&from));
        keep_commits(&to_git, &from, &link.commit)?;
        if is_ancestor(&to_git, &old.commit, &link.commit)?
            || is_ancestor(&to_git, &link.commit, &old.commit)?
        {
            continue;
        }
        if let Some(merged) = merged_head(&to_git, &old.commit, &link.commit)? {
            keep_commits(&from_git, &to, &merged)?;
            from_git.run(["checkout", "--quiet", "--detach", &merged])?;
            changed.push(crate::lossy(&link.path));
        }
    }
    Ok(changed)
}

/// Brings the commits of a worktree's submodules into those of the project, on a branch, so that they outlive the worktree.
///
/// # Errors
/// Returns an error if git fails.
pub fn publish_submodules(worktree: &Git, project: &Git, branch: &str) -> Result<(), GitError> {
    for link in gitlinks_of_tree(worktree, "HEAD")? {
        let (from, to) = (path_in(worktree.dir(), &link.path), path_in(project.dir(), &link.path));
        if !is_populated(&from) || !is_populated(&to) {
            continue;
        }
        let to = project.in_dir(to);
        keep_commits(&to, &from, &link.commit)?;
        let head = to.text(["rev-parse", "HEAD"])?;
        if !is_ancestor(&to, &link.commit, &head)? {
            to.run(["update-ref", &format!("refs/heads/{branch}"), &link.commit])?;
        }
    }
    Ok(())
}

/// Whether a commit is an ancestor of another, or the same.
pub(crate) fn is_ancestor(git: &Git, old: &str, new: &str) -> Result<bool, GitError> {
    git.ask(["merge-base", "--is-ancestor", old, new]).map(|(is_ancestor, _)| is_ancestor)
}

/// Brings the commits of a copy of a submodule into its original, whose objects the copy read.
///
/// # Errors
/// Returns an error if git fails.
pub fn keep_commits(original: &Git, copy: &Path, commit: &str) -> Result<(), GitError> {
    let copy = path_text(copy)?;
    // Version 2 of the protocol gives any commit, also one that no branch has.
    original
        .clone()
        .with_setting("protocol.version=2")
        .with_setting("protocol.file.allow=always")
        .run(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--update-shallow", copy, commit])
        .map(drop)
}

fn path_text(path: &Path) -> Result<&str, GitError> {
    path.to_str().ok_or_else(|| GitError::NotCarried {
        path: path.display().to_string(),
        reason: "its path is not valid UTF-8; rename the submodule".to_owned(),
    })
}

/// Moves the checked-out commit of a submodule to one that contains `commit`, if nothing of the user's is in the way. The files are left
/// as they are. Otherwise the commit stays on the branch `branch` of the submodule.
///
/// The user's own is: a branch that is checked out, staged changes of the same files, and work that conflicts with the commit.
///
/// # Errors
/// Returns an error if git fails.
pub fn merge_heads(submodule: &Git, base: &str, commit: &str, branch: &str) -> Result<(), GitError> {
    let _lock = RepositoryLock::acquire(submodule)?;
    let head = submodule.text(["rev-parse", "--verify", "HEAD^{commit}"])?;
    if is_ancestor(submodule, commit, &head)? {
        return Ok(());
    }
    let (is_on_branch, _) = submodule.ask(["symbolic-ref", "--quiet", "HEAD"])?;
    if !is_on_branch && is_ancestor(submodule, base, &head)? {
        let merged = merged_head(submodule, &head, commit)?;
        if let Some(new) = merged
            && submodule.run(["read-tree", "-m", "-i", &head, &new]).is_ok()
        {
            submodule.run(["update-ref", "--no-deref", "-m", "cliq: merge", "HEAD", &new, &head])?;
            // Files whose times differ are no failure.
            let _ = submodule.run(["update-index", "-q", "--refresh"]);
            return Ok(());
        }
    }
    submodule.run(["update-ref", &format!("refs/heads/{branch}"), commit]).map(drop)
}

/// Finds the branches of submodules, by a pattern such as `cliq/RUN/fix.*`, whose commits are not in what is checked out there. Returns the
/// path of each submodule with the name of the branch.
///
/// # Errors
/// Returns an error if git fails.
pub fn branches_apart(git: &Git, pattern: &str) -> Result<Vec<(String, String)>, GitError> {
    let mut found = Vec::new();
    collect_branches_apart(git, pattern, b"", 0, &mut found)?;
    Ok(found)
}

fn collect_branches_apart(
    git: &Git,
    pattern: &str,
    prefix: &[u8],
    depth: u32,
    found: &mut Vec<(String, String)>,
) -> Result<(), GitError> {
    if depth > MAX_DEPTH {
        return Ok(());
    }
    for link in gitlinks_of_index(git)? {
        let dir = path_in(git.dir(), &link.path);
        if !is_populated(&dir) {
            continue;
        }
        let (submodule, path) = (git.in_dir(dir), crate::bytes::joined(prefix, &link.path));
        let pattern_of_refs = format!("refs/heads/{pattern}");
        let refs = ["for-each-ref", "--no-merged", "HEAD", "--format=%(refname:short)", &pattern_of_refs];
        let branches = submodule.text(refs)?;
        found.extend(branches.lines().map(|branch| (crate::lossy(&path), branch.to_owned())));
        collect_branches_apart(&submodule, pattern, &path, depth + 1, found)?;
    }
    Ok(())
}

/// Commit that contains both, or `None` if they conflict.
pub(crate) fn merged_head(git: &Git, head: &str, commit: &str) -> Result<Option<String>, GitError> {
    if is_ancestor(git, head, commit)? {
        return Ok(Some(commit.to_owned()));
    }
    let (is_clean, output) = git.ask(["merge-tree", "--write-tree", "-z", "--no-messages", head, commit])?;
    let tree = parts(&output).next().map(crate::lossy).unwrap_or_default();
    if !is_clean {
        return Ok(None);
    }
    let message = "Merge the commits of items";
    git.text(["commit-tree", &tree, "-p", head, "-p", commit, "-m", message]).map(Some)
}
