//! Parts of a plan, each by its method.

use std::sync::Arc;

use cliq_protocol::{Budget, Price, RunId};

use super::{Durability, Recipient, RunPlan, Timing};
use crate::agents::AgentCommand;
use crate::checkpoints::Checkpoints;
use crate::command_script::CommandScript;
use crate::confinement::Confinement;
use crate::launcher::Launcher;

impl RunPlan {
    /// Adds an agent, in place of one of the same name.
    #[must_use]
    pub fn with_agent(mut self, name: impl Into<String>, command: AgentCommand) -> Self {
        self.agents = self.agents.with(name, command);
        self
    }

    /// Sets the agent for phases that name none.
    #[must_use]
    pub fn with_default_agent(mut self, name: impl Into<String>) -> Self {
        self.default_agent = Some(name.into());
        self
    }

    /// Sets the value of an input of the team.
    #[must_use]
    pub fn with_input(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.inputs.insert(name.into(), value.into());
        self
    }

    /// Sets the id of the run. A run of this id begins once only, and only that one is resumed.
    #[must_use]
    pub fn with_run_id(mut self, run_id: RunId) -> Self {
        self.run_id = Some(run_id);
        self
    }

    /// Sets the title of the run for people.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the maximum number of concurrent phases.
    #[must_use]
    pub fn with_max_parallel(mut self, phases: usize) -> Self {
        self.max_parallel = Some(phases);
        self
    }

    /// Sets the budget of the run. Parts that it leaves open are those of the team.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = self.budget.overridden_by(budget);
        self
    }

    /// Sets the price of a model, for usage whose cost the agent does not report.
    #[must_use]
    pub fn with_price(mut self, model: impl Into<String>, price: Price) -> Self {
        self.prices.insert(model.into(), price);
        self
    }

    /// Sets timeouts and intervals.
    #[must_use]
    pub fn with_timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// Sets the failures that the records of the run survive.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets whether the process of the run ends once the run only waits for people or for a point in time. A resumed run continues
    /// from there.
    #[must_use]
    pub fn with_parking(mut self, parks: bool) -> Self {
        self.parks = parks;
        self
    }

    /// Adds a variable to the environment of all agents and commands.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the command of a watchdog, which ends agents and commands if this process is killed: see [`crate::run_watchdog`].
    #[must_use]
    pub fn with_watchdog(mut self, command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.watchdog = command.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a recipient of an event of the run, such as `on_complete` (docs/team-yml.md).
    #[must_use]
    pub fn with_notification(mut self, event: impl Into<String>, recipient: Recipient) -> Self {
        self.notifications.entry(event.into()).or_default().push(recipient);
        self
    }

    /// Sets the launcher of agents and commands.
    #[must_use]
    pub fn with_launcher(mut self, launcher: Arc<dyn Launcher>) -> Self {
        self.launcher = launcher;
        self
    }

    /// Sets the store of checkpoints.
    #[must_use]
    pub fn with_checkpoints(mut self, checkpoints: Arc<dyn Checkpoints>) -> Self {
        self.checkpoints = Some(checkpoints);
        self
    }

    /// Sets the restriction of agents and commands.
    #[must_use]
    pub fn with_confinement(mut self, confinement: Arc<dyn Confinement>) -> Self {
        self.confinement = Some(confinement);
        self
    }

    /// Sets results of commands that are not run.
    #[must_use]
    pub fn with_command_script(mut self, script: CommandScript) -> Self {
        self.command_script = script;
        self
    }
}
