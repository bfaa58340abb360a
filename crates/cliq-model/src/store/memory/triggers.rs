//! Triggers, firings and concurrency groups.

use async_trait::async_trait;
use cliq_protocol::Timestamp;

use super::{MemoryStore, State, StoredFiring, first};
use crate::change::{Change, NewRunEvent};
use crate::run::{Run, RunOrigin};
use crate::store::{Outcome, StoreError, TriggerStore};
use crate::trigger::{
    Added, EndedRun, Firing, FiringDecision, FiringFilter, FiringStart, FiringState, GroupState, MarkStep,
    NewFiring, NewTrigger, SourceKind, TriggerRow,
};

/// Decides a firing by the run that it starts. Returns `None` if it was decided before, or its group changed.
pub(super) fn claim(state: &mut State, start: &FiringStart, run: &Run) -> Option<()> {
    if let Some((group, version)) = &start.group {
        let stored = state.groups.entry(group.clone()).or_default();
        if stored != version {
            return None;
        }
        *stored += 1;
    }
    let stored = state.firings.get_mut(&start.firing)?;
    if stored.firing.state != FiringState::Pending {
        return None;
    }
    stored.is_open = true;
    stored.firing = Firing {
        state: FiringState::Started,
        run: Some(run.id.clone()),
        reason: None,
        payload: String::new(),
        decided_at: Some(run.queued_at),
        group: start.group.as_ref().map(|(group, _)| group.clone()),
        ..stored.firing.clone()
    };
    Some(())
}

/// Records the end of a run: for triggers that wait for it, and for the group of its own firing.
pub(super) fn record_end(state: &mut State, change: &Change, now: Timestamp) {
    let run = &change.run;
    for stored in state.firings.values_mut().filter(|stored| stored.firing.run.as_ref() == Some(&run.id)) {
        stored.is_open = false;
    }
    let ends = change.events.iter().any(NewRunEvent::ends_run);
    let waits = |trigger: &TriggerRow| trigger.kind == SourceKind::After && !trigger.is_paused;
    if ends && run.origin != RunOrigin::Evaluation && state.triggers.values().any(waits) {
        let at = run.ended_at.unwrap_or(now);
        let end = EndedRun { run: run.id.clone(), event: run.last_event, state: run.life.state, at };
        state.ends.entry(run.id.clone()).or_insert(end);
    }
}

/// Adds a firing with its keys.
fn add(state: &mut State, new: &NewFiring, now: Timestamp) -> Added {
    let place = |key: &String| (new.trigger.clone(), key.clone());
    if let Some(known) = state.firing_keys.get(&place(&new.key)) {
        return Added::Known(*known);
    }
    if new.content_key.as_ref().is_some_and(|key| state.firing_keys.contains_key(&place(key))) {
        return Added::Replayed;
    }
    state.last_firing += 1;
    let id = state.last_firing;
    for key in std::iter::once(&new.key).chain(&new.content_key) {
        state.firing_keys.insert(place(key), id);
    }
    let is_skipped = new.skipped.is_some();
    let firing = Firing {
        id,
        trigger: new.trigger.clone(),
        at: new.at,
        cause: new.cause.clone(),
        digest: new.digest.clone(),
        payload: if is_skipped { String::new() } else { new.payload.clone() },
        depth: new.depth,
        state: if is_skipped { FiringState::Skipped } else { FiringState::Pending },
        group: None,
        run: None,
        reason: new.skipped.clone(),
        decided_at: is_skipped.then_some(now),
    };
    state.firings.insert(id, StoredFiring { firing, is_open: false });
    Added::New(id)
}

fn decide(state: &mut State, id: i64, decision: &FiringDecision, at: Timestamp) -> bool {
    let pending = state.firings.get_mut(&id).filter(|stored| stored.firing.state == FiringState::Pending);
    let Some(StoredFiring { firing, .. }) = pending else { return false };
    let (end, reason) = match decision {
        FiringDecision::Wait { group, reason } => {
            (firing.group, firing.reason) = (Some(group.clone()), Some(reason.clone()));
            return true;
        }
        FiringDecision::Skip(reason) => (FiringState::Skipped, reason),
        FiringDecision::Fail(reason) => (FiringState::Failed, reason),
    };
    firing.state = end;
    firing.reason = Some(reason.clone());
    firing.decided_at = Some(at);
    firing.payload.clear();
    true
}

fn sync(state: &mut State, triggers: &[NewTrigger]) {
    // A trigger with another kind of source is another trigger.
    let is_kept = |old: &TriggerRow| triggers.iter().any(|new| new.name == old.name && new.kind == old.kind);
    state.triggers.retain(|_, old| is_kept(old));
    for NewTrigger { name, kind, mark } in triggers {
        let new = || TriggerRow {
            name: name.clone(),
            kind: *kind,
            is_paused: false,
            mark: mark.clone(),
            version: 1,
        };
        state.triggers.entry(name.clone()).or_insert_with(new);
    }
}

