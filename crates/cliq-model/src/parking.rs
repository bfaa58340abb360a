//! Changes by which a run is parked and woken (docs/decisions/0034-parked-runs-are-rows.md).

use serde_json::{Value, json};

use crate::change::{Change, NewRunEvent};
use crate::lifecycle::{LifecycleEvent, NotAllowed, RunState};
use crate::run::Run;

/// Cause for which a parked run continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause<'a> {
    /// A review that it waits for is over.
    Review(&'a str),
    /// A reminder or a deadline is due.
    Time,
}

/// Parks a run whose orchestrator is gone: it waits for the reviews `on`, and until the time `until` (UTC). A run whose cancellation was
/// requested meanwhile is woken at once. `now` is the current time, UTC.
///
/// # Errors
/// Returns an error if the run is not running.
pub fn park(change: &mut Change, on: &[String], until: &str, now: &str) -> Result<(), NotAllowed> {
    change.run.life.step(LifecycleEvent::Parked)?;
    change.run.replica = None;
    if change.run.life.state == RunState::Waiting {
        // A run that a person started is resumed by a person.
        if change.run.origin.is_started_by_server() {
            change.run.wake_at = Some(until.to_owned());
            change.parked_on = on.to_vec();
        }
        push(change, now, json!({"event": "run_waiting", "on": on, "until": until}));
    } else {
        change.run.woken_at = Some(now.to_owned());
    }
    Ok(())
}

/// Queues a parked run: its next orchestrator continues it. `now` is the current time, UTC.
///
/// # Errors
/// Returns an error if the run does not wait.
pub fn wake(run: Run, cause: Cause<'_>, now: &str) -> Result<Change, NotAllowed> {
    let mut change = Change::of(run);
    change.run.life.step(LifecycleEvent::Woken)?;
    change.run.wake_at = None;
    change.run.woken_at = Some(now.to_owned());
    let event = match cause {
        Cause::Review(id) => json!({"event": "run_woken", "by": "review", "review": id}),
        Cause::Time => json!({"event": "run_woken", "by": "time"}),
    };
    push(&mut change, now, event);
    Ok(change)
}

fn push(change: &mut Change, now: &str, mut event: Value) {
    event["ts"] = now.into();
    let kind = event["event"].as_str().unwrap_or_default().to_owned();
    change.push(NewRunEvent { ts: now.to_owned(), kind, data: event.to_string() });
}
