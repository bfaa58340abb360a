//! Starting a run by a form made of the team's inputs.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use cliq_model::{Instance, Run, RunSpec, Scope};
use cliq_orchestrator::internals::spawn_blocking;
use cliq_protocol::Budget;
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use crate::graph::graph_of_team;
use crate::layout;
use crate::page::{Page, PageError, show};
use crate::team_cards::cards;
use crate::team_runs::{facts, runs_of};
use crate::teams::roles;
use crate::visitor::Visitor;
use cliq_project::TeamNeeds;
use cliq_supervisor::{NewRun, RunRules};
use cliq_web::{Core, Form, Problem, Query, TeamCard, TeamDocument, find_team, team_cards, team_document};

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
        // Each run is part of the trace of its own request.
        trace: _,
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
    let name = team.trim().to_owned();
    let read = core.blocking(move |host| {
        let teams = team_cards(host)?;
        let agents = host.settings().map(|settings| host.usable_agents(&settings)).unwrap_or_default();
        let chosen = if name.is_empty() {
            None
        } else {
            let (found, checked) = find_team(host, &name)?;
            let picture = checked.workflow.as_ref().map(graph_of_team);
            Some((team_document(&name, &checked), picture, roles(&found, &checked)))
        };
        Ok((teams, agents, chosen))
    });
    let (teams, agents, chosen) = read.await?;
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
        @if chosen.is_none() {
            form.inline method="get" action="/runs/new" { (choice_of_team(&teams, team, None)) button type="submit" { "Choose" } }
            (cards(&teams, true))
        }
        @if let Some((team, picture, roles)) = &chosen {
            div.split {
                section aria-label="Form" { (details(team, &teams, &instances, &agents, given, wrong)) }
                aside.panel aria-label="Graph and roles" {
                    // Part of the form, and behind its button: what is filled in stays, and the key Enter starts the run.
                    div.inline {
                        (choice_of_team(&teams, &team.name, Some("new-run")))
                        button type="submit" form="new-run" name="choose" value="team" formnovalidate { "Choose" }
                    }
                    h2 { a href=(format!("/teams/{}", team.name)) { (team.name) } }
                    @if let Some(figures) = &figures { (facts(figures)) }
                    @if let Some(svg) = picture { div.scroll tabindex="0" role="region" aria-label="Graph of the phases" { (PreEscaped(svg)) } }
                    (roles)
                }
            }
        }
    })
}

/// Choice of a team, as a part of the form with an id if it stands outside of it.
fn choice_of_team(teams: &[TeamCard], chosen: &str, form: Option<&str>) -> Markup {
    html! {
        label for="team" { "Team" }
        select #team name="team" form=[form] required {
            option value="" { "Choose a team" }
            @for other in teams.iter().filter(|team| team.summary.valid) {
                option value=(other.summary.name) selected[other.summary.name == chosen] { (other.summary.name) }
            }
        }
    }
}

/// Problems of a field, beside it. They name the field.
fn problems_of(wrong: Option<&Problem>, field: &str) -> Vec<String> {
    let name = format!("`{field}`");
    let all = wrong.into_iter().flat_map(|problem| problem.errors.iter().chain([&problem.detail]));
    all.filter(|text| text.contains(&name)).cloned().collect()
}

