//! Needs of a team that this machine may lack, said before a run can fail for want of them.

use cliq_agents::{ModelAgent, Usable};
use cliq_settings::Settings;
use cliq_workflow::ValidatedWorkflow;

use crate::agents::needs_default;
use crate::host::Host;
use crate::launcher::runs_elsewhere;

/// Needs of a team, and what of them is missing here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TeamNeeds {
    /// Agents that its phases name, each once. Those of the team itself are left out.
    pub agents: Vec<String>,
    /// Whether phases name no agent: they get the default one.
    pub default_agent: bool,
    /// Programs that the team names under `tools`.
    pub programs: Vec<String>,
    /// Agents that cannot work here, each with the reason.
    pub missing_agents: Vec<String>,
    /// Programs that are not on the PATH.
    pub missing_programs: Vec<String>,
}

impl TeamNeeds {
    /// Reasons why a run cannot start here, as sentences. Empty if it can.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let programs =
            self.missing_programs.iter().map(|program| format!("the program `{program}` is not on the PATH"));
        self.missing_agents.iter().cloned().chain(programs).collect()
    }
}

impl Host {
    /// Returns the needs of a team. `agent` is the agent for phases that name none; without it the default of the settings.
    #[must_use]
    pub fn needs(&self, workflow: &ValidatedWorkflow, settings: &Settings, agent: Option<&str>) -> TeamNeeds {
        let mut needs = TeamNeeds {
            default_agent: needs_default(workflow),
            programs: workflow.tools.clone(),
            ..TeamNeeds::default()
        };
        for (_, phase) in workflow.phases() {
            if let Some(name) = &phase.agent
                && !workflow.agents.contains_key(name)
                && !needs.agents.contains(name)
            {
                needs.agents.push(name.clone());
            }
        }
        if runs_elsewhere(settings) {
            // Agents and programs are those of the image.
            return needs;
        }
        let known = self.agents(settings);
        let asked = needs.agents.iter().map(String::as_str).chain(agent.filter(|_| needs.default_agent));
        let lacks = |name: &str| known.why_unusable(name).map(|why| format!("agent `{name}`: {why}"));
        let mut missing: Vec<String> = asked.filter_map(lacks).collect();
        if needs.default_agent && agent.is_none() && self.default_agent(settings).is_none() {
            missing.push(
                "phases of the team name no agent, and no model agent can work here: `cliq doctor` says what each lacks"
                    .to_owned(),
            );
        }
        needs.missing_agents = missing;
        let is_missing = |program: &&String| self.environment.find_program(program).is_none();
        needs.missing_programs = needs.programs.iter().filter(is_missing).cloned().collect();
        needs
    }

    /// Returns the names of the model agents that can work here, the first of which is the default unless the settings name another.
    #[must_use]
    pub fn usable_agents(&self, settings: &Settings) -> Vec<String> {
        let is_usable =
            |agent: &ModelAgent| matches!(agent.usable(settings, &self.environment), Usable::Yes(_));
        ModelAgent::all(settings).into_iter().filter(is_usable).map(|agent| agent.name).collect()
    }
}
