//! The validated workflow: right by construction, so that its holder checks nothing again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_expr::Expression;
use cliq_protocol::{
    AgentTools, Budget, ConversationMode, McpServerSpec, ModelParameters, Permissions, PhaseKind, PhaseName,
    Sandbox, SkillSelection, TeamName,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::TeamTexts;

/// A phase of a workflow, or an item of a phase with `for_each`. Phases are numbered by their place: those of the main flow first,
/// then support phases, each in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhaseId {
    place: u32,
    item: Option<u32>,
}

impl PhaseId {
    pub(crate) fn new(place: usize) -> Self {
        Self { place: u32::try_from(place).unwrap_or(u32::MAX), item: None }
    }

    /// Place of the phase, 0-based.
    #[must_use]
    pub fn index(self) -> usize {
        self.place as usize
    }

    /// Index of the item, 0-based; `None` for the phase as a whole.
    #[must_use]
    pub fn item(self) -> Option<u32> {
        self.item
    }

    /// Returns the phase as a whole.
    #[must_use]
    pub fn whole(self) -> Self {
        Self { item: None, ..self }
    }

    /// Returns an item of the phase.
    #[must_use]
    pub fn with_item(self, item: u32) -> Self {
        Self { item: Some(item), ..self }
    }
}

/// A team whose every rule holds (docs/team-yml.md).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ValidatedWorkflow {
    /// Name of the team.
    pub name: TeamName,
    /// Description of the team.
    pub description: Option<String>,
    /// Version of the team.
    pub version: Option<semver::Version>,
    /// Programs that must be on the PATH.
    pub tools: Vec<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Situations for which the team is made.
    pub use_when: Vec<String>,
    /// Situations for which it is not.
    pub not_for: Vec<String>,
    /// Values that a run is given.
    pub inputs: Vec<Input>,
    /// Outputs of a run.
    pub outputs: Vec<Output>,
    /// Agents that come with the team.
    pub agents: BTreeMap<String, Agent>,
    /// MCP servers by name.
    pub mcp: BTreeMap<String, McpServerSpec>,
    /// The most that a run may use of language models.
    pub budget: Budget,
    /// Texts that the team was checked from.
    pub texts: Arc<TeamTexts>,
    pub(crate) phases: Vec<Phase>,
    pub(crate) index: HashMap<PhaseName, PhaseId>,
}

/// A declared input.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Input {
    /// Name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Whether a run must be given it.
    pub required: bool,
    /// Default value.
    pub default: Option<String>,
}

/// A declared output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// Name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
}

/// An agent that comes with the team.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agent {
    /// Path of the executable within the team folder.
    pub entry: Utf8PathBuf,
    /// Environment variables that it needs.
    pub env: Vec<String>,
    /// Sandbox that the team asks for.
    pub sandbox: Sandbox,
}

