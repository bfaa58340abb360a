//! Plan of a run and its checks: every failure that can be known is found before the first agent starts.

mod builder;
mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cliq_fs::{CliqDir, DEFAULT_FILE_LIMIT};
use cliq_protocol::{Budget, PhaseKind, PhaseName, Prices, RunId};
use cliq_workflow::{Phase, ValidatedWorkflow, is_connector, nearest};

use crate::agents::Agents;
use crate::checkpoints::Checkpoints;
use crate::command_script::CommandScript;
use crate::confinement::Confinement;
use crate::events::{KeptPhase, RecordedBudgets};
use crate::launcher::Launcher;
use crate::process::ProcessLauncher;
use crate::trace::TraceSource;

/// Timeouts and intervals of a run, with the defaults of docs/team-yml.md and docs/protocol.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// Polling interval of signal files without a notification. 3 s.
    pub poll_interval: Duration,
    /// Deadline of a phase. 20 min.
    pub phase_timeout: Duration,
    /// Deadline of a gate's agent. 15 min.
    pub gate_agent_timeout: Duration,
    /// Time that an agent may continue after its terminal message. 5 s.
    pub exit_grace: Duration,
    /// Grace period after a request to end, before a process is killed. 2 s.
    pub kill_grace: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_secs(3),
            phase_timeout: Duration::from_secs(20 * 60),
            gate_agent_timeout: Duration::from_secs(15 * 60),
            exit_grace: Duration::from_secs(5),
            kill_grace: Duration::from_secs(2),
        }
    }
}

impl Timing {
    /// Sets the deadline of a phase.
    #[must_use]
    pub fn with_phase_timeout(mut self, timeout: Duration) -> Self {
        self.phase_timeout = timeout;
        self
    }

    /// Sets the deadline of a gate's agent.
    #[must_use]
    pub fn with_gate_agent_timeout(mut self, timeout: Duration) -> Self {
        self.gate_agent_timeout = timeout;
        self
    }

    /// Sets the grace period after a request to end, before a process is killed.
    #[must_use]
    pub fn with_kill_grace(mut self, grace: Duration) -> Self {
        self.kill_grace = grace;
        self
    }
}

/// Failures that a run's records survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// The death of the orchestrator at any moment: what is recorded is with the system.
    #[default]
    Process,
    /// A power failure too: before it is recorded that a phase ended, what was written until then is on the disk, and so
    /// is the record before anything follows from it. That costs some milliseconds for each phase, by the disk.
    Power,
}

/// The agent of team phases: it runs the whole team of `.cliq/teams/<phase>/`.
const TEAM_AGENT: &str = "team";
/// The agents of phases that fetch and publish.
const PULL_AGENT: &str = "pull";
const PUSH_AGENT: &str = "push";
/// The agent of human gates: it makes a review and waits for its decision.
const REVIEW_AGENT: &str = "hug";

/// Run that contains this run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parent {
    /// The phase that the run is for. What the team hands over at its end goes to a channel with this name's.
    pub phase: PhaseName,
    /// Path of the phase: the value of `CLIQ_RUN_PATH` in its environment.
    pub path: String,
}

impl Parent {
    /// Returns the parent of the run of a team phase.
    #[must_use]
    pub fn new(phase: PhaseName, path: impl Into<String>) -> Self {
        Self { phase, path: path.into() }
    }
}

/// Phases that a new run keeps from the last one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KeptWork {
    /// The last run, whose files are in `.cliq/history/<run_id>/` once the new one begins.
    pub run_id: RunId,
    /// The phases. All phases that they depend on are among them.
    pub phases: Vec<KeptPhase>,
}

impl KeptWork {
    /// Returns the phases that a new run keeps from a run.
    #[must_use]
    pub fn new(run_id: RunId, phases: Vec<KeptPhase>) -> Self {
        Self { run_id, phases }
    }
}

