//! Evaluation of an agent's output.

use cliq_gateway::SignalType;
use cliq_markers::{Marker, MarkerKind, Scan, scan};
use serde_json::json;

use super::{Context, Effects};
use crate::model::{
    Brief, Job, Plan, PlanState, Purpose, QuestionSubject, SharedFile, Stage, StartReason, WaitingFor, WorkId,
};
use crate::role::Role;

/// Failed reviews and audits that a task may have (docs/signals.md).
const FAILURES: u32 = 3;
/// Answers in a row without a known marker before the work is started anew (docs/signals.md).
const STRIKES: u32 = 3;
/// Number of restarts before a person is asked.
const RESTARTS: u32 = 1;
/// Attempts of an expert before a person is asked (docs/signals.md).
const EXPERT_ATTEMPTS: u32 = 3;
/// As much of an agent's words as is kept.
const PREVIEW: usize = 4000;

/// The marker that decides about the work of an agent. What an agent that failed says of its success does not count; what it says
/// against the work does (docs/signals.md).
fn decisive<'found, 'text>(
    found: &'found Scan<'text>,
    role: Role,
    success: bool,
) -> Option<&'found Marker<'text>> {
    let agent = role.speaks_as();
    if success { found.decisive_from(agent) } else { found.decisive_from_failed(agent) }
}

impl Plan {
    pub(super) fn job_ended(
        &mut self,
        id: u64,
        text: &str,
        success: bool,
        context: &Context<'_>,
        effects: &mut Effects,
    ) -> Result<(), String> {
        let job = self.take_job(id)?;
        if job.settled {
            return Ok(());
        }
        let found = scan(text);
        for marker in found.markers.iter().filter(|marker| marker.kind == MarkerKind::ExpertCreated) {
            if !self.experts.iter().any(|known| *known == marker.subject) {
                self.experts.push(marker.subject.to_string());
                effects.note("expert", json!({"name": marker.subject}));
            }
        }
        let Some(role) = job.role else {
            return self.merged(job.purpose, text, success, effects);
        };
        match job.purpose {
            Purpose::Infrastructure => {
                self.infrastructure_ended(decisive(&found, role, success), role, effects);
            }
            Purpose::Advise(work) => {
                self.expert_ended(work, decisive(&found, Role::Expert, success), effects);
            }
            // Another job has taken over the work in the meantime.
            Purpose::Work(work) if !self.is_at(work, id) => {}
            Purpose::Work(work) => self.work_ended(work, role, &found, text, success, context, effects),
            Purpose::Merge { .. } => {}
        }
        Ok(())
    }

    pub(super) fn job_not_started(
        &mut self,
        id: u64,
        why: &str,
        effects: &mut Effects,
    ) -> Result<(), String> {
        let job = self.take_job(id)?;
        let role = job.role.map_or("merge", Role::as_str);
        let text = format!("{role} cannot be started: {why}");
        match job.purpose {
            Purpose::Work(work) | Purpose::Advise(work) => {
                let role = self.works.get(&work).and_then(|work| match work.stage {
                    Stage::Running { role, .. } | Stage::Held { role, .. } | Stage::Queued { role } => {
                        Some(role)
                    }
                    Stage::Complete | Stage::Failed { .. } | Stage::SetAside { .. } => None,
                });
                if let Some(role) = role.filter(|_| !job.settled) {
                    self.hold_for_person(work, role, text, effects);
                }
            }
            Purpose::Infrastructure => {
                if let crate::model::Infrastructure::Blocked { job, .. } = &mut self.infrastructure {
                    *job = None;
                }
                self.ask(text, QuestionSubject::Infrastructure, effects);
            }
            Purpose::Merge { wave } => drop(self.ask(text, QuestionSubject::Merge { wave }, effects)),
        }
        Ok(())
    }

    fn is_at(&self, work: WorkId, id: u64) -> bool {
        self.works
            .get(&work)
            .is_some_and(|work| matches!(work.stage, Stage::Running { job, .. } if job == id))
    }

