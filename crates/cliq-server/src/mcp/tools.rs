//! Tools of a caller, with the schemas of their arguments.

use std::sync::Arc;

use cliq_mcp::HttpTool;
use cliq_model::Scope;
use cliq_orchestrator::internals::spawn_blocking;
use cliq_project::Host;
use cliq_web::{Core, find_team, list_teams, team_document};
use serde_json::{Map, Value, json};

use super::text_of;

/// Prefix of the tools that start a run of a team.
const TEAM: &str = "team_";

/// Tool that does not depend on teams: name, scope, whether it changes nothing, description, properties, required properties.
type Fixed = (&'static str, Scope, bool, &'static str, fn() -> Value, &'static [&'static str]);

fn run_id() -> Value {
    json!({"run_id": {"type": "string", "description": "Id of the run."}})
}

fn with_run(mut more: Value) -> Value {
    more["run_id"] = run_id()["run_id"].clone();
    more
}

const FIXED: &[Fixed] = &[
    (
        "run_list",
        Scope::Read,
        true,
        "Lists runs, newest first: id, title, team, state, reason.",
        || {
            json!({
                "query": {"type": "string", "description": "Words of the title, team, reason or id."},
                "state": {"type": "string", "enum": ["queued", "starting", "running", "waiting", "completed", "escalated", "failed", "cancelled"]},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "Default: 20."},
            })
        },
        &[],
    ),
    (
        "run_status",
        Scope::Read,
        true,
        "Returns the state of a run with its phases, gate verdicts, the review it waits for, and what it cost.",
        run_id,
        &["run_id"],
    ),
    (
        "run_wait",
        Scope::Read,
        true,
        "Waits until a run ends or needs a person, at most `seconds`, and returns its state. Reports progress.",
        || {
            with_run(json!({
                "seconds": {"type": "integer", "minimum": 1, "maximum": 3600, "description": "Default: 600."},
            }))
        },
        &["run_id"],
    ),
    (
        "run_result",
        Scope::Read,
        true,
        "Returns what a run delivered: handoffs between its phases, and the files it changed.",
        run_id,
        &["run_id"],
    ),
    (
        "run_file",
        Scope::Read,
        true,
        "Reads a file, or lists a directory, of the workspace of a run.",
        || {
            with_run(json!({
                "path": {"type": "string", "description": "Path in the workspace. Default: the workspace itself."},
            }))
        },
        &["run_id"],
    ),
    (
        "run_steer",
        Scope::Run,
        false,
        "Sends guidance to the agents of a run that has not ended: an addition to their task.",
        || {
            with_run(json!({
                "text": {"type": "string"},
                "phase": {"type": "string", "description": "Phase that receives it. Default: every phase."},
            }))
        },
        &["run_id", "text"],
    ),
    ("run_cancel", Scope::Run, false, "Cancels a run.", run_id, &["run_id"]),
    (
        "review_list",
        Scope::Read,
        true,
        "Lists reviews that wait for a person: subject, reviewers, phases that can be asked for changes.",
        || json!({}),
        &[],
    ),
    (
        "review_answer",
        Scope::Run,
        false,
        "Answers a review in the name of a reviewer. Ask the person first.",
        || {
            json!({
                "review_id": {"type": "string"},
                "decision": {"type": "string", "enum": ["approve", "request_changes", "reject"]},
                "reason": {"type": "string", "description": "Needed for a request for changes."},
                "to": {"type": "string", "description": "Phase that makes the changes, if there are several."},
                "reviewer": {"type": "string", "description": "Name of the reviewer, if several are asked."},
                "inputs": {"type": "object", "description": "Values of the form."},
            })
        },
        &["review_id", "decision"],
    ),
    (
        "plan_status",
        Scope::Read,
        true,
        "Returns the plans of registered projects: state, waves, tasks, questions.",
        || {
            json!({
                "plan": {"type": "string", "description": "Name of one plan. Default: all."},
            })
        },
        &[],
    ),
    (
        "signal_list",
        Scope::Read,
        true,
        "Lists the newest signals of plans.",
        || {
            json!({
                "plan": {"type": "string"},
                "status": {"type": "string", "enum": ["pending", "processing", "done", "failed"]},
                "limit": {"type": "integer", "minimum": 1, "maximum": 200},
            })
        },
        &[],
    ),
    (
        "signal_create",
        Scope::Run,
        false,
        "Puts a signal into the queue of a plan.",
        || {
            json!({
                "project": {"type": "string", "description": "Id of the registered project."},
                "plan": {"type": "string"},
                "type": {"type": "string", "description": "Such as `implement_finished`. A wrong one is refused with the list of all."},
                "payload": {"type": "object"},
            })
        },
        &["project", "plan", "type"],
    ),
];

