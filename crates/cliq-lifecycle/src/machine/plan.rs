//! The life of a plan: signals and a person's commands.

use cliq_gateway::SignalType;
use serde_json::{Map, Value, json};

use super::{Command, Context, Effects};
use crate::model::{
    Brief, Infrastructure, Plan, PlanState, Purpose, QuestionSubject, Stage, StartReason, Work, WorkId,
};
use crate::role::Role;

impl Plan {
    pub(super) fn signal(
        &mut self,
        kind: SignalType,
        payload: &Map<String, Value>,
        context: &Context<'_>,
        effects: &mut Effects,
    ) -> Result<(), String> {
        use PlanState as P;
        use SignalType as S;
        let number = |key: &str| {
            payload.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
        };
        let body = || payload.get("body").and_then(Value::as_str).unwrap_or_default().to_owned();
        match (self.state, kind) {
            // A planner is at work. After a crash there is none.
            (P::Planning, S::PlanStart) if !self.works.is_empty() => {
                effects.ignored = Some("the plan is being planned already");
            }
            (P::Ready | P::Planning, S::PlanStart) => self.begin_planning(context, effects),
            (P::Planning, S::PlannerDraftFinished) => {
                let planner = payload.get("planner_id");
                effects.note("draft", json!({"planner": planner}));
                let number = planner.and_then(|id| match id {
                    Value::String(id) => id.rsplit('-').next()?.parse().ok(),
                    id => u32::try_from(id.as_u64()?).ok(),
                });
                if let Some(planner) = number {
                    self.draft_finished(planner, effects);
                }
            }
            (P::Planning, S::PlannerFinished) => self.planned(context, effects)?,
            (P::Ready, S::ImplementWave) => {
                let wave = number("wave_number");
                self.read_file(context)?;
                if wave != 1 {
                    return Err(format!(
                        "wave {wave} cannot start: no wave has started yet, so the next one is 1"
                    ));
                }
                self.state = P::Implementing;
                if context.config.architect && !self.elaborated {
                    self.set_own_work(Role::Architect, None);
                } else {
                    self.begin_wave(1, context, effects);
                }
            }
            (P::Ready, S::ElaboratorFinished) => self.elaborated(context, effects)?,
            (P::Implementing, S::ElaboratorFinished) if self.wave == 0 => {
                self.elaborated(context, effects)?
            }
            (P::Implementing, S::ImplementWave) => {
                let (wave, next) = (number("wave_number"), self.wave + 1);
                if !self.wave_over || wave != next || next as usize > self.file.waves.len() {
                    return Err(format!("wave {wave} cannot begin: {}", self.wave_summary()));
                }
                self.begin_wave(wave, context, effects);
            }
            (P::Implementing, S::ImplementTaskFinished) => {
                self.task_finished(number("wave_number"), number("task_number"), context, effects)?;
            }
            (P::Implementing, S::AdvanceWave) => self.advance_wave(effects)?,
            (P::Implementing, S::RetryWave) => self.retry_wave(context, effects)?,
            (P::Implementing, S::ImplementFinished) if self.is_fixing() => self.begin_review(effects),
            (P::Implementing, S::ImplementFinished) => {
                effects.ignored = Some("waves own the plan: it is reviewed once all their tasks are done");
            }
            (P::Reviewing, S::ReviewApproved) if context.config.auto_readiness_review => {
                self.settle();
                self.state = P::Verifying;
                self.set_own_work(Role::Master, None);
            }
            (P::Reviewing, S::ReviewApproved) => self.finish(effects),
            (P::Reviewing, S::ReviewChangesRequested) => self.begin_fixing(body(), effects),
            (P::Verifying, S::VerifyApproved) => self.finish(effects),
            (P::Verifying, S::VerifyFailed) => {
                self.verify_cycles += 1;
                let most = context.config.readiness_max_verify_cycles;
                if self.verify_cycles >= most {
                    // The signal is processed; no verify_approved is ever made of it (docs/signals.md).
                    self.force_promoted = true;
                    effects
                        .note("force_promoted", json!({"verify_cycles": self.verify_cycles, "body": body()}));
                    self.finish(effects);
                } else {
                    self.begin_fixing(body(), effects);
                }
            }
            (state, kind) => return Err(format!("{kind} does not fit a plan that is {state}")),
        }
        Ok(())
    }

