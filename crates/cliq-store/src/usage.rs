//! Usage of language models by day, team and model.

use std::collections::BTreeMap;

use cliq_model::{DayTotals, ModelTotals, Run, RunTotals, UsageTotals};
use cliq_protocol::Timestamp;

use crate::cells::Cells;
use crate::connection::{Connection, Target, Tx};
use crate::error::DatabaseError;
use crate::rows::totals;
use crate::statement::arguments;

/// Stores the usage of a run by model, once it has ended.
pub(crate) async fn store(transaction: &mut Tx<'_>, run: &Run) -> Result<(), DatabaseError> {
    if !run.life.state.is_final() {
        return Ok(());
    }
    transaction.run("DELETE FROM run_models WHERE run_id = $1", arguments![run.id.as_str()]).await?;
    for (model, used) in models_of(run) {
        let sql = "INSERT INTO run_models (run_id, model, tokens_in, tokens_out, cost_usd) VALUES ($1, $2, $3, $4, $5)";
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let (tokens_in, tokens_out) = (count(used.tokens_in), count(used.tokens_out));
        let arguments = arguments![run.id.as_str(), &model, tokens_in, tokens_out, used.cost_usd];
        transaction.run(sql, arguments).await?;
    }
    Ok(())
}

/// Sums the usage of the phases of a run by model.
fn models_of(run: &Run) -> BTreeMap<String, RunTotals> {
    let mut models = BTreeMap::<String, RunTotals>::new();
    for phase in run.view["phases"].as_array().into_iter().flatten() {
        for used in phase["usage"]["models"].as_array().into_iter().flatten() {
            let name = used["model"].as_str().unwrap_or("unknown").to_owned();
            models.entry(name).or_default().add(&RunTotals::of_document(used));
        }
    }
    models
}

/// Sums the usage of the runs requested since a time.
pub(crate) async fn since(
    connection: &mut Connection,
    since: Timestamp,
) -> Result<UsageTotals, DatabaseError> {
    let sql = "SELECT substr(queued_at, 1, 10) AS day, team, COUNT(*) AS number, CAST(SUM(tokens_in) AS BIGINT) AS tokens_in, CAST(SUM(tokens_out) AS BIGINT) AS tokens_out, SUM(cost_usd) AS cost_usd FROM runs WHERE queued_at >= $1 AND origin <> 'evaluation' GROUP BY substr(queued_at, 1, 10), team ORDER BY 1, 2";
    let answer = connection.run(sql, arguments![since]).await?;
    let days = answer.rows.iter().map(|row| {
        let cells = Cells::new(row, "runs", &["day", "team"]);
        let team = cells.team("team")?;
        let (day, runs) = (row.text("day")?, row.count("number")?);
        Ok(DayTotals { day, team, runs, totals: totals(cells)? })
    });
    let days = days.collect::<Result<_, DatabaseError>>()?;
    let sql = "SELECT model, COUNT(*) AS number, CAST(SUM(run_models.tokens_in) AS BIGINT) AS tokens_in, CAST(SUM(run_models.tokens_out) AS BIGINT) AS tokens_out, SUM(run_models.cost_usd) AS cost_usd FROM run_models JOIN runs ON runs.id = run_models.run_id WHERE queued_at >= $1 AND origin <> 'evaluation' GROUP BY model ORDER BY model";
    let answer = connection.run(sql, arguments![since]).await?;
    let models = answer.rows.iter().map(|row| {
        Ok(ModelTotals {
            model: row.text("model")?,
            runs: row.count("number")?,
            totals: totals(Cells::new(row, "run_models", &["model"]))?,
        })
    });
    Ok(UsageTotals { days, models: models.collect::<Result<_, DatabaseError>>()? })
}