    fn take_job(&mut self, id: u64) -> Result<Job, String> {
        let at = self.jobs.iter().position(|job| job.id == id);
        at.map(|at| self.jobs.remove(at)).ok_or_else(|| format!("there is no job {id} any more"))
    }

    fn merged(
        &mut self,
        purpose: Purpose,
        text: &str,
        success: bool,
        effects: &mut Effects,
    ) -> Result<(), String> {
        let Purpose::Merge { wave } = purpose else {
            return Err("the purpose of this job is unknown".to_owned());
        };
        if !self.is_in_wave() || wave != self.wave {
            return Ok(());
        }
        effects.note("merged", json!({"wave": wave, "success": success}));
        if success {
            self.end_wave(effects);
        } else {
            let known = self.merge_brief().map(|brief| format!("\n\n{}", brief.text)).unwrap_or_default();
            let text = format!(
                "The branches of wave {wave} cannot be brought together. Do what is named below, then answer.\n\n{}{known}",
                preview(text)
            );
            self.ask(text, QuestionSubject::Merge { wave }, effects);
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "all that is known of the end of a job")]
    fn work_ended(
        &mut self,
        id: WorkId,
        role: Role,
        found: &Scan<'_>,
        text: &str,
        success: bool,
        context: &Context<'_>,
        effects: &mut Effects,
    ) {
        let decisive = decisive(found, role, success);
        // The registration of an expert is no report of the outcome of planners and architects, who create experts beside their work.
        let is_registration = |marker: &&Marker<'_>| {
            marker.kind == MarkerKind::ExpertCreated && matches!(role, Role::Planner | Role::Architect)
        };
        let Some(marker) = decisive.filter(|marker| !is_registration(marker)) else {
            let dropped = found.decisive_from(role.speaks_as()).filter(|_| !success);
            let text = match dropped.filter(|marker| marker.kind.claims_success()) {
                Some(marker) => format!("The agent failed: its {} does not count.\n\n{text}", marker.head()),
                None => text.to_owned(),
            };
            return self.without_marker(id, role, &text, success, context, effects);
        };
        effects.note(
            "said",
            json!({"work": id, "role": role, "marker": marker.kind, "subject": marker.subject}),
        );
        let body = marker.body().text();
        match marker.kind {
            MarkerKind::InfraBlocked | MarkerKind::AuditBlocked => {
                self.set(id, Stage::Held { role, by: WaitingFor::Infrastructure });
                self.block(format!("{}\n{body}", marker.head()), effects);
            }
            MarkerKind::SeekingDivineClarification => self.hold_for_person(id, role, body, effects),
            MarkerKind::ExpertRequest => {
                let prompt = marker.body().delegation_prompt().unwrap_or(body);
                self.set(id, Stage::Held { role, by: WaitingFor::Expert { prompt, attempts: 0, job: None } });
            }
            MarkerKind::FileConflict if id != WorkId::Plan => self.conflict(id, role, marker, effects),
            // Asked for, it is an answer; otherwise it says as little of the outcome as any other word.
            MarkerKind::Checkpoint if names(marker, id) && self.is_asked_where_it_stands(id) => {
                effects.note("checkpoint", json!({"work": id, "role": role, "body": preview(&body)}));
                self.queue(id, role, Some(Brief { why: StartReason::Resend, text: preview(&body) }));
            }
            kind if role.markers().contains(&kind) && names(marker, id) => {
                if let Some(work) = self.works.get_mut(&id) {
                    work.strikes = 0;
                    // Work that begins anew for an agent behind these passes them again: without a count, that would have no end.
                    if !matches!(role, Role::BusinessAnalyst | Role::Developer | Role::Critic) {
                        work.restarts = 0;
                    }
                }
                self.take_answer(id, role, marker, context, effects);
            }
            _ => self.strike(id, role, text, effects),
        }
    }

    fn is_asked_where_it_stands(&self, id: WorkId) -> bool {
        let brief = self.works.get(&id).and_then(|work| work.brief.as_ref());
        brief.is_some_and(|brief| brief.why == StartReason::Checkpoint)
    }

    /// Takes the expected answer of an agent.
    fn take_answer(
        &mut self,
        id: WorkId,
        role: Role,
        marker: &Marker<'_>,
        context: &Context<'_>,
        effects: &mut Effects,
    ) {
        use MarkerKind as M;
        let body = marker.body().text();
        match (role, marker.kind) {
            (Role::Developer, M::ReadyForReview) => {
                let takes_additions = self.begin_additions(id, effects);
                if !takes_additions {
                    self.queue(id, Role::Critic, None);
                }
            }
            (Role::Developer, M::TaskIncomplete) => {
                let why =
                    if body.is_empty() { "the agent did not say what is missing".to_owned() } else { body };
                effects.note("set_aside", json!({"task": id, "why": why}));
                self.set(id, Stage::SetAside { why });
            }
            (Role::Critic, M::ReviewPassed) => self.queue(id, Role::Auditor, None),
            (Role::Auditor, M::AuditPassed) => self.complete(id, effects),
            (Role::Critic, M::ReviewFailed) | (Role::Auditor, M::AuditFailed) => {
                let failures = self.works.get_mut(&id).map_or(0, |work| {
                    work.failures += 1;
                    work.failures
                });
                if failures >= FAILURES {
                    self.fail(
                        id,
                        format!("{FAILURES} reviews or audits failed; the last one:\n{body}"),
                        effects,
                    );
                } else {
                    self.queue(id, Role::Developer, Some(Brief { why: StartReason::Rework, text: body }));
                }
            }
            (Role::BusinessAnalyst, M::ExpandedTaskSpecification) => {
                self.expanded.insert(id, body);
                self.queue(id, Role::Developer, None);
            }
            (Role::Coder, M::ReadyForReview) if id != WorkId::Plan => self.complete(id, effects),
            // What a model says by a marker, others say by a signal; it means the same.
            (Role::Coder | Role::Fixer, M::ReadyForReview) => self.begin_review(effects),
            (Role::Reviewer, M::ReviewPassed) => {
                self.as_signal(SignalType::ReviewApproved, &body, context, effects)
            }
            (Role::Reviewer, M::ReviewFailed) => {
                self.as_signal(SignalType::ReviewChangesRequested, &body, context, effects);
            }
            (Role::Master, M::AuditPassed) => {
                self.as_signal(SignalType::VerifyApproved, &body, context, effects)
            }
            (Role::Master, M::AuditFailed) => {
                self.as_signal(SignalType::VerifyFailed, &body, context, effects)
            }
            _ => {}
        }
    }

    fn as_signal(&mut self, kind: SignalType, body: &str, context: &Context<'_>, effects: &mut Effects) {
        let payload = serde_json::Map::from_iter([("body".to_owned(), body.into())]);
        // It is the agent of this very state that speaks, so it fits.
        let _ = self.signal(kind, &payload, context, effects);
    }

    /// Planners and architects write into the plan's file and need no words.
    fn without_marker(
        &mut self,
        id: WorkId,
        role: Role,
        text: &str,
        success: bool,
        context: &Context<'_>,
        effects: &mut Effects,
    ) {
        let done = match role {
            Role::Planner if success && let WorkId::Draft { planner } = id => {
                self.draft_finished(planner, effects);
                Ok(())
            }
            Role::Planner if success && self.state == PlanState::Planning => self.planned(context, effects),
            Role::Architect if success && self.wave == 0 => self.elaborated(context, effects),
            _ => Err(String::new()),
        };
        if let Err(why) = done {
            let text = if why.is_empty() { text.to_owned() } else { format!("{why}\n\n{text}") };
            self.strike(id, role, &text, effects);
        }
    }

    /// Unknown output (docs/signals.md): twice it is asked where it stands; the third time the work is started anew, with the
    /// formats spelled out. Where that does not help, a person is asked.
    fn strike(&mut self, id: WorkId, role: Role, text: &str, effects: &mut Effects) {
        let Some(work) = self.works.get_mut(&id) else { return };
        work.strikes += 1;
        let (strikes, restarts) = (work.strikes, work.restarts);
        effects.note(
            "unknown_output",
            json!({"work": id, "role": role, "strike": strikes, "level": if strikes == 1 { "warning" } else { "error" },
                "preview": preview(text)}),
        );
        if strikes < STRIKES {
            return self.queue(id, role, Some(Brief { why: StartReason::Checkpoint, text: preview(text) }));
        }
        if restarts >= RESTARTS {
            let text = format!(
                "{role} said nothing that can be understood, {} times. Its last words:\n\n{}",
                STRIKES * (RESTARTS + 1),
                preview(text)
            );
            return self.hold_for_person(id, role, text, effects);
        }
        (work.strikes, work.restarts) = (0, restarts + 1);
        // A task begins with its developer again.
        let first = match role {
            Role::Critic | Role::Auditor | Role::Developer => Role::Developer,
            other => other,
        };
        self.queue(id, first, Some(Brief { why: StartReason::Anew, text: preview(text) }));
    }

    /// A task needs a file that another one has (docs/signals.md). One that can wait is queued behind the holder. One that cannot
    /// goes on: on its own branch with the change, else without it, and the holder makes the change.
    fn conflict(&mut self, id: WorkId, role: Role, marker: &Marker<'_>, effects: &mut Effects) {
        let path = marker.subject.to_string();
        if marker.can_wait() == Some(false) {
            return self.conflict_now(id, role, path, marker, effects);
        }
        let holder = self.holder(id, &path, marker.assigned_to().as_deref());
        effects.note(
            "file_conflict",
            json!({"task": id, "file": path, "holder": holder, "can_wait": marker.can_wait()}),
        );
        match holder {
            Some(holder) => self.set(id, Stage::Held { role, by: WaitingFor::File { path, holder } }),
            None => {
                let text = format!("No unfinished task has {path}: change it.");
                self.queue(id, role, Some(Brief { why: StartReason::GoOn, text }));
            }
        }
    }

    fn conflict_now(
        &mut self,
        id: WorkId,
        role: Role,
        path: String,
        marker: &Marker<'_>,
        effects: &mut Effects,
    ) {
        let holder = self.open_holder(id, &path, marker.assigned_to().as_deref());
        let detail = json!({"task": id, "file": path, "holder": holder, "can_wait": false});
        effects.note("file_conflict", detail);
        let body = marker.body().text();
        if self.file.branches {
            let who = holder.map_or("Another task".to_owned(), |holder| format!("Task {holder}"));
            let text = format!(
                "Change {path} in your own worktree. {who} may change it too: the merge of the wave brings both together."
            );
            self.shared_files.push(SharedFile { path, task: id, holder });
            return self.queue(id, role, Some(Brief { why: StartReason::GoOn, text }));
        }
        let Some(holder) = holder else {
            let text = format!(
                "Task {id} needs a change of {path} and cannot wait, and no task that is under way has that file. May it change the file?\n\n{body}"
            );
            return self.hold_for_person(id, role, text, effects);
        };
        if let Some(work) = self.works.get_mut(&holder) {
            work.additions.push(format!("Task {id} needs a change of {path}:\n\n{body}"));
        }
        let text = format!("Task {holder} makes the change of {path} that you need. Go on without it.");
        self.queue(id, role, Some(Brief { why: StartReason::GoOn, text }));
    }

    /// The unfinished task that has a file: the one that is named, or one whose specification names the file. No task waits
    /// for a task that waits for it.
    fn holder(&self, id: WorkId, path: &str, named: Option<&str>) -> Option<WorkId> {
        let holder = self.open_holder(id, path, named)?;
        let mut next = Some(holder);
        while let Some(at) = next {
            if at == id {
                return None;
            }
            next = match self.works.get(&at).map(|work| &work.stage) {
                Some(Stage::Held { by: WaitingFor::File { holder, .. }, .. }) => Some(*holder),
                _ => None,
            };
        }
        Some(holder)
    }

    /// The unfinished task that has a file, whether or not it waits for `id`.
    fn open_holder(&self, id: WorkId, path: &str, named: Option<&str>) -> Option<WorkId> {
        let is_open = |other: WorkId| {
            other != id
                && self.works.get(&other).is_some_and(|work| {
                    !matches!(work.stage, Stage::Complete | Stage::Failed { .. } | Stage::SetAside { .. })
                })
        };
        let by_name = named.and_then(|name| name.parse::<WorkId>().ok()).filter(|other| is_open(*other));
        let owns =
            |other: &WorkId| self.task(*other).is_some_and(|spec| spec.files.iter().any(|file| file == path));
        by_name.or_else(|| self.tasks().map(|(other, _)| other).find(|other| is_open(*other) && owns(other)))
    }

    pub(super) fn start_experts(&mut self, effects: &mut Effects) {
        let waiting: Vec<(WorkId, String)> = self
            .works
            .iter()
            .filter_map(|(id, work)| match &work.stage {
                Stage::Held { by: WaitingFor::Expert { prompt, job: None, .. }, .. } => {
                    Some((*id, prompt.clone()))
                }
                _ => None,
            })
            .collect();
        for (id, prompt) in waiting {
            let brief = Brief { why: StartReason::Advise, text: prompt };
            let new = self.add_job(Purpose::Advise(id), Some(Role::Expert), Some(brief));
            if let Some(work) = self.works.get_mut(&id)
                && let Stage::Held { by: WaitingFor::Expert { job, attempts, .. }, .. } = &mut work.stage
            {
                *job = Some(new);
                *attempts += 1;
            }
            effects.note("started", json!({"work": id, "role": Role::Expert, "job": new}));
        }
    }

    fn expert_ended(&mut self, id: WorkId, marker: Option<&Marker<'_>>, effects: &mut Effects) {
        let Some(work) = self.works.get_mut(&id) else { return };
        let Stage::Held { role, by: WaitingFor::Expert { attempts, job, prompt } } = &mut work.stage else {
            return;
        };
        let (role, attempts, prompt) = (*role, *attempts, prompt.clone());
        *job = None;
        match marker.map(|marker| (marker.kind, marker.body().text())) {
            Some((MarkerKind::ExpertAdvice, advice)) => {
                effects.note("advice", json!({"work": id}));
                self.queue(id, role, Some(Brief { why: StartReason::Advice, text: advice }));
            }
            Some((MarkerKind::ExpertUnsuccessful, why)) => {
                self.hold_for_person(id, role, format!("{prompt}\n\nThe expert cannot help: {why}"), effects);
            }
            _ if attempts < EXPERT_ATTEMPTS => {}
            _ => {
                let text = format!("{prompt}\n\nThe expert gave no advice in {attempts} attempts.");
                self.hold_for_person(id, role, text, effects);
            }
        }
    }

    fn hold_for_person(&mut self, id: WorkId, role: Role, text: String, effects: &mut Effects) {
        let question = self.ask(text, QuestionSubject::Work(id), effects);
        self.set(id, Stage::Held { role, by: WaitingFor::Person { question } });
    }

    fn queue(&mut self, id: WorkId, role: Role, brief: Option<Brief>) {
        if let Some(work) = self.works.get_mut(&id) {
            work.brief = brief;
            work.stage = Stage::Queued { role };
        }
    }

    fn set(&mut self, id: WorkId, stage: Stage) {
        if let Some(work) = self.works.get_mut(&id) {
            work.stage = stage;
        }
    }
}

/// Whether a marker is about this work: one that names another task is not. The plan as a whole has many names.
fn names(marker: &Marker<'_>, id: WorkId) -> bool {
    id == WorkId::Plan || marker.id().is_some_and(|named| named.eq_ignore_ascii_case(&id.to_string()))
}

/// The end of a text, where agents say what matters.
fn preview(text: &str) -> String {
    let text = text.trim();
    let start = text.len().saturating_sub(PREVIEW);
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text[start..].to_owned()
}
