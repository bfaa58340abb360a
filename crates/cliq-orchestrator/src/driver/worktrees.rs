//! Git worktrees of items, and their merge (SPEC section 24).
//!
//! The items of a phase begin from one commit: the workspace as it was, with all uncommitted files. Their changes are merged into the files
//! of the workspace, in order; its branch, index and history stay as they are. Each step is recorded before the workspace changes, so that a
//! merge that was interrupted gives the same files.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{FsError, write_atomic, write_handoff};
use cliq_protocol::{Envelope, PhaseName};
use cliq_workflow::PhaseId;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Driver;
use super::shared::Shared;
use crate::checkpoints::CheckpointOf;
use crate::engine::PhaseState;
use crate::events::RunEvent;

/// Git changes the worktrees of a repository one at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Progress of a merge.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Join {
    /// Index of the next item.
    next: u32,
    /// Commit of the workspace before that item, once it is stored.
    ours: Option<String>,
    /// Files that conflict, if that item conflicts.
    conflict: Option<Vec<String>>,
}

impl Shared {
    /// Worktree of an item, if its phase uses worktrees.
    pub(super) fn worktree_of(&self, phase: &str) -> Option<Utf8PathBuf> {
        let id = self.workflow().find(phase).filter(|id| id.item().is_some())?;
        let list = self.workflow().phase(id).for_each.as_ref()?;
        list.worktrees.then(|| self.worktrees().join(phase))
    }

    /// Working directory of a phase or an item.
    pub(super) fn workspace_of(&self, phase: &str) -> Utf8PathBuf {
        self.worktree_of(phase).unwrap_or_else(|| self.dir().workspace().to_owned())
    }

    fn worktrees(&self) -> Utf8PathBuf {
        self.dir().root().join("worktrees")
    }

    /// Makes the worktree of an item, as it was before the item began. One with the work of a model that continues is kept.
    pub(super) async fn prepare_worktree(
        &self,
        phase: &PhaseName,
        continues: Option<u32>,
    ) -> Result<(), String> {
        let Some(worktree) = self.worktree_of(phase.as_str()) else { return Ok(()) };
        let continues = continues.is_some_and(|activation| self.dir().transcript(phase, activation).exists());
        let git = self.git();
        let branch = self.branch(phase);
        let whole = phase.whole().to_owned();
        let made =
            tokio::task::spawn_blocking(move || git.prepare(&whole, &worktree, &branch, continues)).await;
        made.unwrap_or_else(|error| Err(error.to_string()))
            .map_err(|why| format!("no worktree can be made: {why}"))
    }

    fn branch(&self, phase: &PhaseName) -> String {
        format!("cliq/{}/{phase}", self.run_id)
    }

    fn git(&self) -> Git {
        let path = self.plan.env.get("PATH").cloned();
        let run_id = self.run_id.clone();
        Git { workspace: self.dir().workspace().to_owned(), place: self.worktrees(), path, run_id }
    }
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
            let (merging, of) = (Arc::clone(&shared), phase.clone());
            let merged =
                tokio::task::spawn_blocking(move || merge_items(&merging, &of, &items, resolved)).await;
            let (conflict, files, reason) = match merged.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(None) => (None, Vec::new(), None),
                Ok(Some((item, files))) => (Some(item), files, None),
                Err(why) => {
                    (None, Vec::new(), Some(format!("the worktrees of its items cannot be merged: {why}")))
                }
            };
            shared.send(RunEvent::ItemsMerged { phase, conflict, files, reason });
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
        let mut text = format!(
            "The work of item {item} conflicts with that of the items before it. These files of the workspace have conflict markers:\n"
        );
        for file in files {
            text.extend(["\n- ", file]);
        }
        text.push_str(
            "\n\nResolve each conflict, so that the work of both sides is kept, and remove the markers.\n",
        );
        let data = json!({"item": item, "files": files}).as_object().cloned();
        let envelope = Envelope::standard(phase.clone(), "cliq", data, Some(text));
        write_handoff(&self.shared.dir().channel(phase, to), &envelope)
    }

    /// Removes the worktrees of a phase that is to be done again.
    pub(super) fn forget_worktrees(&self, id: PhaseId) {
        let workflow = self.shared.workflow();
        let phase = &workflow.phase(id).name;
        if workflow.phase(id).for_each.as_ref().is_some_and(|list| list.worktrees) {
            // What cannot be removed is in the way of the next one, which then says so.
            let _ = self.shared.git().clean(phase.as_str());
        }
    }
}

