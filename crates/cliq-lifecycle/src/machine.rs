//! The machine of a plan: what happened goes in, the plan as it is then comes out. Pure.

mod guidance;
mod infrastructure;
mod jobs;
mod plan;
mod wave;

use cliq_gateway::{NewSignal, PlanName, SignalType};
use cliq_orchestrator::UsageSummary;
use cliq_protocol::SteeringMessage;
use serde_json::{Map, Value, json};

use crate::model::{Brief, Config, Job, Plan, PlanState, Purpose, Stage, StartReason, WorkId};
use crate::plan_file::PlanFile;
use crate::role::Role;

/// Something that happened to a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A signal came.
    Signal {
        /// Type of the signal.
        kind: SignalType,
        /// Payload of the signal.
        payload: Map<String, Value>,
    },
    /// An agent ended; what it printed. Signals that it emitted came before.
    JobEnded {
        /// The job.
        job: u64,
        /// Output of the agent.
        text: String,
        /// Whether it ended well.
        success: bool,
        /// The usage of language models.
        usage: Option<UsageSummary>,
    },
    /// An agent that the plan no longer wanted was stopped, and has used a language model.
    StoppedJobUsed {
        /// Purpose of the agent.
        purpose: Purpose,
        /// Role of the agent.
        role: Role,
        /// The usage.
        usage: UsageSummary,
    },
    /// An agent could not be started.
    JobNotStarted {
        /// The job.
        job: u64,
        /// Reason.
        why: String,
    },
    /// Command of a person.
    Person(Command),
}

/// Command that only a person may give (docs/signals.md).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Do all of a plan that is done again, from the planning on.
    StartOver,
    /// Do the waves of a plan that is done again.
    Reimplement,
    /// Review a plan that is done again.
    RequestReview,
    /// Give it up.
    Cancel,
    /// Take up what was given up.
    Reopen,
    /// Answer a question.
    Answer {
        /// The question; `None` for the only one.
        question: Option<u64>,
        /// The answer.
        text: String,
    },
    /// Send guidance to the agents that start from now on.
    Guide {
        /// The message.
        message: SteeringMessage,
        /// Work whose agents receive it; `None` for all.
        task: Option<WorkId>,
    },
}

/// Effects of an event.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Effects {
    /// Entries for the event log.
    pub notes: Vec<Note>,
    /// Signals that are to be emitted.
    pub emit: Vec<(SignalType, Map<String, Value>)>,
    /// Whether the event had no effect, and that is as it should be.
    pub ignored: Option<&'static str>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Note {
    /// Kind of the entry.
    pub kind: &'static str,
    /// More about it.
    pub detail: Value,
}

impl Effects {
    fn note(&mut self, kind: &'static str, detail: Value) {
        self.notes.push(Note { kind, detail });
    }

    /// The signals that are to be emitted, for a plan of this name.
    #[must_use]
    pub fn signals(&self, plan: &PlanName) -> Vec<NewSignal> {
        let signal = |(kind, payload): &(SignalType, Map<String, Value>)| {
            let payload =
                if payload.is_empty() { String::new() } else { Value::Object(payload.clone()).to_string() };
            NewSignal::new(*kind, plan.clone(), &payload).ok()
        };
        self.emit.iter().filter_map(signal).collect()
    }
}

/// Inputs of a transition other than the event: policy, clock value, limits.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// Configuration of plans.
    pub config: Config,
    /// Current content of the plan's file, or the problem with it.
    pub file: Result<&'a PlanFile, String>,
}

