//! What phases handed to each other.

use std::sync::Arc;

use axum::extract::State;
use cliq_runs::Run;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::errors::Reading;
use super::input::Path;
use super::logs::place_of;
use crate::access::Reader;
use crate::app::App;
use crate::problem::Problem;

/// The most bytes of a handoff that is sent.
const MAX_BYTES: u64 = 16 << 20;

/// A handoff in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Handoff {
    /// The phase that wrote it.
    pub(crate) from: String,
    /// The phase that reads it.
    pub(crate) to: String,
    /// Its size in bytes.
    pub(crate) size: u64,
}

/// The handoffs of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Handoffs {
    handoffs: Vec<Handoff>,
}

/// The handoffs of a run, by channel.
pub(crate) fn list(run: &Run) -> Vec<Handoff> {
    let entries = place_of(run).join("channels").read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<Handoff> = entries
        .filter_map(|entry| {
            let (from, to) = entry.file_name().split_once("--")?;
            let meta = entry.path().join("handoff.json").symlink_metadata().ok()?;
            Some(Handoff { from: from.to_owned(), to: to.to_owned(), size: meta.len() })
        })
        .collect();
    found.sort_by(|a, b| (&a.from, &a.to).cmp(&(&b.from, &b.to)));
    found
}

/// A handoff as text.
pub(crate) fn read(run: &Run, from: &str, to: &str) -> Result<String, Problem> {
    let missing = || Problem::not_found("there is no such handoff");
    let name = |text: &str| cliq_protocol::PhaseName::parse(text).map_err(|_| missing());
    let channel = format!("{}--{}", name(from)?, name(to)?);
    let path = place_of(run).join("channels").join(channel).join("handoff.json");
    cliq_fs::read_text(&path, MAX_BYTES).map_err(|_| missing())
}

/// Lists the handoffs of a run.
#[utoipa::path(get, path = "/api/v1/runs/{id}/handoffs", operation_id = "list_handoffs", tag = "runs", params(("id" = String, Path, description = "The run.")),
    responses((status = 200, body = Handoffs), Reading))]
pub(crate) async fn handoffs(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<Handoffs>, Problem> {
    let run = app.run(&id).await?;
    app.project(&run)?;
    Ok(axum::Json(Handoffs { handoffs: list(&run) }))
}

/// A handoff (`docs/protocol.md`), at most 16 MiB.
#[utoipa::path(get, path = "/api/v1/runs/{id}/handoffs/{from}/{to}", operation_id = "get_handoff", tag = "runs",
    params(("id" = String, Path, description = "The run."), ("from" = String, Path, description = "The phase that wrote it."),
        ("to" = String, Path, description = "The phase that reads it.")),
    responses((status = 200, body = Object), Reading))]
pub(crate) async fn handoff(
    _: Reader,
    State(app): State<Arc<App>>,
    Path((id, from, to)): Path<(String, String, String)>,
) -> Result<axum::Json<Value>, Problem> {
    let run = app.run(&id).await?;
    app.project(&run)?;
    let text = read(&run, &from, &to)?;
    let value: Value =
        serde_json::from_str(&text).map_err(|_| Problem::not_found("the handoff is not whole"))?;
    Ok(axum::Json(value))
}
