//! Merge of the worktrees of items into the files of the workspace (docs/expressions.md).
//!
//! The changes are merged in order; branch and history of the workspace stay as they are. Each step is recorded before the workspace
//! changes, so that a merge that was interrupted gives the same files. While paths are in conflict, the index of the repository has
//! them as unmerged entries; afterwards it is as before.

use std::fs;
use std::sync::Arc;

use camino::Utf8PathBuf;
use cliq_fs::{FsError, write_atomic, write_handoff};
use cliq_git::{Conflict, GitError, MergeRequest, RepositoryLock, StagedEntry};
use cliq_protocol::{Envelope, PhaseName};
use cliq_workflow::PhaseId;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Driver;
use super::shared::Shared;
use super::worktrees::Repository;
use crate::blocking::spawn_blocking;
use crate::checkpoints::CheckpointOf;
use crate::engine::PhaseState;
use crate::events::RunEvent;

/// Progress of a merge.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Join {
    /// Index of the next item.
    next: u32,
    /// Commit of the workspace before that item, once it is stored.
    ours: Option<String>,
    /// Conflicts, if that item conflicts.
    conflicts: Vec<Conflict>,
    /// Entries of the index before the conflicts were recorded in it.
    entries: Vec<StagedEntry>,
    /// Whether the index has the conflicts as unmerged entries.
    is_marked: bool,
    /// Whether the conflicts are resolved.
    is_resolved: bool,
}

impl Driver {
    /// Merges the worktrees of a phase beside the dispatcher, and reports the result.
    pub(super) fn merge(&mut self, id: PhaseId, resolved: Option<u32>) {
        let shared = Arc::clone(&self.shared);
        let count = self.pipeline.item_count(id).unwrap_or(0);
        let is_done = |item: &u32| *self.pipeline.state(id.with_item(*item)) == PhaseState::Completed;
        let activation = |item: u32| self.pipeline.activations(id.with_item(item));
        let items: Vec<(u32, u32)> =
            (0..count).filter(is_done).map(|item| (item, activation(item))).collect();
        let phase = self.shared.workflow().phase(id).name.clone();
        self.tasks.spawn(async move {
            let (merging, of, of_items) = (Arc::clone(&shared), phase.clone(), phase.clone());
            let merged = spawn_blocking(move || merge_items(&merging, &of, &items, resolved)).await;
            let event = match merged.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(Merged::All { apart }) => {
                    RunEvent::ItemsMerged { phase, conflict: None, files: vec![], notes: apart, reason: None }
                }
                Ok(Merged::UpTo(item, conflicts)) => RunEvent::ItemsMerged {
                    phase,
                    conflict: Some(item),
                    files: conflicts.iter().map(Conflict::name).collect(),
                    notes: notes(&conflicts),
                    reason: None,
                },
                Err(why) => {
                    let reason = Some(format!("the worktrees of its items cannot be merged: {why}"));
                    RunEvent::ItemsMerged { phase, conflict: None, files: vec![], notes: vec![], reason }
                }
            };
            shared.report_changes(&of_items).await;
            shared.send(event);
        });
    }

    /// Hands a conflict over to the phase that resolves it.
    pub(super) fn deliver_conflict(
        &self,
        id: PhaseId,
        to: PhaseId,
        item: u32,
        files: &[String],
    ) -> Result<(), FsError> {
        let workflow = self.shared.workflow();
        let (phase, to) = (&workflow.phase(id).name, &workflow.phase(to).name);
        let record = record_file(&self.shared.repository(), phase);
        // A record that cannot be read fails the merge afterwards; the names are known.
        let conflicts = read_record(&record).map(|join| join.conflicts).unwrap_or_default();
        let text = conflict_text(item, files, &conflicts);
        let data = json!({"item": item, "files": files}).as_object().cloned();
        let envelope = Envelope::standard(phase.clone(), "cliq", data, Some(text));
        write_handoff(&self.shared.dir().channel(phase, to), &envelope)
    }
}

