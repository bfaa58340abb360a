//! Phases and items of the machine. A state changes in [`Phases::set_state`] only, which keeps the counts.

use std::collections::VecDeque;

use cliq_gate::Gate;
use cliq_workflow::{PhaseId, ValidatedWorkflow};
use serde_json::Value;

use super::record::{Activity, PhaseState};

/// Part of a run that has a state: a phase, or an item of one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unit {
    state: PhaseState,
    pub(super) activations: u32,
    /// First of the interrupted activations that the present one continues.
    pub(super) continues: Option<u32>,
    /// Last activation that completed, since the phase was reset.
    pub(super) completed: Option<u32>,
    /// Attempts that failed since the phase started.
    pub(super) failed_attempts: u32,
}

impl Unit {
    fn new(state: PhaseState, activations: u32) -> Self {
        Self { state, activations, continues: None, completed: None, failed_attempts: 0 }
    }

    pub(super) fn state(&self) -> &PhaseState {
        &self.state
    }
}

/// Phase with everything that its items do not have.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PhaseRecord {
    unit: Unit,
    /// Dependencies that are not done.
    pub(super) blockers: usize,
    /// First end of the phase. A gate may route to it later: what depends on it does not depend on when.
    pub(super) done: Option<Done>,
    /// The gate that it works for.
    pub(super) routed_by: Option<PhaseId>,
    /// Gates that routed to it while it worked for another.
    pub(super) waiting_gates: VecDeque<PhaseId>,
    /// State of a gate. Boxed, as most phases are none.
    pub(super) gate: Option<Box<GateRecord>>,
    /// Whether its expressions were evaluated.
    pub(super) is_decided: bool,
    list: ItemList,
}

/// First end of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    /// The phase completed, or is a support phase.
    Completed,
    /// The phase was skipped.
    Skipped,
}

/// State of a gate.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GateRecord {
    pub(super) machine: Gate,
    /// Number of verdicts and resets. Never decreases, so that each evaluation has a number of its own.
    pub(super) evaluations: u32,
}

/// List of a phase.
#[derive(Debug, Clone, PartialEq)]
enum ItemList {
    /// Not evaluated yet, or the phase has none.
    Unknown,
    /// To be evaluated again. Activations of its items, by index: their numbers are not used again.
    Forgotten(Vec<u32>),
    /// Evaluated.
    Known(Box<Items>),
}

/// Items of a phase.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Items {
    values: Vec<Value>,
    units: Vec<Unit>,
    /// Items that are queued, work, or wait for their next attempt.
    active: usize,
    /// Items that have not ended.
    open: usize,
    /// The item whose worktree conflicted last. It outlives the merge: the conflict is resolved by another phase or a person.
    pub(super) conflict: Option<u32>,
}

impl Items {
    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    pub(super) fn units(&self) -> &[Unit] {
        &self.units
    }

    pub(super) fn active(&self) -> usize {
        self.active
    }

    pub(super) fn open(&self) -> usize {
        self.open
    }

    fn is_active(state: &PhaseState) -> bool {
        matches!(state, PhaseState::Queued | PhaseState::Working(_) | PhaseState::Delayed { .. })
    }

    fn is_open(state: &PhaseState) -> bool {
        !matches!(state, PhaseState::Completed | PhaseState::Skipped | PhaseState::Failed(_))
    }
}

impl PhaseRecord {
    /// Record of a phase that has not begun.
    pub(super) fn new(blockers: usize, gate: Option<Gate>) -> Self {
        Self {
            unit: Unit::new(PhaseState::Waiting, 0),
            blockers,
            done: None,
            routed_by: None,
            waiting_gates: VecDeque::new(),
            gate: gate.map(|machine| Box::new(GateRecord { machine, evaluations: 0 })),
            is_decided: false,
            list: ItemList::Unknown,
        }
    }

    pub(super) fn state(&self) -> &PhaseState {
        &self.unit.state
    }

    /// Items, if the list is known.
    pub(super) fn items(&self) -> Option<&Items> {
        match &self.list {
            ItemList::Known(items) => Some(items),
            ItemList::Unknown | ItemList::Forgotten(_) => None,
        }
    }

    /// As [`PhaseRecord::items`].
    pub(super) fn items_mut(&mut self) -> Option<&mut Items> {
        match &mut self.list {
            ItemList::Known(items) => Some(items),
            ItemList::Unknown | ItemList::Forgotten(_) => None,
        }
    }
}

/// Numbers of phases and items by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    /// Those that work, decide or merge.
    pub(super) working: usize,
    /// Those of them that have waited: they do not count against `max_parallel` until they end.
    pub(super) exempt: usize,
    /// Those whose next attempt waits for its time.
    pub(super) delayed: usize,
}

impl Counts {
    fn of(state: &PhaseState) -> Self {
        let (working, exempt, delayed) = match state {
            PhaseState::Working(Activity::Busy) | PhaseState::Deciding | PhaseState::Merging => (1, 0, 0),
            PhaseState::Working(Activity::Waits(_) | Activity::Resumed) => (1, 1, 0),
            PhaseState::Delayed { .. } => (0, 0, 1),
            PhaseState::Waiting
            | PhaseState::Queued
            | PhaseState::Items
            | PhaseState::Routed(_)
            | PhaseState::Completed
            | PhaseState::Skipped
            | PhaseState::Failed(_)
            | PhaseState::Escalated(_)
            | PhaseState::Stopped => (0, 0, 0),
        };
        Self { working, exempt, delayed }
    }

    fn add(&mut self, state: &PhaseState) {
        let Self { working, exempt, delayed } = Self::of(state);
        self.working += working;
        self.exempt += exempt;
        self.delayed += delayed;
    }

