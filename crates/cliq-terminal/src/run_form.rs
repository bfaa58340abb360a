//! The form that starts a run.

use crate::form::{Field, FormState};
use crate::model::{Offers, TeamOffer};
use crate::source::Action;

/// Option for a directory that is not in the list.
const OTHER: &str = "another directory";

/// Teams that a project offers: the assembled one first.
fn teams<'a>(offers: &'a Offers, project: &str) -> Vec<&'a TeamOffer> {
    offers.assembled.get(project).into_iter().chain(&offers.teams).collect()
}

fn label(team: &TeamOffer) -> String {
    if team.reference.is_none() { format!("{} (assembled)", team.name) } else { team.name.clone() }
}

/// Fields for a project and a team by their numbers. `requirement` is the text so far.
pub(crate) fn fields(offers: &Offers, project: usize, team: usize) -> Vec<Field> {
    let name = offers.projects.get(project).map_or("", String::as_str);
    let teams = teams(offers, name);
    let team = team.min(teams.len().saturating_sub(1));
    let mut places = offers.projects.clone();
    places.push(OTHER.to_owned());
    let mut fields = vec![Field::choice("project", "project", places, project)];
    if project == offers.projects.len() {
        let help = "it becomes a project if it is none";
        fields.push(Field::line("directory", "directory", "").required(true).helped(Some(help)));
    }
    fields.extend([
        Field::choice("team", "team", teams.iter().map(|team| label(team)).collect(), team),
        Field::lines("requirement", "requirement", "").required(true),
    ]);
    if let Some(team) = teams.get(team) {
        if !team.missing.is_empty() {
            let missing = format!("cannot run here: {}", team.missing.join("; "));
            if let Some(field) = fields.iter_mut().find(|field| field.id == "team") {
                field.help = Some(missing);
            }
        }
        let assembled = offers.assembled.get(name).filter(|_| team.reference.is_some());
        if let Some(assembled) = assembled
            && let Some(field) = fields.iter_mut().find(|field| field.id == "team" && field.help.is_none())
        {
            field.help = Some(format!("replaces {}, which is assembled there", assembled.name));
        }
        for input in &team.inputs {
            let id = format!("input:{}", input.name);
            let default = input.default.as_deref().unwrap_or_default();
            let field = if input.choices.is_empty() {
                Field::line(&id, &input.name, default)
            } else {
                let at = input.choices.iter().position(|choice| choice == default).unwrap_or(0);
                Field::choice(&id, &input.name, input.choices.clone(), at)
            };
            fields.push(field.required(input.is_required).helped(input.help.as_deref()));
        }
    }
    fields
}

/// Returns the run that a form describes.
///
/// # Errors
/// Returns the problems of the fields.
pub(crate) fn action(form: &FormState, offers: &Offers) -> Result<Action, Vec<String>> {
    let typed = form.field("directory").map(|_| form.text("directory").trim().to_owned());
    let is_missing = typed.as_ref().is_some_and(String::is_empty);
    let project = typed.unwrap_or_else(|| form.text("project"));
    let teams = teams(offers, &form.text("project"));
    let Some(team) = form.chosen("team").and_then(|at| teams.get(at)) else {
        return Err(vec!["there is no team: install one, or assemble one in the project".to_owned()]);
    };
    let mut problems: Vec<String> =
        team.missing.iter().map(|what| format!("{} cannot run here: {what}", team.name)).collect();
    if is_missing {
        problems.push("the directory is empty: write its path".to_owned());
    }
    let requirement = form.text("requirement").trim().to_owned();
    if requirement.is_empty() {
        problems.push("the requirement is empty: write the task of the team".to_owned());
    }
    let mut inputs = Vec::new();
    for input in &team.inputs {
        let value = form.text(&format!("input:{}", input.name));
        if value.is_empty() {
            if input.is_required {
                problems.push(format!("{} is required", input.name));
            }
        } else if Some(&value) != input.default.as_ref() {
            inputs.push((input.name.clone(), value));
        }
    }
    if problems.is_empty() {
        Ok(Action::Start { project, team: team.reference.clone(), requirement, inputs })
    } else {
        Err(problems)
    }
}