/// Names with kinds, if a conflict is of another kind than lines.
fn notes(conflicts: &[Conflict]) -> Vec<String> {
    if conflicts.iter().all(|conflict| conflict.kind.note().is_none()) {
        return Vec::new();
    }
    conflicts.iter().map(Conflict::describe).collect()
}

/// Task of the phase that resolves a conflict.
fn conflict_text(item: u32, files: &[String], conflicts: &[Conflict]) -> String {
    let mut text = format!("The work of item {item} conflicts with that of the items before it.");
    let is_other = |file: &&String| {
        conflicts.iter().any(|conflict| conflict.name() == **file && conflict.kind.note().is_some())
    };
    let (others, marked): (Vec<&String>, Vec<&String>) = files.iter().partition(|file| is_other(file));
    if !marked.is_empty() {
        text.push_str(" These files of the workspace have conflict markers:\n");
        for file in &marked {
            text.extend(["\n- ", file]);
        }
        text.push('\n');
    }
    if !others.is_empty() {
        text.push_str(if marked.is_empty() {
            " These files conflict:\n"
        } else {
            "\nThese files conflict too:\n"
        });
        for conflict in conflicts.iter().filter(|conflict| others.contains(&&conflict.name())) {
            text.extend(["\n- ", &conflict.describe()]);
        }
        text.push('\n');
    }
    text.push_str(
        "\nResolve each conflict, so that the work of both sides is kept, and remove the markers. Change each file or remove it. \
         To take one side as it is, use `git checkout --ours -- FILE` (the workspace) or `git checkout --theirs -- FILE` (the item) \
         in the file's repository. A file that is right as it is has to be confirmed with `git add FILE`, or `git rm FILE`.\n",
    );
    text
}

fn record_file(repository: &Repository, phase: &PhaseName) -> Utf8PathBuf {
    repository.place.join(format!("{phase}.join.json"))
}

fn read_record(file: &Utf8PathBuf) -> Result<Join, String> {
    match fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| format!("cannot read the record of the merge {file}: {error}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Join::default()),
        Err(error) => Err(format!("cannot read the record of the merge {file}: {error}")),
    }
}

