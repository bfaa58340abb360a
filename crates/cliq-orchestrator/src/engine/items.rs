//! Phases with expressions: those that are skipped, and those that work on the items of a list (docs/expressions.md).

use cliq_workflow::PhaseId;
use serde_json::Value;

use super::machine::Pipeline;
use super::record::{PhaseRecord, PhaseState, Task};
use super::{Effect, MergeOutcome, Report, SkipReason};

/// Result of evaluating the expressions of a phase.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The phase runs.
    Run,
    /// The condition of the phase is false.
    Skip,
    /// The phase works on these items.
    Items(Vec<DecidedItem>),
    /// An expression has no value, or one that does not fit.
    Failed(String),
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidedItem {
    /// The item.
    pub value: Value,
    /// Whether the condition of the phase holds for it.
    pub runs: bool,
}

/// Items of a phase.
#[derive(Debug, Clone)]
pub(super) struct Items {
    pub(super) values: Vec<Value>,
    pub(super) cells: Vec<PhaseRecord>,
    /// Items that are queued, work, or wait for their next attempt.
    active: usize,
    /// Items that have not ended.
    open: usize,
}

impl Items {
    /// Items that have all ended.
    pub(super) fn ended(values: Vec<Value>, cells: Vec<PhaseRecord>) -> Self {
        Self { values, cells, active: 0, open: 0 }
    }

    pub(super) fn assert_invariants(&self) {
        let count =
            |holds: &dyn Fn(&PhaseState) -> bool| self.cells.iter().filter(|c| holds(&c.state)).count();
        let is_active = |state: &PhaseState| {
            matches!(state, PhaseState::Queued | PhaseState::Working | PhaseState::Delayed)
        };
        assert_eq!(count(&is_active), self.active, "active items");
        let has_ended = |state: &PhaseState| {
            matches!(state, PhaseState::Completed | PhaseState::Skipped | PhaseState::Failed(_))
        };
        assert_eq!(count(&|state| !has_ended(state)), self.open, "open items");
    }
}

impl Pipeline {
    /// Value of an item.
    #[must_use]
    pub fn item(&self, id: PhaseId) -> Option<&Value> {
        let items = self.phases.get(id.index())?.items.as_ref()?;
        items.values.get(id.item()? as usize)
    }

    /// Items of a phase; `None` if its list is not known.
    #[must_use]
    pub fn item_values(&self, phase: PhaseId) -> Option<Vec<Value>> {
        Some(self.phases.get(phase.index())?.items.as_ref()?.values.clone())
    }

    /// Number of items of a phase; `None` if its list is not known.
    #[must_use]
    pub fn item_count(&self, phase: PhaseId) -> Option<u32> {
        let items = self.phases.get(phase.index())?.items.as_ref()?;
        u32::try_from(items.cells.len()).ok()
    }

    /// Starts a phase that has a condition or a list: evaluates its expressions, or starts its items. Returns `false` for other phases.
    pub(super) fn start_conditional(&mut self, phase: PhaseId, out: &mut Vec<Effect>) -> bool {
        let spec = self.workflow.phase(phase);
        let (has_condition, has_list) = (spec.when.is_some(), spec.for_each.is_some());
        if !has_condition && !has_list {
            return false;
        }
        let cell = &mut self.phases[phase.index()];
        let lacks_list = has_list && cell.items.is_none();
        if !cell.is_decided || lacks_list {
            cell.state = PhaseState::Deciding;
            // A gate that routes to a skipped phase requires it to run.
            let ignores_when = cell.is_decided;
            self.forget_items(phase);
            out.push(Effect::Decide { phase, ignores_when });
            return true;
        }
        if has_list {
            self.working -= 1;
            self.start_items(phase, out);
        }
        has_list
    }

    /// The expressions of a phase were evaluated.
    pub(super) fn decided(&mut self, phase: PhaseId, decision: Decision, out: &mut Vec<Effect>) {
        self.working -= 1;
        if self.is_stopping() {
            return self.stopped(phase, out);
        }
        if self.is_ending() {
            // Nothing starts any more; a resumed run decides anew.
            return self.enqueue(Task::Start(phase));
        }
        self.cell_mut(phase).is_decided = true;
        match decision {
            Decision::Failed(reason) => {
                self.cell_mut(phase).is_decided = false;
                self.escalate(phase, &reason, out);
            }
            Decision::Skip => self.skip_with_dependents(phase, SkipReason::Condition, out),
            Decision::Items(items) if !items.iter().any(|item| item.runs) => {
                self.skip_with_dependents(phase, SkipReason::NoItems, out);
            }
            Decision::Items(items) => {
                self.make_items(phase, items);
                self.start_items(phase, out);
            }
            Decision::Run => {
                self.working += 1;
                let event = self.gate_start(phase);
                self.start(phase, event, out);
            }
        }
    }

