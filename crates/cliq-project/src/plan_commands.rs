//! Actions of a person on a plan: the start, and all of [`Command`].

use cliq_gateway::{NewSignal, PlanName, SignalType};
use cliq_lifecycle::{Command, Context, Event, PlanState, Plans, StepError, read_plan_file};

use crate::plan_agents::plan_config;
use crate::{Project, ProjectError};

/// Reason why a plan was not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanCommandError {
    /// Only a plan that is ready can be started.
    #[error("plan {plan} is {state}, and only a plan that is ready can be started")]
    NotReady {
        /// The plan.
        plan: String,
        /// State of the plan.
        state: PlanState,
    },
    /// The plan file cannot be used, for this reason.
    #[error("{0}")]
    File(String),
    /// The plan does not allow it, or the store cannot be used.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The project's settings cannot be read.
    #[error(transparent)]
    Project(#[from] ProjectError),
}

impl Project {
    /// Starts a plan of this project. Gives the number of the signal that does it; a daemon processes it.
    ///
    /// # Errors
    /// The plan does not exist, it is not ready, its file has errors, or the store cannot be written.
    #[doc(hidden)]
    pub async fn start_plan(&self, plans: &Plans, name: &PlanName) -> Result<i64, PlanCommandError> {
        let workspace = self.dir().workspace();
        let (stored, _) = plans.load(workspace.as_str(), name.as_str()).await?;
        if stored.state != PlanState::Ready {
            return Err(PlanCommandError::NotReady { plan: name.to_string(), state: stored.state });
        }
        let file = read_plan_file(workspace, name.as_str()).map_err(PlanCommandError::File)?;
        let config = plan_config(&self.settings()?);
        // Planned already, and by themselves waves do not begin here: a person begins them.
        let signal = if file.waves.is_empty() || config.auto_implement {
            NewSignal::new(SignalType::PlanStart, name.clone(), "")
        } else {
            NewSignal::new(SignalType::ImplementWave, name.clone(), r#"{"wave_number":1}"#)
        };
        let signal = signal.map_err(|refused| PlanCommandError::File(refused.to_string()))?;
        let id = plans.store().create(workspace.as_str(), &signal).await;
        Ok(id.map_err(StepError::from)?)
    }

    /// Executes a command of a person on a plan of this project.
    ///
    /// # Errors
    /// The plan does not exist, its state does not allow it, or the store cannot be written.
    #[doc(hidden)]
    pub async fn command_plan(
        &self,
        plans: &Plans,
        name: &PlanName,
        command: Command,
    ) -> Result<(), PlanCommandError> {
        let workspace = self.dir().workspace();
        let file = read_plan_file(workspace, name.as_str());
        let config = plan_config(&self.settings()?);
        let context = Context { config, file: file.as_ref().map_err(Clone::clone) };
        plans.step(workspace.as_str(), name, &Event::Person(command), &context, None).await?;
        Ok(())
    }
}
