//! What agents, commands and orchestrators printed.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, header};
use axum::response::IntoResponse;
use camino::Utf8Path;
use cliq_runs::Run;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::errors::Reading;
use super::input::{Path, Query};
use crate::access::Reader;
use crate::app::App;
use crate::problem::Problem;

/// The most bytes of one answer.
const MAX_PART: u64 = 1 << 20;
/// The log of the orchestrator itself.
const ORCHESTRATOR: &str = "orchestrator";

/// A log of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LogFile {
    /// Its name: `orchestrator`, or `PHASE.N.log` with the number of the activation or evaluation.
    pub(crate) name: String,
    /// The phase.
    pub(crate) phase: Option<String>,
    /// Its size in bytes.
    pub(crate) size: u64,
}

/// The logs of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Logs {
    logs: Vec<LogFile>,
}

/// Which part of a log.
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

/// The directory of a run's files: `.cliq`, or its place in the history once a later run has put it aside.
pub(crate) fn place_of(run: &Run) -> camino::Utf8PathBuf {
    let root = run.workspace.join(cliq_fs::CliqDir::NAME);
    let aside = root.join("history").join(run.id.as_str());
    if aside.is_dir() { aside } else { root }
}

/// The logs of a run: the orchestrator's first, then the phases' in the order of their last lines.
pub(crate) fn list(run: &Run) -> Vec<LogFile> {
    let place = place_of(run);
    let size = |path: &Utf8Path| path.symlink_metadata().map_or(0, |meta| meta.len());
    let own =
        LogFile { name: ORCHESTRATOR.to_owned(), phase: None, size: size(&place.join("orchestrator.log")) };
    let entries = place.join("logs").read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let meta = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            let name = entry.file_name().to_owned();
            let phase = name.split('.').next().map(str::to_owned);
            Some((meta.modified().ok()?, LogFile { name, phase, size: meta.len() }))
        })
        .collect();
    found.sort_by(|(a, x), (b, y)| (a, &x.name).cmp(&(b, &y.name)));
    std::iter::once(own).chain(found.into_iter().map(|(_, log)| log)).collect()
}

/// A part of a log, with its first byte and the size of the whole log.
pub(crate) fn part(run: &Run, name: &str, offset: i64, limit: u64) -> Result<(Vec<u8>, u64, u64), Problem> {
    let missing = || Problem::not_found("the run has no such log");
    let plain =
        name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) && !name.starts_with('.');
    if !plain {
        return Err(missing());
    }
    let place = place_of(run);
    let path =
        if name == ORCHESTRATOR { place.join("orchestrator.log") } else { place.join("logs").join(name) };
    // Regular files only, without waiting, and within the project: agents write there too.
    let (mut file, size) = cliq_fs::open_regular(&path).map_err(|_| missing())?;
    let from =
        if offset < 0 { size.saturating_sub(offset.unsigned_abs()) } else { offset.unsigned_abs().min(size) };
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(from)).and_then(|_| file.take(limit).read_to_end(&mut bytes));
    read.map_err(|_| missing())?;
    Ok((bytes, from, size))
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
    app.project(&run)?;
    Ok(axum::Json(Logs { logs: list(&run) }))
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
    let limit = query.limit.unwrap_or(64 << 10);
    if !(1..=MAX_PART).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is a number from 1 to {MAX_PART}")));
    }
    let run = app.run(&id).await?;
    app.project(&run)?;
    let read = tokio::task::spawn_blocking(move || part(&run, &name, query.offset, limit));
    let (bytes, from, size) = read.await.map_err(|error| Problem::unavailable(error.to_string()))??;
    let next = from + bytes.len() as u64;
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (HeaderName::from_static("x-next-offset"), next.to_string()),
        (HeaderName::from_static("x-log-size"), size.to_string()),
    ];
    Ok((headers, bytes))
}
