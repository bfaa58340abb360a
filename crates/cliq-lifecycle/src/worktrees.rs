//! A git worktree per task, and bringing their branches together per wave.
//!
//! All of a plan's work is on branches of its own: `cliq/<plan>` and one per task. What a person has checked out is never
//! touched, and no branch is ever deleted.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};

use crate::model::WorkId;

/// The worktrees of a plan.
#[derive(Debug, Clone)]
pub(crate) struct Worktrees {
    project: Utf8PathBuf,
    plan: String,
}

impl Worktrees {
    pub(crate) fn new(project: &Utf8Path, plan: &str) -> Self {
        Self { project: project.to_owned(), plan: plan.to_owned() }
    }

    fn name(&self, work: WorkId) -> String {
        match work {
            WorkId::Plan => self.plan.clone(),
            WorkId::Draft { .. } | WorkId::Task { .. } => format!("{}-{work}", self.plan),
        }
    }

    fn branch(&self, work: WorkId) -> String {
        format!("cliq/{}", self.name(work))
    }

    pub(crate) fn path(&self, work: WorkId) -> Utf8PathBuf {
        self.project.join(".worktrees").join(self.name(work))
    }

    /// The worktree of a piece of work; made where it is not there yet, a task's from where the plan stands.
    pub(crate) fn ensure(&self, work: WorkId) -> Result<Utf8PathBuf, String> {
        let _turn = take_turn();
        self.ensure_now(work)
    }

    fn ensure_now(&self, work: WorkId) -> Result<Utf8PathBuf, String> {
        let path = self.path(work);
        if path.join(".git").exists() {
            if work != WorkId::Plan {
                // Done again, a task begins where the plan stands now; where it has work of its own, it goes on with that.
                let _ = git(&path, &["merge", "--ff-only", "--quiet", &self.branch(WorkId::Plan)]);
            }
            return Ok(path);
        }
        self.ignore()?;
        git(&self.project, &["worktree", "prune"])?;
        let (branch, name) = (self.branch(work), path.as_str());
        if git(&self.project, &["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")]).is_ok()
        {
            git(&self.project, &["worktree", "add", "--quiet", name, &branch])?;
        } else {
            let from = match work {
                WorkId::Plan => "HEAD".to_owned(),
                WorkId::Draft { .. } | WorkId::Task { .. } => {
                    self.ensure_now(WorkId::Plan)?;
                    self.branch(WorkId::Plan)
                }
            };
            git(&self.project, &["worktree", "add", "--quiet", "-b", &branch, name, &from])?;
        }
        Ok(path)
    }

    /// Keeps `.worktrees/` out of what git shows, without touching a file that is committed.
    fn ignore(&self) -> Result<(), String> {
        let common = git(&self.project, &["rev-parse", "--path-format=absolute", "--git-common-dir"])
            .map_err(|why| {
                format!(
                    "the plan asks for branches, and {} is not a git repository with a commit: {why}",
                    self.project
                )
            })?;
        let info = Utf8PathBuf::from(common.trim()).join("info");
        let exclude = info.join("exclude");
        let known = cliq_fs::read_text(&exclude, 16 << 20).unwrap_or_default();
        if known.lines().any(|line| line.trim() == "/.worktrees/") {
            return Ok(());
        }
        let write = || {
            fs::create_dir_all(&info)?;
            let mut file = cliq_fs::open_append(&exclude).map_err(|error| error.source)?;
            writeln!(file, "/.worktrees/")
        };
        write().map_err(|error| format!("cannot write {exclude}: {error}"))
    }

    /// Commits the uncommitted changes of each task, and merges the task's branch into the plan's, one after the other.
    /// Gives what was merged. Where a merge conflicts it is taken back, and all is as it was before that one.
    pub(crate) fn merge(&self, tasks: &[(WorkId, String)]) -> Result<String, String> {
        let _turn = take_turn();
        let plan = self.ensure_now(WorkId::Plan)?;
        if git(&plan, &["rev-parse", "--verify", "--quiet", "MERGE_HEAD"]).is_ok() {
            return Err(format!("a merge is under way in {plan}: `git commit` ends it, then answer"));
        }
        let mut report = String::new();
        for (work, title) in tasks {
            let (path, branch) = (self.path(*work), self.branch(*work));
            if !path.join(".git").exists() {
                continue;
            }
            commit_all(&path, title)?;
            let message = format!("Merge {work}: {title}");
            if let Err(why) = git(&plan, &["merge", "--no-ff", "--quiet", "-m", &message, &branch]) {
                let files = git(&plan, &["diff", "--name-only", "--diff-filter=U"]).unwrap_or_default();
                let _ = git(&plan, &["merge", "--abort"]);
                let files: Vec<&str> = files.lines().collect();
                return Err(format!(
                    "{report}Branch {branch} conflicts with {}: {}\nMerge it by hand in {plan}:\n\n    cd {plan}\n    git merge {branch}\n\n{why}",
                    self.branch(WorkId::Plan),
                    if files.is_empty() { "git does not say where".to_owned() } else { files.join(", ") },
                ));
            }
            report.extend(["merged ", &branch, "\n"]);
        }
        Ok(report)
    }

    /// Commits what the plan's own agents have left uncommitted.
    pub(crate) fn commit_plan(&self, message: &str) -> Result<(), String> {
        let _turn = take_turn();
        let path = self.path(WorkId::Plan);
        if path.join(".git").exists() { commit_all(&path, message) } else { Ok(()) }
    }
}

/// Tasks begin at the same time, and git takes one change of a repository at a time.
fn take_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn commit_all(path: &Utf8Path, message: &str) -> Result<(), String> {
    git(path, &["add", "--all"])?;
    if git(path, &["diff", "--cached", "--quiet"]).is_err() {
        git(path, &["commit", "--quiet", "--no-verify", "-m", message])?;
    }
    Ok(())
}

fn git(dir: &Utf8Path, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.args(args).current_dir(dir).stdin(Stdio::null());
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_EDITOR", "true");
    let output = command.output().map_err(|error| format!("git cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = [output.stderr, output.stdout].concat();
    Err(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&said).trim()))
}
