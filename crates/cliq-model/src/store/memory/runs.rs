//! Runs with queue, events, leases and tokens.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use cliq_protocol::{RunId, Timestamp};

use super::{Lease, MemoryStore, State, first, tasks, triggers};
use crate::change::{Change, RunEventRow};
use crate::lifecycle::RunState;
use crate::page::RunFilter;
use crate::parking::{Cause, wake as woken};
use crate::queue::Queue;
use crate::run::{Instance, Run, RunOrigin, RunTotals};
use crate::store::{Outcome, RunCounts, RunStore, StoreError};
use crate::token::{NewToken, Token, TokenKind};
use crate::usage::{DayTotals, ModelTotals, UsageTotals};

/// Applies a change of a run. Returns `None` if the stored version is another one, or the firing or the message of the task is taken.
fn write(state: &mut State, change: &Change, now: Timestamp) -> Option<()> {
    let run = &change.run;
    let stored = state.runs.get(&run.id).map_or(0, |stored| stored.version);
    if stored != run.version {
        return None;
    }
    if let Some(start) = &change.firing {
        triggers::claim(state, start, run)?;
    }
    if run.life.state.is_final() && run.last_event > 0 {
        triggers::record_end(state, change, now);
    }
    if run.origin == RunOrigin::Delegated {
        tasks::follow(state, change)?;
    }
    state.events.entry(run.id.clone()).or_default().extend(change.rows());
    let mut run = run.clone();
    run.version += 1;
    state.runs.insert(run.id.clone(), run);
    Some(())
}

/// Queues the runs that wait for a review, which is over.
pub(super) fn wake(state: &mut State, review: &str, now: Timestamp) {
    let waiting: Vec<Run> = state
        .waits
        .iter()
        .filter(|(_, reviews)| reviews.iter().any(|id| id == review))
        .filter_map(|(id, _)| state.runs.get(id).filter(|run| run.life.state == RunState::Waiting).cloned())
        .collect();
    for run in waiting {
        if let Ok(change) = woken(run, Cause::Review { review: review.to_owned() }, now) {
            write(state, &change, now);
        }
    }
}

fn change(state: &mut State, change: &Change, now: Timestamp) -> Option<()> {
    let mut reviews = change.parked_on.clone();
    reviews.sort();
    let over = reviews.into_iter().find(|id| !state.pending_reviews.contains(id));
    write(state, change, now)?;
    if !change.parked_on.is_empty() {
        state.waits.insert(change.id().clone(), change.parked_on.clone());
    }
    if let Some(review) = over {
        wake(state, &review, now);
    }
    Some(())
}

fn matches(run: &Run, filter: &RunFilter) -> bool {
    let RunFilter { states, team, instance, caller, since, until, words, with_trials, after, limit: _ } =
        filter;
    let is = |wanted: &Option<String>, value: Option<&str>| wanted.is_none() || wanted.as_deref() == value;
    let text = run.search_words();
    let has = |word: &String| {
        // As in the search of a database, characters of its syntax have no meaning.
        let word = word.replace(['"', '\'', '\\', '\0'], "");
        word.is_empty() || text.split(' ').any(|known| known.starts_with(&word))
    };
    (*with_trials || run.origin != RunOrigin::Evaluation)
        && (states.is_empty() || states.contains(&run.life.state))
        && is(team, Some(run.team.as_str()))
        && is(instance, run.instance.as_deref())
        && is(caller, Some(&run.caller))
        && since.is_none_or(|since| run.queued_at >= since)
        && until.is_none_or(|until| run.queued_at < until)
        && after.as_ref().is_none_or(|after| run.id < after.0)
        && words.iter().all(has)
}

fn without_view(run: &Run) -> Run {
    Run { view: serde_json::Value::Null, ..run.clone() }
}

fn later(state: &State, run: &Run) -> Option<RunId> {
    let started = run.started_at.unwrap_or(run.queued_at);
    let is_later = |other: &&Run| {
        let has_started_after = other.started_at.is_some_and(|at| at > started);
        other.workspace == run.workspace
            && other.id != run.id
            && (!other.life.state.is_final() || has_started_after)
    };
    let order = |other: &&Run| (other.started_at.is_none(), other.started_at, other.id.clone());
    state.runs.values().filter(is_later).max_by_key(order).map(|other| other.id.clone())
}

