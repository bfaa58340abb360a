//! A message becomes a task: what it asks for is checked, all of it, before anything is stored.

use std::fmt::Write;
use std::sync::Arc;

use cliq_a2a::{
    A2aError, ErrorKind, PipelineRequest, PushConfig, SendRequest, TeamInput, Version, check_inputs, wire,
};
use cliq_http::Guard;
use cliq_runs::{PushRow, PushState, Run, RunId, RunOrigin, RunRequest, StoredTask, TaskRow};
use cliq_workflow::ValidatedWorkflow;
use serde_json::Value;

use super::agent::internal;
use super::options::A2aOptions;
use super::{A2aCaller, builder, follow_up, view};
use crate::app::App;
use crate::clock;
use crate::supervisor::check_repository;

/// The requirement where a message has no text (seed 004: nospec mode).
const NO_REQUIREMENT: &str = "No task was given for this run. Do what your role describes, with the inputs of the run, the files of the workspace and the handoffs of other phases.";
/// The most repositories of a task.
const MAX_REPOS: usize = 20;
/// The most tasks that a message may refer to, and the most characters of the requirement of each that are passed on.
const MAX_REFERENCES: usize = 10;
const MAX_REFERENCE: usize = 4000;

/// Where the task of a message comes from.
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
        return follow_up::answer(app, caller, id, &message).await.map(|found| (found, Origin::FollowUp));
    }
    request.check_content()?;
    let mut pipeline = PipelineRequest::read(&message)?;
    let capability = if options.enable_builder { builder::prepare(&pipeline).transpose()? } else { None };
    let workflow = match capability {
        Some((team, parameters)) => {
            pipeline.requirement = Some(parameters);
            load(app, team)
                .await
                .ok_or_else(|| A2aError::new(ErrorKind::Internal, "the capability is not there"))?
        }
        None => find_team(app, options, pipeline.skill.as_deref()).await?,
    };
    let declared: Vec<TeamInput> = workflow
        .inputs
        .iter()
        .map(|input| TeamInput {
            name: input.name.clone(),
            description: input.description.clone(),
            required: input.required && input.default.is_none(),
        })
        .collect();
    let inputs = check_inputs(&workflow.name, &declared, &pipeline.inputs, options.strict_inputs)?;
    check_repos(&pipeline.repos, &options.repo_hosts)?;
    let requirement = requirement(app, &owner, request, pipeline.requirement).await?;
    let id = RunId::generate();
    let push = match &request.push {
        Some(config) => Some(push_row(options, version, &id, 0, config).await?),
        None => None,
    };
    let workspace = options.workspace_root.join(id.as_str());
    let mut run = Run::new(id.clone(), workflow.name.clone(), RunOrigin::A2a, workspace, clock::now());
    run.caller.clone_from(&caller.0.label);
    run.request = RunRequest {
        team: Some(workflow.name),
        requirement: Some(requirement),
        inputs,
        repos: pipeline.repos,
        keep_workspace: pipeline.keep_workspace,
        ..RunRequest::default()
    };
    let task = TaskRow {
        owner: owner.clone(),
        context_id: message.context_id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string()),
        message_id: message.message_id.clone(),
        messages: Value::Array(vec![wire::write_message(Version::V1_0, &message)]).to_string(),
        updated_at: String::new(),
    };
    app.supervisor.submit_task(run, task, push).await.map_err(|error| internal(&error))?;
    // Where the same message came twice at the same moment, one of them made the task.
    let found =
        app.tasks.task_of_message(&owner, &message.message_id).await.map_err(|error| internal(&error))?;
    let found = found.ok_or_else(|| A2aError::new(ErrorKind::Internal, "the task was removed at once"))?;
    let is_new = found.run.id == id;
    Ok((found, if is_new { Origin::New } else { Origin::Known }))
}

/// The team that a message names. One that is not offered is as one that does not exist.
async fn find_team(
    app: &Arc<App>,
    options: &A2aOptions,
    name: Option<&str>,
) -> Result<ValidatedWorkflow, A2aError> {
    let card =
        app.agent_card().await.map_err(|problem| A2aError::new(ErrorKind::Internal, problem.detail))?;
    let skills =
        card.value["skills"].as_array().into_iter().flatten().filter_map(|skill| skill["id"].as_str());
    let offered: Vec<&str> = skills.collect();
    let list = if offered.is_empty() {
        "it offers none".to_owned()
    } else {
        format!("it offers {}", offered.join(", "))
    };
    let Some(name) = name else {
        return Err(A2aError::wrong(
            "data.team",
            format!("is missing: send a data part {{\"team\": \"@scope/name\"}}; {list}"),
        ));
    };
    let refused = || {
        let shown: String = name.chars().take(100).collect();
        A2aError::wrong("data.team", format!("{shown:?} is no team that this agent offers; {list}"))
    };
    if !options.advertise.includes(name) || !offered.contains(&name) {
        return Err(refused());
    }
    load(app, name).await.ok_or_else(refused)
}

/// A team without errors.
async fn load(app: &App, name: &str) -> Option<ValidatedWorkflow> {
    let (host, name) = (app.options.host.clone(), name.to_owned());
    let load = move || host.find_team(&name).ok().and_then(|found| found.folder.check().workflow);
    tokio::task::spawn_blocking(load).await.ok().flatten()
}

fn check_repos(repos: &[String], hosts: &[String]) -> Result<(), A2aError> {
    let allowed = Guard { allow_private: false, allowed_hosts: hosts.to_vec() };
    let problem = |url: &String| {
        let host = match check_repository(url) {
            Ok(host) => host,
            Err(error) => return Some(error),
        };
        (!hosts.is_empty() && !allowed.allows_host(&host))
            .then(|| format!("repositories of {host} are not allowed (`server.a2a.repo_hosts`)"))
    };
    if repos.len() > MAX_REPOS {
        return Err(A2aError::wrong("data.repos", format!("has more than {MAX_REPOS} repositories")));
    }
    match repos.iter().find_map(problem) {
        Some(error) => Err(A2aError::wrong("data.repos", error)),
        None => Ok(()),
    }
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
        let found = super::agent::find(app, owner, id).await?;
        let asked: String = found
            .run
            .request
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
    let checked = tokio::task::spawn_blocking(move || guard.resolve(&guard.parse(&text)?).map(drop));
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
