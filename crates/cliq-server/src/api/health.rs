//! Whether the server lives, whether it can work, and figures for Prometheus.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use super::errors::Reading;
use crate::app::App;
use cliq_web::Problem;
use cliq_web::Reader;

/// Time for which a successful check of the database counts.
const READY: Duration = Duration::from_secs(1);

/// Whether the server lives. Needs no token.
#[utoipa::path(get, path = "/healthz", operation_id = "get_health", tag = "server", security(()), responses((status = 200, body = String, content_type = "text/plain; charset=utf-8"), Reading))]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether the server can work: the database can be read and written, and the server does not stop. Needs no token.
#[utoipa::path(get, path = "/readyz", operation_id = "get_readiness", tag = "server", security(()), responses((status = 200, body = String, content_type = "text/plain; charset=utf-8"), Reading))]
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    if app.core.stopping.is_cancelled() {
        return Err(Problem::unavailable("the server stops"));
    }
    let mut last = app.readiness.lock().await;
    if last.is_none_or(|at: Instant| at.elapsed() > READY) {
        *last = None;
        app.core.runs.active().await?;
        // A write as well: a database on a full disk still answers.
        let options = app.core.supervisor.options();
        app.core.runs.take_lease(&format!("ready/{}", options.replica), &options.replica, READY).await?;
        *last = Some(Instant::now());
    }
    Ok("ok\n")
}

/// Figures in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", operation_id = "get_metrics", tag = "server", responses((status = 200, body = String, content_type = "text/plain; version=0.0.4"), Reading))]
pub(crate) async fn metrics(_: Reader, State(app): State<Arc<App>>) -> Result<impl IntoResponse, Problem> {
    app.update_metrics().await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics.render()))
}