fn usage(state: &State, since: Timestamp) -> UsageTotals {
    let (mut days, mut models) = (BTreeMap::new(), BTreeMap::new());
    let counts = |run: &&Run| run.queued_at >= since && run.origin != RunOrigin::Evaluation;
    for run in state.runs.values().filter(counts) {
        let day: String = run.queued_at.to_string().chars().take(10).collect();
        let (runs, totals): &mut (u64, RunTotals) = days.entry((day, run.team.clone())).or_default();
        *runs += 1;
        totals.add(&run.totals);
        if !run.life.state.is_final() {
            continue;
        }
        let mut own = BTreeMap::<String, RunTotals>::new();
        for phase in run.view["phases"].as_array().into_iter().flatten() {
            for used in phase["usage"]["models"].as_array().into_iter().flatten() {
                let name = used["model"].as_str().unwrap_or("unknown").to_owned();
                own.entry(name).or_default().add(&RunTotals::of_document(used));
            }
        }
        for (model, used) in own {
            let (runs, totals): &mut (u64, RunTotals) = models.entry(model).or_default();
            *runs += 1;
            totals.add(&used);
        }
    }
    let days = days.into_iter().map(|((day, team), (runs, totals))| DayTotals { day, team, runs, totals });
    let models = models.into_iter().map(|(model, (runs, totals))| ModelTotals { model, runs, totals });
    UsageTotals { days: days.collect(), models: models.collect() }
}

fn remove(state: &mut State, id: &RunId) {
    state.runs.remove(id);
    state.events.remove(id);
    state.waits.remove(id);
    state.tasks.remove(id);
    state.ends.remove(id);
    state.pushes.retain(|(task, _), _| task != id);
}

fn add_instance(state: &mut State, new: &Instance) -> Instance {
    if let Some(known) = state.instances.values().find(|known| known.path == new.path) {
        return known.clone();
    }
    // Another project may have the same six characters: the next free name is taken.
    let names = (2_u64..).map(|number| format!("{}-{number}", new.id));
    let free = std::iter::once(new.id.clone()).chain(names).find(|name| !state.instances.contains_key(name));
    let added = Instance { id: free.unwrap_or_default(), ..new.clone() };
    state.instances.insert(added.id.clone(), added.clone());
    added
}

pub(super) fn token(new: &NewToken) -> Token {
    let NewToken { id, hash, kind, label, scope, created_at, expires_at, parent: _, person } = new.clone();
    Token { id, label, scope, created_at, expires_at, kind, hash, person }
}

/// Returns the tokens of a kind, newest first.
pub(super) fn tokens(state: &State, kind: TokenKind) -> Vec<Token> {
    let mut found: Vec<Token> = state.tokens.values().filter(|new| new.kind == kind).map(token).collect();
    found.sort_by_key(|token| (Reverse(token.created_at), token.id.clone()));
    found
}

#[async_trait]
impl RunStore for MemoryStore {
    async fn add_instance(&self, instance: &Instance) -> Result<Instance, StoreError> {
        self.call(|state| add_instance(state, instance))
    }

    async fn instances(&self) -> Result<Vec<Instance>, StoreError> {
        let mut found: Vec<_> = self.call(|state| state.instances.values().cloned().collect())?;
        found.sort_by(|a: &Instance, b| a.path.cmp(&b.path));
        Ok(found)
    }

    async fn instance(&self, id: &str) -> Result<Option<Instance>, StoreError> {
        self.call(|state| state.instances.get(id).cloned())
    }

    async fn forget_instance(&self, id: &str) -> Result<bool, StoreError> {
        self.call(|state| state.instances.remove(id).is_some())
    }

    async fn change(&self, new: &Change) -> Result<Outcome, StoreError> {
        let now = self.now();
        let applied = self.transaction(|state| change(state, new, now))?;
        if applied.is_some() && new.run.life.state == RunState::Cancelled {
            self.run_was_cancelled(new.id());
        }
        Ok(if applied.is_some() { Outcome::Applied } else { Outcome::Stale })
    }

    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.call(|state| state.runs.get(id).cloned())
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>, StoreError> {
        self.call(|state| {
            let found = state.runs.values().rev().filter(|run| matches(run, filter)).map(without_view);
            first(found, filter.limit)
        })
    }

    async fn queue(&self, limit: u32) -> Result<Queue, StoreError> {
        self.call(|state| {
            let queued = state.runs.values().filter(|run| run.life.state == RunState::Queued).cloned();
            let (mut woken, mut new): (Vec<Run>, Vec<Run>) = queued.partition(|run| run.woken_at.is_some());
            woken.sort_by_key(|run| (Reverse(run.life.cancel_requested), run.woken_at, run.id.clone()));
            new.sort_by_key(|run| (run.queued_at, run.id.clone()));
            Queue { woken: first(woken, limit).into(), new: first(new, limit).into() }
        })
    }