/// Everything that a run is made from. It is made of a validated workflow, and [`crate::Run::start`] checks the rest.
///
/// ```
/// use std::time::Duration;
///
/// use cliq_orchestrator::{AgentCommand, CliqDir, RunPlan, TeamFolder, Timing};
///
/// # let place = tempfile::tempdir()?;
/// # let workspace = camino::Utf8Path::from_path(place.path()).ok_or("not UTF-8")?;
/// std::fs::write(
///     workspace.join("team.yml"),
///     "name: '@a/team'\nphases:\n  - {name: build, type: standard, agent: builder}\n",
/// )?;
/// let workflow = TeamFolder::load(workspace)?.check().workflow.ok_or("the team has errors")?;
/// let plan = RunPlan::new(CliqDir::create(workspace)?, workflow)
///     .with_agent("builder", AgentCommand::new("/usr/local/bin/builder").with_needed_env(["BUILD_KEY"]))
///     .with_timing(Timing::default().with_phase_timeout(Duration::from_secs(60)))
///     .with_max_parallel(2);
/// let problems = plan.check(&|variable| variable != "BUILD_KEY").unwrap_err();
/// assert!(problems.to_string().contains("BUILD_KEY"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[non_exhaustive]
pub struct RunPlan {
    /// The project.
    pub dir: CliqDir,
    /// The team.
    pub workflow: Arc<ValidatedWorkflow>,
    /// Id of the run if the caller chooses it: a run of this id begins once only, and only that one is resumed. Without it, a new
    /// run gets a new id.
    pub run_id: Option<RunId>,
    /// Title of the run for people, or `None` if it has none of its own.
    pub title: Option<String>,
    /// Phases that a new run keeps from the last one, or `None` if it runs all of them (docs/changed.md). A resumed run keeps what it kept.
    pub kept: Option<KeptWork>,
    /// Available agents.
    pub agents: Agents,
    /// The agent for phases that name none.
    pub default_agent: Option<String>,
    /// Values for the team's inputs.
    pub inputs: BTreeMap<String, String>,
    /// Maximum number of concurrent phases, or `None` for no limit.
    pub max_parallel: Option<usize>,
    /// Whether the run parks: its process ends once the run only waits for people or for a point in time, and a resumed run goes on
    /// from there (docs/decisions/0033-waiting-is-a-state.md).
    pub parks: bool,
    /// Whether the journal records the start and the end of each command, for readers that follow the run from outside. By default
    /// it records the commands of a phase once, when they are done.
    pub records_commands: bool,
    /// Trace that the run is part of (docs/telemetry.md).
    pub trace: TraceSource,
    /// Times.
    pub timing: Timing,
    /// Failures that the records survive.
    pub durability: Durability,
    /// Recipients of notifications of the run, by event: `on_start`, `on_phase_start`, `on_phase_complete`, `on_complete`,
    /// `on_escalate`, `on_cancel` (docs/team-yml.md). A delivery that fails is a warning.
    pub notifications: BTreeMap<String, Vec<Recipient>>,
    /// Whether this process adopts what its descendants leave behind, and the launcher makes descendants of it: see
    /// [`crate::adopt_orphans`].
    pub adopts_orphans: bool,
    /// Command of a watchdog: a program, with its first arguments, that calls [`crate::run_watchdog`]. It ends the processes of the run
    /// if this process dies without having done so. Empty for no watchdog: processes then go on until the run is resumed or
    /// cancelled.
    pub watchdog: Vec<String>,
    /// For the team of a team phase: what it is part of.
    pub parent: Option<Parent>,
    /// Variables that all agents and commands find in their environment, beside those of the protocol.
    pub env: BTreeMap<String, String>,
    /// The most bytes of a file that an agent wrote, such as a handoff. 1 GiB.
    pub max_file_bytes: u64,
    /// The most that the run may use of language models. By default the team's.
    pub budget: Budget,
    /// Prices of models, by model: for usage whose cost the agent does not report.
    pub prices: Prices,
    /// Whether the inputs come from a caller, who must not choose addresses of this network: entries of `sources` and targets
    /// that contain a template are marked `guarded` for the agents that fetch and publish (docs/protocol.md).
    pub guards_inputs: bool,
    /// Launcher of processes.
    pub launcher: Arc<dyn Launcher>,
    /// Store of checkpoints, or `None` if none are taken.
    pub checkpoints: Option<Arc<dyn Checkpoints>>,
    /// Restriction of processes, or `None` if none is restricted.
    pub confinement: Option<Arc<dyn Confinement>>,
    /// Results of commands that are not run, for trials of a team.
    pub command_script: CommandScript,
}

/// A recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recipient {
    /// The agent that delivers.
    pub agent: String,
    /// Destination in the terms of the agent.
    pub channel: String,
}

impl Recipient {
    /// Returns a recipient: an agent, and a destination in its terms.
    #[must_use]
    pub fn new(agent: impl Into<String>, channel: impl Into<String>) -> Self {
        Self { agent: agent.into(), channel: channel.into() }
    }
}

