//! Starting a run by a form made of the team's inputs.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use cliq_model::{Instance, Run, RunSpec, Scope};
use cliq_protocol::Budget;
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use crate::graph::graph_of_team;
use crate::layout;
use crate::page::{Page, PageError, show};
use crate::team_runs::{facts, runs_of};
use crate::teams::roles;
use crate::visitor::Visitor;
use cliq_supervisor::{NewRun, RunRules};
use cliq_web::{Core, Form, Problem, Query, TeamDocument, find_team, list_teams, team_document};

/// Prefix of the names of input fields.
const INPUT: &str = "input.";

#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    team: String,
    /// Run whose request fills the form.
    like: Option<String>,
}

/// The form.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Query(choice): Query<Choice>,
) -> Page {
    visitor.demand(Scope::Run)?;
    let (team, given) = match &choice.like {
        Some(id) => like(&core.run(id).await?),
        None => (choice.team, BTreeMap::new()),
    };
    let content = form(&core, &team, &given, None).await?;
    show(&visitor, "New run", "", &content)
}

/// Returns the team and the fields of a run, for another one with changes.
fn like(run: &Run) -> (String, BTreeMap<String, String>) {
    let RunSpec {
        // That of the run, which is known without a name too.
        team: _,
        title,
        requirement,
        inputs,
        agent,
        max_parallel,
        budget,
        repos,
        // No field of the form.
        sandbox: _,
    } = &run.request.spec;
    let mut given: BTreeMap<String, String> =
        inputs.iter().map(|(name, value)| (format!("{INPUT}{name}"), value.clone())).collect();
    let mut add =
        |name: &str, value: Option<String>| given.extend(value.map(|value| (name.to_owned(), value)));
    add("title", title.clone());
    add("requirement", requirement.clone());
    add("instance", run.instance.clone());
    add("repos", Some(repos.join("\n")));
    add("agent", agent.clone());
    add("budget_usd", budget.usd.map(|usd| usd.to_string()));
    add("max_parallel", max_parallel.map(|n| n.to_string()));
    (run.team.to_string(), given)
}

async fn form(
    core: &Arc<Core>,
    team: &str,
    given: &BTreeMap<String, String>,
    wrong: Option<&Problem>,
) -> Result<Markup, Problem> {
    let (host, name) = (core.host().clone(), team.trim().to_owned());
    let read = tokio::task::spawn_blocking(move || {
        let teams = list_teams(&host)?;
        let chosen = if name.is_empty() {
            None
        } else {
            let (found, checked) = find_team(&host, &name)?;
            let picture = checked.workflow.as_ref().map(graph_of_team);
            Some((team_document(&name, &checked), picture, roles(&found, &checked)))
        };
        Ok::<_, Problem>((teams, chosen))
    });
    let (teams, chosen) = read.await.map_err(|error| Problem::unavailable(error.to_string()))??;
    let instances = core.runs.instances().await?;
    let figures = match &chosen {
        Some((team, ..)) => Some(runs_of(core, &team.name).await?.1),
        None => None,
    };
    Ok(html! {
        h1 { "New run" }
        @if let Some(problem) = wrong {
            div.warning role="alert" {
                p { (problem.detail) }
                @if !problem.errors.is_empty() { ul { @for error in &problem.errors { li { (error) } } } }
            }
        }
        form.inline method="get" action="/runs/new" {
            label for="team" { "Team" }
            select #team name="team" required {
                option value="" { "Choose a team" }
                @for other in teams.iter().filter(|team| team.valid) {
                    option value=(other.name) selected[other.name == team] { (other.name) }
                }
            }
            button type="submit" { "Choose" }
        }
        @if let Some((team, picture, roles)) = &chosen {
            div.split {
                section aria-label="Form" { (details(team, &instances, given)) }
                aside.panel aria-label="Team" {
                    h2 { a href=(format!("/teams/{}", team.name)) { (team.name) } }
                    @if let Some(figures) = &figures { (facts(figures)) }
                    @if let Some(svg) = picture { div.scroll tabindex="0" role="region" aria-label="Graph of the phases" { (PreEscaped(svg)) } }
                    (roles)
                }
            }
        }
    })
}