    fn make_items(&mut self, phase: PhaseId, items: Vec<DecidedItem>) {
        self.forget_items(phase);
        let cell = &mut self.phases[phase.index()];
        let retired = std::mem::take(&mut cell.retired);
        let record = |(n, item): (usize, &DecidedItem)| {
            let mut record = PhaseRecord::new(0, None);
            record.activations = retired.get(n).copied().unwrap_or(0);
            if !item.runs {
                record.state = PhaseState::Skipped;
            }
            record
        };
        let cells: Vec<PhaseRecord> = items.iter().enumerate().map(record).collect();
        let open = items.iter().filter(|item| item.runs).count();
        let values = items.into_iter().map(|item| item.value).collect();
        cell.items = Some(Box::new(Items { values, cells, active: 0, open }));
    }

    /// Starts the items of a phase: those that have not ended, or after a route those that the gate chose.
    fn start_items(&mut self, phase: PhaseId, out: &mut Vec<Effect>) {
        let chosen = self.items_of_route(phase);
        let cell = &mut self.phases[phase.index()];
        let is_routed = cell.routed_by.is_some();
        cell.state = PhaseState::Items;
        let Some(items) = cell.items.as_mut() else { return };
        if is_routed && items.open == 0 {
            for (n, item) in items.cells.iter_mut().enumerate() {
                let runs = chosen.as_ref().is_none_or(|chosen| chosen.contains(&n));
                if runs && item.state != PhaseState::Skipped {
                    item.state = PhaseState::Waiting;
                    items.open += 1;
                }
            }
        }
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let report =
            Report::ItemsStarted { phase, items: count(items.cells.len()), starting: count(items.open) };
        out.push(Effect::Report(report));
        self.fill(phase);
        self.finish_items(phase, out);
    }

