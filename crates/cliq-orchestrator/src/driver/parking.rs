//! Parking (docs/decisions/0033-waiting-is-a-state.md): of the outermost run, together with the runs of its team phases.
//!
//! The run of a team phase reports to the run around it while it waits, and gives back its share of the [`ParkingLock`]. The outermost run
//! takes the whole lock before it is parked. A run that cannot take its share again parks too, without processing what it received: agents
//! that waited are asked again.

use cliq_fs::{FsError, ParkingLock, clear_signal};
use cliq_protocol::{PhaseKind, Timestamp};

use super::Driver;
use crate::engine::{Input, Wait};
use crate::events::RunEvent;
use crate::plan::RunPlan;

/// Parking of a run and of the runs of its team phases.
#[derive(Debug)]
pub(super) struct Parking {
    /// The lock. Open from the start in the run of a team phase; in the outermost run once a team phase waits.
    lock: Option<ParkingLock>,
    /// Wait that was reported to the run around it.
    reported: Option<Wait>,
}

impl Parking {
    pub(super) fn new(plan: &RunPlan) -> Result<Self, FsError> {
        let lock = plan.parent.as_ref().map(|_| ParkingLock::open(&plan.dir)).transpose()?;
        // No run is parked whose team phase has just started.
        let _ = lock.as_ref().map(ParkingLock::work);
        Ok(Self { lock, reported: None })
    }
}

impl Driver {
    /// Whether the run may process an event. If the outermost run is being parked, parks this one and returns `false`.
    pub(super) fn may_work(&mut self) -> bool {
        let Parking { lock: Some(lock), reported: Some(wait) } = &self.parking else { return true };
        if lock.work() {
            return true;
        }
        let wait = wait.clone();
        self.park(wait);
        false
    }

    /// Parks the run if it waits and nothing is under way: agents have no message left, and all notifications are delivered. The run of a
    /// team phase reports that it waits, or works again. Returns whether the run is to try again: the run of a team phase works.
    pub(super) fn park_if_waiting(&mut self) -> bool {
        let is_idle = self.inbox.is_empty() && self.notifications.is_empty() && !self.broken && !self.over;
        let is_part = self.shared.plan.parent.is_some();
        if !is_part && !self.shared.plan.parks || self.cancel.is_cancelled() {
            return false;
        }
        let wait = if is_idle { self.pipeline.waits() } else { None };
        if is_part {
            self.report_wait(wait);
            return false;
        }
        // Its time has come: the timer that ends the wait is about to fire.
        let Some(wait) = wait.filter(|wait| wait.until_ms > cliq_fs::now().unix_millis()) else {
            return false;
        };
        match self.take_parking_lock() {
            Ok(true) => self.park(wait),
            Ok(false) => return true,
            Err(error) => self.cannot_record(&error),
        }
        false
    }

    fn report_wait(&mut self, wait: Option<Wait>) {
        if wait.is_some() {
            self.parking.lock.iter().for_each(ParkingLock::wait);
        }
        if wait == self.parking.reported {
            return;
        }
        self.parking.reported.clone_from(&wait);
        let (on, until) = wait.map(|wait| (wait.reviews, Timestamp::from_unix_millis(wait.until_ms))).unzip();
        self.publish(RunEvent::RunIdle { on: on.unwrap_or_default(), until });
    }

    /// Takes the whole lock if the run of a team phase waits.
    fn take_parking_lock(&mut self) -> Result<bool, FsError> {
        let is_team = |id| self.shared.workflow().phase(id).kind == PhaseKind::Team;
        if !self.pipeline.working().any(is_team) {
            return Ok(true);
        }
        let lock = match self.parking.lock.take() {
            Some(lock) => lock,
            None => ParkingLock::open(self.shared.dir())?,
        };
        Ok(self.parking.lock.insert(lock).park())
    }

    fn park(&mut self, wait: Wait) {
        let until = Timestamp::from_unix_millis(wait.until_ms).into();
        self.publish(RunEvent::RunParked { on: wait.reviews, until });
        // A run whose parking is not recorded goes on, to the failure that this is. The run of a team phase ends as if it were killed.
        if !self.broken {
            self.pipeline.step(Input::Park);
        }
        if !self.broken || self.shared.plan.parent.is_some() {
            self.over = true;
            self.shared.stop.cancel();
        }
    }

    /// Clears the signals of agents that wake. They report in the same activation: what they said before they were parked has been recorded.
    pub(super) fn clear_parked_signals(&self) -> Result<(), FsError> {
        let workflow = self.shared.workflow();
        let mut working = self.pipeline.working().map(|id| workflow.name_of(id));
        working.try_for_each(|phase| clear_signal(self.shared.dir(), &phase))
    }
}