/// Reason why a run cannot begin. One line per problem, each with its remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.join("\n"))]
#[non_exhaustive]
pub struct PlanError {
    /// The problems.
    pub problems: Vec<String>,
}

impl RunPlan {
    /// A plan with defaults: no agents, no inputs, plain child processes.
    #[must_use]
    pub fn new(dir: CliqDir, workflow: ValidatedWorkflow) -> Self {
        Self {
            dir,
            budget: workflow.budget,
            prices: Prices::default(),
            workflow: Arc::new(workflow),
            run_id: None,
            title: None,
            kept: None,
            agents: Agents::new(),
            default_agent: None,
            inputs: BTreeMap::new(),
            max_parallel: None,
            parks: false,
            records_commands: false,
            trace: TraceSource::Off,
            timing: Timing::default(),
            durability: Durability::default(),
            notifications: BTreeMap::new(),
            adopts_orphans: false,
            watchdog: Vec::new(),
            parent: None,
            env: BTreeMap::new(),
            max_file_bytes: DEFAULT_FILE_LIMIT,
            guards_inputs: false,
            launcher: Arc::new(ProcessLauncher),
            checkpoints: None,
            confinement: None,
            command_script: CommandScript::new(),
        }
    }

    /// The agent that works in a phase; `None` for phases without one.
    #[must_use]
    pub fn agent_of<'a>(&'a self, phase: &'a Phase) -> Option<&'a str> {
        match phase.kind {
            PhaseKind::Standard | PhaseKind::Gate => phase.agent.as_deref().or(self.default_agent.as_deref()),
            PhaseKind::Team => Some(TEAM_AGENT),
            PhaseKind::HumanGate => Some(REVIEW_AGENT),
            PhaseKind::Pull => Some(PULL_AGENT),
            PhaseKind::Push => Some(PUSH_AGENT),
            PhaseKind::Exec => None,
        }
    }

    /// Command with which an agent at work asks people, as a JSON array. `None` if the run has no agent of human gates.
    pub(crate) fn people(&self) -> Option<String> {
        let command = self.agents.get(REVIEW_AGENT)?;
        let words: Vec<&str> =
            [command.program.as_str()].into_iter().chain(command.args.iter().map(String::as_str)).collect();
        serde_json::to_string(&words).ok()
    }

    /// Models of the agents of its phases, by agent.
    pub(crate) fn agent_models(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut models = BTreeMap::<String, BTreeSet<String>>::new();
        for (_, phase) in self.workflow.phases() {
            let Some(name) = self.agent_of(phase) else { continue };
            let Some(agent) = self.agents.get(name).filter(|agent| agent.uses_model) else { continue };
            if let Some(model) = phase.model.as_ref().or(agent.model.as_ref()) {
                models.entry(name.to_owned()).or_default().insert(model.clone());
            }
        }
        models
    }

    /// The budgets as the journal records them; empty where nothing is limited.
    pub(crate) fn recorded_budgets(&self) -> RecordedBudgets {
        let limited = self.workflow.phases().filter(|(_, phase)| !phase.budget.is_unlimited());
        let phases = limited.map(|(_, phase)| (phase.name.clone(), phase.budget)).collect();
        let mut budgets = RecordedBudgets { run: self.budget, phases, models: Vec::new() };
        if !budgets.is_empty() {
            let uses_model = |phase: &Phase| {
                let agent = self.agent_of(phase).and_then(|agent| self.agents.get(agent));
                agent.is_some_and(|agent| agent.uses_model)
            };
            let models = self.workflow.phases().filter(|(_, phase)| uses_model(phase));
            budgets.models = models.map(|(_, phase)| phase.name.clone()).collect();
        }
        budgets
    }

    /// Whether the run can begin. `has_env` says whether an environment variable is set.
    ///
    /// # Errors
    /// Names every phase that this version cannot run, every agent and environment variable that is missing, every
    /// input that is missing or unknown.
    pub fn check(&self, has_env: &dyn Fn(&str) -> bool) -> Result<(), PlanError> {
        let mut problems: Vec<String> = self.missing_agents().into_iter().collect();
        for (_, phase) in self.workflow.phases() {
            self.check_phase(phase, has_env, &mut problems);
        }
        self.check_inputs(&mut problems);
        problems.dedup();
        if problems.is_empty() { Ok(()) } else { Err(PlanError { problems }) }
    }

