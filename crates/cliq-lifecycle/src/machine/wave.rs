//! Waves: tasks that are done at the same time.

use cliq_gateway::SignalType;
use serde_json::json;

use super::plan::wave_number;
use super::{Context, Effects};
use crate::model::{
    Brief, Plan, Purpose, QuestionSubject, Stage, StartReason, TaskLoop, WaitingFor, Work, WorkId,
};
use crate::role::Role;

impl Plan {
    pub(super) fn begin_wave(&mut self, wave: u32, context: &Context<'_>, effects: &mut Effects) {
        self.works.clear();
        self.shared_files.clear();
        (self.wave, self.wave_over) = (wave, false);
        self.completed.retain(|id| matches!(id, WorkId::Task { wave: of, .. } if *of < wave));
        let tasks = self.file.waves.get(wave as usize - 1).map_or(0, |spec| spec.tasks.len());
        for task in 1..=u32::try_from(tasks).unwrap_or(u32::MAX) {
            let id = WorkId::Task { wave, task };
            let role = self.first_role(id, context);
            self.works.insert(id, Work::queued(role, None));
        }
        effects.note("wave", json!({"wave": wave, "tasks": tasks}));
    }

    fn first_role(&self, id: WorkId, context: &Context<'_>) -> Role {
        let is_bare = self.task(id).is_some_and(|spec| spec.body.is_empty());
        match context.config.task_loop {
            TaskLoop::Signals => Role::Coder,
            TaskLoop::Markers if is_bare && context.config.business_analyst => Role::BusinessAnalyst,
            TaskLoop::Markers => Role::Developer,
        }
    }

    /// Returns the state of the waves for people.
    pub(super) fn wave_summary(&self) -> String {
        let (wave, last) = (self.wave, self.file.waves.len());
        match (wave, self.wave_over) {
            (0, _) => "the architect is at work, and wave 1 is next".to_owned(),
            (_, false) => format!("wave {wave} of {last} is not over"),
            (_, true) if wave as usize >= last => format!("wave {wave} was the last one"),
            (_, true) => format!("the next one is {}", wave + 1),
        }
    }

    pub(super) fn task_finished(
        &mut self,
        wave: u32,
        task: u32,
        context: &Context<'_>,
        effects: &mut Effects,
    ) -> Result<(), String> {
        let id = WorkId::Task { wave, task };
        if context.config.task_loop == TaskLoop::Markers {
            return Err(format!(
                "task {id} is complete once an auditor says AUDIT_PASSED, and not by a signal"
            ));
        }
        if !self.is_in_wave() || wave != self.wave {
            return Err(format!("{id} is not of the wave that is worked on: {}", self.wave_summary()));
        }
        let tasks = self.works.len();
        let Some(work) = self.works.get(&id) else {
            return Err(format!("wave {wave} has {tasks} tasks, and no task {task}"));
        };
        match work.stage {
            Stage::Complete => {
                effects.ignored = Some("the task is complete already");
                return Ok(());
            }
            Stage::Running { job, .. } => self.settle_job(job),
            _ => {}
        }
        self.questions.retain(|question| question.about != QuestionSubject::Work(id));
        self.complete(id, effects);
        Ok(())
    }

    /// A task is done, unless another task needs more of it.
    pub(super) fn complete(&mut self, id: WorkId, effects: &mut Effects) {
        if self.begin_additions(id, effects) {
            return;
        }
        if let Some(work) = self.works.get_mut(&id) {
            work.stage = Stage::Complete;
            work.brief = None;
        }
        self.completed.insert(id);
        effects.note("task_complete", json!({"task": id}));
        self.release(id);
    }

    pub(super) fn fail(&mut self, id: WorkId, why: String, effects: &mut Effects) {
        effects.note("task_failed", json!({"task": id, "why": why}));
        if let Some(work) = self.works.get_mut(&id) {
            work.stage = Stage::Failed { why };
        }
        self.release(id);
    }

    /// Files that tasks of the wave change at the same time, for the merge of their branches; `None` without any.
    pub(super) fn merge_brief(&self) -> Option<Brief> {
        let lines: Vec<String> = self
            .shared_files
            .iter()
            .map(|file| match file.holder {
                Some(holder) => format!("- {}: changed by {} and by {holder}", file.path, file.task),
                None => format!("- {}: changed by {}", file.path, file.task),
            })
            .collect();
        let text = format!(
            "Tasks that could not wait for one another change the same files:\n\n{}",
            lines.join("\n")
        );
        (!lines.is_empty()).then_some(Brief { why: StartReason::MergeBranches, text })
    }

