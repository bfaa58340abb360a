//! The agents of plans: how they run in a project, by its settings.

use std::collections::BTreeMap;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, SharedPath, read_limited, read_within, write_atomic};
use cliq_gateway::Inbox;
use cliq_lifecycle::{AgentRun, Assignment, Config, PlanAgents, Role, RunCompanion, Slots, TaskLoop};
use cliq_orchestrator::RunPlan;
use cliq_settings::{LauncherChoice, PlanSettings, RoleSettings, RunSettings, Settings, TaskLoopChoice};
use cliq_workflow::{Agent, ValidatedWorkflow};
use serde_json::json;

use crate::agents::needs_default;
use crate::launcher::{LauncherKind, runs_elsewhere};
use crate::run_sandbox::RunAccess;
use crate::{Host, Project, ProjectError};

/// Variable that is set where the database cannot be reached, because the agent of a plan works in a container, a cluster or a sandbox: signals go as files
/// into the inbox of the plan's project, which the daemon reads.
pub const SIGNAL_FILES: &str = "CLIQ_SIGNAL_FILES";
/// The most bytes of a role file.
const ROLE_LIMIT: u64 = 16 << 20;

/// Maker of the companions of runs.
type Companions = Box<dyn Fn(&RunPlan) -> Option<Box<dyn RunCompanion>> + Send + Sync>;

/// The agents of plans by the settings of each project.
pub struct SettingsPlanAgents {
    host: Host,
    companions: Companions,
}

impl std::fmt::Debug for SettingsPlanAgents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SettingsPlanAgents").field("host", &self.host).finish_non_exhaustive()
    }
}

impl SettingsPlanAgents {
    /// The agents of plans on a host.
    #[must_use]
    pub fn new(host: Host) -> Self {
        Self { host, companions: Box::new(|_| None) }
    }

    /// Sets the companions of their runs, such as exports.
    #[must_use]
    pub fn with_companions(
        mut self,
        companions: impl Fn(&RunPlan) -> Option<Box<dyn RunCompanion>> + Send + Sync + 'static,
    ) -> Self {
        self.companions = Box::new(companions);
        self
    }
}

impl PlanAgents for SettingsPlanAgents {
    fn config(&self, project: &Utf8Path) -> Result<Config, String> {
        let settings = Project::open(project, self.host.clone()).and_then(|project| project.settings());
        settings.map(|settings| plan_config(&settings)).map_err(|error| error.to_string())
    }

    fn prepare(&self, assignment: &Assignment) -> Result<AgentRun, String> {
        let agent = PlanAgent::new(&self.host, assignment).map_err(|error| error.to_string())?;
        if runs_elsewhere(&agent.settings) {
            let mut command = Command::new(&self.host.program);
            command.args(["agent", "plan"]).current_dir(&assignment.workspace);
            return Ok(AgentRun::Elsewhere(Box::new(command)));
        }
        let plan = agent.run_plan().map_err(|error| error.to_string())?;
        Ok(AgentRun::Here(Box::new(plan)))
    }

    fn companion(&self, plan: &RunPlan) -> Option<Box<dyn RunCompanion>> {
        (self.companions)(plan)
    }

    fn projects(&self) -> Vec<Utf8PathBuf> {
        self.host.registered_projects()
    }

    fn has_env(&self, name: &str) -> bool {
        self.host.has_variable(name)
    }
}

/// Returns the configuration of plans from settings.
#[must_use]
pub fn plan_config(settings: &Settings) -> Config {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    // All fields are named, so a new setting does not compile until it has a use here.
    let PlanSettings {
        task_loop,
        auto_readiness_review,
        readiness_max_verify_cycles,
        auto_implement,
        planners,
        use_architect,
        use_business_analyst,
        developers,
        critics,
        auditors,
    } = PlanSettings::read(settings);
    Config {
        auto_readiness_review,
        readiness_max_verify_cycles: count(readiness_max_verify_cycles),
        task_loop: match task_loop {
            TaskLoopChoice::Markers => TaskLoop::Markers,
            TaskLoopChoice::Signals => TaskLoop::Signals,
        },
        slots: Slots { developers: count(developers), critics: count(critics), auditors: count(auditors) },
        auto_implement,
        architect: use_architect,
        business_analyst: use_business_analyst,
        planners: u32::try_from(planners).unwrap_or(1),
    }
}

/// The agent of a plan: a team of one phase, in a `.cliq` directory of its own.
#[derive(Debug)]
pub struct PlanAgent {
    /// The project of the plan.
    owner: Project,
    project: Project,
    settings: Settings,
    workflow: ValidatedWorkflow,
    /// The agents that the team of the plan's project declares. A role may be one of them (docs/signals.md: the team's agents come first).
    declared: BTreeMap<String, Agent>,
    env: BTreeMap<String, String>,
    role: Role,
}

impl PlanAgent {
    /// Makes the team of an assignment, in its directory.
    ///
    /// # Errors
    /// The project, its settings, its team or the role's file cannot be read, or the directory not be written.
    pub fn new(host: &Host, assignment: &Assignment) -> Result<Self, ProjectError> {
        let owner = Project::open(&assignment.project, host.clone())?;
        let settings = owner.settings()?;
        let project = owner.with_dir(CliqDir::at(&assignment.dir, &assignment.workspace)?);
        let (dir, role) = (project.dir(), assignment.role);
        let RoleSettings { agent, command, file } = RoleSettings::read(&settings, role.as_str());
        let phase = match command {
            Some(command) => {
                json!({"name": role.as_str(), "type": "exec", "commands": [{"name": "work", "run": command}]})
            }
            None => {
                let text = role_file(owner.dir().workspace(), role, file, runs_elsewhere(&settings))?;
                write_atomic(&dir.roles().join(format!("{role}.md")), text.as_bytes())?;
                let mut phase = json!({"name": role.as_str(), "type": "standard"});
                if let Some(agent) = agent {
                    phase["agent"] = agent.into();
                }
                phase
            }
        };
        let is_agent = phase["type"] == "standard";
        // JSON is a subset of YAML.
        let team = json!({"name": format!("@cliq/{role}"), "phases": [phase]});
        write_atomic(&dir.team_file(), team.to_string().as_bytes())?;
        let declared = if is_agent && owner.has_team() { owner.workflow()?.agents } else { BTreeMap::new() };
        let workflow = project.workflow_with(declared.keys().cloned())?;
        let env = assignment.env.clone();
        Ok(Self { owner, project, settings, workflow, declared, env, role })
    }

