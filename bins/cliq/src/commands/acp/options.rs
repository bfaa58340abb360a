//! Options of a session: team, agent and sandbox of the next run.

use std::collections::BTreeSet;

use cliq_acp::schema::{SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption};
use cliq_agents::{ModelAgent, Usable};
use cliq_project::{Profile, Settings, TeamSource};

use super::sessions::OpenSession;
use crate::failure::Failure;

/// Ids of the options.
const TEAM: &str = "team";
const AGENT: &str = "agent";
const SANDBOX: &str = "sandbox";
/// Value of an option that is not set.
const DEFAULT: &str = "default";

/// Returns the options of a session with their values.
pub(super) fn of(session: &OpenSession) -> Vec<SessionConfigOption> {
    let record = &session.record;
    let value = |set: Option<&str>| set.unwrap_or(DEFAULT).to_owned();
    vec![
        SessionConfigOption::select(TEAM, "Team", value(record.team.as_deref()), teams(session))
            .description("Team of the next run".to_owned())
            .category(SessionConfigOptionCategory::Mode),
        SessionConfigOption::select(AGENT, "Agent", value(record.agent.as_deref()), agents(session))
            .description("Agent for phases that name none".to_owned())
            .category(SessionConfigOptionCategory::Model),
        SessionConfigOption::select(
            SANDBOX,
            "Sandbox",
            value(record.sandbox.map(Profile::as_str)),
            sandboxes(),
        )
        .description(
            "Profile around all agents and commands. Settings and team can make it stricter.".to_owned(),
        ),
    ]
}

/// Sets an option, which counts for the next run.
pub(super) fn set(session: &mut OpenSession, option: &str, value: &str) -> Result<(), Failure> {
    let choices = match option {
        TEAM => teams(session),
        AGENT => agents(session),
        SANDBOX => sandboxes(),
        _ => {
            return Err(Failure::usage(format!("there is no option `{option}`"))
                .hint(format!("the options are: {TEAM}, {AGENT}, {SANDBOX}")));
        }
    };
    let names: Vec<String> = choices.iter().map(|choice| choice.value.to_string()).collect();
    if !names.iter().any(|name| name == value) {
        return Err(Failure::usage(format!("`{value}` is not a value of the option `{option}`"))
            .hint(format!("the values are: {}", names.join(", "))));
    }
    let chosen = (value != DEFAULT).then(|| value.to_owned());
    session.change(|record| match option {
        TEAM => record.team = chosen,
        AGENT => record.agent = chosen,
        _ => record.sandbox = chosen.as_deref().and_then(Profile::parse),
    })
}

/// Choices of teams: the assembled one, and those that can be assembled.
fn teams(session: &OpenSession) -> Vec<SessionConfigSelectOption> {
    let project = &session.project;
    let assembled = match project.workflow() {
        Ok(workflow) => format!("{} (assembled)", workflow.name),
        Err(_) if project.has_team() => "the assembled team, which has errors".to_owned(),
        Err(_) => "none assembled".to_owned(),
    };
    let mut choices = vec![SessionConfigSelectOption::new(DEFAULT, assembled)];
    let mut seen = BTreeSet::new();
    let listed = project.host().list_teams(project.dir().workspace()).unwrap_or_default();
    for team in listed.into_iter().filter(|team| team.valid) {
        if !seen.insert(team.name.clone()) {
            continue;
        }
        let reference = match (&team.path, team.source) {
            (Some(path), TeamSource::Here) => path.to_string(),
            _ => team.name.clone(),
        };
        choices.push(SessionConfigSelectOption::new(reference, team.name).description(team.description));
    }
    choices
}

/// Choices of agents: the default, and those that can work here.
fn agents(session: &OpenSession) -> Vec<SessionConfigSelectOption> {
    let host = session.project.host();
    let settings = session.project.settings().unwrap_or_else(|_| Settings::default());
    let default = match host.default_agent(&settings) {
        Some(name) => format!("default ({name})"),
        None => "default (none is set up)".to_owned(),
    };
    let usable = |agent: &ModelAgent| matches!(agent.usable(&settings, &host.environment), Usable::Yes(_));
    let models = ModelAgent::all(&settings).into_iter().filter(usable).map(|agent| agent.name);
    let mut names: BTreeSet<String> = models.chain(host.agents_outside_teams()).collect();
    names.remove(DEFAULT);
    let named = names.into_iter().map(|name| SessionConfigSelectOption::new(name.clone(), name));
    std::iter::once(SessionConfigSelectOption::new(DEFAULT, default)).chain(named).collect()
}

fn sandboxes() -> Vec<SessionConfigSelectOption> {
    let choice = |value: &str, text: &str| {
        SessionConfigSelectOption::new(value.to_owned(), value.to_owned()).description(text.to_owned())
    };
    vec![
        choice(DEFAULT, "by the settings and the team"),
        choice(Profile::Off.as_str(), "no sandbox"),
        choice(Profile::Workspace.as_str(), "writes to the workspace"),
        choice(Profile::Strict.as_str(), "reads and writes the workspace only, no network"),
    ]
}