/// One step of the pipeline.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Phase {
    /// Name of the phase.
    pub name: PhaseName,
    /// Type of the phase, however the file spelled it.
    pub kind: PhaseKind,
    /// Whether it idles until a gate routes to it.
    pub support: bool,
    /// Phases that must be done before it starts.
    pub depends_on: Vec<PhaseId>,
    /// Phases that wait for it.
    pub dependents: Vec<PhaseId>,
    /// Name of the agent, if the file specifies one.
    pub agent: Option<String>,
    /// The role file, without directory and ending.
    pub role: String,
    /// The model.
    pub model: Option<String>,
    /// Parameters of requests to the model, if the team chooses some.
    pub parameters: ModelParameters,
    /// JSON Schema of the data that it hands over, if the team has one.
    pub outputs: Option<Value>,
    /// Tools of a model agent, if the team chooses them.
    pub agent_tools: Option<AgentTools>,
    /// Skills that a model may read.
    pub skills: SkillSelection,
    /// Policy for requests of the agent for permission, if the team chooses one.
    pub permissions: Option<Permissions>,
    /// Conversation in which a model agent works again after its work was sent back.
    pub conversation: ConversationMode,
    /// Settings of the agent for this phase.
    pub config: BTreeMap<String, String>,
    /// Action of a connector.
    pub action: Option<String>,
    /// Commands of the phase.
    pub commands: Vec<Command>,
    /// Maximum number of evaluations. 1 for all phases but gates.
    pub max_iterations: u32,
    /// For gates: where it may route to, the likeliest first.
    pub route_targets: Vec<PhaseId>,
    /// For the `rules` agent: where a failing command routes to.
    pub rules: BTreeMap<String, Rule>,
    /// For the `rules` agent: conditions, the first of which that holds decides.
    pub conditions: Vec<RuleCondition>,
    /// Condition of the phase: it is skipped if the condition is false.
    pub when: Option<Expression>,
    /// List of the phase's items.
    pub for_each: Option<ForEach>,
    /// Policy for failures.
    pub retry: Option<Retry>,
    /// Globs of files in the workspace that it reads: `cliq run --changed` runs it again if they differ.
    pub inputs_files: Vec<String>,
    /// The `review` block of a human gate, as it stands in the file.
    pub review: Option<Value>,
    /// Sources to fetch, as written in the file.
    pub sources: Vec<Value>,
    /// Targets to publish, as written in the file.
    pub targets: Vec<Value>,
    /// The team that a team phase runs.
    pub team: Option<String>,
    /// Inputs for the team of a team phase.
    pub inputs: BTreeMap<String, String>,
    /// Deadline of the phase.
    pub timeout: Option<Duration>,
    /// The most that its agent may use of a language model.
    pub budget: Budget,
    /// Sandbox that the team asks for, for agent and commands.
    pub sandbox: Sandbox,
    /// Notifications, by event.
    pub notify: Vec<Notify>,
}

/// A shell command of a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Command {
    /// Name of the command.
    pub name: String,
    /// The script, with its templates.
    pub run: String,
    /// The test that decides whether it runs, with its templates.
    pub condition: Option<String>,
    /// Scope of the command.
    pub scope: Scope,
    /// Whether its failure ends an exec phase.
    pub escalate_on_fail: bool,
    /// Whether a gate must not pass while it fails.
    pub required: bool,
    /// Deadline of the command.
    pub timeout: Option<Duration>,
}

/// Scope of a command: the repositories in which it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In the workspace.
    Workspace,
    /// In each git repository of the workspace.
    Repo,
}

/// Rule of the `rules` agent for failed commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// To this phase.
    Route(PhaseId),
    /// To a person.
    Escalate,
}

/// Conditional rule of the `rules` agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCondition {
    /// Condition of the rule.
    pub condition: Expression,
    /// Verdict if the condition holds.
    pub to: RuleOutcome,
    /// Reason of the verdict.
    pub reason: Option<String>,
}

/// Verdict of a conditional rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleOutcome {
    /// The gate passes.
    Pass,
    /// Work goes back to a phase, or to a person.
    Rule(Rule),
}

/// Items of a phase (docs/expressions.md).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForEach {
    /// Expression of the list.
    pub items: Expression,
    /// Maximum number of items.
    pub max_items: u32,
    /// Maximum number of items at the same time, or `None` for no limit of its own.
    pub max_parallel: Option<u32>,
    /// Whether the phase goes on without an item that failed.
    pub continues_on_failure: bool,
    /// Whether each item works in a git worktree of its own.
    pub worktrees: bool,
    /// Support phase that resolves conflicts of a merge.
    pub on_conflict: Option<PhaseId>,
}

/// Cause of a failure, as far as retries distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// A time limit was exceeded.
    Timeout,
    /// The agent reported an error.
    Error,
    /// The agent ended without a terminal message, or a command failed.
    Exit,
}

impl FailureCause {
    /// All causes.
    pub const ALL: [Self; 3] = [Self::Timeout, Self::Error, Self::Exit];