    pub(super) fn command(
        &mut self,
        command: Command,
        context: &Context<'_>,
        effects: &mut Effects,
    ) -> Result<(), String> {
        use PlanState as P;
        match (self.state, command) {
            (P::Cancelled, Command::Cancel) => return Err("the plan is cancelled already".to_owned()),
            (_, Command::Cancel) => {
                self.clear();
                self.state = P::Cancelled;
            }
            (P::Done, Command::StartOver) => {
                self.clear();
                (self.wave, self.wave_over, self.elaborated) = (0, false, false);
                (self.verify_cycles, self.force_promoted) = (0, false);
                self.expanded.clear();
                self.completed.clear();
                self.begin_planning(context, effects);
            }
            (P::Done, Command::Reimplement) => {
                self.read_file(context)?;
                self.clear();
                (self.verify_cycles, self.force_promoted) = (0, false);
                self.state = P::Implementing;
                self.begin_wave(1, context, effects);
            }
            (P::Done, Command::RequestReview) => {
                (self.verify_cycles, self.force_promoted) = (0, false);
                self.begin_review(effects);
            }
            (P::Cancelled, Command::Reopen) => {
                (self.wave, self.wave_over, self.elaborated) = (0, false, false);
                (self.verify_cycles, self.force_promoted) = (0, false);
                self.completed.clear();
                self.state = P::Ready;
            }
            (_, Command::Guide { message, task }) => self.guide(message, task, effects)?,
            (_, Command::Answer { question, text }) => self.answer(question, &text, effects)?,
            (state, Command::StartOver | Command::Reimplement | Command::RequestReview) => {
                return Err(format!("that is for plans that are done, and this one is {state}"));
            }
            (state, Command::Reopen) => {
                return Err(format!("that is for plans that are cancelled, and this one is {state}"));
            }
        }
        Ok(())
    }

    fn begin_planning(&mut self, context: &Context<'_>, effects: &mut Effects) {
        self.settle();
        self.state = PlanState::Planning;
        if self.file.waves.is_empty() && context.config.planners > 1 {
            for planner in 1..=context.config.planners {
                self.works.insert(WorkId::Draft { planner }, Work::queued(Role::Planner, None));
            }
        } else if self.file.waves.is_empty() {
            self.set_own_work(Role::Planner, None);
        } else {
            // The file has waves: no planner is needed.
            effects.emit.push((SignalType::PlannerFinished, Map::new()));
        }
    }

    /// A planner has its draft. Once all have, another planner merges the drafts.
    pub(super) fn draft_finished(&mut self, planner: u32, effects: &mut Effects) {
        let Some(work) = self.works.get_mut(&WorkId::Draft { planner }) else { return };
        let before = std::mem::replace(&mut work.stage, Stage::Complete);
        work.brief = None;
        if let Stage::Running { job, .. } = before {
            self.settle_job(job);
        }
        let drafts = self.works.iter().filter(|(id, _)| matches!(id, WorkId::Draft { .. }));
        if self.works.contains_key(&WorkId::Plan)
            || !drafts.clone().all(|(_, work)| work.stage == Stage::Complete)
        {
            return;
        }
        let names: Vec<String> = drafts.map(|(id, _)| format!("- drafts/{id}.md")).collect();
        effects.note("drafts", json!({"planners": names.len()}));
        let brief = Brief { why: StartReason::MergeDrafts, text: names.join("\n") };
        self.set_own_work(Role::Planner, Some(brief));
    }

    pub(super) fn planned(&mut self, context: &Context<'_>, effects: &mut Effects) -> Result<(), String> {
        self.read_file(context)?;
        self.settle();
        self.state = PlanState::Ready;
        effects.note("planned", json!({"waves": self.file.waves.len()}));
        if context.config.auto_implement {
            effects.emit.push((SignalType::ImplementWave, wave_number(1)));
        }
        Ok(())
    }

    pub(super) fn elaborated(&mut self, context: &Context<'_>, effects: &mut Effects) -> Result<(), String> {
        self.read_file(context)?;
        self.elaborated = true;
        self.settle();
        self.state = PlanState::Implementing;
        self.begin_wave(1, context, effects);
        Ok(())
    }

    /// Takes what the plan's file says now. It needs waves from here on.
    fn read_file(&mut self, context: &Context<'_>) -> Result<(), String> {
        let file = context.file.clone().map_err(|why| format!("the plan's file cannot be used: {why}"))?;
        if file.waves.is_empty() {
            return Err(
                "the plan has no waves: its file needs `## Wave 1` and `### Task 1: TITLE`".to_owned()
            );
        }
        self.file = file.clone();
        Ok(())
    }

    pub(super) fn begin_review(&mut self, effects: &mut Effects) {
        self.settle();
        self.state = PlanState::Reviewing;
        self.wave_over = true;
        self.works.clear();
        effects.note("review", json!({}));
        self.set_own_work(Role::Reviewer, None);
    }

