//! Steering the run of a project (SPEC section 21).

use cliq_orchestrator::{SteerError, SteeringReceipt, accepts_steering, steer};
use cliq_protocol::NewSteering;

use crate::{Project, ProjectError};

impl Project {
    /// Sends a steering message to the last run, or to the run whose id begins with `run`. Blocks until the run's journal contains the
    /// message.
    ///
    /// # Errors
    /// Returns an error if there is no such run, it has ended, it takes no such message, or a file cannot be written.
    pub fn steer(&self, run: Option<&str>, new: NewSteering) -> Result<SteeringReceipt, ProjectError> {
        let record = self.recorded_run(run)?;
        let run_id = record.journal.run_id().ok_or(ProjectError::NoRun)?;
        if record.place != self.dir().root() {
            return Err(SteerError::Ended(run_id.to_owned()).into());
        }
        if let Some(phase) = new.phase() {
            accepts_steering(&self.workflow()?, phase)?;
        }
        Ok(steer(self.dir(), run_id, new)?)
    }
}
