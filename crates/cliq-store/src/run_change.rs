//! Change of a run's row, with its events and its task.

use cliq_model::{Change, RunOrigin, RunOutcome};

use crate::connection::{Target, Tx};
use crate::error::DatabaseError;
use crate::statement::arguments;
use crate::{run_events, tasks, triggers, usage};

/// Stores a change in a transaction. Returns `false` if its run has another version, or its message has made a task before.
pub(crate) async fn write(transaction: &mut Tx<'_>, change: &Change) -> Result<bool, DatabaseError> {
    let run = &change.run;
    let request = serde_json::to_string(&run.request).unwrap_or_default();
    let view = run.view.to_string();
    let words = run.search_words();
    let caveats = run.caveats.iter().map(|caveat| caveat.as_str()).collect::<Vec<_>>().join(" ");
    let arguments = arguments![
        run.id.as_str(),
        run.instance.as_deref(),
        run.team.as_str(),
        run.origin.as_str(),
        &run.caller,
        &request,
        run.workspace.as_str(),
        run.life.state.as_str(),
        run.life.cancel_requested,
        run.life.began,
        run.life.resume,
        i64::from(run.life.recoveries),
        run.reason.as_deref(),
        run.phase.as_deref(),
        run.queued_at,
        run.started_at,
        run.ended_at,
        stored(run.totals.tokens_in),
        stored(run.totals.tokens_out),
        run.totals.cost_usd,
        &view,
        stored(run.journal_lines),
        run.last_event,
        run.version,
        run.replica.as_deref(),
        run.life.parked,
        run.wake_at,
        run.woken_at,
        &run.title,
        stored(run.phases_done),
        stored(run.phases_all),
        &words,
        run.life.former.map(RunOutcome::as_str),
        (!run.caveats.is_empty()).then_some(caveats.as_str()),
        run.changed.map(|changed| stored(changed.files)),
        run.changed.map(|changed| stored(changed.lines_added)),
        run.changed.map(|changed| stored(changed.lines_removed)),
    ];
    let sql = if run.version == 0 {
        "INSERT INTO runs (id, instance, team, origin, caller, request, workspace, state, cancel_requested, began, resume, recoveries, reason, phase, queued_at, started_at, ended_at, tokens_in, tokens_out, cost_usd, view, journal_lines, last_event, version, replica, parked, wake_at, woken_at, title, phases_done, phases_all, words, former, caveats, changed_files, lines_added, lines_removed) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24 + 1, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37) ON CONFLICT DO NOTHING"
    } else {
        "UPDATE runs SET instance = $2, team = $3, origin = $4, caller = $5, request = $6, workspace = $7, state = $8, cancel_requested = $9, began = $10, resume = $11, recoveries = $12, reason = $13, phase = $14, queued_at = $15, started_at = $16, ended_at = $17, tokens_in = $18, tokens_out = $19, cost_usd = $20, view = $21, journal_lines = $22, last_event = $23, version = $24 + 1, replica = $25, parked = $26, wake_at = $27, woken_at = $28, title = $29, phases_done = $30, phases_all = $31, words = $32, former = $33, caveats = $34, changed_files = $35, lines_added = $36, lines_removed = $37 WHERE id = $1 AND version = $24"
    };
    if transaction.run(sql, arguments).await?.changed != 1 {
        return Ok(false);
    }
    if let Some(start) = &change.firing
        && !triggers::claim(transaction, start, run).await?
    {
        return Ok(false);
    }
    if run.life.state.is_final() && run.last_event > 0 {
        triggers::record_end(transaction, change).await?;
    }
    if run.origin == RunOrigin::Delegated && !tasks::follow(transaction, change).await? {
        return Ok(false);
    }
    run_events::add(transaction, change).await?;
    usage::store(transaction, run).await?;
    Ok(true)
}

/// A count as the database takes it.
fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