/// Merges the worktrees of items, from the one after `resolved`. Returns the item that conflicts with its files.
fn merge_items(
    shared: &Shared,
    phase: &PhaseName,
    items: &[(u32, u32)],
    resolved: Option<u32>,
) -> Result<Option<(u32, Vec<String>)>, String> {
    let git = shared.git();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let file = git.place.join(format!("{phase}.join.json"));
    let mut join: Join = match fs::read(&file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| format!("{file}: {error}"))?,
        Err(_) => Join::default(),
    };
    if let Some(files) = join.conflict.clone() {
        let item = join.next;
        if resolved != Some(item) {
            // The orchestrator died before it recorded the conflict.
            return Ok(Some((item, files)));
        }
        let marked = |path: &&String| has_markers(&git.workspace.join(path));
        if let Some(path) = files.iter().find(marked) {
            return Err(format!("{path} still has the conflict markers of item {item}"));
        }
        join = Join { next: item + 1, ..Join::default() };
        git.save(&file, &join)?;
    }
    for &(item, activation) in items {
        if item < join.next {
            continue;
        }
        let name = phase.with_item(item);
        let worktree = git.place.join(name.as_str());
        if !worktree.join(".git").exists() {
            continue;
        }
        let checkpoint = |is_end: bool| {
            let of = CheckpointOf { run_id: shared.run_id.clone(), phase: name.clone(), activation, is_end };
            // The first failure of a run was reported elsewhere.
            let _ = shared.plan.checkpoints.as_ref().map(|checkpoints| checkpoints.take(&of));
        };
        let theirs = git.commit_worktree(&worktree, name.as_str())?;
        if join.next != item || join.ours.is_none() {
            checkpoint(false);
            let base = git.base(phase.as_str())?;
            join = Join {
                next: item,
                ours: Some(git.commit_workspace(phase.as_str(), Some(&base))?),
                conflict: None,
            };
            git.save(&file, &join)?;
        }
        let ours = join.ours.clone().unwrap_or_default();
        let (tree, conflicts) = git.merge_trees(&ours, &theirs)?;
        git.apply(phase.as_str(), &ours, &tree)?;
        if !conflicts.is_empty() {
            join.conflict = Some(conflicts.clone());
            git.save(&file, &join)?;
            return Ok(Some((item, conflicts)));
        }
        checkpoint(true);
        join = Join { next: item + 1, ..Join::default() };
        git.save(&file, &join)?;
    }
    git.clean(phase.as_str())?;
    Ok(None)
}

fn has_markers(path: &Utf8Path) -> bool {
    let content = fs::read(path).unwrap_or_default();
    content
        .split(|byte| *byte == b'\n')
        .any(|line| line.starts_with(b"<<<<<<< ") || line.starts_with(b">>>>>>> "))
}

/// The repository of the workspace. Hooks, signatures and editors are off: an agent may have set them.
struct Git {
    workspace: Utf8PathBuf,
    /// Directory of the worktrees.
    place: Utf8PathBuf,
    path: Option<String>,
    run_id: String,
}

