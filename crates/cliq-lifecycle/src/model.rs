//! State of a plan. The whole state is stored after each step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use cliq_orchestrator::UsageSummary;
use cliq_protocol::SteeringMessage;
use serde::{Deserialize, Serialize};

use crate::plan_file::{PlanFile, TaskSpec};
use crate::role::Role;

/// State of a plan (docs/signals.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanState {
    /// The plan waits for its start.
    Ready,
    /// Waves and tasks are worked out.
    Planning,
    /// Tasks are done, or what a review asked for.
    Implementing,
    /// The implementation is being reviewed.
    Reviewing,
    /// The goal is being verified.
    Verifying,
    /// The goal is reached.
    Done,
    /// A person gave it up.
    Cancelled,
}

impl PlanState {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Ready,
        Self::Planning,
        Self::Implementing,
        Self::Reviewing,
        Self::Verifying,
        Self::Done,
        Self::Cancelled,
    ];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Planning => "planning",
            Self::Implementing => "implementing",
            Self::Reviewing => "reviewing",
            Self::Verifying => "verifying",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for PlanState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Something that agents work on: the plan as a whole, or a task of a wave, `w1-t2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum WorkId {
    /// The plan as a whole.
    Plan,
    /// A draft of the plan, by one of several planners: `draft-2`.
    Draft {
        /// The planner, from 1 on.
        planner: u32,
    },
    /// A task.
    Task {
        /// Number of the wave, 1-based.
        wave: u32,
        /// Number in the wave, 1-based.
        task: u32,
    },
}

impl fmt::Display for WorkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan => f.write_str("plan"),
            Self::Draft { planner } => write!(f, "draft-{planner}"),
            Self::Task { wave, task } => write!(f, "w{wave}-t{task}"),
        }
    }
}

impl From<WorkId> for String {
    fn from(id: WorkId) -> Self {
        id.to_string()
    }
}

impl FromStr for WorkId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "plan" {
            return Ok(Self::Plan);
        }
        if let Some(planner) = text.strip_prefix("draft-").and_then(|planner| planner.parse().ok()) {
            return Ok(Self::Draft { planner });
        }
        let numbers = text.strip_prefix('w').and_then(|rest| rest.split_once("-t"));
        let id = numbers
            .and_then(|(wave, task)| Some(Self::Task { wave: wave.parse().ok()?, task: task.parse().ok()? }));
        id.ok_or_else(|| format!("`{text}` is not a task id: tasks are named like w1-t2"))
    }
}

impl TryFrom<String> for WorkId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// Progress of a piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum Stage {
    /// The work waits for a free slot of this role.
    Queued {
        /// The role.
        role: Role,
    },
    /// An agent works on it.
    Running {
        /// In this role.
        role: Role,
        /// The job.
        job: u64,
    },
    /// The work continues in this role when the obstacle is gone.
    Held {
        /// The role.
        role: Role,
        /// Obstacle.
        by: WaitingFor,
    },
    /// The work is complete.
    Complete,
    /// The work was given up. A person is needed.
    Failed {
        /// Reason.
        why: String,
    },
    /// The work cannot be completed now. Other work goes first.
    SetAside {
        /// Missing part.
        why: String,
    },
}

/// Obstacle of a piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "on", rename_all = "snake_case")]
pub enum WaitingFor {
    /// A person's answer.
    Person {
        /// The question.
        question: u64,
    },
    /// An expert's advice.
    Expert {
        /// Prompt for the expert.
        prompt: String,
        /// Number of attempts.
        attempts: u32,
        /// The expert's job, while there is one.
        job: Option<u64>,
    },
    /// A file that another task has.
    File {
        /// The file.
        path: String,
        /// Holder of the file.
        holder: WorkId,
    },
    /// Infrastructure.
    Infrastructure,
}

/// A piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Work {
    /// Progress of the work.
    #[serde(flatten)]
    pub stage: Stage,
    /// Reviews and audits that failed.
    #[serde(default)]
    pub failures: u32,
    /// Answers in a row that said nothing that could be understood.
    #[serde(default)]
    pub strikes: u32,
    /// Number of restarts because of failed agents.
    #[serde(default)]
    pub restarts: u32,
    /// Brief for the next agent: findings of a review, advice, a person's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<Brief>,
    /// Changes that other tasks need of it. The task is not complete before an agent was given them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additions: Vec<String>,
}

/// Reason why an agent is started, beside its role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Brief {
    /// In one word.
    pub why: StartReason,
    /// Text of the brief.
    pub text: String,
}

/// Reason why an agent is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartReason {
    /// A review, an audit or a verification asks for changes.
    Rework,
    /// An expert has advised.
    Advice,
    /// A person has answered.
    Answer,
    /// The last answer had no known marker: the agent is asked for its state and for a marker.
    Checkpoint,
    /// The agent was asked for its state and has answered. Now it must send the missing answer.
    Resend,
    /// Three answers had no known marker: the work starts anew, with the formats spelled out.
    Anew,
    /// The obstacle is gone.
    GoOn,
    /// An agent asks an expert for advice.
    Advise,
    /// Infrastructure is broken.
    Mend,
    /// Another task needs a change of a file that this one has.
    Addition,
    /// Several planners have drafts, which are to become one plan.
    MergeDrafts,
    /// Branches are brought together, and what is known of their conflicts.
    MergeBranches,
}

/// Purpose of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To work on it.
    Work(WorkId),
    /// To advise the agent that works on it.
    Advise(WorkId),
    /// To mend infrastructure, or to check it.
    Infrastructure,
    /// To bring together the branches of a wave. No agent does that.
    Merge {
        /// The wave.
        wave: u32,
    },
}

/// An agent that is to run, or runs. The plan does not record which: the daemon knows its processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Job {
    /// Number, never reused in this plan.
    pub id: u64,
    /// Purpose of the job.
    pub purpose: Purpose,
    /// In which role. `None` for what no agent does.
    pub role: Option<Role>,
    /// Brief for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<Brief>,
    /// Whether a signal has fulfilled the purpose. The agent may end in its own time.
    #[serde(default)]
    pub settled: bool,
}

/// Guidance of a person for the agents of a plan (docs/steering.md).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Guidance {
    /// Message.
    #[serde(flatten)]
    pub message: SteeringMessage,
    /// Work whose agents receive it, or `None` if all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<WorkId>,
    /// Jobs that received it. Empty while it is pending.
    #[serde(default)]
    pub jobs: Vec<u64>,
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Question {
    /// Number of the question.
    pub id: u64,
    /// Text of the question.
    pub text: String,
    /// Subject that continues with the answer.
    pub about: QuestionSubject,
}

/// Subject of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionSubject {
    /// This work, which goes on with the answer.
    Work(WorkId),
    /// Infrastructure, which is checked again then.
    Infrastructure,
    /// Branches that conflict, and are brought together again then.
    Merge {
        /// The wave.
        wave: u32,
    },
}

/// Whether infrastructure lets agents work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Infrastructure {
    /// The infrastructure works.
    #[default]
    Fine,
    /// The infrastructure does not work. Nothing new starts until it does.
    Blocked {
        /// Description of the problem.
        report: String,
        /// Attempts to mend it, this one included.
        attempt: u32,
        /// Role that is next or at work.
        role: Role,
        /// Their job, while there is one.
        job: Option<u64>,
    },
}

/// A plan, with all that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Plan {
    /// The format of this document.
    pub version: u32,
    /// State of the plan.
    pub state: PlanState,
    /// Content of the file when it was last read.
    pub file: PlanFile,
    /// The wave that is worked on or was last; 0 before the first.
    pub wave: u32,
    /// Whether that wave is over.
    pub wave_over: bool,
    /// Whether the architect has spelled the plan out.
    pub elaborated: bool,
    /// Verifications that failed.
    pub verify_cycles: u32,
    /// Whether it is done only because it was verified often enough.
    pub force_promoted: bool,
    /// The work there is: the plan's own, and the tasks of the wave.
    pub works: BTreeMap<WorkId, Work>,
    /// Jobs that run or are to.
    pub jobs: Vec<Job>,
    /// The number of the next job or question.
    pub next: u64,
    /// Questions to a person. While there is one, nothing new starts.
    pub questions: Vec<Question>,
    /// Whether infrastructure lets agents work.
    pub infrastructure: Infrastructure,
    /// Experts that were made for this plan.
    #[serde(default)]
    pub experts: Vec<String>,
    /// Tasks that are complete, of all waves.
    #[serde(default)]
    pub completed: BTreeSet<WorkId>,
    /// Specifications by which a business analyst replaced those of the file.
    #[serde(default)]
    pub expanded: BTreeMap<WorkId, String>,
    /// The usage of language models, by piece of work and role. Work on infrastructure counts for the plan.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub usage: BTreeMap<WorkId, BTreeMap<Role, UsageSummary>>,
    /// Guidance of people, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guidance: Vec<Guidance>,
    /// Files that tasks of the wave change at the same time, as they could not wait for one another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_files: Vec<SharedFile>,
}

/// A file that two tasks change at the same time, each in its own worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SharedFile {
    /// The file.
    pub path: String,
    /// The task that could not wait.
    pub task: WorkId,
    /// The task that has the file; `None` if none does.
    pub holder: Option<WorkId>,
}

/// The version of [`Plan`].
pub const PLAN_VERSION: u32 = 1;

impl Plan {
    /// A plan as it is when it is added.
    #[must_use]
    pub fn new(file: PlanFile) -> Self {
        Self {
            version: PLAN_VERSION,
            state: PlanState::Ready,
            file,
            wave: 0,
            wave_over: false,
            elaborated: false,
            verify_cycles: 0,
            force_promoted: false,
            works: BTreeMap::new(),
            jobs: Vec::new(),
            next: 1,
            questions: Vec::new(),
            infrastructure: Infrastructure::Fine,
            experts: Vec::new(),
            completed: BTreeSet::new(),
            expanded: BTreeMap::new(),
            usage: BTreeMap::new(),
            guidance: Vec::new(),
            shared_files: Vec::new(),
        }
    }

    /// Returns the specification of a task, as refined by a business analyst.
    #[must_use]
    pub fn task(&self, id: WorkId) -> Option<TaskSpec> {
        let WorkId::Task { wave, task } = id else { return None };
        let wave = self.file.waves.get(wave.checked_sub(1)? as usize)?;
        let mut spec = wave.tasks.get(task.checked_sub(1)? as usize)?.clone();
        if let Some(expanded) = self.expanded.get(&id) {
            spec.body.clone_from(expanded);
        }
        Some(spec)
    }

    /// The usage of all work; `None` if none was reported.
    #[must_use]
    pub fn total_usage(&self) -> Option<UsageSummary> {
        let mut parts = self.usage.values().flat_map(BTreeMap::values);
        let mut sum = parts.next()?.clone();
        parts.for_each(|usage| sum.merge(usage));
        Some(sum)
    }

    /// Whether a wave is being worked on.
    #[must_use]
    pub fn is_in_wave(&self) -> bool {
        self.state == PlanState::Implementing && self.wave > 0 && !self.wave_over
    }

    /// Whether all tasks of the wave have ended and some of them have failed: a person has to decide.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        let mut stages = self.tasks().map(|(_, work)| &work.stage);
        self.is_in_wave()
            && self.tasks().any(|(_, work)| matches!(work.stage, Stage::Failed { .. }))
            && stages.all(|stage| matches!(stage, Stage::Failed { .. } | Stage::Complete))
    }

    /// The tasks of the wave.
    pub fn tasks(&self) -> impl Iterator<Item = (WorkId, &Work)> {
        self.works.iter().filter(|(id, _)| matches!(id, WorkId::Task { .. })).map(|(id, work)| (*id, work))
    }
}

/// Configuration of plans, from settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Whether what a reviewer approved is verified by a master agent before it is done (docs/signals.md).
    pub auto_readiness_review: bool,
    /// Number of failed verifications after which a plan is done regardless (docs/signals.md).
    pub readiness_max_verify_cycles: u32,
    /// Task loop of a wave.
    pub task_loop: TaskLoop,
    /// Maximum numbers of concurrent agents.
    pub slots: Slots,
    /// Whether the first wave begins by itself once a plan is planned.
    pub auto_implement: bool,
    /// Whether an architect spells the plan out before the first wave.
    pub architect: bool,
    /// Whether a business analyst spells out tasks that have no text.
    pub business_analyst: bool,
    /// Number of planners that draft a plan, at least 1. If there are several, another one merges their drafts.
    pub planners: u32,
}

/// Loop that a task passes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskLoop {
    /// By a coder, who emits `implement_task_finished`.
    Signals,
    /// By developer, critic and auditor, who print markers (docs/signals.md).
    Markers,
}

/// Maximum numbers of concurrent agents by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    /// Developers, coders and business analysts.
    pub developers: u32,
    /// Critics.
    pub critics: u32,
    /// Auditors.
    pub auditors: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            auto_readiness_review: true,
            readiness_max_verify_cycles: 3,
            task_loop: TaskLoop::Signals,
            slots: Slots { developers: 3, critics: 2, auditors: 2 },
            auto_implement: true,
            architect: false,
            business_analyst: false,
            planners: 1,
        }
    }
}
