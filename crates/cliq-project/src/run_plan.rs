//! The plan of a run: from the assembled team, the settings and what the caller chooses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cliq_agents::ModelAgent;
use cliq_model::RunSpec;
use cliq_orchestrator::{Agents, Durability, Launcher, Recipient, RunPlan, StartError, Timing, TraceSource};
use cliq_protocol::{PhaseKind, RunId, Sandbox, TraceContext};
use cliq_settings::{DurabilityChoice, NotificationSettings, PriceSettings, RunSettings, Settings};
use cliq_telemetry::{OptionsError, TelemetryOptions};
use cliq_workflow::ValidatedWorkflow;

use crate::agents::needs_default;
use crate::host::GUARD_INPUTS;
use crate::requirement::title_of;
use crate::run_sandbox::RunAccess;
use crate::{Project, ProjectError};

/// Options of one run. Everything else comes from the team and the settings.
///
/// ```
/// use cliq_project::{RunOptions, RunSpec};
///
/// let spec = RunSpec { max_parallel: Some(2), ..RunSpec::default() };
/// let options = RunOptions::new().with_spec(spec);
/// assert_eq!(options.spec.max_parallel, Some(2));
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// Description of the run. Its agent is that of team phases too; default: the setting, else the first usable model agent. Team,
    /// requirement and repositories have no effect: they are those of the project.
    pub spec: RunSpec,
    /// The launcher. Default: plain child processes.
    pub launcher: Option<Arc<dyn Launcher>>,
    /// Whether the run works in another place, such as a container. Programs and variables that this host lacks are not checked then.
    pub is_elsewhere: bool,
    /// The id of the run, where the caller chooses it ([`RunPlan::run_id`]).
    pub run_id: Option<RunId>,
}

impl RunOptions {
    /// Returns the options of a run by team and settings alone.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the description of the run: inputs, agent, budget, limit of concurrent phases, sandbox, title.
    #[must_use]
    pub fn with_spec(mut self, spec: RunSpec) -> Self {
        self.spec = spec;
        self
    }

    /// Sets the launcher of agents and commands.
    #[must_use]
    pub fn with_launcher(mut self, launcher: Arc<dyn Launcher>) -> Self {
        self.launcher = Some(launcher);
        self
    }

    /// Sets the id of the run. A run of this id begins once only.
    #[must_use]
    pub fn with_run_id(mut self, run_id: RunId) -> Self {
        self.run_id = Some(run_id);
        self
    }

    /// Declares that the run works in another place, such as a container: programs and variables that this host lacks are not checked.
    #[must_use]
    pub fn elsewhere(mut self) -> Self {
        self.is_elsewhere = true;
        self
    }
}

impl Project {
    /// Returns the plan of a run of the assembled team: checked against what the host has, and ready for [`crate::execute`].
    ///
    /// ```no_run
    /// use cliq_project::{Environment, Host, Project, RunOptions};
    ///
    /// let host = Host::new(Environment::of_process(), "/usr/local/bin/cliq".into());
    /// let project = Project::open("/home/ada/shop".into(), host)?;
    /// let plan = project.run_plan(&RunOptions::new())?;
    /// println!("{} phases", plan.workflow.phases().count());
    /// # Ok::<(), cliq_project::ProjectError>(())
    /// ```
    ///
    /// # Errors
    /// No team is assembled, it has errors, settings cannot be read, or a program or team that it needs is missing.
    pub fn run_plan(&self, options: &RunOptions) -> Result<RunPlan, ProjectError> {
        let (workflow, settings) = (self.workflow()?, self.settings()?);
        self.run_plan_of(workflow, &settings, options)
    }

    /// As [`Project::run_plan`], of a team and settings that are loaded already.
    ///
    /// # Errors
    /// A program or team that the team needs is missing.
    pub fn run_plan_of(
        &self,
        workflow: ValidatedWorkflow,
        settings: &Settings,
        options: &RunOptions,
    ) -> Result<RunPlan, ProjectError> {
        if !options.is_elsewhere {
            self.check_programs(&workflow)?;
        }
        let RunSpec {
            // The project has its team, its requirement and its files.
            team: _,
            requirement: _,
            repos: _,
            title,
            inputs,
            agent,
            max_parallel,
            budget,
            sandbox,
            trace,
        } = &options.spec;
        let mut plan = self.base_plan(workflow, settings);
        if let Some(agent) = agent {
            check_agent(&plan.agents, settings, agent)?;
            self.set_default_agent(&mut plan, agent);
        }
        plan.inputs.clone_from(inputs);
        plan.run_id.clone_from(&options.run_id);
        plan.title = title.as_deref().and_then(title_of).or_else(|| self.title());
        if let Some(max_parallel) = max_parallel {
            plan.max_parallel = Some(*max_parallel as usize);
        }
        plan.budget = plan.budget.overridden_by(*budget);
        plan.notifications = notifications(settings);
        plan.trace = self.trace_source(settings, *trace);
        if !options.is_elsewhere {
            self.check_team_phases(&plan, settings)?;
        }
        if let Some(launcher) = &options.launcher {
            plan.launcher = Arc::clone(launcher);
        }
        if !options.is_elsewhere {
            let requested = sandbox.map(Sandbox::profile);
            let access = RunAccess { requested: requested.as_ref(), ..RunAccess::default() };
            self.confine(&mut plan, settings, access)?;
        }
        Ok(plan)
    }

    /// Returns the trace that a run is part of. Without options that can be read nothing is exported, and the caller's trace goes on.
    pub(crate) fn trace_source(&self, settings: &Settings, caller: Option<TraceContext>) -> TraceSource {
        self.telemetry(settings).unwrap_or_default().trace_source(caller)
    }

