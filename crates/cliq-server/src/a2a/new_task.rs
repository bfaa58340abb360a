//! A message becomes a task: what it asks for is checked, all of it, before anything is stored.

use std::fmt::Write;
use std::sync::Arc;

use cliq_a2a::{A2aError, ErrorKind, PipelineRequest, PushConfig, SendRequest, Version, Violation, wire};
use cliq_model::{PushRow, PushState, RunSpec, StoredTask, TaskRow};
use cliq_orchestrator::internals::spawn_blocking;
use cliq_protocol::RunId;
use cliq_supervisor::internals::clock;
use cliq_supervisor::{AllowedTeams, InputErrors, NewRun, RequestError, RunRules, ValueError};
use serde_json::Value;

use super::lookup::internal;
use super::options::A2aOptions;
use super::{A2aCaller, builder, follow_up, view};
use crate::app::App;

/// The requirement where a message has no text.
const NO_REQUIREMENT: &str = "No task was given for this run. Do what your role describes, with the inputs of the run, the files of the workspace and the handoffs of other phases.";
/// The most tasks that a message may refer to, and the most characters of the requirement of each that are passed on.
const MAX_REFERENCES: usize = 10;
const MAX_REFERENCE: usize = 4000;

/// Relation between a message and its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The message made it.
    New,
    /// The same message made it before.
    Known,
    /// The message answered a question of it.
    FollowUp,
}

/// The task of a message: a new one, the one that the same message made before, or the one whose question it answers.
pub(super) async fn start(
    app: &Arc<App>,
    options: &A2aOptions,
    caller: &A2aCaller,
    version: Version,
    request: &SendRequest,
) -> Result<(StoredTask, Origin), A2aError> {
    let (owner, mut message) = (caller.owner(), request.message.clone());
    if message.message_id.is_empty() {
        message.message_id = uuid::Uuid::now_v7().to_string();
    }
    if let Some(found) =
        app.tasks.task_of_message(&owner, &message.message_id).await.map_err(|error| internal(&error))?
    {
        return Ok((found, Origin::Known));
    }
    if let Some(id) = &message.task_id {
        return follow_up::pass(app, caller, id, &message).await.map(|found| (found, Origin::FollowUp));
    }
    request.check_content()?;
    let pipeline = PipelineRequest::read(&message)?;
    let capability = if options.enable_builder { builder::prepare(&pipeline).transpose()? } else { None };
    let requirement = |text| requirement(app, &owner, request, text);
    let (team, teams, text) = match capability {
        Some((team, parameters)) => {
            (Some(team.to_owned()), AllowedTeams::Chosen(team.to_owned()), Some(parameters))
        }
        None => {
            let card = app.agent_card().await;
            let card = card.map_err(|problem| A2aError::new(ErrorKind::Internal, problem.detail))?;
            let only = || card.teams.first().filter(|_| card.teams.len() == 1).cloned();
            let team = pipeline.skill.or_else(|| options.default_team.clone()).or_else(only);
            (team, AllowedTeams::Listed(card.teams.clone()), pipeline.requirement)
        }
    };
    let offered = if let AllowedTeams::Listed(teams) = &teams { teams.clone() } else { Vec::new() };
    let spec = RunSpec {
        team,
        requirement: Some(requirement(text).await?),
        inputs: pipeline.inputs,
        repos: pipeline.repos,
        trace: crate::trace::incoming(),
        ..RunSpec::default()
    };
    let new = NewRun::new(spec).with_kept_workspace(pipeline.keep_workspace).with_caller(&caller.0.label);
    let rules = RunRules::for_delegation(teams, options.strict_inputs);
    let checked = app.core.supervisor.check(new, &rules).await;
    let checked = checked.map_err(|error| refusal(error, &offered))?;
    let id = checked.id().clone();
    let push = match &request.push {
        Some(config) => Some(push_row(options, version, &id, 0, config).await?),
        None => None,
    };
    let task = TaskRow {
        owner: owner.clone(),
        context_id: message.context_id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string()),
        message_id: message.message_id.clone(),
        messages: Value::Array(vec![wire::write_message(Version::V1_0, &message)]).to_string(),
        updated_at: clock::now(),
    };
    app.core.supervisor.submit_delegated(checked, task, push).await.map_err(|error| internal(&error))?;
    // Where the same message came twice at the same moment, one of them made the task.
    let found =
        app.tasks.task_of_message(&owner, &message.message_id).await.map_err(|error| internal(&error))?;
    let found = found.ok_or_else(|| A2aError::new(ErrorKind::Internal, "the task was removed at once"))?;
    let is_new = found.run.id == id;
    Ok((found, if is_new { Origin::New } else { Origin::Known }))
}

