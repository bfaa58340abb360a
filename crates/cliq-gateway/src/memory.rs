//! Signals and plans in the memory store, for unit tests. It passes the suite of `cliq-store`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use cliq_model::{MemoryStore, Outcome, StoreError};
use cliq_protocol::Timestamp;

use crate::signal::{Claim, NewSignal, Signal, SignalStatus};
use crate::store::{Filter, Finish, PlanEvent, PlanRow, SignalCounts, Step, Store};

/// Content of the queue.
#[derive(Debug, Clone, Default)]
struct Queue {
    signals: BTreeMap<i64, Signal>,
    /// Signal of each bridged file, by the identity of the file.
    files: BTreeMap<String, i64>,
    /// Plans by project and name.
    plans: BTreeMap<(String, String), PlanRow>,
    /// Events with their projects, oldest first.
    events: Vec<(String, PlanEvent)>,
    /// Number of claims so far, which makes each one unique.
    claims: u64,
}

impl Queue {
    fn add(&mut self, project: &str, signal: &NewSignal, now: Timestamp) -> i64 {
        let id = self.signals.last_key_value().map_or(1, |(last, _)| last + 1);
        let row = Signal {
            id,
            project: project.to_owned(),
            plan: signal.plan().to_string(),
            kind: signal.kind().as_str().to_owned(),
            payload: signal.payload_text(),
            status: SignalStatus::Pending,
            created_at: now.to_string(),
            claimed_by: String::new(),
            claimed_at: String::new(),
            processed_at: String::new(),
            result: String::new(),
        };
        self.signals.insert(id, row);
        id
    }

    fn claim(&mut self, project: &str, worker: &str, now: Timestamp) -> Option<(Claim, Signal)> {
        self.claims += 1;
        let holder = format!("{worker}#{}", self.claims);
        let pending =
            |signal: &&mut Signal| signal.project == project && signal.status == SignalStatus::Pending;
        let oldest = self.signals.values_mut().filter(pending);
        let signal = oldest.min_by_key(|signal| (signal.created_at.clone(), signal.id))?;
        signal.status = SignalStatus::Processing;
        signal.claimed_by.clone_from(&holder);
        signal.claimed_at = now.to_string();
        Some((Claim::new(signal.id, holder), signal.clone()))
    }

    /// Records the result of a claimed signal. Returns `None` if the claim has expired.
    fn finish(&mut self, claim: &Claim, finish: &Finish, now: Timestamp) -> Option<()> {
        let signal = self.signals.get_mut(&claim.signal())?;
        if signal.status != SignalStatus::Processing || signal.claimed_by != claim.holder() {
            return None;
        }
        let (status, result) = match finish {
            Finish::Done(result) => (SignalStatus::Done, result),
            Finish::Failed(reason) => (SignalStatus::Failed, reason),
        };
        (signal.status, signal.processed_at) = (status, now.to_string());
        signal.result.clone_from(result);
        Some(())
    }

    /// Makes claimed signals pending again. Returns their numbers.
    fn release(&mut self, is_released: impl Fn(&Signal) -> bool) -> Vec<i64> {
        let claimed = |signal: &&mut Signal| signal.status == SignalStatus::Processing;
        let mut released = Vec::new();
        for signal in self.signals.values_mut().filter(claimed).filter(|signal| is_released(signal)) {
            signal.status = SignalStatus::Pending;
            signal.claimed_by.clear();
            signal.claimed_at.clear();
            released.push(signal.id);
        }
        released
    }

    fn retry(&mut self, id: i64) -> bool {
        let failed = self.signals.get_mut(&id).filter(|signal| signal.status == SignalStatus::Failed);
        let Some(signal) = failed else { return false };
        signal.status = SignalStatus::Pending;
        for text in
            [&mut signal.claimed_by, &mut signal.claimed_at, &mut signal.processed_at, &mut signal.result]
        {
            text.clear();
        }
        true
    }

