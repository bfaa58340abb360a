//! `cliq eval add`: a case from a run.

use std::process::ExitCode;

use camino::Utf8Path;
use cliq_eval::{AddedCase, add_case};
use cliq_model::{Run, RunFilter, RunStore};
use cliq_orchestrator::Journal;
use cliq_project::Project;

use crate::failure::Failure;
use crate::gateway::{self, block_on};
use crate::{project, ui};

/// Maximum size of a requirement, in bytes.
const MAX_REQUIREMENT: u64 = 4 << 20;

pub(super) fn run(id: Option<&str>, suite: &Utf8Path, name: Option<&str>) -> Result<ExitCode, Failure> {
    let (project, journal, requirement) = find(id)?;
    let added = add_case(suite, &project, &journal, &requirement, name)?;
    let AddedCase { name, suite, workspace, is_new_suite } = added;
    let verb = if is_new_suite { "created with" } else { "has" };
    ui::line(format!("{suite} {verb} the case {name}"))?;
    match workspace {
        Some(folder) => {
            ui::line(format!("{} has the files that the run started with", suite.with_file_name(folder)))?
        }
        None => ui::warning(
            "the run has no checkpoint from before its first phase: the case starts with an empty workspace",
        ),
    }
    ui::hint(&format!("add checks to the case, then `cliq eval {suite}`"));
    Ok(ExitCode::SUCCESS)
}

/// Finds a run: in this project, then among the runs of the server.
fn find(id: Option<&str>) -> Result<(Project, Journal, String), Failure> {
    let own = project::open().and_then(|project| {
        let recorded = project.recorded_run(id)?;
        let requirement = requirement(&recorded.place)?;
        Ok((project, recorded.journal, requirement))
    });
    let (Err(_), Some(id)) = (&own, id) else { return own };
    let Some(run) = block_on(stored(id))? else {
        return Err(Failure::usage(format!(
            "there is no run `{id}`: neither in this project nor on a server of this home"
        )));
    };
    let project = Project::open(&run.workspace, project::host())
        .map_err(|_| Failure::failed(format!("the workspace of run {} is gone", run.id)))?;
    let recorded = project.recorded_run(Some(run.id.as_str()))?;
    let requirement = requirement(&recorded.place)?;
    Ok((project, recorded.journal, requirement))
}

fn requirement(place: &Utf8Path) -> Result<String, Failure> {
    let text = cliq_fs::read_text(&place.join("requirement.md"), MAX_REQUIREMENT)?;
    Ok(text.trim().to_owned())
}

async fn stored(id: &str) -> Result<Option<Run>, Failure> {
    let store = gateway::open().await?;
    let filter =
        RunFilter { words: RunFilter::words_of(id), limit: 2, with_trials: true, ..RunFilter::default() };
    let mut runs = store.runs(&filter).await?;
    runs.retain(|run| run.id.as_str().ends_with(id) || run.id.as_str().starts_with(id));
    Ok(runs.into_iter().next())
}