    /// Returns the telemetry of runs in this environment (docs/telemetry.md).
    ///
    /// # Errors
    /// A variable or setting is not understood.
    pub fn telemetry(&self, settings: &Settings) -> Result<TelemetryOptions, OptionsError> {
        TelemetryOptions::read(|name| self.host().environment.get(name).map(str::to_owned), settings)
    }

    /// A plan by team and settings alone, unchecked.
    pub(crate) fn base_plan(&self, workflow: ValidatedWorkflow, settings: &Settings) -> RunPlan {
        let mut plan = RunPlan::new(self.dir().clone(), workflow);
        plan.agents = self.agents(&plan.workflow, settings);
        if needs_default(&plan.workflow) {
            plan.default_agent = self.host().default_agent(settings);
        }
        let run = RunSettings::read(settings);
        plan.max_parallel = run.max_parallel;
        plan.timing = timing_of(&run);
        plan.durability = match run.durability {
            DurabilityChoice::Power => Durability::Power,
            DurabilityChoice::Process => Durability::Process,
        };
        plan.max_file_bytes = run.max_file_bytes as u64;
        plan.prices = PriceSettings::all(settings);
        plan.guards_inputs = self.host().has_variable(GUARD_INPUTS);
        plan.checkpoints = self.checkpoints(settings);
        plan.watchdog = vec![self.host().program.to_string(), "watchdog".to_owned()];
        plan.env.extend(self.host().path().map(|path| ("PATH".to_owned(), path)));
        plan
    }

    /// Makes an agent the default of a plan, in the teams of team phases too.
    pub(crate) fn set_default_agent(&self, plan: &mut RunPlan, agent: &str) {
        plan.default_agent = Some(agent.to_owned());
        let team = self.host().cliq(&["agent", "team", "--agent", agent]);
        plan.agents = std::mem::take(&mut plan.agents).with("team", team);
    }

    /// Checks that the programs that a team names under `tools` are on the PATH.
    fn check_programs(&self, workflow: &ValidatedWorkflow) -> Result<(), ProjectError> {
        let missing = |tool: &&String| self.host().environment.find_program(tool).is_none();
        let programs: Vec<String> = workflow.tools.iter().filter(missing).cloned().collect();
        if programs.is_empty() {
            return Ok(());
        }
        Err(ProjectError::MissingPrograms { team: workflow.name.to_string(), programs })
    }

    /// Checks that the teams of team phases can run, before any phase starts.
    fn check_team_phases(&self, plan: &RunPlan, settings: &Settings) -> Result<(), ProjectError> {
        for (_, phase) in plan.workflow.phases().filter(|(_, phase)| phase.kind == PhaseKind::Team) {
            let inner = self.team_phase(&phase.name);
            let check = || {
                if !inner.has_team() {
                    return Err(ProjectError::TeamPhaseNotAssembled);
                }
                let mut inner_plan = inner.base_plan(inner.workflow()?, settings);
                inner_plan.default_agent.clone_from(&plan.default_agent);
                inner_plan.inputs.clone_from(&phase.inputs);
                inner_plan.check(&|name| self.host().has_variable(name)).map_err(StartError::from)?;
                Ok(inner_plan)
            };
            let inner_plan = check().map_err(|error| error.of_team_phase(&phase.name, None))?;
            inner.check_team_phases(&inner_plan, settings)?;
        }
        Ok(())
    }
}

/// Checks that an agent that a person names exists. One that exists and cannot work here is reported with the phases that need it.
fn check_agent(agents: &Agents, settings: &Settings, name: &str) -> Result<(), ProjectError> {
    let unusable = agents.unusable().map(|(name, _)| name);
    // Model agents that no phase needs are not among the agents of the plan.
    let named = ModelAgent::names(settings);
    let built_in = cliq_agents::NAMES.iter().copied();
    let known: BTreeSet<&str> =
        agents.names().chain(unusable).chain(built_in).chain(named.iter().map(String::as_str)).collect();
    if known.contains(name) {
        return Ok(());
    }
    let nearest = cliq_workflow::nearest(name, known.iter().copied()).map(str::to_owned);
    let others = known.into_iter().filter(|other| Some(*other) != nearest.as_deref()).map(str::to_owned);
    Err(ProjectError::UnknownAgent {
        name: name.to_owned(),
        known: nearest.iter().cloned().chain(others).collect(),
        nearest,
    })
}

/// Timeouts and intervals of runs, from the settings.
#[must_use]
pub fn timing(settings: &Settings) -> Timing {
    timing_of(&RunSettings::read(settings))
}

fn timing_of(run: &RunSettings) -> Timing {
    let mut timing = Timing::default();
    timing.poll_interval = run.poll_interval;
    timing.phase_timeout = run.phase_timeout;
    timing.gate_agent_timeout = run.gate_agent_timeout;
    timing
}

/// The most bytes of a file that an agent wrote.
pub(crate) fn max_file_bytes(settings: &Settings) -> u64 {
    RunSettings::read(settings).max_file_bytes as u64
}

/// The recipients of notifications, by event.
fn notifications(settings: &Settings) -> BTreeMap<String, Vec<Recipient>> {
    let recipient = |channel: String| {
        let (agent, channel) = channel.split_once(':').unwrap_or((&channel, "default"));
        Recipient::new(agent, channel)
    };
    let lists = NotificationSettings::read(settings).channels.into_iter();
    lists.map(|(event, channels)| (event, channels.into_iter().map(recipient).collect())).collect()
}