    /// Items that the gate whose route is worked on chose in its verdict; `None` for all.
    fn items_of_route(&self, phase: PhaseId) -> Option<Vec<usize>> {
        let gate = self.gate(self.routed_by(phase)?)?;
        let chosen = gate.history().last()?.verdict.extra.get("items")?.as_array()?;
        let known = self.item_count(phase)? as usize;
        let index =
            |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|n| *n < known);
        let chosen: Vec<usize> = chosen.iter().filter_map(index).collect();
        (!chosen.is_empty()).then_some(chosen)
    }

    /// Queues items, as many as may work at the same time.
    pub(super) fn fill(&mut self, phase: PhaseId) {
        let limit = self.workflow.phase(phase).for_each.as_ref().and_then(|list| list.max_parallel);
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        let Some(items) = self.phases[phase.index()].items.as_mut() else { return };
        let waiting = items.cells.iter().zip(0u32..).filter(|(item, _)| item.state == PhaseState::Waiting);
        let next: Vec<u32> = waiting.map(|(_, n)| n).take(limit.saturating_sub(items.active)).collect();
        items.active += next.len();
        for item in next {
            self.enqueue(Task::Start(phase.with_item(item)));
        }
    }

    /// An item does not work any more, and has not ended.
    pub(super) fn item_rests(&mut self, phase: PhaseId) {
        if let Some(items) = self.phases[phase.index()].items.as_mut() {
            items.active -= 1;
        }
    }

    /// An item is complete, or the phase goes on without it.
    pub(super) fn item_ended(&mut self, item: PhaseId, out: &mut Vec<Effect>) {
        let phase = item.whole();
        self.item_rests(phase);
        if let Some(items) = self.phases[phase.index()].items.as_mut() {
            items.open -= 1;
        }
        if self.phases[phase.index()].state == PhaseState::Items {
            self.fill(phase);
        }
        self.finish_items(phase, out);
    }

    fn finish_items(&mut self, phase: PhaseId, out: &mut Vec<Effect>) {
        let cell = &self.phases[phase.index()];
        let is_over = cell.items.as_ref().is_some_and(|items| items.open == 0);
        if !is_over || !matches!(cell.state, PhaseState::Items | PhaseState::Stopped) {
            return;
        }
        let list = self.workflow.phase(phase).for_each.as_ref();
        if list.is_some_and(|list| list.worktrees) {
            // It has its turn like work: nothing is merged once the run ends.
            self.enqueue(Task::Reevaluate(phase));
        } else {
            self.complete(phase, out);
        }
    }

    /// Merges the worktrees of a phase, or goes on with it after a conflict.
    pub(super) fn merge(&mut self, phase: PhaseId, out: &mut Vec<Effect>) {
        let cell = &mut self.phases[phase.index()];
        cell.state = PhaseState::Merging;
        let resolved = cell.conflict;
        out.push(Effect::Merge { phase, resolved });
    }

    /// Worktrees were merged, all or up to a conflict.
    pub(super) fn merged(&mut self, phase: PhaseId, outcome: MergeOutcome, out: &mut Vec<Effect>) {
        self.working -= 1;
        let resolver = self.workflow.phase(phase).for_each.as_ref().and_then(|list| list.on_conflict);
        if self.is_stopping() {
            return self.stopped(phase, out);
        }
        match outcome {
            MergeOutcome::Done => {
                self.cell_mut(phase).conflict = None;
                self.complete(phase, out);
            }
            MergeOutcome::Failed(reason) => self.escalate(phase, &reason, out),
            MergeOutcome::Conflict { item, files, notes } => {
                self.cell_mut(phase).conflict = Some(item);
                let shown = if notes.is_empty() { files.join(", ") } else { notes.join(", ") };
                let report = Report::MergeConflict { phase, item, files: files.clone(), notes };
                out.push(Effect::Report(report));
                let Some(to) = resolver else {
                    let reason = format!(
                        "item {item} conflicts with those merged before it: {shown}; resolve the conflict in the workspace: edit the file, or take a side (`git checkout --ours -- FILE` or `--theirs`), and confirm it with `git add FILE` or `git rm FILE`; then `cliq run --resume`"
                    );
                    return self.escalate(phase, &reason, out);
                };
                out.push(Effect::DeliverConflict { phase, to, item, files });
                self.send_back(phase, to, out);
            }
        }
    }

    /// Records the failure of an item without which the phase goes on. Returns `false` if it does not.
    pub(super) fn goes_on_without(&mut self, item: PhaseId, reason: &str, out: &mut Vec<Effect>) -> bool {
        let list = self.workflow.phase(item).for_each.as_ref();
        if item.item().is_none() || !list.is_some_and(|list| list.continues_on_failure) {
            return false;
        }
        self.cell_mut(item).state = PhaseState::Failed(reason.to_owned());
        out.push(Effect::Report(Report::ItemFailed { phase: item, reason: reason.to_owned() }));
        self.item_ended(item, out);
        true
    }

    /// Queues the items of an interrupted phase again. Returns `false` if it has none.
    pub(super) fn resume_items(&mut self, phase: PhaseId, was_parked: bool) -> bool {
        let Some(items) = self.phases[phase.index()].items.as_mut() else { return false };
        let mut again = Vec::new();
        for (item, n) in items.cells.iter_mut().zip(0u32..) {
            let waited = item.wait.take().is_some();
            item.is_exempt = false;
            let id = phase.with_item(n);
            match item.state {
                PhaseState::Working if was_parked && waited => again.push(Task::Wake(id)),
                PhaseState::Working => again.push(Task::Resume(id)),
                PhaseState::Escalated(_) | PhaseState::Stopped => {
                    item.failed_attempts = 0;
                    items.active += 1;
                    again.push(Task::Resume(id));
                }
                _ => {}
            }
        }
        if matches!(self.phases[phase.index()].state, PhaseState::Escalated(_) | PhaseState::Stopped) {
            self.phases[phase.index()].state = PhaseState::Items;
        }
        again.into_iter().for_each(|task| self.enqueue(task));
        let is_over = self.phases[phase.index()].items.as_ref().is_some_and(|items| items.open == 0);
        match self.phases[phase.index()].state {
            // All items have ended, and their worktrees were not merged yet.
            PhaseState::Items | PhaseState::Merging if is_over => self.enqueue(Task::Reevaluate(phase)),
            PhaseState::Items => self.fill(phase),
            _ => {}
        }
        true
    }

    /// Forgets the items of a phase. Numbers of their activations are not used again.
    pub(super) fn forget_items(&mut self, phase: PhaseId) {
        let cell = &mut self.phases[phase.index()];
        let Some(items) = cell.items.take() else { return };
        self.delayed -= items.cells.iter().filter(|item| item.state == PhaseState::Delayed).count();
        cell.retired = items.cells.iter().map(|item| item.activations).collect();
    }

    /// A phase is skipped, and with it those that depend on skipped phases only.
    fn skip_with_dependents(&mut self, phase: PhaseId, reason: SkipReason, out: &mut Vec<Effect>) {
        let mut skipped = self.skip(phase, reason, out);
        while let Some(phase) = skipped.pop_front() {
            let more = self.skip(phase, SkipReason::Dependencies, out);
            skipped.extend(more);
        }
    }

    /// A phase is skipped. Returns the dependents that are skipped with it.
    pub(super) fn skip(
        &mut self,
        phase: PhaseId,
        reason: SkipReason,
        out: &mut Vec<Effect>,
    ) -> std::collections::VecDeque<PhaseId> {
        self.phases[phase.index()].state = PhaseState::Skipped;
        out.push(Effect::Report(Report::PhaseSkipped { phase, reason }));
        let skipped = self.settle(phase);
        self.release_gate(phase);
        skipped
    }
}