    async fn due(&self, limit: u32) -> Result<Vec<Run>, StoreError> {
        let now = self.now();
        self.call(|state| {
            let is_due =
                |run: &&Run| run.life.state == RunState::Waiting && run.wake_at.is_some_and(|at| at <= now);
            let mut due: Vec<Run> = state.runs.values().filter(is_due).cloned().collect();
            due.sort_by_key(|run| (run.wake_at, run.id.clone()));
            first(due, limit)
        })
    }

    async fn next_wake(&self) -> Result<Option<Timestamp>, StoreError> {
        self.call(|state| state.runs.values().filter_map(|run| run.wake_at).min())
    }

    async fn active(&self) -> Result<Vec<Run>, StoreError> {
        self.call(|state| state.runs.values().filter(|run| run.life.state.is_active()).cloned().collect())
    }

    async fn later_run(&self, run: &Run) -> Result<Option<RunId>, StoreError> {
        self.call(|state| later(state, run))
    }

    async fn counts(&self) -> Result<RunCounts, StoreError> {
        self.call(|state| {
            let number = |wanted: RunState| {
                let counts = |run: &&Run| run.life.state == wanted && run.origin != RunOrigin::Evaluation;
                state.runs.values().filter(counts).count() as u64
            };
            RunState::ALL.map(|state| (state, number(state))).into()
        })
    }

    async fn usage(&self, since: Timestamp) -> Result<UsageTotals, StoreError> {
        self.call(|state| usage(state, since))
    }

    async fn run_events(&self, id: &RunId, after: i64, limit: u32) -> Result<Vec<RunEventRow>, StoreError> {
        self.call(|state| {
            let rows = state.events.get(id).into_iter().flatten();
            first(rows.filter(|row| row.id > after).cloned(), limit)
        })
    }

    async fn remove_run(&self, id: &RunId) -> Result<(), StoreError> {
        self.call(|state| remove(state, id))
    }

    async fn ended_before(&self, before: Timestamp, limit: u32) -> Result<Vec<Run>, StoreError> {
        self.call(|state| {
            let has_ended =
                |run: &&Run| run.life.state.is_final() && run.ended_at.is_some_and(|at| at < before);
            let mut ended: Vec<Run> = state.runs.values().filter(has_ended).map(without_view).collect();
            ended.sort_by_key(|run| run.ended_at);
            first(ended, limit)
        })
    }

    fn is_shared(&self) -> bool {
        self.settings(|settings| settings.is_shared)
    }

    async fn take_lease(&self, name: &str, holder: &str, time: Duration) -> Result<bool, StoreError> {
        let now = self.now_millis();
        let until_millis = now.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
        self.call(|state| {
            let is_taken = |lease: &Lease| lease.holder != holder && lease.until_millis >= now;
            if state.leases.get(name).is_some_and(is_taken) {
                return false;
            }
            state.leases.insert(name.to_owned(), Lease { holder: holder.to_owned(), until_millis });
            true
        })
    }

    async fn give_lease(&self, name: &str, holder: &str) -> Result<(), StoreError> {
        self.call(|state| {
            if state.leases.get(name).is_some_and(|lease| lease.holder == holder) {
                state.leases.remove(name);
            }
        })
    }

    async fn lease_holders(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let now = self.now_millis();
        self.call(|state| {
            let held = state
                .leases
                .iter()
                .filter(|(name, lease)| name.starts_with(prefix) && lease.until_millis >= now);
            let mut holders: Vec<String> = held.map(|(_, lease)| lease.holder.clone()).collect();
            holders.sort();
            holders
        })
    }

    async fn add_token(&self, token: &NewToken) -> Result<(), StoreError> {
        self.call(|state| drop(state.tokens.insert(token.id.clone(), token.clone())))
    }

    async fn token(&self, id: &str) -> Result<Option<Token>, StoreError> {
        self.call(|state| state.tokens.get(id).map(token))
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.call(|state| tokens(state, TokenKind::Api))
    }

    async fn revoke_token(&self, id: &str) -> Result<bool, StoreError> {
        self.call(|state| {
            let before = state.tokens.len();
            state.tokens.retain(|_, token| token.id != id && token.parent.as_deref() != Some(id));
            state.tokens.len() < before
        })
    }

    async fn remove_expired_tokens(&self, now: Timestamp) -> Result<(), StoreError> {
        self.call(|state| state.tokens.retain(|_, token| token.expires_at.is_none_or(|at| at >= now)))
    }
}