fn shown_problems(field: &str, problems: &[String]) -> Markup {
    html! { @if !problems.is_empty() { p.alert #(format!("{field}-wrong")) role="alert" { (problems.join("; ")) } } }
}

fn details(
    team: &TeamDocument,
    teams: &[TeamCard],
    instances: &[Instance],
    agents: &[String],
    given: &BTreeMap<String, String>,
    wrong: Option<&Problem>,
) -> Markup {
    let card = teams.iter().find(|card| card.summary.name == team.name);
    let missing = card.and_then(|card| card.needs.as_ref()).map(TeamNeeds::missing).unwrap_or_default();
    let wrong_agent = problems_of(wrong, "agent");
    let is_more_open = !missing.is_empty()
        || ["agent", "budget_usd", "max_parallel"].iter().any(|field| !problems_of(wrong, field).is_empty());
    let value = |name: &str| given.get(name).map(String::as_str).unwrap_or_default();
    html! {
        @if let Some(description) = &team.description { p { (description) } }
        @for (title, list) in [("Use it when", &team.use_when), ("Not for", &team.not_for)] {
            @if !list.is_empty() { p.quiet { (title) ": " (list.join("; ")) } }
        }
        form.stack #new-run method="post" action="/runs/new" {
            @if !missing.is_empty() {
                div.warning { p { strong { "This team cannot run here as it is." } } ul { @for why in &missing { li { (why) } } } }
            }
            label for="title" { "Title" }
            input #title name="title" maxlength="200" value=(value("title")) placeholder="the first line of what is to be done";
            label for="requirement" { "What is to be done" }
            textarea #requirement name="requirement" rows="6" { (value("requirement")) }
            @for input in &team.inputs {
                @let field = format!("{INPUT}{}", input.name);
                @let problems = problems_of(wrong, &input.name);
                label for=(field) { (input.name) @if input.required { " (required)" } }
                @if let Some(about) = &input.description { p.hint #(format!("{field}-about")) { (about) } }
                input id=(field) name=(field) required[input.required] value=(value(&field))
                    placeholder=[input.default.as_deref()]
                    aria-invalid=[(!problems.is_empty()).then_some("true")]
                    aria-describedby=[input.description.as_ref().map(|_| format!("{field}-about"))];
                (shown_problems(&field, &problems))
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
            (shown_problems("repos", &problems_of(wrong, "repos")))
            details open[is_more_open] {
                summary { "More" }
                label for="agent" { "Agent for phases that name none" }
                input #agent name="agent" value=(value("agent")) list="agents" placeholder=[agents.first()] aria-invalid=[(!wrong_agent.is_empty()).then_some("true")];
                datalist #agents { @for agent in agents { option value=(agent) {} } }
                p.hint { @if agents.is_empty() { "No model agent can work here: `cliq doctor` on the server says what each lacks." } @else { "Can work here: " (agents.join(", ")) } }
                (shown_problems("agent", &wrong_agent))
                label for="budget_usd" { "Budget in US dollars" }
                input #budget_usd name="budget_usd" inputmode="decimal" value=(value("budget_usd"));
                (shown_problems("budget_usd", &problems_of(wrong, "budget_usd")))
                label for="max_parallel" { "Phases at the same time, at most" }
                input #max_parallel name="max_parallel" inputmode="numeric" value=(value("max_parallel"));
                (shown_problems("max_parallel", &problems_of(wrong, "max_parallel")))
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
    if form_data.get("choose").is_some() {
        let given: BTreeMap<String, String> = form_data.0.into_iter().collect();
        let content = form(&core, &team, &given, None).await?;
        return Ok(layout::page(&visitor, "New run", None, &content).into_response());
    }
    let problem = match start(&core, &form_data, caller.label).await {
        Ok(run) => return Ok(Redirect::to(&format!("/runs/{}", run.id)).into_response()),
        Err(problem) => problem,
    };
    let given: BTreeMap<String, String> = form_data.0.into_iter().collect();
    let content = form(&core, &team, &given, Some(&problem)).await?;
    Ok((problem.status(), layout::page(&visitor, "New run", None, &content)).into_response())
}

async fn start(core: &Core, form: &Form, caller: String) -> Result<Run, Problem> {
    let new = read(form, caller)?;
    check_needs(core, form).await?;
    let checked = core.supervisor.check(new, &RunRules::for_token()).await?;
    Ok(core.supervisor.submit(checked).await?)
}

/// Refuses a run that would fail at once for want of an agent or a program. The settings of its project count.
async fn check_needs(core: &Core, form: &Form) -> Result<(), Problem> {
    let Some(team) = form.get("team").map(str::to_owned) else { return Ok(()) };
    let agent = form.get("agent").map(str::to_owned);
    let host = core.host().clone();
    let settings = match form.get("instance") {
        None => host.settings().ok(),
        Some(id) => {
            let instances = core.runs.instances().await?;
            match instances.iter().find(|instance| instance.id == id) {
                Some(instance) => core.open_project(instance).await?.settings().ok(),
                None => None,
            }
        }
    };
    // What is wrong with a team, a project or its settings is said by the check of the request.
    let Some(settings) = settings else { return Ok(()) };
    let needs = spawn_blocking(move || {
        let (_, checked) = find_team(&host, &team).ok()?;
        Some(host.needs(checked.workflow.as_ref()?, &settings, agent.as_deref()))
    });
    let needs = needs.await.map_err(|error| Problem::unavailable(error.to_string()))?.unwrap_or_default();
    let missing = needs.missing();
    if missing.is_empty() {
        return Ok(());
    }
    let of_agents = needs.missing_agents.len();
    let at_field = |(n, why): (usize, String)| if n < of_agents { format!("`agent`: {why}") } else { why };
    let errors = missing.into_iter().enumerate().map(at_field).collect();
    Err(Problem::unprocessable("the team cannot run here as it is", errors))
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
        trace: None,
        max_parallel: number("max_parallel")?,
        budget: Budget {
            tokens: None,
            usd: usd.map_err(|_| Problem::unprocessable("`budget_usd` is a number", Vec::new()))?,
        },
        sandbox: None,
    };
    Ok(NewRun::new(spec).with_instance(text("instance")).with_caller(caller))
}
