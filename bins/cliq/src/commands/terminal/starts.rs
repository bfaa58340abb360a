//! Places and teams for a new run.

use std::collections::BTreeMap;

use camino::Utf8Path;
use cliq_project::{Host, Project, Settings};
use cliq_terminal::{InputOffer, Offers, TeamOffer};
use cliq_workflow::ValidatedWorkflow;

/// Returns places and teams. The project of the chosen run comes first, then that of the directory in which the program was started.
pub(super) fn offers(
    host: &Host,
    near: Option<&Utf8Path>,
    here: Option<&Utf8Path>,
) -> Result<Offers, String> {
    let mut projects: Vec<String> = Vec::new();
    let registered = host.registered_projects();
    // The list may be empty: any directory can be written.
    for place in near.into_iter().chain(here).chain(registered.iter().map(AsRef::as_ref)) {
        if !projects.iter().any(|known| known.as_str() == place.as_str()) {
            projects.push(place.to_string());
        }
    }
    let mut assembled = BTreeMap::new();
    for place in &projects {
        if let Some(team) = assembled_in(host, place) {
            assembled.insert(place.clone(), team);
        }
    }
    let settings = Settings::load(host.home.as_deref(), None).map_err(|error| error.to_string())?;
    let first = projects.first().map_or(".", String::as_str);
    let listed = host.list_teams(Utf8Path::new(first)).map_err(|error| error.to_string())?;
    let mut teams = Vec::new();
    for team in listed.into_iter().filter(|team| team.valid) {
        let reference = team.path.map_or_else(|| team.name.clone(), |path| path.to_string());
        let Some(workflow) = host.find_team(&reference).ok().and_then(|found| found.folder.check().workflow)
        else {
            continue;
        };
        teams.push(offer(host, Some(reference), &workflow, &settings));
    }
    Ok(Offers { projects, assembled, teams })
}

fn assembled_in(host: &Host, place: &str) -> Option<TeamOffer> {
    let project = Project::open(place.into(), host.clone()).ok()?;
    let (workflow, settings) = (project.workflow().ok()?, project.settings().ok()?);
    Some(offer(host, None, &workflow, &settings))
}

fn offer(
    host: &Host,
    reference: Option<String>,
    workflow: &ValidatedWorkflow,
    settings: &Settings,
) -> TeamOffer {
    let inputs = workflow.inputs.iter().map(|input| InputOffer {
        name: input.name.clone(),
        help: input.description.clone(),
        default: input.default.clone(),
        is_required: input.required && input.default.is_none(),
        choices: Vec::new(),
    });
    TeamOffer {
        reference,
        name: workflow.name.to_string(),
        inputs: inputs.collect(),
        missing: host.needs(workflow, settings, None).missing(),
    }
}
