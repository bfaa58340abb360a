//! Layout of the files of plans in a project.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::CliqDir;

use crate::plan_file::PlanFile;

/// Returns the directory of a plan's file and jobs.
#[must_use]
pub fn plan_dir(project: &Utf8Path, plan: &str) -> Utf8PathBuf {
    project.join(CliqDir::NAME).join("plans").join(plan)
}

/// Returns the directory of an agent's brief, log and journal: a `.cliq` directory of its own.
#[must_use]
pub fn job_dir(project: &Utf8Path, plan: &str, job: u64) -> Utf8PathBuf {
    plan_dir(project, plan).join("jobs").join(job.to_string())
}

/// Returns the file with the assignment of an agent that works in a container or cluster. Exists only for such agents.
pub(crate) fn assignment_file(job_dir: &Utf8Path) -> Utf8PathBuf {
    job_dir.join("assignment.json")
}

/// The most bytes of a plan's file.
const PLAN_LIMIT: u64 = 64 << 20;

/// A plan's file, as it is now.
///
/// # Errors
/// Returns the reason if the file cannot be read or is not a plan.
pub fn read_plan_file(project: &Utf8Path, plan: &str) -> Result<PlanFile, String> {
    let path = plan_dir(project, plan).join("plan.md");
    let bytes = cliq_fs::read_limited(&path, PLAN_LIMIT).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8"))?;
    PlanFile::parse(&text).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(|problem| format!("{path}, {problem}")).collect();
        problems.join("; ")
    })
}