    /// Name of the cause in team.yml.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Error => "error",
            Self::Exit => "exit",
        }
    }

    /// Parses the name of a cause.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == text)
    }
}

/// Policy for failures of a phase.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Retry {
    /// Attempts altogether.
    pub attempts: u32,
    /// Time before the second attempt.
    pub delay: Duration,
    /// Factor of the delay from one attempt to the next.
    pub backoff: f64,
    /// Causes that are retried.
    pub on: BTreeSet<FailureCause>,
    /// Largest delay.
    pub max_delay: Duration,
}

impl Retry {
    /// Returns the time to wait after a failed attempt, counted from 1, in milliseconds.
    #[must_use]
    pub fn delay_after_ms(&self, attempt: u32) -> u64 {
        u64::try_from(self.delay_after(attempt).as_millis()).unwrap_or(u64::MAX)
    }

    fn delay_after(&self, attempt: u32) -> Duration {
        let factor = self.backoff.powi(i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX));
        let seconds = self.delay.as_secs_f64() * factor;
        if seconds.is_finite() {
            self.max_delay.min(Duration::from_secs_f64(seconds.min(1e9)))
        } else {
            self.max_delay
        }
    }
}

/// Recipients of the events of a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notify {
    /// `on_complete`, `on_escalate` or `on_fail`.
    pub event: String,
    /// Agent that delivers.
    pub agent: String,
    /// Destination.
    pub channel: Option<String>,
    /// Text of the notification.
    pub message: Option<String>,
}

impl ValidatedWorkflow {
    /// Every phase, the main flow first.
    pub fn phases(&self) -> impl ExactSizeIterator<Item = (PhaseId, &Phase)> {
        self.phases.iter().enumerate().map(|(i, phase)| (PhaseId::new(i), phase))
    }

    /// A phase.
    #[must_use]
    pub fn phase(&self, id: PhaseId) -> &Phase {
        &self.phases[id.index()]
    }

    /// The phase of that name, or the item of a phase: `PHASE.INDEX`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<PhaseId> {
        if let Some(id) = self.index.get(name) {
            return Some(*id);
        }
        let (phase, item) = name.split_once('.')?;
        let id = self.index.get(phase)?;
        self.phase(*id).for_each.as_ref()?;
        Some(id.with_item(item.parse().ok()?))
    }

    /// Name of a phase, or of an item: `PHASE.INDEX`.
    #[must_use]
    pub fn name_of(&self, id: PhaseId) -> PhaseName {
        let name = &self.phase(id).name;
        id.item().map_or_else(|| name.clone(), |item| name.with_item(item))
    }

    /// Every channel: one per dependency, and both ways between a gate and each phase that it may route to
    /// (docs/protocol.md). Each pair once.
    #[must_use]
    pub fn channels(&self) -> Vec<(PhaseId, PhaseId)> {
        let mut edges: Vec<(PhaseId, PhaseId)> = Vec::new();
        for (id, phase) in self.phases() {
            edges.extend(phase.depends_on.iter().map(|&before| (before, id)));
            let resolver = phase.for_each.as_ref().and_then(|list| list.on_conflict);
            edges.extend(resolver.into_iter().flat_map(|target| [(target, id), (id, target)]));
            edges.extend(phase.route_targets.iter().flat_map(|&target| [(target, id), (id, target)]));
        }
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// Whether a phase of this kind with this agent has a role file of its own accord.
    #[must_use]
    pub(crate) fn needs_role(kind: PhaseKind, agent: Option<&str>) -> bool {
        match kind {
            PhaseKind::Standard | PhaseKind::Gate => !agent.is_some_and(|agent| {
                crate::agents::is_connector(agent) || matches!(agent, "rules" | "a2a" | "builder")
            }),
            PhaseKind::HumanGate | PhaseKind::Exec | PhaseKind::Pull | PhaseKind::Push | PhaseKind::Team => {
                false
            }
        }
    }
}
