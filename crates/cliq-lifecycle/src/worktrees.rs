//! A git worktree per task, and bringing their branches together per wave.
//!
//! All of a plan's work is on branches of its own: `cliq/<plan>` and one per task. What a person has checked out is never
//! touched, and no branch is ever deleted.

use std::fs;
use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_git::{
    BranchMergeError, Git, GitError, RepositoryLock, WorktreeBranch, add_worktree, commit_all, fast_forward,
};

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
        let _lock = self.lock()?;
        self.ensure_now(work)
    }

    fn ensure_now(&self, work: WorkId) -> Result<Utf8PathBuf, String> {
        let path = self.path(work);
        let text = |error: GitError| error.to_string();
        if path.join(".git").exists() {
            if work != WorkId::Plan {
                // A task that is done again begins from the plan's branch. One with commits of its own continues with them.
                let git = open(&path);
                if fast_forward(&git, &self.branch(WorkId::Plan)) {
                    cliq_git::forward_submodules(&open(&self.path(WorkId::Plan)), &git).map_err(text)?;
                }
            }
            return Ok(path);
        }
        self.ignore()?;
        let project = open(&self.project);
        let branch = self.branch(work);
        let from = match work {
            WorkId::Plan => None,
            WorkId::Draft { .. } | WorkId::Task { .. } => Some(self.ensure_now(WorkId::Plan)?),
        };
        let hooked = project.clone().with_hooks();
        let start = if from.is_some() { self.branch(WorkId::Plan) } else { "HEAD".to_owned() };
        let on = match cliq_git::has_branch(&project, &branch) {
            true => WorktreeBranch::Existing(&branch),
            false => WorktreeBranch::New { branch: &branch, from: &start },
        };
        add_worktree(&hooked, path.as_std_path(), on).map_err(text)?;
        let source = from.map_or_else(|| project.clone(), |plan| open(&plan));
        cliq_git::copy_submodules(&source, &open(&path)).map_err(text)?;
        cliq_git::copy_included(&project, path.as_std_path()).map_err(text)?;
        Ok(path)
    }

    /// Keeps `.worktrees/` out of what git shows, without touching a file that is committed.
    fn ignore(&self) -> Result<(), String> {
        let common = cliq_git::common_dir(&open(&self.project)).map_err(|why| self.no_repository(&why))?;
        let info = Utf8PathBuf::from(common.to_string_lossy().into_owned()).join("info");
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

    /// Commits the uncommitted changes of each task, and merges the task's branch into the plan's, one after the other. No hook runs for
    /// a merge. Returns the merged branches. A merge that fails is taken back, and all is as it was before that one.
    pub(crate) fn merge(&self, tasks: &[(WorkId, String)]) -> Result<String, MergeError> {
        let _lock = self.lock()?;
        let plan = self.ensure_now(WorkId::Plan)?;
        let git = open(&plan);
        if cliq_git::is_merging(&git) {
            return Err(MergeError::Conflict(format!(
                "a merge is under way in {plan}: `git commit` ends it, then answer"
            )));
        }
        let mut report = String::new();
        for (work, title) in tasks {
            if !self.path(*work).join(".git").exists() {
                continue;
            }
            match self.merge_one(&git, *work, title) {
                Ok(branch) => report.extend(["merged ", &branch, "\n"]),
                Err(MergeError::Conflict(why)) => return Err(MergeError::Conflict(format!("{report}{why}"))),
                Err(MergeError::Failed(why)) => return Err(MergeError::Failed(format!("{report}{why}"))),
            }
        }
        Ok(report)
    }

    fn merge_one(&self, plan: &Git, work: WorkId, title: &str) -> Result<String, MergeError> {
        let (path, branch) = (self.path(work), self.branch(work));
        let task = open(&path);
        commit_all(&task, title)
            .map_err(|error| failed(&format!("cannot commit the work of {branch}"), &error))?;
        let joined = cliq_git::join_submodules(plan, &task)
            .map_err(|error| failed("cannot merge submodules", &error))?;
        if !joined.is_empty() {
            commit_all(&task, &format!("Merge {}", joined.join(", ")))
                .map_err(|error| failed(&format!("cannot commit the work of {branch}"), &error))?;
        }
        let message = format!("Merge {work}: {title}");
        if let Err(BranchMergeError { conflicts, error }) = cliq_git::merge_branch(plan, &branch, &message) {
            let files: Vec<String> = conflicts.iter().map(|path| cliq_git::lossy(path)).collect();
            if files.is_empty() {
                return Err(failed(&format!("cannot merge branch {branch}, which is no conflict"), &error));
            }
            let dir = plan.dir().display();
            return Err(MergeError::Conflict(format!(
                "Branch {branch} conflicts with {}: {}\nMerge it by hand in {dir}:\n\n    cd {dir}\n    git merge {branch}\n\n{}",
                self.branch(WorkId::Plan),
                files.join(", "),
                error.output(),
            )));
        }
        let submodules = cliq_git::forward_submodules(&task, plan).and_then(|()| {
            cliq_git::publish_submodules(plan, &open(&self.project), &self.branch(WorkId::Plan))
        });
        submodules.map_err(|error| failed("cannot carry submodules back", &error))?;
        Ok(branch)
    }

    /// Commits what the plan's own agents have left uncommitted.
    pub(crate) fn commit_plan(&self, message: &str) -> Result<(), String> {
        let path = self.path(WorkId::Plan);
        if !path.join(".git").exists() {
            return Ok(());
        }
        let _lock = self.lock()?;
        commit_all(&open(&path), message).map_err(|error| {
            match failed("cannot commit the plan's work", &error) {
                MergeError::Conflict(why) | MergeError::Failed(why) => why,
            }
        })
    }

    /// Tasks begin at the same time, and git takes one change of a repository at a time.
    fn lock(&self) -> Result<RepositoryLock, String> {
        RepositoryLock::acquire(&open(&self.project)).map_err(|error| match error {
            GitError::Failed { .. } => self.no_repository(&error),
            other => other.to_string(),
        })
    }

    fn no_repository(&self, why: &GitError) -> String {
        format!(
            "the plan asks for branches, and {} is not a git repository with a commit: {why}",
            self.project
        )
    }
}

/// Failure of a merge of branches.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MergeError {
    /// Paths are in conflict, or a person's merge is not finished.
    Conflict(String),
    /// Git or a hook failed. Nothing is in conflict.
    Failed(String),
}

impl From<String> for MergeError {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// A failure of git with its whole output. A hook is named by the error.
fn failed(action: &str, error: &GitError) -> MergeError {
    MergeError::Failed(match error {
        GitError::Failed { command, output, .. } => format!("{action}: git {command} failed\n\n{output}"),
        GitError::Hook { hook, output, .. } => {
            format!(
                "{action}: the hook {hook} failed. Mend what it names, or the hook, then answer.\n\n{output}"
            )
        }
        other => format!("{action}: {other}"),
    })
}

/// Git as the person uses it: their identity, their signatures.
fn open(dir: &Utf8Path) -> Git {
    Git::new(dir)
}

#[cfg(test)]
mod tests;
