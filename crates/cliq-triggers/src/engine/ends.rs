//! Ends of runs. The store records an end in the transaction that ends the run, and removes it with the firings that it leads to.

use std::sync::Arc;
use std::time::Duration;

use cliq_model::{EndedRun, NewFiring, Run, StoreError};
use serde_json::{Value, json};

use super::firings::digest_of;
use super::{Inner, MAX_DEPTH};
use crate::model::{Source, Trigger};

/// Longest time between two looks: another server may have ended a run, and died.
const LONGEST: Duration = Duration::from_secs(2);
/// Changes of runs that follow each other within this time lead to one look.
const PAUSE: Duration = Duration::from_millis(50);
/// Number of ends per query.
const BATCH: u32 = 200;

/// Turns ends of runs into firings until the engine stops.
pub(super) async fn run(inner: Arc<Inner>) {
    let mut catalogs = inner.catalog.subscribe();
    let mut changes = inner.supervisor.hub().changes();
    loop {
        let catalog = Arc::clone(&catalogs.borrow_and_update());
        let triggers: Vec<Arc<Trigger>> =
            catalog.triggers.iter().filter(|t| matches!(t.source, Source::After { .. })).cloned().collect();
        changes.mark_unchanged();
        if !triggers.is_empty()
            && let Err(error) = look(&inner, &triggers).await
        {
            tracing::error!(%error, "cannot look for ends of runs; retrying");
        }
        tokio::select! {
            () = inner.stopping.cancelled() => return,
            changed = catalogs.changed() => if changed.is_err() { return },
            changed = changes.changed(), if !triggers.is_empty() => {
                if changed.is_err() {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
            () = tokio::time::sleep(LONGEST), if !triggers.is_empty() => {}
        }
    }
}

pub(super) async fn look(inner: &Inner, triggers: &[Arc<Trigger>]) -> Result<(), StoreError> {
    loop {
        let ends = inner.store.ended_runs(BATCH).await?;
        if ends.is_empty() {
            return Ok(());
        }
        let rows = inner.rows().await?;
        for end in &ends {
            let run = inner.runs.run(&end.run).await?;
            let is_active =
                |trigger: &&Arc<Trigger>| rows.get(&trigger.name).is_some_and(|row| !row.is_paused);
            let firings: Vec<NewFiring> = run
                .iter()
                .flat_map(|run| triggers.iter().filter(is_active).filter_map(|t| firing_of(t, run, end)))
                .collect();
            if inner.store.consume_end(end, &firings).await? && !firings.is_empty() {
                inner.pending.notify_one();
            }
        }
    }
}

/// Returns the firing that the end of a run leads to, if the trigger waits for such ends.
fn firing_of(trigger: &Trigger, run: &Run, end: &EndedRun) -> Option<NewFiring> {
    let Source::After { team, states } = &trigger.source else { return None };
    if team.as_ref().is_some_and(|team| run.team != team.as_str()) || !states.contains(&end.state) {
        return None;
    }
    let depth = run.request.trigger.as_ref().map_or(0, |trigger| trigger.depth) + 1;
    let too_deep = || format!("{MAX_DEPTH} triggers in a row started runs after each other");
    let payload = json!({"run": values_of(run, end), "now": end.at}).to_string();
    Some(NewFiring {
        trigger: trigger.name.clone(),
        at: end.at,
        cause: format!("run {} {}", run.id, end.state.as_str()),
        key: format!("run:{}:{}", run.id, end.event),
        content_key: None,
        digest: digest_of(payload.as_bytes()),
        payload,
        depth,
        skipped: (depth > MAX_DEPTH).then(too_deep),
    })
}

fn values_of(run: &Run, end: &EndedRun) -> Value {
    json!({
        "id": run.id,
        "team": run.team,
        "title": run.title,
        "state": end.state.as_str(),
        "reason": run.reason,
        "phase": run.phase,
        "project": run.instance,
        "workspace": run.workspace,
        "inputs": run.request.spec.inputs,
        "requirement": run.request.spec.requirement,
        "trigger": run.request.trigger.as_ref().map(|trigger| &trigger.name),
        "cost_usd": run.totals.cost_usd,
        "ended_at": end.at,
    })
}