    /// Starts the changes that other tasks need of this one. `false` if there are none.
    pub(super) fn begin_additions(&mut self, id: WorkId, effects: &mut Effects) -> bool {
        let Some(work) = self.works.get_mut(&id).filter(|work| !work.additions.is_empty()) else {
            return false;
        };
        let text = std::mem::take(&mut work.additions).join("\n\n");
        effects.note("additions", json!({"task": id, "text": text}));
        let role = match work.stage {
            Stage::Running { role: Role::Coder, .. } | Stage::Held { role: Role::Coder, .. } => Role::Coder,
            Stage::Queued { role: Role::Coder } => Role::Coder,
            _ => Role::Developer,
        };
        work.brief = Some(Brief { why: StartReason::Addition, text });
        work.stage = Stage::Queued { role };
        true
    }

    /// Tasks that waited for a file of this one go on.
    fn release(&mut self, done: WorkId) {
        for work in self.works.values_mut() {
            if let Stage::Held { role, by: WaitingFor::File { holder, .. } } = &work.stage
                && *holder == done
            {
                work.stage = Stage::Queued { role: *role };
            }
        }
    }

    /// Begins the next wave, or the review, and leaves failed tasks behind.
    pub(super) fn advance_wave(&mut self, effects: &mut Effects) -> Result<(), String> {
        if !self.is_stuck() {
            return Err(format!("there is nothing to leave behind: {}", self.wave_summary()));
        }
        effects.note("advanced", json!({"wave": self.wave}));
        self.end_wave(effects);
        Ok(())
    }

    pub(super) fn retry_wave(&mut self, context: &Context<'_>, effects: &mut Effects) -> Result<(), String> {
        let is_lost = |work: &Work| matches!(work.stage, Stage::Failed { .. } | Stage::SetAside { .. });
        let lost: Vec<WorkId> = self.tasks().filter(|(_, work)| is_lost(work)).map(|(id, _)| id).collect();
        if !self.is_in_wave() || lost.is_empty() {
            return Err(format!("there is no failed task to do again: {}", self.wave_summary()));
        }
        for id in &lost {
            let role = self.first_role(*id, context);
            let additions = self.works.remove(id).map(|work| work.additions).unwrap_or_default();
            self.works.insert(*id, Work { additions, ..Work::queued(role, None) });
        }
        effects.note("retried", json!({"wave": self.wave, "tasks": lost}));
        Ok(())
    }

    /// After every step: whether the wave is over, and what is left to ask.
    pub(super) fn wave_may_be_over(&mut self, effects: &mut Effects) {
        let merges = self.jobs.iter().any(|job| matches!(job.purpose, Purpose::Merge { .. }))
            || self.questions.iter().any(|question| matches!(question.about, QuestionSubject::Merge { .. }));
        if !self.is_in_wave() || merges || self.tasks().next().is_none() {
            return;
        }
        if self.tasks().all(|(_, work)| work.stage == Stage::Complete) {
            if self.file.branches {
                // No agent starts while a person is asked (docs/signals.md). Checked again after the answer.
                if !self.questions.is_empty() {
                    return;
                }
                let (wave, brief) = (self.wave, self.merge_brief());
                self.add_job(Purpose::Merge { wave }, None, brief);
            } else {
                self.end_wave(effects);
            }
            return;
        }
        let ended =
            |stage: &Stage| matches!(stage, Stage::Complete | Stage::Failed { .. } | Stage::SetAside { .. });
        if self.tasks().all(|(_, work)| ended(&work.stage)) {
            let aside = self.tasks().find_map(|(id, work)| match &work.stage {
                Stage::SetAside { why } => Some((id, why.clone())),
                _ => None,
            });
            if let Some((id, why)) = aside {
                // All others have gone first; now only a person can help.
                let question = self.ask(
                    format!("Task {id} cannot be completed: {why}"),
                    QuestionSubject::Work(id),
                    effects,
                );
                if let Some(work) = self.works.get_mut(&id) {
                    work.stage = Stage::Held { role: Role::Developer, by: WaitingFor::Person { question } };
                }
            } else if !effects.notes.iter().any(|note| note.kind == "stuck") {
                effects.note("stuck", json!({"wave": self.wave}));
            }
        }
    }

    pub(super) fn end_wave(&mut self, effects: &mut Effects) {
        self.wave_over = true;
        effects.note("wave_over", json!({"wave": self.wave}));
        if (self.wave as usize) < self.file.waves.len() {
            effects.emit.push((SignalType::ImplementWave, wave_number(self.wave + 1)));
        } else {
            self.begin_review(effects);
        }
    }
}
