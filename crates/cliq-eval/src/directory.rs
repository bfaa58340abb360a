//! Directory of an evaluation: templates of its variants and cases, and the workspaces of its trials.
//!
//! ```text
//! evaluations/ID/
//!   variants/NAME/.cliq    the assembled team with roles and settings of a variant
//!   cases/NAME/            the initial contents of the workspace of a case
//!   trials/NUMBER/         the workspace of a trial
//!   logs/                  logs of runs and of commands
//! ```
//!
//! Templates are made once, at the start: later changes of teams and folders do not affect an evaluation.

use std::fs;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{IoContext, copy_tree};
use cliq_git::{CloneRequest, Git, GitError, PROGRAM};
use cliq_project::{Host, Project};

use crate::error::EvalError;
use crate::suite::{Case, JudgeSpec, Suite, Variant, WorkspaceSource};

/// Time limit for one command of git.
const GIT_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Directory of an evaluation.
#[derive(Debug, Clone)]
pub struct EvaluationDir {
    root: Utf8PathBuf,
}

impl EvaluationDir {
    /// Returns the directory of an evaluation.
    #[must_use]
    pub fn new(root: Utf8PathBuf) -> Self {
        Self { root }
    }

    /// Path.
    #[must_use]
    pub fn path(&self) -> &Utf8Path {
        &self.root
    }

    /// Returns the workspace of a trial.
    #[must_use]
    pub fn trial(&self, number: u32) -> Utf8PathBuf {
        self.root.join("trials").join(number.to_string())
    }

    /// Returns the directory of the judges of a trial.
    pub(crate) fn judge(&self, number: u32, check: &str) -> Utf8PathBuf {
        self.root.join("judges").join(number.to_string()).join(check)
    }

    /// Returns the directory of logs.
    #[must_use]
    pub fn logs(&self) -> Utf8PathBuf {
        self.root.join("logs")
    }

    fn variant(&self, name: &str) -> Utf8PathBuf {
        self.root.join("variants").join(name)
    }

    fn case(&self, name: &str) -> Utf8PathBuf {
        self.root.join("cases").join(name)
    }

    /// Makes the templates. Blocks.
    ///
    /// # Errors
    /// Returns an error if a team cannot be assembled, a repository cannot be cloned, or a file cannot be written.
    pub fn prepare(&self, host: &Host, suite: &Suite) -> Result<(), EvalError> {
        create(&self.logs())?;
        for variant in &suite.variants {
            assemble(host, &self.variant(&variant.name), variant)?;
        }
        for case in &suite.cases {
            self.prepare_case(host, case)?;
        }
        Ok(())
    }

    fn prepare_case(&self, host: &Host, case: &Case) -> Result<(), EvalError> {
        let place = self.case(&case.name);
        match &case.workspace {
            None => create(&place),
            Some(WorkspaceSource::Folder(folder)) => {
                if self.root.starts_with(folder) {
                    return Err(EvalError::FolderInside { case: case.name.clone(), folder: folder.clone() });
                }
                // The project that the folder may be is not part of the case.
                copy_tree(folder, &place, &|_| true)?;
                remove(&place.join(".cliq"))
            }
            Some(WorkspaceSource::Git { url, revision }) => clone(host, url, revision.as_deref(), &place),
        }
    }

    /// Makes the workspace of a trial from the templates. Replaces the remains of an earlier attempt. Blocks.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn make_trial(
        &self,
        host: &Host,
        number: u32,
        variant: &str,
        case: &Case,
    ) -> Result<Project, EvalError> {
        let place = self.trial(number);
        remove(&place)?;
        if let Some(parent) = place.parent() {
            create(parent)?;
        }
        copy_tree(&self.case(&case.name), &place, &|_| true)?;
        copy_tree(&self.variant(variant).join(".cliq"), &place.join(".cliq"), &|_| true)?;
        let project = Project::open(&place, host.clone())?;
        // Nothing has run here: there is no run to archive.
        cliq_fs::write_atomic(&project.dir().requirement(), case.requirement.as_bytes())?;
        Ok(project)
    }

    /// Makes the workspace of a judge: a copy of the trial's workspace with a team of one gate. Blocks.
    pub(crate) fn make_judge(
        &self,
        host: &Host,
        number: u32,
        check: &str,
        judge: &JudgeSpec,
        case: &Case,
    ) -> Result<Project, EvalError> {
        let place = self.judge(number, check);
        remove(&place)?;
        if let Some(parent) = place.parent() {
            create(parent)?;
        }
        copy_tree(&self.trial(number), &place, &|_| true)?;
        remove(&place.join(".cliq"))?;
        let team = self.root.join("judges").join(format!("{number}.{check}.team"));
        cliq_project::internals::write_files(
            &team,
            [&("team.yml", JUDGE_TEAM), &("roles/judge.md", JUDGE_ROLE)],
        )?;
        let project = Project::init_for_run(&place, host.clone())?;
        if let (Some(agent), Some(model)) = (&judge.agent, &judge.model) {
            cliq_settings::set(&project.dir().settings(), &format!("agents.{agent}.model"), model)?;
        }
        project.assemble(team.as_str())?;
        remove(&team)?;
        let requirement = format!(
            "# Criteria\n\n{}\n\n# Task that the agents were given\n\n{}\n",
            judge.rubric.trim(),
            case.requirement.trim()
        );
        project.set_requirement(&requirement)?;
        Ok(project)
    }
}