impl Git {
    fn command(&self, dir: &Utf8Path) -> Command {
        let mut command = Command::new("git");
        command.current_dir(dir).envs(self.path.iter().map(|path| ("PATH", path)));
        for setting in
            ["core.hooksPath=/dev/null", "core.fsmonitor=false", "commit.gpgSign=false", "gc.auto=0"]
        {
            command.args(["-c", setting]);
        }
        for name in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{name}_NAME"), "cliq")
                .env(format!("GIT_{name}_EMAIL"), "cliq@localhost");
        }
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
            command.env_remove(name);
        }
        command.env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
        command
    }

    /// Runs git with an input and returns exit status and output. Other failures than the exit status 1 are errors.
    fn run(mut command: Command, args: &[&str], input: &[u8]) -> Result<(bool, Vec<u8>), String> {
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("git cannot be started: {error}"))?;
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(input)));
            child.wait_with_output()
        });
        let output = output.map_err(|error| error.to_string())?;
        match output.status.code() {
            Some(0) => Ok((true, output.stdout)),
            Some(1) if args.first() == Some(&"merge-tree") || args.first() == Some(&"diff") => {
                Ok((false, output.stdout))
            }
            _ => {
                let text = String::from_utf8_lossy(&output.stderr);
                let reason = text.lines().next_back().unwrap_or("git gave no reason").to_owned();
                Err(format!("git {}: {reason}", args.first().unwrap_or(&"")))
            }
        }
    }

    fn text(&self, dir: &Utf8Path, args: &[&str]) -> Result<String, String> {
        let (_, output) = Self::run(self.command(dir), args, &[])?;
        Ok(String::from_utf8_lossy(&output).trim().to_owned())
    }

    fn save(&self, file: &Utf8Path, join: &Join) -> Result<(), String> {
        let bytes = serde_json::to_vec(join).map_err(|error| error.to_string())?;
        write_atomic(file, &bytes).map_err(|error| error.to_string())
    }

    /// The commit from which the items of a phase begin. Made once.
    fn base(&self, phase: &str) -> Result<String, String> {
        let file = self.place.join(format!("{phase}.base"));
        if let Ok(commit) = fs::read_to_string(&file) {
            return Ok(commit.trim().to_owned());
        }
        if !self.workspace.join(".git").exists() {
            return Err(format!(
                "`workspace: worktree` needs a git repository, and {} is none",
                self.workspace
            ));
        }
        fs::create_dir_all(&self.place).map_err(|error| format!("cannot create {}: {error}", self.place))?;
        let commit = self.commit_workspace(phase, None)?;
        write_atomic(&file, commit.as_bytes()).map_err(|error| error.to_string())?;
        Ok(commit)
    }

    /// Stores all files of the workspace as a commit that no branch has. The index of the repository is only copied.
    fn commit_workspace(&self, phase: &str, parent: Option<&str>) -> Result<String, String> {
        let index = self.place.join(format!("{phase}.index"));
        let of_repository =
            self.text(&self.workspace, &["rev-parse", "--path-format=absolute", "--git-path", "index"])?;
        let _ = fs::remove_file(format!("{index}.lock"));
        let copied = fs::copy(&of_repository, &index);
        if copied.is_err() {
            let _ = fs::remove_file(&index);
        }
        let with_index = || {
            let mut command = self.command(&self.workspace);
            command.env("GIT_INDEX_FILE", &index);
            command
        };
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
        let (_, files) = Self::run(with_index(), &changed, &[])?;
        // Repositories inside end with a slash, and stay as they are.
        let files = files.split(|byte| *byte == 0).filter(|file| !file.is_empty() && !file.ends_with(b"/"));
        let files: Vec<u8> = files.flat_map(|file| file.iter().copied().chain([0])).collect();
        Self::run(
            with_index(),
            &["update-index", "--add", "--remove", "--replace", "-z", "--stdin"],
            &files,
        )?;
        let (_, tree) = Self::run(with_index(), &["write-tree"], &[])?;
        let tree = String::from_utf8_lossy(&tree).trim().to_owned();
        let head = self.text(&self.workspace, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).ok();
        let mut args = vec!["commit-tree", &tree, "-m", "cliq: workspace"];
        if let Some(parent) = parent.or(head.as_deref()) {
            args.extend(["-p", parent]);
        }
        self.text(&self.workspace, &args)
    }

    fn prepare(&self, phase: &str, worktree: &Utf8Path, branch: &str, continues: bool) -> Result<(), String> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let base = self.base(phase)?;
        if worktree.join(".git").exists() {
            if !continues {
                self.text(worktree, &["reset", "--quiet", "--hard", &base])?;
                self.text(worktree, &["clean", "--quiet", "-ffd"])?;
            }
            return Ok(());
        }
        let _ = fs::remove_dir_all(worktree);
        self.text(&self.workspace, &["worktree", "prune"])?;
        self.text(&self.workspace, &["worktree", "add", "--quiet", "-B", branch, worktree.as_str(), &base])
            .map(drop)
    }

    /// Commits what an item left uncommitted. Returns its commit.
    fn commit_worktree(&self, worktree: &Utf8Path, message: &str) -> Result<String, String> {
        self.text(worktree, &["add", "--all"])?;
        let (is_clean, _) = Self::run(self.command(worktree), &["diff", "--cached", "--quiet"], &[])?;
        if !is_clean {
            self.text(worktree, &["commit", "--quiet", "--no-verify", "-m", message])?;
        }
        self.text(worktree, &["rev-parse", "HEAD"])
    }

    /// Merges two commits. Returns the tree, and the files that conflict: these contain conflict markers.
    fn merge_trees(&self, ours: &str, theirs: &str) -> Result<(String, Vec<String>), String> {
        let args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs];
        let (_, output) = Self::run(self.command(&self.workspace), &args, &[])?;
        let mut parts =
            output.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned());
        let tree = parts.next().unwrap_or_default();
        let mut files: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        files.sort();
        files.dedup();
        Ok((tree, files))
    }

    /// Makes the files of the workspace that differ between two trees those of the second.
    fn apply(&self, phase: &str, old: &str, new: &str) -> Result<(), String> {
        use std::os::unix::ffi::OsStrExt;
        let args = ["diff-tree", "-r", "-z", "--no-renames", "--name-status", old, new];
        let (_, output) = Self::run(self.command(&self.workspace), &args, &[])?;
        let mut fields = output.split(|byte| *byte == 0).filter(|part| !part.is_empty());
        let mut written = Vec::new();
        while let (Some(kind), Some(file)) = (fields.next(), fields.next()) {
            if kind != b"D" {
                written.extend(file.iter().copied().chain([0]));
                continue;
            }
            let path = self.workspace.as_std_path().join(OsStr::from_bytes(file));
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(format!("cannot remove {}: {error}", path.display()));
                }
                _ => {}
            }
            let mut parent = path.parent();
            while let Some(dir) = parent.filter(|dir| *dir != self.workspace.as_std_path()) {
                if fs::remove_dir(dir).is_err() {
                    break;
                }
                parent = dir.parent();
            }
        }
        let index = self.place.join(format!("{phase}.index"));
        let with_index = || {
            let mut command = self.command(&self.workspace);
            command.env("GIT_INDEX_FILE", &index);
            command
        };
        Self::run(with_index(), &["read-tree", new], &[])?;
        Self::run(with_index(), &["checkout-index", "--force", "-z", "--stdin"], &written).map(drop)
    }

    /// Removes the worktrees, branches and records of a phase.
    fn clean(&self, phase: &str) -> Result<(), String> {
        let of_phase = |name: &str| name.split('.').next() == Some(phase);
        let entries = self.place.read_dir_utf8().into_iter().flatten().flatten();
        for entry in entries.filter(|entry| of_phase(entry.file_name())) {
            let path = entry.path();
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let remove = ["worktree", "remove", "--force", path.as_str()];
            if is_dir && self.text(&self.workspace, &remove).is_err() {
                let _ = fs::remove_dir_all(path);
            }
        }
        self.text(&self.workspace, &["worktree", "prune"])?;
        let of_run = format!("refs/heads/cliq/{}", self.run_id);
        let branches = self.text(&self.workspace, &["for-each-ref", "--format=%(refname)", &of_run])?;
        let is_item = |branch: &&str| branch.rsplit('/').next().is_some_and(of_phase);
        for branch in branches.lines().filter(is_item) {
            self.text(&self.workspace, &["update-ref", "-d", branch])?;
        }
        // The base last: while it is there, an interrupted removal is taken up again.
        for name in ["index", "join.json", "base"] {
            let _ = fs::remove_file(self.place.join(format!("{phase}.{name}")));
        }
        Ok(())
    }
}