    fn check_phase(&self, phase: &Phase, has_env: &dyn Fn(&str) -> bool, problems: &mut Vec<String>) {
        let name = &phase.name;
        if phase.kind == PhaseKind::Exec {
            return;
        }
        // Reported for all such phases together.
        let Some(agent) = self.agent_of(phase) else { return };
        let Some(command) = self.agents.get(agent) else {
            let built_in = cliq_workflow::BUILT_IN.contains(&agent);
            let what = if is_connector(agent) { "connector" } else { "agent" };
            problems.push(if let Some(why) = self.agents.why_unusable(agent) {
                format!("phase `{name}` uses agent `{agent}`, which cannot work here: {why}")
            } else if built_in {
                format!("phase `{name}` uses {what} `{agent}`, which this version of cliq knows but cannot run yet: declare an agent of your own under `agents:`, or wait for a version that can")
            } else {
                format!("phase `{name}` uses agent `{agent}`, which is not there: {}", self.known_agents(agent))
            });
            return;
        };
        if !phase.conversation.is_fresh() && phase.agent.is_some() && !command.uses_model {
            problems.push(format!(
                "phase `{name}` has `conversation: continue`, and its agent `{agent}` has no conversation to continue: remove it, or choose a model agent"
            ));
        }
        for variable in command.needs_env.iter().filter(|variable| !has_env(variable)) {
            problems.push(format!(
                "agent `{agent}` of phase `{name}` needs the environment variable {variable}: set it and run again"
            ));
        }
    }

    /// Returns one problem for all phases without an agent, with the remedy once.
    fn missing_agents(&self) -> Option<String> {
        let phases = self.workflow.phases().map(|(_, phase)| phase);
        let names: Vec<String> = phases
            .filter(|phase| phase.kind != PhaseKind::Exec && self.agent_of(phase).is_none())
            .map(|phase| format!("`{}`", phase.name))
            .collect();
        let (phases, verb) = match names.as_slice() {
            [] => return None,
            [only] => (format!("phase {only}"), "names"),
            several => (format!("phases {}", several.join(", ")), "name"),
        };
        Some(format!(
            "{phases} {verb} no agent and there is no default: write `agent:` in team.yml, pass `--agent NAME`, set `default_agent`, or make a model agent usable (`cliq doctor` says how)"
        ))
    }

    fn known_agents(&self, name: &str) -> String {
        match nearest(name, self.agents.names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "declare it under `agents:` in team.yml and assemble the team again".to_owned(),
        }
    }

    fn check_inputs(&self, problems: &mut Vec<String>) {
        let declared = &self.workflow.inputs;
        for input in declared.iter().filter(|i| i.required && !self.inputs.contains_key(&i.name)) {
            let about = input.description.as_deref().map(|d| format!(" ({d})")).unwrap_or_default();
            problems.push(format!("input `{0}`{about} is missing: pass `--input {0}=VALUE`", input.name));
        }
        for name in self.inputs.keys().filter(|name| !declared.iter().any(|i| i.name == **name)) {
            let hint = match nearest(name, declared.iter().map(|i| i.name.as_str())) {
                Some(near) => format!("did you mean `{near}`?"),
                None if declared.is_empty() => "it declares none".to_owned(),
                None => format!(
                    "it declares {}",
                    declared.iter().map(|i| i.name.as_str()).collect::<Vec<_>>().join(", ")
                ),
            };
            problems.push(format!("the team has no input `{name}`: {hint}"));
        }
    }

    /// Returns the channel for the result of a phase without successors: `None`, except in the team of a team phase. The name is
    /// that of the team phase, or a similar one that no phase of the team has.
    #[must_use]
    pub fn result_channel(&self, phase: &Phase) -> Option<PhaseName> {
        let parent = self.parent.as_ref()?;
        (phase.dependents.is_empty() && !phase.support).then(|| self.result_name(parent))
    }

    fn result_name(&self, parent: &Parent) -> PhaseName {
        let free = |name: &PhaseName| self.workflow.find(name.as_str()).is_none();
        let names = (1..).map(|n| if n == 1 { "result".to_owned() } else { format!("result-{n}") });
        let names = std::iter::once(parent.phase.to_string()).chain(names);
        names
            .filter_map(|name| PhaseName::parse(&name).ok())
            .find(free)
            .unwrap_or_else(|| parent.phase.clone())
    }

    /// Every input with its value: given, or its default.
    #[must_use]
    pub fn resolved_inputs(&self) -> BTreeMap<String, String> {
        let defaults = self.workflow.inputs.iter().filter_map(|i| Some((i.name.clone(), i.default.clone()?)));
        defaults.chain(self.inputs.clone()).collect()
    }
}
