//! Tasks of A2A and push notifications.

use std::cmp::Reverse;

use async_trait::async_trait;
use cliq_protocol::{RunId, Timestamp};

use super::{MemoryStore, State, StoredTaskRow, first};
use crate::change::Change;
use crate::lifecycle::RunState;
use crate::run::Run;
use crate::store::{StoreError, TaskStore};
use crate::task::{PushRow, PushState, StoredTask, TaskFilter, TaskRow};

/// Stores the task of a new run, or the progress of a known one. Returns `None` if the message has created a task already.
pub(super) fn follow(state: &mut State, change: &Change) -> Option<()> {
    let run = &change.run;
    let changed_at = change.events.last().and_then(|event| event.ts().time());
    let shown = task_state(run);
    let Some(task) = &change.task else {
        if let Some(stored) = state.tasks.get_mut(&run.id) {
            stored.state = shown;
            if let Some(at) = changed_at {
                stored.row.updated_at = at;
            }
        }
        return Some(());
    };
    let is_known =
        |other: &StoredTaskRow| other.row.owner == task.owner && other.row.message_id == task.message_id;
    if state.tasks.contains_key(&run.id) || state.tasks.values().any(is_known) {
        return None;
    }
    let updated_at = changed_at.unwrap_or(run.queued_at);
    let row = TaskRow { updated_at, ..task.clone() };
    state.tasks.insert(run.id.clone(), StoredTaskRow { row, state: shown });
    if let Some(push) = &change.push {
        insert(state, push);
    }
    Some(())
}

/// Returns the state of a run for its caller: a woken run works, although it may be queued.
fn task_state(run: &Run) -> RunState {
    let is_woken = run.life.state == RunState::Queued && run.life.parked;
    if is_woken { RunState::Starting } else { run.life.state }
}

fn insert(state: &mut State, new: &PushRow) {
    let key = (new.task_id.clone(), new.id.clone());
    let row = match state.pushes.get(&key) {
        None => PushRow { version: 1, ..new.clone() },
        // A receiver that is set again starts anew where it was.
        Some(known) => PushRow {
            event: known.event,
            part: known.part,
            attempts: 0,
            failing_since: None,
            reason: None,
            version: known.version + 1,
            ..new.clone()
        },
    };
    state.pushes.insert(key, row);
}

fn put(state: &mut State, new: &PushRow) -> bool {
    if new.version == 0 {
        insert(state, new);
        return true;
    }
    let key = (new.task_id.clone(), new.id.clone());
    let Some(known) = state.pushes.get_mut(&key).filter(|known| known.version == new.version) else {
        return false;
    };
    *known = PushRow {
        event: new.event,
        part: new.part,
        state: new.state,
        attempts: new.attempts,
        failing_since: new.failing_since,
        next_at: new.next_at,
        reason: new.reason.clone(),
        version: new.version + 1,
        ..known.clone()
    };
    true
}

fn stored(state: &State, id: &RunId) -> Option<StoredTask> {
    let (task, run) = (state.tasks.get(id)?, state.runs.get(id)?);
    Some(StoredTask { task: task.row.clone(), run: run.clone() })
}

/// Returns the ids of the tasks that match, last changed first.
fn matching(state: &State, filter: &TaskFilter) -> Vec<RunId> {
    let TaskFilter { owner, context_id, states, after, cursor: _, limit: _ } = filter;
    let is_listed = |task: &StoredTaskRow| {
        task.row.owner == *owner
            && context_id.as_ref().is_none_or(|context| task.row.context_id == *context)
            && states.is_none_or(|states| states.contains(&task.state))
            && after.is_none_or(|after| task.row.updated_at > after)
    };
    let mut found: Vec<_> = state.tasks.iter().filter(|(_, task)| is_listed(task)).collect();
    found.sort_by_key(|(id, task)| Reverse((task.row.updated_at, (*id).clone())));
    found.into_iter().map(|(id, _)| id.clone()).collect()
}

#[async_trait]
impl TaskStore for MemoryStore {
    async fn task(&self, owner: &str, id: &RunId) -> Result<Option<StoredTask>, StoreError> {
        self.call(|state| stored(state, id).filter(|found| found.task.owner == owner))
    }

    async fn task_of_message(&self, owner: &str, message_id: &str) -> Result<Option<StoredTask>, StoreError> {
        self.call(|state| {
            let is_its = |task: &StoredTaskRow| task.row.owner == owner && task.row.message_id == message_id;
            let id = state.tasks.iter().find(|(_, task)| is_its(task))?.0;
            stored(state, id)
        })
    }

    async fn task_of_run(&self, id: &RunId) -> Result<Option<TaskRow>, StoreError> {
        self.call(|state| state.tasks.get(id).map(|task| task.row.clone()))
    }

    async fn put_messages(&self, id: &RunId, known: &str, messages: &str) -> Result<bool, StoreError> {
        self.call(|state| match state.tasks.get_mut(id).filter(|task| task.row.messages == known) {
            Some(task) => {
                messages.clone_into(&mut task.row.messages);
                true
            }
            None => false,
        })
    }

    async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<StoredTask>, StoreError> {
        self.call(|state| {
            let found = matching(state, filter).into_iter().filter_map(|id| stored(state, &id));
            let is_after = |found: &StoredTask| {
                let place = (found.task.updated_at, found.run.id.clone());
                filter.cursor.as_ref().is_none_or(|cursor| place < *cursor)
            };
            let without_view = |found: StoredTask| {
                let run = Run { view: serde_json::Value::Null, ..found.run };
                StoredTask { run, ..found }
            };
            first(found.filter(is_after).map(without_view), filter.limit)
        })
    }

    async fn count_tasks(&self, filter: &TaskFilter) -> Result<u64, StoreError> {
        self.call(|state| matching(state, filter).len() as u64)
    }

    async fn put_push(&self, push: &PushRow) -> Result<bool, StoreError> {
        self.call(|state| put(state, push))
    }

    async fn pushes(&self, task_id: &RunId) -> Result<Vec<PushRow>, StoreError> {
        self.call(|state| state.pushes.values().filter(|push| push.task_id == *task_id).cloned().collect())
    }

    async fn remove_push(&self, task_id: &RunId, id: &str) -> Result<(), StoreError> {
        self.call(|state| drop(state.pushes.remove(&(task_id.clone(), id.to_owned()))))
    }

    async fn due_pushes(&self, now: Timestamp, limit: u32) -> Result<Vec<PushRow>, StoreError> {
        self.call(|state| {
            let is_due = |push: &&PushRow| {
                let last = state.runs.get(&push.task_id).map_or(0, |run| run.last_event);
                push.state == PushState::Active && push.next_at <= now && last > push.event
            };
            let mut due: Vec<PushRow> = state.pushes.values().filter(is_due).cloned().collect();
            due.sort_by_key(|push| push.next_at);
            first(due, limit)
        })
    }
}