/// Merges the worktrees of items, from the one after `resolved`. Returns the item that conflicts with its conflicts.
fn merge_items(
    shared: &Shared,
    phase: &PhaseName,
    items: &[(u32, u32)],
    resolved: Option<u32>,
) -> Result<Merged, String> {
    let repository = shared.repository();
    let git = &repository.git;
    let text = |error: GitError| error.to_string();
    let _lock = RepositoryLock::acquire(git).map_err(text)?;
    let file = record_file(&repository, phase);
    let save = |join: &Join| -> Result<(), String> {
        let bytes = serde_json::to_vec(join).map_err(|error| error.to_string())?;
        write_atomic(&file, &bytes).map_err(|error| error.to_string())
    };
    let mut join = read_record(&file)?;
    if !join.conflicts.is_empty() {
        let item = join.next;
        mark(&repository, &mut join, &save)?;
        if resolved != Some(item) {
            // The orchestrator died before it recorded the conflict.
            return Ok(Merged::UpTo(item, join.conflicts));
        }
        if !join.is_resolved {
            let open = cliq_git::unresolved(git, &join.conflicts).map_err(text)?;
            if !open.is_empty() {
                let names: Vec<String> = open.iter().map(|conflict| conflict.describe()).collect();
                return Err(still_open(item, &names));
            }
            join.is_resolved = true;
            save(&join)?;
        }
        cliq_git::restore_entries(git, &join.conflicts, &join.entries).map_err(text)?;
        join = Join { next: item + 1, ..Join::default() };
        save(&join)?;
    }
    for &(item, activation) in items {
        if item < join.next {
            continue;
        }
        let name = phase.with_item(item);
        let worktree = repository.place.join(name.as_str());
        if !worktree.join(".git").exists() {
            continue;
        }
        let checkpoint = |is_end: bool| {
            let of = CheckpointOf { run_id: shared.run_id.clone(), phase: name.clone(), activation, is_end };
            // The first failure of a run was reported elsewhere.
            let _ = shared.plan.checkpoints.as_ref().map(|checkpoints| checkpoints.take(&of));
        };
        let of_item = |error: GitError| format!("item {item}: {error}");
        let theirs = cliq_git::commit_worktree(&git.in_dir(&worktree), name.as_str()).map_err(of_item)?;
        let base = repository.base(phase.as_str())?;
        let ours = match join.ours.take().filter(|_| join.next == item) {
            Some(ours) => ours,
            None => {
                checkpoint(false);
                let ours = cliq_git::snapshot(git, Some(&base)).map_err(text)?;
                join = Join { next: item, ours: Some(ours.clone()), ..Join::default() };
                save(&join)?;
                ours
            }
        };
        let conflicts = cliq_git::merge(&MergeRequest {
            workspace: git,
            worktree: worktree.as_std_path(),
            base: &base,
            ours: &ours,
            theirs: &theirs,
            branch: &shared.branch(&name),
        })
        .map_err(of_item)?;
        if !conflicts.is_empty() {
            let entries = cliq_git::staged_entries(git, &conflicts).map_err(text)?;
            join = Join { next: item, ours: Some(ours), conflicts, entries, ..Join::default() };
            save(&join)?;
            mark(&repository, &mut join, &save)?;
            return Ok(Merged::UpTo(item, join.conflicts));
        }
        checkpoint(true);
        join = Join { next: item + 1, ..Join::default() };
        save(&join)?;
    }
    let apart = cliq_git::branches_apart(git, &format!("{}.*", shared.branch(phase))).map_err(text)?;
    repository.clean(phase.as_str()).map_err(text)?;
    let apart = apart.into_iter().map(|(path, branch)| {
        format!("{path}: commits are on the branch {branch} only, since another branch is checked out there or they conflict")
    });
    Ok(Merged::All { apart: apart.collect() })
}

/// Result of a merge of items.
enum Merged {
    /// All are merged. `apart` has a sentence for each branch of a submodule whose commits are not in what is checked out.
    All { apart: Vec<String> },
    /// All before this item are merged; this one conflicts.
    UpTo(u32, Vec<Conflict>),
}

/// Records the conflicts in the index of the repository, once.
fn mark(
    repository: &Repository,
    join: &mut Join,
    save: &impl Fn(&Join) -> Result<(), String>,
) -> Result<(), String> {
    if join.is_marked {
        return Ok(());
    }
    cliq_git::mark_unmerged(&repository.git, &join.conflicts).map_err(|error| error.to_string())?;
    join.is_marked = true;
    save(join)
}

fn still_open(item: u32, names: &[String]) -> String {
    let is = if names.len() == 1 { "is" } else { "are" };
    format!(
        "{} {is} still in conflict with item {item}; edit the file, or take a side (`git checkout --ours -- FILE` or `--theirs`), and confirm it with `git add FILE` or `git rm FILE`",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_separates_lines_with_markers_from_other_conflicts() {
        let text = conflict_text(1, &["a.txt".to_owned()], &[]);
        assert!(text.contains("have conflict markers:\n\n- a.txt\n"), "{text}");
        assert!(!text.contains("These files conflict"), "{text}");
    }

    #[test]
    fn record_of_another_version_is_refused_by_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = Utf8PathBuf::from_path_buf(dir.path().join("fix.join.json")).expect("UTF-8");
        assert!(read_record(&file).expect("none").conflicts.is_empty());
        fs::write(&file, r#"{"next":1,"ours":"a","conflict":["x"]}"#).expect("written");
        assert!(read_record(&file).expect_err("refused").contains("fix.join.json"));
    }
}