fn without_payload(stored: &StoredFiring) -> Firing {
    Firing { payload: String::new(), ..stored.firing.clone() }
}

#[async_trait]
impl TriggerStore for MemoryStore {
    async fn sync_triggers(&self, triggers: &[NewTrigger]) -> Result<(), StoreError> {
        self.call(|state| sync(state, triggers))
    }

    async fn trigger_rows(&self) -> Result<Vec<TriggerRow>, StoreError> {
        self.call(|state| state.triggers.values().cloned().collect())
    }

    async fn trigger_row(&self, name: &str) -> Result<Option<TriggerRow>, StoreError> {
        self.call(|state| state.triggers.get(name).cloned())
    }

    async fn set_paused(&self, name: &str, is_paused: bool, mark: Option<&str>) -> Result<bool, StoreError> {
        self.call(|state| {
            let Some(row) = state.triggers.get_mut(name) else { return false };
            row.is_paused = is_paused;
            row.version += 1;
            if let Some(mark) = mark {
                mark.clone_into(&mut row.mark);
            }
            true
        })
    }

    async fn advance(&self, step: &MarkStep, firings: &[NewFiring]) -> Result<Outcome, StoreError> {
        let now = self.now();
        let advanced = self.transaction(|state| {
            let row = state.triggers.get_mut(&step.trigger)?;
            if row.version != step.version || row.is_paused {
                return None;
            }
            row.mark.clone_from(&step.mark);
            row.version += 1;
            for new in firings {
                add(state, new, now);
            }
            Some(())
        })?;
        Ok(if advanced.is_some() { Outcome::Applied } else { Outcome::Stale })
    }

    async fn add_firing(&self, firing: &NewFiring) -> Result<Added, StoreError> {
        let now = self.now();
        self.call(|state| add(state, firing, now))
    }

    async fn pending_firings(&self, after: i64, limit: u32) -> Result<Vec<Firing>, StoreError> {
        self.call(|state| {
            let pending = state.firings.range(after.saturating_add(1)..).map(|(_, stored)| &stored.firing);
            first(pending.filter(|firing| firing.state == FiringState::Pending).cloned(), limit)
        })
    }

    async fn decide_firing(
        &self,
        id: i64,
        decision: &FiringDecision,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.call(|state| decide(state, id, decision, at))
    }

    async fn group(&self, name: &str) -> Result<GroupState, StoreError> {
        self.call(|state| {
            let members =
                || state.firings.values().filter(|stored| stored.firing.group.as_deref() == Some(name));
            GroupState {
                version: state.groups.get(name).copied().unwrap_or_default(),
                running: members()
                    .filter(|member| member.is_open)
                    .filter_map(|m| m.firing.run.clone())
                    .collect(),
                waiting: members()
                    .filter(|member| member.firing.state == FiringState::Pending)
                    .map(|member| member.firing.id)
                    .collect(),
            }
        })
    }

    async fn firings(&self, filter: &FiringFilter) -> Result<Vec<Firing>, StoreError> {
        let FiringFilter { trigger, state: wanted, before, limit } = filter;
        self.call(|state| {
            let is_listed = |stored: &&StoredFiring| {
                let firing = &stored.firing;
                trigger.as_ref().is_none_or(|trigger| firing.trigger == *trigger)
                    && wanted.is_none_or(|wanted| firing.state == wanted)
                    && before.is_none_or(|before| firing.id < before)
            };
            first(state.firings.values().rev().filter(is_listed).map(without_payload), *limit)
        })
    }

    async fn last_firings(&self) -> Result<Vec<Firing>, StoreError> {
        self.call(|state| {
            let last = |name: &String| {
                state
                    .firings
                    .values()
                    .rev()
                    .find(|stored| stored.firing.trigger == *name)
                    .map(without_payload)
            };
            state.triggers.keys().filter_map(last).collect()
        })
    }

    async fn ended_runs(&self, limit: u32) -> Result<Vec<EndedRun>, StoreError> {
        self.call(|state| {
            let mut ends: Vec<EndedRun> = state.ends.values().cloned().collect();
            ends.sort_by_key(|end| (end.at, end.run.clone()));
            first(ends, limit)
        })
    }

    async fn consume_end(&self, end: &EndedRun, firings: &[NewFiring]) -> Result<bool, StoreError> {
        let now = self.now();
        let consumed = self.transaction(|state| {
            state.ends.get(&end.run).filter(|known| known.event == end.event)?;
            state.ends.remove(&end.run);
            for new in firings {
                add(state, new, now);
            }
            Some(())
        })?;
        Ok(consumed.is_some())
    }

    async fn remove_firings(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.call(|state| {
            let is_old = |stored: &StoredFiring| {
                let firing = &stored.firing;
                firing.at < before && firing.state != FiringState::Pending && !stored.is_open
            };
            let known = state.firings.len();
            state.firings.retain(|_, stored| !is_old(stored));
            let State { firings, firing_keys, .. } = state;
            firing_keys.retain(|_, id| firings.contains_key(id));
            (known - state.firings.len()) as u64
        })
    }
}