/// Returns the scope that a tool demands, or `None` if there is no such tool.
pub(super) fn scope_of(name: &str) -> Option<Scope> {
    if name.starts_with(TEAM) {
        return Some(Scope::Run);
    }
    FIXED.iter().find(|tool| tool.0 == name).map(|tool| tool.1)
}

/// Returns the tools for a scope.
pub(super) async fn list(core: &Arc<Core>, scope: Scope) -> Result<Vec<HttpTool>, String> {
    let mut tools: Vec<HttpTool> = FIXED
        .iter()
        .filter(|tool| tool.1 <= scope)
        .map(|(name, _, is_read_only, description, properties, required)| HttpTool {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            schema: object(&properties(), required),
            is_read_only: *is_read_only,
        })
        .collect();
    if scope >= Scope::Run {
        let host = core.host().clone();
        let teams = spawn_blocking(move || teams(&host)).await;
        tools.extend(teams.map_err(|error| error.to_string())??);
    }
    Ok(tools)
}

fn object(properties: &Value, required: &[&str]) -> Map<String, Value> {
    let schema = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Name of the tool of a team: `@cliq/code` is `team_cliq_code`.
fn tool_name(team: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    format!("{TEAM}{}", team.trim_start_matches('@').chars().map(plain).collect::<String>())
}

/// Finds the team of a tool.
pub(super) fn team_of(host: &Host, tool: &str) -> Result<String, String> {
    let teams = list_teams(host).map_err(|problem| text_of(&problem))?;
    let found = teams.into_iter().find(|team| tool_name(&team.name) == tool);
    found.map(|team| team.name).ok_or_else(|| format!("there is no tool `{tool}`"))
}

/// One tool for each valid team, with its inputs as properties.
fn teams(host: &Host) -> Result<Vec<HttpTool>, String> {
    let teams = list_teams(host).map_err(|problem| text_of(&problem))?;
    let mut tools = Vec::new();
    for summary in teams.into_iter().filter(|team| team.valid) {
        let Ok((_, checked)) = find_team(host, &summary.name) else { continue };
        let team = team_document(&summary.name, &checked);
        let mut properties = json!({
            "requirement": {"type": "string", "description": "What is to be done."},
            "title": {"type": "string", "description": "Title of the run."},
            "project": {"type": "string", "description": "Id of a registered project to work in. Default: a workspace of its own."},
            "budget_usd": {"type": "number", "exclusiveMinimum": 0, "description": "The most that the run may cost."},
            "wait": {"type": "boolean", "description": "Wait for the end, with progress. The run goes on if you disconnect."},
        });
        let mut required = Vec::new();
        for input in &team.inputs {
            let mut property = json!({"type": "string"});
            if let Some(description) = &input.description {
                property["description"] = description.as_str().into();
            }
            if let Some(default) = &input.default {
                property["default"] = default.as_str().into();
            }
            // An input of the name of a property of every team keeps its meaning here.
            properties[input.name.as_str()] = property;
            if input.required && input.default.is_none() {
                required.push(input.name.as_str());
            }
        }
        let about = team.description.as_deref().unwrap_or("no description");
        let mut description = format!("Starts a run of the team {}: {about}", team.name);
        for (what, list) in [(" Use it when: ", &team.use_when), (" Not for: ", &team.not_for)] {
            if !list.is_empty() {
                description.push_str(what);
                description.push_str(&list.join("; "));
            }
        }
        tools.push(HttpTool {
            name: tool_name(&team.name),
            description,
            schema: object(&properties, &required),
            is_read_only: false,
        });
    }
    Ok(tools)
}