    /// Applies a step. Returns `None` if the plan has another version or the claim of its signal has expired.
    fn apply(&mut self, step: &Step, now: Timestamp) -> Option<()> {
        let new = &step.plan;
        let key = (new.project.clone(), new.name.clone());
        let stored = self.plans.get(&key);
        if stored.map_or(0, |plan| plan.version) != new.version {
            return None;
        }
        let created_at = stored.map_or(now, |plan| plan.created_at);
        let row = PlanRow { version: new.version + 1, created_at, updated_at: now, ..new.clone() };
        self.plans.insert(key, row);
        if let Some((claim, finish)) = &step.finish {
            self.finish(claim, finish, now)?;
        }
        for event in &step.events {
            let event = PlanEvent {
                id: self.events.last().map_or(1, |(_, last)| last.id + 1),
                plan: new.name.clone(),
                at: now,
                kind: event.kind.clone(),
                from: event.from.clone(),
                to: event.to.clone(),
                signal: step.finish.as_ref().map(|(claim, _)| claim.signal()),
                detail: serde_json::from_str(&event.detail).unwrap_or_default(),
            };
            self.events.push((new.project.clone(), event));
        }
        for signal in &step.emit {
            self.add(&new.project, signal, now);
        }
        Some(())
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn create(&self, project: &str, signal: &NewSignal) -> Result<i64, StoreError> {
        let now = self.now();
        self.part(|queue: &mut Queue| queue.add(project, signal, now))
    }

    async fn create_from_file(
        &self,
        project: &str,
        signal: &NewSignal,
        identity: &str,
    ) -> Result<i64, StoreError> {
        let now = self.now();
        self.part(|queue: &mut Queue| {
            if let Some(known) = queue.files.get(identity) {
                return *known;
            }
            let id = queue.add(project, signal, now);
            queue.files.insert(identity.to_owned(), id);
            id
        })
    }

    async fn forget_file(&self, identity: &str) -> Result<(), StoreError> {
        self.part(|queue: &mut Queue| {
            queue.files.remove(identity);
        })
    }

    async fn claim(&self, project: &str, worker: &str) -> Result<Option<(Claim, Signal)>, StoreError> {
        let now = self.now();
        self.part(|queue: &mut Queue| queue.claim(project, worker, now))
    }

    async fn finish(&self, claim: &Claim, finish: &Finish) -> Result<Outcome, StoreError> {
        let now = self.now();
        let finished = self.part(|queue: &mut Queue| queue.finish(claim, finish, now))?;
        Ok(if finished.is_some() { Outcome::Applied } else { Outcome::Stale })
    }

    async fn reset_stuck(&self, age: Duration) -> Result<Vec<i64>, StoreError> {
        let before = self.now().before(age).to_string();
        self.part(|queue: &mut Queue| queue.release(|signal| signal.claimed_at <= before))
    }

    async fn reset_claims(&self, worker: &str) -> Result<Vec<i64>, StoreError> {
        let prefix = format!("{worker}#");
        self.part(|queue: &mut Queue| queue.release(|signal| signal.claimed_by.starts_with(&prefix)))
    }

    async fn retry(&self, id: i64) -> Result<bool, StoreError> {
        self.part(|queue: &mut Queue| queue.retry(id))
    }

    async fn signals(&self, filter: &Filter) -> Result<Vec<Signal>, StoreError> {
        let Filter { project, plan, status, limit } = filter;
        self.part(|queue: &mut Queue| {
            let is_listed = |signal: &&Signal| {
                project.as_ref().is_none_or(|project| signal.project == *project)
                    && plan.as_ref().is_none_or(|plan| signal.plan == *plan)
                    && status.is_none_or(|status| signal.status == status)
            };
            let newest = queue.signals.values().rev().filter(is_listed);
            let limit = limit.map_or(usize::MAX, |limit| limit as usize);
            let mut listed: Vec<Signal> = newest.take(limit).cloned().collect();
            listed.reverse();
            listed
        })
    }

    async fn signal_counts(&self) -> Result<SignalCounts, StoreError> {
        self.part(|queue: &mut Queue| {
            let of = |status| queue.signals.values().filter(move |signal| signal.status == status);
            let count = |status: SignalStatus| (status, of(status).count() as u64);
            let oldest = of(SignalStatus::Pending).map(|signal| signal.created_at.clone()).min();
            SignalCounts {
                by_status: SignalStatus::ALL.map(count).into(),
                oldest_pending: oldest.and_then(|time| time.parse().ok()),
            }
        })
    }

    async fn signal(&self, id: i64) -> Result<Option<Signal>, StoreError> {
        self.part(|queue: &mut Queue| queue.signals.get(&id).cloned())
    }

    async fn projects(&self) -> Result<Vec<String>, StoreError> {
        self.part(|queue: &mut Queue| {
            let pending = queue.signals.values().filter(|signal| signal.status == SignalStatus::Pending);
            let with_signals = pending.map(|signal| signal.project.clone());
            let with_plans = queue.plans.keys().map(|(project, _)| project.clone());
            with_signals.chain(with_plans).collect::<BTreeSet<_>>().into_iter().collect()
        })
    }

    async fn plans(&self, project: Option<&str>) -> Result<Vec<PlanRow>, StoreError> {
        self.part(|queue: &mut Queue| {
            let listed =
                |((of, _), _): &(&(String, String), &PlanRow)| project.is_none_or(|wanted| of == wanted);
            queue.plans.iter().filter(listed).map(|(_, plan)| plan.clone()).collect()
        })
    }

    async fn plan(&self, project: &str, name: &str) -> Result<Option<PlanRow>, StoreError> {
        let key = (project.to_owned(), name.to_owned());
        self.part(|queue: &mut Queue| queue.plans.get(&key).cloned())
    }

    async fn apply(&self, step: &Step) -> Result<Outcome, StoreError> {
        let now = self.now();
        let applied = self.part(|queue: &mut Queue| {
            // A refused step leaves nothing behind.
            let mut next = queue.clone();
            next.apply(step, now)?;
            *queue = next;
            Some(())
        })?;
        Ok(if applied.is_some() { Outcome::Applied } else { Outcome::Stale })
    }

    async fn events(&self, project: &str, plan: &str, after: i64) -> Result<Vec<PlanEvent>, StoreError> {
        self.part(|queue: &mut Queue| {
            let is_listed =
                |(of, event): &&(String, PlanEvent)| of == project && event.plan == plan && event.id > after;
            queue.events.iter().filter(is_listed).map(|(_, event)| event.clone()).collect()
        })
    }
}
