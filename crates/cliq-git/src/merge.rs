//! Merge of a worktree into the files of a workspace, whose branch and history stay as they are.

use std::path::Path;

use crate::apply::apply;
use crate::bytes::{joined, path_in};
use crate::conflict::parse;
use crate::snapshot::{MAX_DEPTH, OWN_COMMITS};
use crate::submodules::{Gitlink, gitlinks_of_tree, is_populated, keep_commits, merge_heads, record};
use crate::{Conflict, Git, GitError, lossy};

/// Merge of an item's worktree.
#[derive(Debug, Clone, Copy)]
pub struct MergeRequest<'a> {
    /// Git in the workspace, as the author of merges of submodules.
    pub workspace: &'a Git,
    /// Directory of the item's worktree.
    pub worktree: &'a Path,
    /// Commit from which the items began.
    pub base: &'a str,
    /// Snapshot of the workspace before the merge.
    pub ours: &'a str,
    /// Commit of the item.
    pub theirs: &'a str,
    /// Branch in submodules for commits that cannot be checked out there.
    pub branch: &'a str,
}

/// Merges the files of an item and of its submodules into those of the workspace. Returns the paths in conflict.
///
/// The same request can be repeated after an interruption: it gives the same files.
///
/// # Errors
/// Returns an error if git fails, or if a change of a submodule has no place in the workspace.
pub fn merge(request: &MergeRequest<'_>) -> Result<Vec<Conflict>, GitError> {
    let mut conflicts = Vec::new();
    check(request, &[], 0)?;
    merge_at(request, &[], 0, &mut conflicts)?;
    Ok(conflicts)
}

/// Submodule that is checked out on both sides, with its commits.
struct Pair {
    path: Vec<u8>,
    base: String,
    ours: String,
    theirs: String,
}

/// Returns the submodules of a merge.
fn pairs(request: &MergeRequest<'_>, prefix: &[u8], depth: u32) -> Result<Vec<Pair>, GitError> {
    let git = request.workspace;
    let links = |commit: &str| gitlinks_of_tree(git, commit);
    let theirs = {
        let item = git.in_dir(request.worktree);
        gitlinks_of_tree(&item, request.theirs)?
    };
    let (base, ours) = (links(request.base)?, links(request.ours)?);
    let find = |links: &[Gitlink], path: &[u8]| {
        links.iter().find(|link| link.path == path).map(|link| link.commit.clone())
    };
    let not_carried = |path: &[u8], reason: &str| GitError::NotCarried {
        path: lossy(&joined(prefix, path)),
        reason: reason.to_owned(),
    };
    let mut pairs = Vec::new();
    for link in &base {
        let Some(theirs) = find(&theirs, &link.path) else {
            return Err(not_carried(
                &link.path,
                "the item removed this submodule; remove it in the workspace before the run, or start the phase again",
            ));
        };
        let is_here = is_populated(&path_in(git.dir(), &link.path));
        match find(&ours, &link.path) {
            Some(ours) if is_here && depth < MAX_DEPTH => {
                pairs.push(Pair { path: link.path.clone(), base: link.commit.clone(), ours, theirs });
            }
            _ if theirs == link.commit => {}
            _ => {
                return Err(not_carried(
                    &link.path,
                    "the item changed this submodule, which is not checked out in the workspace; run `git submodule update --init` there, then resume",
                ));
            }
        }
    }
    if let Some(new) = theirs.iter().find(|link| find(&base, &link.path).is_none()) {
        return Err(not_carried(
            &new.path,
            "the item made a repository there; add it to the workspace before the run, or remove its `.git` in the item's worktree, then resume",
        ));
    }
    Ok(pairs)
}

