//! Ticks of schedules. The mark of a trigger moves in the transaction that stores its firings.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use cliq_model::{MarkStep, NewFiring, Outcome, StoreError, TriggerRow};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::Inner;
use super::catalog::Catalog;
use super::firings::digest_of;
use crate::model::{Source, Trigger};
use crate::schedule::{Due, Schedule};

/// Longest sleep: the clock may be set.
const LONGEST: Duration = Duration::from_secs(1);
/// Delay of another attempt after the store failed.
const RETRY: SignedDuration = SignedDuration::from_secs(1);

/// Schedules by their next tick.
struct Ticks {
    heap: BinaryHeap<Reverse<(Timestamp, usize)>>,
    triggers: Vec<(Arc<Trigger>, Schedule)>,
    rows: HashMap<String, TriggerRow>,
}

/// Fires ticks until the engine stops.
pub(super) async fn run(inner: Arc<Inner>) {
    let mut changes = inner.catalog.subscribe();
    loop {
        let catalog = Arc::clone(&changes.borrow_and_update());
        let loaded = Ticks::load(&inner, &catalog).await;
        let mut ticks = match loaded {
            Ok(ticks) => ticks,
            Err(error) => {
                tracing::error!(%error, "cannot read the schedules; retrying");
                tokio::select! {
                    () = inner.stopping.cancelled() => return,
                    () = tokio::time::sleep(LONGEST) => continue,
                }
            }
        };
        loop {
            let pause = ticks.fire_due(&inner).await;
            tokio::select! {
                () = inner.stopping.cancelled() => return,
                changed = changes.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

impl Ticks {
    async fn load(inner: &Inner, catalog: &Catalog) -> Result<Self, StoreError> {
        let rows = inner.rows().await?;
        let mut ticks = Self { heap: BinaryHeap::new(), triggers: Vec::new(), rows };
        for trigger in &catalog.triggers {
            if let Source::Schedule(schedule) = &trigger.source {
                ticks.triggers.push((Arc::clone(trigger), schedule.as_ref().clone()));
            }
        }
        let now = Timestamp::now();
        for index in 0..ticks.triggers.len() {
            ticks.push_next(index, now);
        }
        Ok(ticks)
    }

    /// Enters the next tick of a trigger. One that was missed is due at once.
    fn push_next(&mut self, index: usize, now: Timestamp) {
        let (trigger, schedule) = &self.triggers[index];
        let row = self.rows.get(&trigger.name);
        let mark = row.and_then(|row| row.mark.parse().ok()).unwrap_or(now);
        let from = if row.is_some_and(|row| row.is_paused) { mark.max(now) } else { mark };
        if let Some(next) = schedule.next_after(from) {
            self.heap.push(Reverse((next, index)));
        }
    }

    /// Fires the ticks that are due. Returns the time until the next one, or a shorter one.
    async fn fire_due(&mut self, inner: &Inner) -> Duration {
        loop {
            let now = Timestamp::now();
            let Some(Reverse((next, index))) = self.heap.peek().copied() else { return LONGEST };
            if next > now {
                let left = Duration::try_from(next.duration_since(now)).unwrap_or(LONGEST);
                return left.min(LONGEST);
            }
            self.heap.pop();
            match self.fire(inner, index, now).await {
                Ok(()) => self.push_next(index, now),
                Err(error) => {
                    tracing::error!(%error, trigger = self.triggers[index].0.name, "cannot store a tick; retrying");
                    self.heap.push(Reverse((now.checked_add(RETRY).unwrap_or(now), index)));
                }
            }
            if inner.stopping.is_cancelled() {
                return LONGEST;
            }
        }
    }

    async fn fire(&mut self, inner: &Inner, index: usize, now: Timestamp) -> Result<(), StoreError> {
        let (trigger, schedule) = &self.triggers[index];
        let Some(row) = self.rows.get_mut(&trigger.name) else { return Ok(()) };
        let mark = row.mark.parse().unwrap_or(now);
        let due = schedule.due(mark, now);
        let (false, Some(last)) = (row.is_paused, due.mark) else {
            // Paused: it may have been resumed by another process.
            return reload(inner, row).await;
        };
        let mut firings: Vec<NewFiring> = due.ticks.iter().map(|tick| firing_of(trigger, *tick)).collect();
        if due.missed > 0 && due.ticks.first() != Some(&last) {
            firings.insert(0, missed(trigger, schedule, &due, last));
        }
        let step = MarkStep { trigger: trigger.name.clone(), version: row.version, mark: last.to_string() };
        match inner.store.advance(&step, &firings).await? {
            Outcome::Applied => {
                (row.mark, row.version) = (step.mark, row.version + 1);
                inner.pending.notify_one();
                Ok(())
            }
            // Another server was faster, or it was paused.
            _ => reload(inner, row).await,
        }
    }
}

async fn reload(inner: &Inner, row: &mut TriggerRow) -> Result<(), StoreError> {
    if let Some(found) = inner.store.trigger_row(&row.name).await? {
        *row = found;
    }
    Ok(())
}

fn firing_of(trigger: &Trigger, tick: Timestamp) -> NewFiring {
    let payload = json!({"now": tick.to_string()}).to_string();
    NewFiring {
        trigger: trigger.name.clone(),
        at: cliq_protocol::Timestamp::from_unix_millis(tick.as_millisecond()),
        cause: format!("tick {tick}"),
        key: format!("tick:{tick}"),
        content_key: None,
        digest: digest_of(payload.as_bytes()),
        payload,
        depth: 1,
        skipped: None,
    }
}

/// The record of ticks that start nothing.
fn missed(trigger: &Trigger, schedule: &Schedule, due: &Due, last: Timestamp) -> NewFiring {
    let more = if due.has_more { "more than " } else { "" };
    let reason = format!("no server was running (catch_up: {})", schedule.catch_up().as_str());
    NewFiring {
        cause: format!("{more}{} missed ticks before {last}", due.missed),
        key: format!("missed:{last}"),
        skipped: Some(reason),
        ..firing_of(trigger, last)
    }
}
