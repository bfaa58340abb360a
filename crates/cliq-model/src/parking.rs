//! Changes by which a run is parked and woken (docs/decisions/0034-parked-runs-are-rows.md).

use serde::{Deserialize, Serialize};

use crate::change::{Change, NewRunEvent};
use crate::event::ServerEvent;
use crate::lifecycle::{LifecycleEvent, NotAllowed, RunState};
use crate::run::Run;
use cliq_protocol::Timestamp;

/// Cause for which a parked run continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Cause {
    /// A review that it waits for is over.
    Review {
        /// Id of the review.
        review: String,
    },
    /// A reminder or a deadline is due.
    Time,
}

/// Parks a run whose orchestrator is gone: it waits for the reviews `on`, and until the time `until` (UTC). A run whose cancellation was
/// requested meanwhile is woken at once. `now` is the current time, UTC.
///
/// # Errors
/// Returns an error if the run is not running.
pub fn park(change: &mut Change, on: &[String], until: Timestamp, now: Timestamp) -> Result<(), NotAllowed> {
    change.run.life.step(LifecycleEvent::Parked)?;
    change.run.replica = None;
    if change.run.life.state == RunState::Waiting {
        // A run that a person started is resumed by a person.
        if change.run.origin.is_started_by_server() {
            change.run.wake_at = Some(until);
            change.parked_on = on.to_vec();
        }
        let event = ServerEvent::RunWaiting { on: on.to_vec(), until };
        change.push(NewRunEvent::of_server(now, &event));
    } else {
        change.run.woken_at = Some(now);
    }
    Ok(())
}

/// Queues a parked run: its next orchestrator continues it. `now` is the current time, UTC.
///
/// # Errors
/// Returns an error if the run does not wait.
pub fn wake(run: Run, cause: Cause, now: Timestamp) -> Result<Change, NotAllowed> {
    let mut change = Change::of(run);
    change.run.life.step(LifecycleEvent::Woken)?;
    change.run.wake_at = None;
    change.run.woken_at = Some(now);
    change.push(NewRunEvent::of_server(now, &ServerEvent::RunWoken { cause }));
    Ok(change)
}