/// Team of a judge: one gate that cannot send work back.
const JUDGE_TEAM: &str = "name: \"@cliq/eval-judge\"
description: Judges the outcome of a trial.
workflow:
  phases:
    - {name: outcome, type: exec, commands: [{name: ready, run: 'true'}]}
    - {name: judge, type: gate, depends_on: [outcome], max_iterations: 1}
";

const JUDGE_ROLE: &str = "You judge work that others have done. The workspace contains its outcome. The requirement contains the criteria, and the
task that the others were given.

Judge by the criteria only. Look at the files that matter. Change nothing.

Pass if every criterion is met. Otherwise escalate, and name the criterion that is not met and the place that shows it.
";

fn assemble(host: &Host, place: &Utf8Path, variant: &Variant) -> Result<(), EvalError> {
    create(place)?;
    let project = Project::init_for_run(place, host.clone())?;
    let assembled = project.assemble(&variant.team)?;
    let settings = project.dir().settings();
    for (key, value) in &variant.settings {
        cliq_settings::set(&settings, key, value)?;
    }
    if let (Some(agent), Some(model)) = (&variant.agent, &variant.model) {
        cliq_settings::set(&settings, &format!("agents.{agent}.model"), model)?;
    }
    for (role, text) in &variant.roles {
        cliq_fs::write_atomic(&project.dir().roles().join(format!("{role}.md")), text.as_bytes())?;
    }
    if let Some(skills) = &variant.skills {
        let place = project.dir().root().join("team/skills");
        remove(&place)?;
        cliq_fs::copy_tree(Utf8Path::new(skills), &place, &|_| true)?;
    }
    drop(assembled);
    // A run makes the directories that it needs: less to copy for each trial.
    prune(project.dir().root());
    let lock = project.dir().root().join("lock");
    fs::remove_file(&lock).at("remove", &lock)?;
    Ok(())
}

/// Removes the empty directories below a directory.
fn prune(dir: &Utf8Path) {
    for entry in dir.read_dir_utf8().into_iter().flatten().filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            prune(entry.path());
            // Fails if something is in it.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn clone(host: &Host, url: &str, revision: Option<&str>, place: &Utf8Path) -> Result<(), EvalError> {
    let program = host.environment.find_program(PROGRAM).ok_or(cliq_project::ProjectError::NoGit)?;
    remove(place)?;
    if let Some(parent) = place.parent() {
        create(parent)?;
    }
    let failed = |error: GitError| {
        let message = match error {
            GitError::TimedOut { seconds, .. } => format!("git took longer than {} min", seconds / 60),
            error => error.output(),
        };
        EvalError::Git { url: url.to_owned(), message }
    };
    let git = Git::new(".").with_program(program).with_timeout(GIT_TIMEOUT);
    let into = place.as_std_path();
    let request = CloneRequest { url, into, branch: None, is_shallow: false, host: None };
    cliq_git::clone(&git, &request).map_err(failed)?;
    match revision {
        Some(revision) if revision.starts_with('-') => {
            Err(EvalError::Git { url: url.to_owned(), message: format!("{revision:?} is not a revision") })
        }
        Some(revision) => cliq_git::checkout_detached(&git.in_dir(place), revision).map_err(failed),
        None => Ok(()),
    }
}

fn create(dir: &Utf8Path) -> Result<(), EvalError> {
    Ok(fs::create_dir_all(dir).at("create", dir)?)
}

pub(crate) fn remove(dir: &Utf8Path) -> Result<(), EvalError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Ok(Err(error).at("remove", dir)?),
        _ => Ok(()),
    }
}
