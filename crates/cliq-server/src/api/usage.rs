//! Usage of language models.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use cliq_model::RunTotals;
use cliq_protocol::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::errors::Reading;
use crate::app::App;
use cliq_supervisor::internals::clock;
use cliq_web::Problem;
use cliq_web::Query;
use cliq_web::Reader;

/// Usage of runs by team.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageReport {
    /// From when on runs count, UTC.
    #[schema(value_type = String)]
    since: Timestamp,
    /// By team.
    teams: Vec<TeamUsage>,
}

/// Usage of a team's runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TeamUsage {
    /// The team.
    pub(crate) team: String,
    /// Number of runs.
    pub(crate) runs: u64,
    /// Usage. A cost is a lower bound if the cost of a run is unknown.
    pub(crate) usage: RunTotals,
}

/// Range of the report.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageQuery {
    /// Runs that were asked for in the last so many days. 30 unless said otherwise.
    #[param(minimum = 1, maximum = 3650)]
    days: Option<u32>,
}

/// Returns the usage of language models by team.
#[utoipa::path(get, path = "/api/v1/usage", operation_id = "get_usage", tag = "server", params(UsageQuery), responses((status = 200, body = UsageReport), Reading))]
pub(crate) async fn usage(
    _: Reader,
    State(app): State<Arc<App>>,
    Query(query): Query<UsageQuery>,
) -> Result<axum::Json<UsageReport>, Problem> {
    let days = query.days.unwrap_or(30);
    if !(1..=3650).contains(&days) {
        return Err(Problem::bad_request("`days` is a number from 1 to 3650"));
    }
    let since = clock::ago(Duration::from_secs(u64::from(days) * 86_400));
    let rows = app.core.runs.usage(since).await?.by_team();
    let teams = rows.into_iter().map(|(team, runs, usage)| TeamUsage { team, runs, usage }).collect();
    Ok(axum::Json(UsageReport { since, teams }))
}
