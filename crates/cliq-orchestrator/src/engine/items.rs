//! Phases with expressions: those that are skipped, and those that work on the items of a list (docs/expressions.md).

use cliq_workflow::PhaseId;
use serde_json::Value;

use super::machine::Pipeline;
use super::phases::Items;
use super::record::{Activity, PhaseState, Task};
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

impl Pipeline {
    /// Value of an item.
    #[must_use]
    pub fn item(&self, id: PhaseId) -> Option<&Value> {
        self.items(id)?.values().get(id.item()? as usize)
    }

    /// Items of a phase; `None` if its list is not known.
    #[must_use]
    pub fn item_values(&self, phase: PhaseId) -> Option<Vec<Value>> {
        Some(self.items(phase)?.values().to_vec())
    }

    /// Number of items of a phase; `None` if its list is not known.
    #[must_use]
    pub fn item_count(&self, phase: PhaseId) -> Option<u32> {
        u32::try_from(self.items(phase)?.values().len()).ok()
    }

    fn items(&self, phase: PhaseId) -> Option<&Items> {
        self.phases.get(phase)?.items()
    }

    /// Starts a phase that has a condition or a list: evaluates its expressions, or starts its items. Returns `false` for other phases.
    pub(super) fn start_conditional(&mut self, phase: PhaseId, out: &mut Vec<Effect>) -> bool {
        let spec = self.workflow.phase(phase);
        let (has_condition, has_list) = (spec.when.is_some(), spec.for_each.is_some());
        if !has_condition && !has_list {
            return false;
        }
        let record = self.phases.phase(phase);
        let lacks_list = has_list && record.items().is_none();
        if !record.is_decided || lacks_list {
            // A gate that routes to a skipped phase requires it to run.
            let ignores_when = record.is_decided;
            self.phases.set_state(phase, PhaseState::Deciding);
            self.phases.forget_items(phase);
            out.push(Effect::Decide { phase, ignores_when });
            return true;
        }
        if has_list {
            self.start_items(phase, out);
        }
        has_list
    }

    /// The expressions of a phase were evaluated.
    pub(super) fn decided(&mut self, phase: PhaseId, decision: Decision, out: &mut Vec<Effect>) {
        if self.is_stopping() {
            return self.stopped(phase, out);
        }
        if self.is_ending() {
            // Nothing starts any more; a resumed run decides anew.
            return self.enqueue(Task::Start(phase));
        }
        self.phases.phase_mut(phase).is_decided = !matches!(decision, Decision::Failed(_));
        match decision {
            Decision::Failed(reason) => self.escalate(phase, &reason, out),
            Decision::Skip => self.skip_with_dependents(phase, SkipReason::Condition, out),
            Decision::Items(items) if !items.iter().any(|item| item.runs) => {
                self.skip_with_dependents(phase, SkipReason::NoItems, out);
            }
            Decision::Items(items) => {
                let state = |runs: bool| if runs { PhaseState::Waiting } else { PhaseState::Skipped };
                let items = items.into_iter().map(|item| (item.value, state(item.runs))).collect();
                self.phases.set_items(phase, items);
                self.start_items(phase, out);
            }
            Decision::Run => {
                let event = self.gate_start(phase);
                self.start(phase, event, out);
            }
        }
    }

    /// Starts the items of a phase: those that have not ended, or after a route those that the gate chose.
    fn start_items(&mut self, phase: PhaseId, out: &mut Vec<Effect>) {
        let chosen = self.items_of_route(phase);
        self.phases.set_state(phase, PhaseState::Items);
        let Some(items) = self.items(phase) else { return };
        if self.routed_by(phase).is_some() && items.open() == 0 {
            let runs = |n: usize| chosen.as_ref().is_none_or(|chosen| chosen.contains(&n));
            let again = items.units().iter().enumerate();
            let again = again.filter(|(n, item)| runs(*n) && *item.state() != PhaseState::Skipped);
            let again: Vec<u32> = again.filter_map(|(n, _)| u32::try_from(n).ok()).collect();
            for item in again {
                self.phases.set_state(phase.with_item(item), PhaseState::Waiting);
            }
        }
        let Some(items) = self.items(phase) else { return };
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let report =
            Report::ItemsStarted { phase, items: count(items.values().len()), starting: count(items.open()) };
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
        let Some(items) = self.items(phase) else { return };
        let waiting =
            items.units().iter().zip(0u32..).filter(|(item, _)| *item.state() == PhaseState::Waiting);
        let next: Vec<u32> = waiting.map(|(_, n)| n).take(limit.saturating_sub(items.active())).collect();
        for item in next {
            self.enqueue(Task::Start(phase.with_item(item)));
        }
    }