/// Fails before anything is changed if a change within a submodule has no place.
fn check(request: &MergeRequest<'_>, prefix: &[u8], depth: u32) -> Result<(), GitError> {
    for pair in pairs(request, prefix, depth)? {
        if pair.theirs == pair.base {
            continue;
        }
        let original = request.workspace.in_dir(path_in(request.workspace.dir(), &pair.path));
        let copy = path_in(request.worktree, &pair.path);
        keep_commits(&original, &copy, &pair.theirs)?;
        let inner = within(request, &pair, &original, &copy);
        check(&inner, &joined(prefix, &pair.path), depth + 1)?;
    }
    Ok(())
}

fn within<'a>(
    request: &MergeRequest<'a>,
    pair: &'a Pair,
    original: &'a Git,
    copy: &'a Path,
) -> MergeRequest<'a> {
    let (base, ours, theirs) = (pair.base.as_str(), pair.ours.as_str(), pair.theirs.as_str());
    MergeRequest { workspace: original, worktree: copy, base, ours, theirs, branch: request.branch }
}

fn merge_at(
    request: &MergeRequest<'_>,
    prefix: &[u8],
    depth: u32,
    conflicts: &mut Vec<Conflict>,
) -> Result<(), GitError> {
    let git = request.workspace;
    let pairs = pairs(request, prefix, depth)?;
    // Submodules are merged on their own: here, their commits stay.
    let neutral = |commit: &str| -> Result<String, GitError> {
        if pairs.is_empty() {
            return Ok(commit.to_owned());
        }
        let scratch = tempfile::tempdir().map_err(GitError::Start)?;
        let indexed = git.with_index(&scratch.path().join("index"));
        indexed.run(["read-tree", commit])?;
        let links: Vec<Gitlink> =
            pairs.iter().map(|pair| Gitlink { path: pair.path.clone(), commit: pair.base.clone() }).collect();
        record(&indexed, &links)?;
        let tree = indexed.text(["write-tree"])?;
        // The same commit each time, because its name is in conflict markers.
        let dated =
            git.clone().with_env("GIT_AUTHOR_DATE", "@0 +0000").with_env("GIT_COMMITTER_DATE", "@0 +0000");
        dated.text(["commit-tree", &tree, "-p", request.base, "-m", "cliq: without submodules"])
    };
    let (ours, theirs) = (neutral(request.ours)?, neutral(request.theirs)?);
    let (is_clean, output) = git.ask(["merge-tree", "--write-tree", "-z", &ours, &theirs])?;
    let unclear = |output: &str| GitError::Failed {
        command: "merge-tree".to_owned(),
        status: Some(i32::from(!is_clean)),
        output: output.to_owned(),
    };
    let merged = parse(&output).ok_or_else(|| unclear("its output has an unknown form"))?;
    if is_clean != merged.conflicts.is_empty() {
        return Err(unclear("it does not name the paths in conflict"));
    }
    apply(git, &ours, &merged.tree)?;
    let found = merged.conflicts.into_iter().map(|(path, kind, stages)| Conflict {
        repository: prefix.to_vec(),
        path,
        kind,
        stages,
        tree: merged.tree.clone(),
        sides: [ours.clone(), theirs.clone()],
    });
    conflicts.extend(found);
    for pair in &pairs {
        if pair.theirs == pair.base {
            continue;
        }
        let original = git.in_dir(path_in(git.dir(), &pair.path));
        let copy = path_in(request.worktree, &pair.path);
        let inner = within(request, pair, &original, &copy);
        let known = conflicts.len();
        merge_at(&inner, &joined(prefix, &pair.path), depth + 1, conflicts)?;
        let own = git.in_dir(&copy).text(["rev-parse", "--verify", "--quiet", OWN_COMMITS]);
        let own = own.unwrap_or_else(|_| pair.theirs.clone());
        if own == pair.base {
            continue;
        }
        if conflicts.len() == known {
            merge_heads(&original, &pair.base, &own, request.branch)?;
        } else {
            original.run(["update-ref", &format!("refs/heads/{}", request.branch), &own])?;
        }
    }
    Ok(())
}
