//! Rows of the list: from the files of projects, and from the API of the server.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use camino::Utf8Path;
use cliq_model::RunState as ServerState;
use cliq_project::{ListedRun, RunState};
use cliq_protocol::{ChangedLines, Timestamp};
use cliq_terminal::{RunKey, RunRow, RunStatus};
use serde_json::Value;

/// Key of a run by its workspace and id.
pub(super) fn key(id: &str) -> RunKey {
    RunKey::new(id)
}

/// Row of a run in the files of a project.
pub(super) fn of_files(run: &ListedRun) -> RunRow {
    let status = match run.state {
        RunState::None | RunState::Running => RunStatus::Working,
        RunState::Waiting => RunStatus::Parked,
        RunState::Interrupted => RunStatus::Interrupted,
        RunState::Completed if run.caveats.is_empty() => RunStatus::Completed,
        RunState::Completed => RunStatus::CompletedWithCaveats,
        RunState::Escalated => RunStatus::Escalated,
        RunState::Failed => RunStatus::Failed,
        RunState::Cancelled => RunStatus::Cancelled,
    };
    RunRow {
        key: key(run.id.as_str()),
        id: run.id.to_string(),
        title: run.title.clone().unwrap_or_else(|| run.team.clone()),
        team: run.team.clone(),
        project: project_name(&run.workspace),
        place: run.workspace.to_string(),
        status,
        done: run.phases_done,
        all: run.phases_all.unwrap_or(0),
        started: run.started,
        ended: run.ended,
        tokens: run.tokens_in + run.tokens_out,
        usd: run.cost_usd,
        changed: run.changed.map(|changed| changed.to_string()),
        needs: run.asks.clone(),
        words: run.words.clone(),
        is_last: run.is_last,
        is_on_server: false,
    }
}

/// Name of a project for people: that of its directory.
pub(super) fn project_name(workspace: &Utf8Path) -> String {
    workspace.file_name().unwrap_or(workspace.as_str()).to_owned()
}

/// Row of a run in a list of the API. `None` if the document is not one of this version.
pub(super) fn of_api(run: &Value) -> Option<RunRow> {
    let id = run["id"].as_str()?;
    let text = |field: &str| run[field].as_str().map(str::to_owned);
    let time = |field: &str| run[field].as_str().and_then(|text| Timestamp::parse(text).ok());
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let has_caveats = run["caveats"].as_array().is_some_and(|caveats| !caveats.is_empty());
    let status = match ServerState::parse(run["state"].as_str()?)? {
        ServerState::Queued => RunStatus::Queued,
        ServerState::Starting | ServerState::Running => RunStatus::Working,
        ServerState::Waiting => RunStatus::Parked,
        ServerState::Completed if has_caveats => RunStatus::CompletedWithCaveats,
        ServerState::Completed => RunStatus::Completed,
        ServerState::Escalated => RunStatus::Escalated,
        ServerState::Failed => RunStatus::Failed,
        ServerState::Cancelled => RunStatus::Cancelled,
    };
    let changed: Option<ChangedLines> = serde_json::from_value(run["changed"].clone()).ok();
    let usage = &run["usage"];
    Some(RunRow {
        key: key(id),
        id: id.to_owned(),
        title: text("title")?,
        team: text("team")?,
        project: text("instance").unwrap_or_else(|| "server".to_owned()),
        place: String::new(),
        status,
        done: u32::try_from(number(&run["phases_done"])).unwrap_or(u32::MAX),
        all: u32::try_from(number(&run["phases_all"])).unwrap_or(u32::MAX),
        started: time("started_at").or_else(|| time("queued_at")),
        ended: time("ended_at"),
        tokens: number(&usage["tokens_in"]) + number(&usage["tokens_out"]),
        usd: usage["cost_usd"].as_f64(),
        changed: changed.map(|changed| changed.to_string()),
        needs: None,
        words: None,
        // The server refuses what is not the last run of its project.
        is_last: true,
        is_on_server: true,
    })
}

/// Question of a pending review of the API, with the id of its run.
pub(super) fn question_of_api(review: &Value) -> Option<(String, String)> {
    let run = review["run_id"].as_str()?.to_owned();
    let phase = review["phase"].as_str()?;
    let waits: Vec<&str> = review["waits_for"].as_array()?.iter().filter_map(Value::as_str).collect();
    Some((run, format!("{phase} waits for {}", waits.join(", "))))
}