fn details(team: &TeamDocument, instances: &[Instance], given: &BTreeMap<String, String>) -> Markup {
    let value = |name: &str| given.get(name).map(String::as_str).unwrap_or_default();
    html! {
        @if let Some(description) = &team.description { p { (description) } }
        @for (title, list) in [("Use it when", &team.use_when), ("Not for", &team.not_for)] {
            @if !list.is_empty() { p.quiet { (title) ": " (list.join("; ")) } }
        }
        form.stack method="post" action="/runs/new" {
            input type="hidden" name="team" value=(team.name);
            label for="title" { "Title" }
            input #title name="title" maxlength="200" value=(value("title")) placeholder="the first line of what is to be done";
            label for="requirement" { "What is to be done" }
            textarea #requirement name="requirement" rows="6" { (value("requirement")) }
            @for input in &team.inputs {
                @let field = format!("{INPUT}{}", input.name);
                label for=(field) { (input.name) @if input.required { " (required)" } }
                @if let Some(about) = &input.description { p.hint #(format!("{field}-about")) { (about) } }
                input id=(field) name=(field) required[input.required] value=(value(&field))
                    placeholder=[input.default.as_deref()]
                    aria-describedby=[input.description.as_ref().map(|_| format!("{field}-about"))];
            }
            label for="instance" { "Where" }
            select #instance name="instance" {
                option value="" { "A fresh workspace" }
                @for instance in instances {
                    option value=(instance.id) selected[instance.id == value("instance")] { (instance.path) }
                }
            }
            label for="repos" { "Repositories for a fresh workspace, one per line" }
            textarea #repos name="repos" rows="2" { (value("repos")) }
            details {
                summary { "More" }
                label for="agent" { "Agent for phases that name none" }
                input #agent name="agent" value=(value("agent"));
                label for="budget_usd" { "Budget in US dollars" }
                input #budget_usd name="budget_usd" inputmode="decimal" value=(value("budget_usd"));
                label for="max_parallel" { "Phases at the same time, at most" }
                input #max_parallel name="max_parallel" inputmode="numeric" value=(value("max_parallel"));
            }
            button.primary type="submit" { "Start" }
        }
    }
}

/// Starts the run and shows it; a wrong form is shown again with what is wrong.
pub(super) async fn submit(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    form_data: Form,
) -> Result<Response, PageError> {
    let caller = visitor.demand(Scope::Run)?.clone();
    let team = form_data.get("team").unwrap_or_default().to_owned();
    let problem = match start(&core, &form_data, caller.label).await {
        Ok(run) => return Ok(Redirect::to(&format!("/runs/{}", run.id)).into_response()),
        Err(problem) => problem,
    };
    let given: BTreeMap<String, String> = form_data.0.into_iter().collect();
    let content = form(&core, &team, &given, Some(&problem)).await?;
    Ok((problem.status(), layout::page(&visitor, "New run", None, &content)).into_response())
}

async fn start(core: &Core, form: &Form, caller: String) -> Result<Run, Problem> {
    let checked = core.supervisor.check(read(form, caller)?, &RunRules::for_token()).await?;
    Ok(core.supervisor.submit(checked).await?)
}

fn read(form: &Form, caller: String) -> Result<NewRun, Problem> {
    let text = |name: &str| form.get(name).map(str::to_owned);
    let number = |name: &str| {
        form.get(name)
            .map(str::parse)
            .transpose()
            .map_err(|_| Problem::unprocessable(format!("`{name}` is a whole number"), Vec::new()))
    };
    let usd = form.get("budget_usd").map(str::parse).transpose();
    let inputs = form.0.iter().filter_map(|(key, value)| {
        let name = key.strip_prefix(INPUT)?;
        (!value.is_empty()).then(|| (name.to_owned(), value.clone()))
    });
    let spec = RunSpec {
        team: text("team"),
        title: text("title"),
        // Browsers send line breaks as two characters.
        requirement: text("requirement").map(|text| text.replace("\r\n", "\n")),
        inputs: inputs.collect(),
        repos: text("repos").iter().flat_map(|text| text.split_whitespace().map(str::to_owned)).collect(),
        agent: text("agent"),
        max_parallel: number("max_parallel")?,
        budget: Budget {
            tokens: None,
            usd: usd.map_err(|_| Problem::unprocessable("`budget_usd` is a number", Vec::new()))?,
        },
        sandbox: None,
    };
    Ok(NewRun::new(spec).with_instance(text("instance")).with_caller(caller))
}