    /// An item is complete, or the phase goes on without it.
    pub(super) fn item_ended(&mut self, item: PhaseId, out: &mut Vec<Effect>) {
        let phase = item.whole();
        if *self.state(phase) == PhaseState::Items {
            self.fill(phase);
        }
        self.finish_items(phase, out);
    }

    fn finish_items(&mut self, phase: PhaseId, out: &mut Vec<Effect>) {
        let is_over = self.items(phase).is_some_and(|items| items.open() == 0);
        if !is_over || !matches!(self.state(phase), PhaseState::Items | PhaseState::Stopped) {
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
        self.phases.set_state(phase, PhaseState::Merging);
        let resolved = self.items(phase).and_then(|items| items.conflict);
        out.push(Effect::Merge { phase, resolved });
    }

    /// Worktrees were merged, all or up to a conflict.
    pub(super) fn merged(&mut self, phase: PhaseId, outcome: MergeOutcome, out: &mut Vec<Effect>) {
        let resolver = self.workflow.phase(phase).for_each.as_ref().and_then(|list| list.on_conflict);
        if self.is_stopping() {
            return self.stopped(phase, out);
        }
        match outcome {
            MergeOutcome::Done => {
                self.set_conflict(phase, None);
                self.complete(phase, out);
            }
            MergeOutcome::Failed(reason) => self.escalate(phase, &reason, out),
            MergeOutcome::Conflict { item, files, notes } => {
                self.set_conflict(phase, Some(item));
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

    fn set_conflict(&mut self, phase: PhaseId, item: Option<u32>) {
        if let Some(items) = self.phases.phase_mut(phase).items_mut() {
            items.conflict = item;
        }
    }

    /// Records the failure of an item without which the phase goes on. Returns `false` if it does not.
    pub(super) fn goes_on_without(&mut self, item: PhaseId, reason: &str, out: &mut Vec<Effect>) -> bool {
        let list = self.workflow.phase(item).for_each.as_ref();
        if item.item().is_none() || !list.is_some_and(|list| list.continues_on_failure) {
            return false;
        }
        self.phases.set_state(item, PhaseState::Failed(reason.to_owned()));
        out.push(Effect::Report(Report::ItemFailed { phase: item, reason: reason.to_owned() }));
        self.item_ended(item, out);
        true
    }

    /// Queues the items of an interrupted phase again. Returns `false` if it has none.
    pub(super) fn resume_items(&mut self, phase: PhaseId, was_parked: bool) -> bool {
        let Some(items) = self.items(phase) else { return false };
        let mut again = Vec::new();
        for (item, n) in items.units().iter().zip(0u32..) {
            let id = phase.with_item(n);
            match item.state() {
                PhaseState::Working(Activity::Waits(_)) if was_parked => again.push(Task::Wake(id)),
                PhaseState::Working(_) | PhaseState::Escalated(_) | PhaseState::Stopped => {
                    again.push(Task::Resume(id));
                }
                PhaseState::Waiting
                | PhaseState::Queued
                | PhaseState::Deciding
                | PhaseState::Items
                | PhaseState::Merging
                | PhaseState::Delayed { .. }
                | PhaseState::Routed(_)
                | PhaseState::Completed
                | PhaseState::Skipped
                | PhaseState::Failed(_) => {}
            }
        }
        let is_over = items.open() == 0;
        if matches!(self.state(phase), PhaseState::Escalated(_) | PhaseState::Stopped) {
            self.phases.set_state(phase, PhaseState::Items);
        }
        for task in again {
            let id = task.phase();
            let is_working = self.is_working(id);
            if let Some(unit) = self.phases.unit_mut(id).filter(|_| !is_working) {
                unit.failed_attempts = 0;
            }
            self.enqueue(task);
        }
        match self.state(phase) {
            // All items have ended, and their worktrees were not merged yet.
            PhaseState::Items | PhaseState::Merging if is_over => self.enqueue(Task::Reevaluate(phase)),
            PhaseState::Items => self.fill(phase),
            _ => {}
        }
        true
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
        self.phases.set_state(phase, PhaseState::Skipped);
        out.push(Effect::Report(Report::PhaseSkipped { phase, reason }));
        let skipped = self.settle(phase);
        self.release_gate(phase);
        skipped
    }
}