    pub(super) fn begin_fixing(&mut self, text: String, effects: &mut Effects) {
        self.settle();
        self.state = PlanState::Implementing;
        effects.note("changes_requested", json!({"body": text}));
        self.set_own_work(Role::Fixer, Some(Brief { why: StartReason::Rework, text }));
    }

    pub(super) fn finish(&mut self, effects: &mut Effects) {
        self.settle();
        self.works.clear();
        self.questions.clear();
        self.infrastructure = Infrastructure::Fine;
        self.state = PlanState::Done;
        effects.note("done", json!({"force_promoted": self.force_promoted}));
    }

    /// Whether a fixer makes the changes that a review or a verification requested.
    fn is_fixing(&self) -> bool {
        self.works.get(&WorkId::Plan).is_some_and(|work| match work.stage {
            Stage::Queued { role } | Stage::Running { role, .. } | Stage::Held { role, .. } => {
                role == Role::Fixer
            }
            Stage::Complete | Stage::Failed { .. } | Stage::SetAside { .. } => false,
        })
    }

    /// Records that the purpose of the plan's own agent is fulfilled.
    pub(super) fn settle(&mut self) {
        let drafts: Vec<WorkId> =
            self.works.keys().copied().filter(|id| matches!(id, WorkId::Draft { .. })).collect();
        for id in drafts {
            if let Some(Stage::Running { job, .. }) = self.works.remove(&id).map(|work| work.stage) {
                self.settle_job(job);
            }
            self.questions.retain(|question| question.about != QuestionSubject::Work(id));
        }
        if let Some(Stage::Running { job, .. }) = self.works.remove(&WorkId::Plan).map(|work| work.stage) {
            self.settle_job(job);
        }
        self.questions.retain(|question| question.about != QuestionSubject::Work(WorkId::Plan));
    }

    pub(super) fn settle_job(&mut self, id: u64) {
        for job in &mut self.jobs {
            job.settled |= job.id == id;
        }
    }

    pub(super) fn set_own_work(&mut self, role: Role, brief: Option<Brief>) {
        self.works.insert(WorkId::Plan, Work::queued(role, brief));
    }

    /// Removes all work. The daemon ends the processes of removed jobs.
    fn clear(&mut self) {
        self.works.clear();
        self.jobs.clear();
        self.questions.clear();
        self.infrastructure = Infrastructure::Fine;
    }

    /// Asks a person.
    pub(super) fn ask(&mut self, text: String, about: QuestionSubject, effects: &mut Effects) -> u64 {
        let id = self.number();
        effects.note("question", json!({"question": id, "text": text, "about": about}));
        self.questions.push(crate::model::Question { id, text, about });
        id
    }

    fn answer(&mut self, question: Option<u64>, text: &str, effects: &mut Effects) -> Result<(), String> {
        let at = match question {
            Some(id) => self.questions.iter().position(|other| other.id == id),
            None if self.questions.len() > 1 => {
                let ids: Vec<String> =
                    self.questions.iter().map(|question| question.id.to_string()).collect();
                return Err(format!(
                    "there are several questions, {}: say which one is answered",
                    ids.join(", ")
                ));
            }
            None => (!self.questions.is_empty()).then_some(0),
        };
        let Some(at) = at else {
            return Err(match question {
                Some(id) => format!("there is no open question {id}"),
                None => "no question is open".to_owned(),
            });
        };
        let question = self.questions.remove(at);
        effects.note("answer", json!({"question": question.id, "text": text}));
        match question.about {
            QuestionSubject::Work(id) => {
                if let Some(work) = self.works.get_mut(&id)
                    && let Stage::Held { role, .. } = work.stage
                {
                    (work.strikes, work.restarts) = (0, 0);
                    let brief = Brief {
                        why: StartReason::Answer,
                        text: format!("{}\n\nAnswer:\n{text}", question.text),
                    };
                    work.brief = Some(brief);
                    work.stage = Stage::Queued { role };
                }
            }
            QuestionSubject::Infrastructure => self.check_infrastructure(text),
            QuestionSubject::Merge { wave } => {
                let brief = self.merge_brief();
                self.add_job(Purpose::Merge { wave }, None, brief);
            }
        }
        Ok(())
    }
}

impl Work {
    pub(super) fn queued(role: Role, brief: Option<Brief>) -> Self {
        let stage = Stage::Queued { role };
        Self { stage, failures: 0, strikes: 0, restarts: 0, brief, additions: Vec::new() }
    }
}

pub(super) fn wave_number(wave: u32) -> Map<String, Value> {
    Map::from_iter([("wave_number".to_owned(), wave.into())])
}
