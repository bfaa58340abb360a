//! Output of agents, commands and orchestrators.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, header};
use axum::response::IntoResponse;
use cliq_web::{
    LogFile, Path, Problem, Query, Reader, list_logs, list_transcripts, read_log, read_transcript,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::errors::Reading;
use crate::app::App;

/// The most bytes of one answer.
const MAX_PART: u64 = 1 << 20;

/// The logs of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Logs {
    logs: Vec<LogFile>,
}

/// Range of a log.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartQuery {
    /// The first byte. A negative one counts from the end.
    #[serde(default)]
    offset: i64,
    /// The most bytes. 64 KiB unless said otherwise, at most 1 MiB.
    #[param(minimum = 1, maximum = 1048576)]
    limit: Option<u64>,
}

/// Lists the logs of a run.
#[utoipa::path(get, path = "/api/v1/runs/{id}/logs", operation_id = "list_logs", tag = "runs", params(("id" = String, Path, description = "The run.")),
    responses((status = 200, body = Logs), Reading))]
pub(crate) async fn logs(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<Logs>, Problem> {
    let run = app.run(&id).await?;
    let logs = app.core.in_project(&run, |run, _| Ok(list_logs(run))).await?;
    Ok(axum::Json(Logs { logs }))
}

/// A part of a log, as it was printed. `X-Next-Offset` is where the next part begins, `X-Log-Size` how large the log is now.
#[utoipa::path(get, path = "/api/v1/runs/{id}/logs/{name}", operation_id = "get_log", tag = "runs",
    params(("id" = String, Path, description = "The run."), ("name" = String, Path, description = "The log, as it is listed."), PartQuery),
    responses((status = 200, body = String, content_type = "text/plain; charset=utf-8",
        headers(("x-next-offset" = u64, description = "Where the next part begins."), ("x-log-size" = u64, description = "The size of the log now."))), Reading))]
pub(crate) async fn log(
    _: Reader,
    State(app): State<Arc<App>>,
    Path((id, name)): Path<(String, String)>,
    Query(query): Query<PartQuery>,
) -> Result<impl IntoResponse, Problem> {
    let limit = query.limit()?;
    let run = app.run(&id).await?;
    let read = app.core.in_project(&run, move |run, _| read_log(run, &name, query.offset, limit)).await?;
    Ok(part("text/plain; charset=utf-8", read))
}

/// The transcripts of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Transcripts {
    transcripts: Vec<LogFile>,
}

/// Lists the transcripts of a run's model agents.
#[utoipa::path(get, path = "/api/v1/runs/{id}/transcripts", operation_id = "list_transcripts", tag = "runs", params(("id" = String, Path, description = "The run.")),
    responses((status = 200, body = Transcripts), Reading))]
pub(crate) async fn transcripts(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<Transcripts>, Problem> {
    let run = app.run(&id).await?;
    let transcripts = app.core.in_project(&run, |run, _| Ok(list_transcripts(run))).await?;
    Ok(axum::Json(Transcripts { transcripts }))
}

/// A part of a transcript: a JSON object per line. `X-Next-Offset` is where the next part begins, `X-Log-Size` how large the transcript is now.
#[utoipa::path(get, path = "/api/v1/runs/{id}/transcripts/{name}", operation_id = "get_transcript", tag = "runs",
    params(("id" = String, Path, description = "The run."), ("name" = String, Path, description = "The transcript, as it is listed."), PartQuery),
    responses((status = 200, body = String, content_type = "application/jsonl",
        headers(("x-next-offset" = u64, description = "Where the next part begins."), ("x-log-size" = u64, description = "The size of the transcript now."))), Reading))]
pub(crate) async fn transcript(
    _: Reader,
    State(app): State<Arc<App>>,
    Path((id, name)): Path<(String, String)>,
    Query(query): Query<PartQuery>,
) -> Result<impl IntoResponse, Problem> {
    let limit = query.limit()?;
    let run = app.run(&id).await?;
    let read =
        app.core.in_project(&run, move |run, _| read_transcript(run, &name, query.offset, limit)).await?;
    Ok(part("application/jsonl", read))
}

impl PartQuery {
    fn limit(&self) -> Result<u64, Problem> {
        let limit = self.limit.unwrap_or(64 << 10);
        if (1..=MAX_PART).contains(&limit) {
            Ok(limit)
        } else {
            Err(Problem::bad_request(format!("`limit` is a number from 1 to {MAX_PART}")))
        }
    }
}

/// Bytes, the offset of the first one, and the size of the whole.
type Part = (Vec<u8>, u64, u64);

fn part(kind: &str, (bytes, from, size): Part) -> impl IntoResponse + use<> {
    let next = from + bytes.len() as u64;
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (HeaderName::from_static("x-next-offset"), next.to_string()),
        (HeaderName::from_static("x-log-size"), size.to_string()),
    ];
    (headers, bytes)
}