    fn remove(&mut self, state: &PhaseState) {
        let Self { working, exempt, delayed } = Self::of(state);
        self.working -= working;
        self.exempt -= exempt;
        self.delayed -= delayed;
    }

    /// Replaces a state, and returns the state before.
    fn replace(&mut self, slot: &mut PhaseState, state: PhaseState) -> PhaseState {
        self.add(&state);
        let before = std::mem::replace(slot, state);
        self.remove(&before);
        before
    }
}

/// Phases of a run with their items, and how many are in which state.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Phases {
    records: Vec<PhaseRecord>,
    counts: Counts,
}

impl Phases {
    /// Phases that have not begun.
    pub(super) fn new(records: Vec<PhaseRecord>) -> Self {
        Self { records, counts: Counts::default() }
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PhaseRecord> {
        self.records.iter_mut()
    }

    /// As [`Phases::phase`]. `None` if there is no such phase.
    pub(super) fn get(&self, id: PhaseId) -> Option<&PhaseRecord> {
        self.records.get(id.index())
    }

    /// The phase of an id, also if the id is that of an item.
    pub(super) fn phase(&self, id: PhaseId) -> &PhaseRecord {
        &self.records[id.index()]
    }

    /// As [`Phases::phase`].
    pub(super) fn phase_mut(&mut self, id: PhaseId) -> &mut PhaseRecord {
        &mut self.records[id.index()]
    }

    /// The phase or the item of an id. `None` if there is no such item.
    pub(super) fn unit(&self, id: PhaseId) -> Option<&Unit> {
        let record = self.records.get(id.index())?;
        match id.item() {
            None => Some(&record.unit),
            Some(item) => record.items()?.units.get(item as usize),
        }
    }

    /// As [`Phases::unit`].
    pub(super) fn unit_mut(&mut self, id: PhaseId) -> Option<&mut Unit> {
        let record = self.records.get_mut(id.index())?;
        match id.item() {
            None => Some(&mut record.unit),
            Some(item) => record.items_mut()?.units.get_mut(item as usize),
        }
    }

    /// State of a phase or an item. An item that does not exist waits.
    pub(super) fn state(&self, id: PhaseId) -> &PhaseState {
        self.unit(id).map_or(&PhaseState::Waiting, |unit| &unit.state)
    }

    /// Changes the state of a phase or an item, and the counts with it. Returns `false` if there is no such item.
    pub(super) fn set_state(&mut self, id: PhaseId, state: PhaseState) -> bool {
        let Some(record) = self.records.get_mut(id.index()) else { return false };
        let Some(item) = id.item() else {
            self.counts.replace(&mut record.unit.state, state);
            return true;
        };
        let Some(items) = record.items_mut() else { return false };
        let Some(unit) = items.units.get_mut(item as usize) else { return false };
        items.open += usize::from(Items::is_open(&state));
        items.active += usize::from(Items::is_active(&state));
        let before = self.counts.replace(&mut unit.state, state);
        items.open -= usize::from(Items::is_open(&before));
        items.active -= usize::from(Items::is_active(&before));
        true
    }

    /// Every phase and every item of a workflow, in the order of the file.
    pub(super) fn units<'a>(
        &'a self,
        workflow: &'a ValidatedWorkflow,
    ) -> impl Iterator<Item = (PhaseId, &'a Unit)> {
        workflow.phases().zip(&self.records).flat_map(|((id, _), record)| {
            let items = record.items().map_or(&[][..], Items::units);
            let items = items.iter().zip(0u32..).map(move |(unit, item)| (id.with_item(item), unit));
            std::iter::once((id, &record.unit)).chain(items)
        })
    }

    /// Sets the items of a phase, with their states.
    pub(super) fn set_items(&mut self, phase: PhaseId, items: Vec<(Value, PhaseState)>) {
        self.forget_items(phase);
        let record = &mut self.records[phase.index()];
        let retired = match std::mem::replace(&mut record.list, ItemList::Unknown) {
            ItemList::Forgotten(activations) => activations,
            ItemList::Unknown | ItemList::Known(_) => Vec::new(),
        };
        let mut known = Items { values: Vec::new(), units: Vec::new(), active: 0, open: 0, conflict: None };
        for (n, (value, state)) in items.into_iter().enumerate() {
            self.counts.add(&state);
            known.open += usize::from(Items::is_open(&state));
            known.active += usize::from(Items::is_active(&state));
            known.values.push(value);
            known.units.push(Unit::new(state, retired.get(n).copied().unwrap_or(0)));
        }
        record.list = ItemList::Known(Box::new(known));
    }

    /// Forgets the items of a phase. Numbers of their activations are not used again.
    pub(super) fn forget_items(&mut self, phase: PhaseId) {
        let list = &mut self.records[phase.index()].list;
        let ItemList::Known(items) = list else { return };
        items.units.iter().for_each(|unit| self.counts.remove(&unit.state));
        *list = ItemList::Forgotten(items.units.iter().map(|unit| unit.activations).collect());
    }

    /// Compares the counts with a recount of the states; for tests.
    pub(super) fn assert_counts(&self) {
        let mut counts = Counts::default();
        for record in &self.records {
            let items = record.items().map_or(&[][..], Items::units);
            std::iter::once(&record.unit).chain(items).for_each(|unit| counts.add(&unit.state));
        }
        assert_eq!(counts, self.counts);
        for items in self.records.iter().filter_map(PhaseRecord::items) {
            let count =
                |holds: fn(&PhaseState) -> bool| items.units.iter().filter(|unit| holds(&unit.state)).count();
            assert_eq!(count(Items::is_active), items.active, "active items");
            assert_eq!(count(Items::is_open), items.open, "open items");
            assert_eq!(items.units.len(), items.values.len());
        }
    }
}