/// Translates the refusal of a run. `offered` are the teams that the caller may name.
fn refusal(error: RequestError, offered: &[String]) -> A2aError {
    let offer = if offered.is_empty() {
        "it offers none".to_owned()
    } else {
        format!("it offers {}", offered.join(", "))
    };
    match error {
        RequestError::TeamMissing => A2aError::wrong(
            "data.team",
            format!("is missing: send a data part {{\"team\": \"@scope/name\"}}; {offer}"),
        ),
        RequestError::NotOffered { name } => {
            let name: String = name.chars().take(100).collect();
            A2aError::wrong("data.team", format!("{name:?} is not offered by this agent; {offer}"))
        }
        RequestError::Values(errors) => A2aError::invalid(errors.iter().map(violation)),
        RequestError::Inputs(errors) => input_refusal(&errors),
        RequestError::Store(error) => internal(&error),
        other => {
            tracing::error!(error = %other, "cannot check the run of a task");
            A2aError::new(ErrorKind::Internal, "the run cannot be checked at the moment; try again later")
        }
    }
}

fn violation(error: &ValueError) -> Violation {
    let field = match error {
        ValueError::Repository(_) | ValueError::RepositoryHost(_) | ValueError::TooManyRepositories => {
            "data.repos"
        }
        _ => "data.inputs",
    };
    Violation { field: field.to_owned(), description: error.to_string() }
}

fn input_refusal(errors: &InputErrors) -> A2aError {
    let team = &errors.team;
    let missing = errors.missing.iter().map(|input| {
        let about = input.description.as_ref().map(|about| format!(" ({about})")).unwrap_or_default();
        Violation {
            field: format!("data.inputs.{}", input.name),
            description: format!("is missing: {team} needs it{about}"),
        }
    });
    let declared = if errors.declared.is_empty() {
        "it takes none".to_owned()
    } else {
        format!("it takes {}", errors.declared.join(", "))
    };
    let unknown = errors.unknown.iter().map(|name| Violation {
        field: format!("data.inputs.{name}"),
        description: format!("is not an input of {team}: {declared}"),
    });
    let error = A2aError::invalid(missing.chain(unknown));
    if errors.missing.is_empty() {
        return error;
    }
    let names: Vec<&str> = errors.missing.iter().map(|input| input.name.as_str()).collect();
    error.with("missing", names.join(", "))
}

/// The requirement of the team: the text of the message, and what became of the tasks that it refers to.
async fn requirement(
    app: &App,
    owner: &str,
    request: &SendRequest,
    text: Option<String>,
) -> Result<String, A2aError> {
    let mut requirement = text.unwrap_or_else(|| NO_REQUIREMENT.to_owned());
    let references = &request.message.reference_task_ids;
    if references.len() > MAX_REFERENCES {
        let description = format!("has more than {MAX_REFERENCES} tasks");
        return Err(A2aError::wrong("message.referenceTaskIds", description));
    }
    for id in references {
        let found = super::lookup::find(app, owner, id).await?;
        let asked: String = found
            .run
            .request
            .spec
            .requirement
            .as_deref()
            .unwrap_or_default()
            .chars()
            .take(MAX_REFERENCE)
            .collect();
        let state = view::state_of(found.run.life.state);
        let reason = found.run.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let _ = write!(
            requirement,
            "\n\n## Earlier task {id}\n\nTeam {}, {state:?}{reason}. Its requirement was:\n\n{asked}",
            found.run.team
        );
    }
    Ok(requirement)
}

/// A receiver of push notifications. Its address is resolved now, and again at each delivery.
pub(super) async fn push_row(
    options: &A2aOptions,
    version: Version,
    task: &RunId,
    after: i64,
    config: &PushConfig,
) -> Result<PushRow, A2aError> {
    let (guard, text) = (options.push_guard.clone(), config.url.clone());
    let checked = spawn_blocking(move || guard.resolve(&guard.parse(&text)?).map(drop));
    let checked = checked.await.map_err(|error| A2aError::new(ErrorKind::Internal, error.to_string()))?;
    checked.map_err(|error| {
        A2aError::wrong("url", format!("{error}: push notifications go to public addresses"))
    })?;
    Ok(PushRow {
        task_id: task.clone(),
        id: config.id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string()),
        protocol: version.as_str().to_owned(),
        url: config.url.clone(),
        token: config.token.clone(),
        scheme: config.authentication.as_ref().map(|authentication| authentication.scheme.clone()),
        credentials: config
            .authentication
            .as_ref()
            .and_then(|authentication| authentication.credentials.clone()),
        event: after,
        part: 0,
        state: PushState::Active,
        attempts: 0,
        failing_since: None,
        next_at: clock::now(),
        reason: None,
        version: 0,
    })
}