impl Plan {
    /// Takes an event in.
    ///
    /// # Errors
    /// The event does not fit; why. Nothing has changed then.
    pub fn step(&mut self, event: Event, context: &Context<'_>) -> Result<Effects, String> {
        let mut next = self.clone();
        let mut effects = Effects::default();
        match event {
            Event::Signal { kind, payload } => next.signal(kind, &payload, context, &mut effects)?,
            Event::StoppedJobUsed { purpose, role, usage } => {
                next.add_usage(purpose, role, &usage, &mut effects);
            }
            Event::JobEnded { job, text, success, usage } => {
                let of = next.jobs.iter().find(|known| known.id == job).map(|job| (job.purpose, job.role));
                if let (Some(usage), Some((purpose, Some(role)))) = (usage, of) {
                    next.add_usage(purpose, role, &usage, &mut effects);
                }
                next.job_ended(job, &text, success, context, &mut effects)?
            }
            Event::JobNotStarted { job, why } => next.job_not_started(job, &why, &mut effects)?,
            Event::Person(command) => next.command(command, context, &mut effects)?,
        }
        next.wave_may_be_over(&mut effects);
        next.fill(&context.config, &mut effects);
        next.deliver_guidance(self.next, &mut effects);
        if next.state != self.state {
            let detail = json!({"from": self.state, "to": next.state});
            effects.notes.insert(0, Note { kind: "state", detail });
        }
        *self = next;
        Ok(effects)
    }

    /// Starts the agents that may work now: remediation where infrastructure is blocked; else critics first, then auditors, then
    /// developers. None while a question to a person is open (docs/signals.md).
    fn fill(&mut self, config: &Config, effects: &mut Effects) {
        if !self.questions.is_empty() || matches!(self.state, PlanState::Done | PlanState::Cancelled) {
            return;
        }
        if self.is_blocked() {
            return self.mend(effects);
        }
        self.start_experts(effects);
        let roles: [(&[Role], u32); 4] = [
            (&[Role::Critic], config.slots.critics),
            (&[Role::Auditor], config.slots.auditors),
            (&[Role::Developer, Role::Coder, Role::BusinessAnalyst], config.slots.developers),
            // The plan's own work is one at a time, save for drafts of it.
            (
                &[Role::Planner, Role::Architect, Role::Reviewer, Role::Master, Role::Fixer],
                config.planners.max(1),
            ),
        ];
        for (kinds, slots) in roles {
            let running = |plan: &Self| {
                let jobs =
                    plan.jobs.iter().filter(|job| !job.settled && matches!(job.purpose, Purpose::Work(_)));
                jobs.filter(|job| job.role.is_some_and(|role| kinds.contains(&role))).count()
            };
            while running(self) < slots as usize {
                let queued = self.works.iter().find_map(|(id, work)| match work.stage {
                    Stage::Queued { role } if kinds.contains(&role) => Some((*id, role)),
                    _ => None,
                });
                let Some((id, role)) = queued else { break };
                self.start(id, role, effects);
            }
        }
    }

    fn start(&mut self, id: WorkId, role: Role, effects: &mut Effects) {
        let Some(work) = self.works.get_mut(&id) else { return };
        let mut brief = work.brief.clone();
        if matches!(role, Role::Developer | Role::Coder) && !work.additions.is_empty() {
            let additions = std::mem::take(&mut work.additions).join("\n\n");
            effects.note("additions", json!({"task": id, "text": additions}));
            match &mut brief {
                Some(brief) => brief.text.extend(["\n\n", additions.as_str()]),
                None => brief = Some(Brief { why: StartReason::Addition, text: additions }),
            }
        }
        let job = self.add_job(Purpose::Work(id), Some(role), brief);
        if let Some(work) = self.works.get_mut(&id) {
            work.stage = Stage::Running { role, job };
        }
        effects.note("started", json!({"work": id, "role": role, "job": job}));
    }

    fn add_job(&mut self, purpose: Purpose, role: Option<Role>, brief: Option<crate::model::Brief>) -> u64 {
        let id = self.number();
        self.jobs.push(Job { id, purpose, role, brief, settled: false });
        id
    }

    fn add_usage(&mut self, purpose: Purpose, role: Role, usage: &UsageSummary, effects: &mut Effects) {
        let work = match purpose {
            Purpose::Work(work) | Purpose::Advise(work) => work,
            Purpose::Infrastructure | Purpose::Merge { .. } => WorkId::Plan,
        };
        self.usage.entry(work).or_default().entry(role).or_default().merge(usage);
        effects.note("usage", json!({"work": work, "role": role, "tokens_in": usage.tokens_in, "tokens_out": usage.tokens_out, "cost_usd": usage.cost_usd}));
    }

    fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }
}