    /// The team, as a project that has the settings of the plan's project.
    #[must_use]
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// The settings of the plan's project.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The workflow of the team.
    #[must_use]
    pub fn workflow(&self) -> &ValidatedWorkflow {
        &self.workflow
    }

    /// Returns the plan of the agent's run on this host.
    ///
    /// # Errors
    /// No agent is named for the role, and none is on this host; or it is to work in tmux, which is not there.
    pub fn run_plan(self) -> Result<RunPlan, ProjectError> {
        let (job, access) = (&self.project, self.access());
        let mut plan = job.base_plan(self.workflow, &self.settings);
        for (name, command) in self.owner.team_agents(&self.declared) {
            plan.agents = std::mem::take(&mut plan.agents).with(name, command);
        }
        let needs_agent = needs_default(&plan.workflow);
        if plan.default_agent.is_none() && needs_agent {
            return Err(ProjectError::NoAgentForRole { role: self.role.to_string() });
        }
        plan.trace = job.trace_source(&self.settings, None);
        plan.env = self.env;
        plan.env.extend(program_variables(job.host()));
        job.confine(&mut plan, &self.settings, access)?;
        if plan.confinement.is_some() {
            // The database is not within reach of a sandbox.
            plan.env.insert(SIGNAL_FILES.to_owned(), "1".to_owned());
        }
        if RunSettings::read(&self.settings).launcher == LauncherChoice::Tmux {
            LauncherKind::require_tmux()?;
            plan.launcher = job.launcher(LauncherKind::Tmux, &self.settings);
        }
        Ok(plan)
    }

    /// Files of a plan that its agents write: the plan's directory, without the jobs of others, and the project's inbox of signals.
    fn access(&self) -> RunAccess<'static> {
        let (owner, dir) = (self.owner.dir(), self.project.dir());
        let jobs = dir.root().parent().map(Utf8Path::to_owned);
        let of_plan = jobs.as_deref().and_then(Utf8Path::parent).map(Utf8Path::to_owned);
        let inbox = Inbox::of(owner.workspace());
        // Only what exists can be shown in a sandbox.
        let _ = inbox.ensure();
        RunAccess {
            requested: None,
            write: of_plan.into_iter().chain([inbox.root().to_owned()]).collect(),
            hidden: jobs.into_iter().collect(),
            git: (owner.workspace() != dir.workspace()).then(|| owner.workspace().join(".git")),
        }
    }

    /// As [`Project::variables_for_container`]: those of the agents that the team of the plan's project declares, too.
    ///
    /// # Errors
    /// A team has errors.
    pub fn variables_for_container(&self) -> Result<BTreeMap<String, String>, ProjectError> {
        let mut variables = self.project.variables_for_container()?;
        if self.owner.has_team() {
            variables.extend(self.owner.variables_for_container()?);
        }
        Ok(variables)
    }

    /// As [`Project::paths_for_container`]: the plan's project, too, whose inbox takes signals.
    #[must_use]
    pub fn paths_for_container(&self) -> Vec<SharedPath> {
        let project = self.owner.dir().workspace();
        let mut paths = self.project.paths_for_container();
        if project != self.project.dir().workspace() {
            paths.retain(|shared| !shared.path.starts_with(project));
            paths.push(SharedPath { path: project.to_owned(), writable: true });
        }
        paths
    }
}

/// Reads the file of a role from the project's directory. Returns the bundled one if the settings name none.
fn role_file(
    project: &Utf8Path,
    role: Role,
    file: Option<String>,
    is_remote: bool,
) -> Result<String, ProjectError> {
    let Some(file) = file else {
        return Ok(role.bundled().to_owned());
    };
    let path = project.join(file);
    let error =
        |message: String| ProjectError::RoleFile { path: path.clone(), role: role.to_string(), message };
    // What a container does not see is not read for it.
    let read =
        if is_remote { read_within(&path, project, ROLE_LIMIT) } else { read_limited(&path, ROLE_LIMIT) };
    let bytes = read.map_err(|failed| error(failed.source.to_string()))?;
    String::from_utf8(bytes).map_err(|_| error("it is not UTF-8".to_owned()))
}

/// Variables by which an agent finds this very `cliq`, to emit signals, before any other on the PATH.
fn program_variables(host: &Host) -> Vec<(String, String)> {
    let path = host.environment.get("PATH").unwrap_or_default();
    let mut variables = vec![("CLIQ_PROGRAM".to_owned(), host.program.to_string())];
    if let Some(dir) = host.program.parent().filter(|dir| !dir.as_str().is_empty()) {
        variables.push(("PATH".to_owned(), format!("{dir}:{path}")));
    }
    variables
}

#[cfg(test)]
mod tests {
    use cliq_settings::Key;

    use super::*;

    #[test]
    fn settings_know_every_role() {
        for role in Role::ALL {
            assert!(Key::find(&format!("roles.{role}.agent")).is_ok(), "{role}");
        }
    }
}
