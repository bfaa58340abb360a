//! Triggers with their firings, and records of actions.

use cliq_model::{AuditAction, FiringFilter, FiringState};
use cliq_supervisor::internals::clock;
use cliq_triggers::{FiringDocument, TriggerDocument};

use crate::caller::Caller;
use crate::core::Core;
use crate::problem::Problem;

/// Finds a trigger by its name.
///
/// # Errors
/// Returns a problem if there is no such trigger, or the store fails.
pub async fn find_trigger(core: &Core, name: &str) -> Result<TriggerDocument, Problem> {
    let found = core.triggers.trigger(name).await?;
    found.ok_or_else(|| Problem::not_found("there is no trigger of this name"))
}

/// Returns firings, newest first, with the number from which the next page goes on.
///
/// # Errors
/// Returns a problem if the store fails.
pub async fn list_firings(
    core: &Core,
    trigger: Option<String>,
    state: Option<FiringState>,
    before: Option<i64>,
    limit: u32,
) -> Result<(Vec<FiringDocument>, Option<i64>), Problem> {
    // One more than requested tells whether there is a next page.
    let filter = FiringFilter { trigger, state, before, limit: limit + 1 };
    let mut firings = core.triggers.firings(&filter).await?;
    let has_more = firings.len() > limit as usize;
    firings.truncate(limit as usize);
    let next = firings.last().filter(|_| has_more).map(|last| last.id);
    Ok((firings, next))
}

/// Pauses or resumes a trigger.
///
/// # Errors
/// Returns a problem if there is no such trigger, or the store fails.
pub async fn set_trigger_paused(
    core: &Core,
    name: &str,
    is_paused: bool,
) -> Result<TriggerDocument, Problem> {
    find_trigger(core, name).await?;
    core.triggers.set_paused(name, is_paused).await?;
    find_trigger(core, name).await
}

/// Action of a caller that is not a request of its own, such as the call of a tool.
#[derive(Debug, Clone, Copy)]
pub struct CallerAction<'a> {
    /// Entry point: `mcp` or `a2a`.
    pub via: &'a str,
    /// Name of the action.
    pub action: &'a str,
    /// Object of the action.
    pub target: &'a str,
    /// Whether the action succeeded.
    pub is_done: bool,
}

/// Records an action of a caller in the audit log.
pub async fn record(core: &Core, caller: &Caller, done: CallerAction<'_>) {
    let CallerAction { via, action, target, is_done } = done;
    let action = AuditAction {
        ts: clock::now(),
        actor: caller.actor().to_owned(),
        person: caller.mail().map(str::to_owned),
        via: via.to_owned(),
        action: action.to_owned(),
        target: target.to_owned(),
        outcome: if is_done { "ok" } else { "failed" }.to_owned(),
        request_id: None,
        peer: None,
    };
    if let Err(error) = core.audit.add_audit(&action).await {
        tracing::error!(%error, action = action.action, actor = action.actor, "cannot record an action");
    }
}
