//! Queue of runs, and the order in which they get free places (docs/decisions/0034-parked-runs-are-rows.md).

use std::collections::VecDeque;

use crate::run::Run;

/// Queued runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Queue {
    /// Runs that were parked, in the order of their wake-ups; those that are to be cancelled first.
    pub woken: VecDeque<Run>,
    /// Other runs, in the order of their requests.
    pub new: VecDeque<Run>,
}

impl Queue {
    /// Whether no run is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.woken.is_empty() && self.new.is_empty()
    }

    /// Removes the runs that cannot start now from the heads of both kinds.
    pub fn skip(&mut self, cannot_start: impl Fn(&Run) -> bool) {
        for runs in [&mut self.woken, &mut self.new] {
            while runs.front().is_some_and(&cannot_start) {
                runs.pop_front();
            }
        }
    }
}

/// Turns of woken and new runs: a woken run comes first, but at most every second place goes to one while new runs are queued. So a
/// thousand simultaneous wake-ups do not keep new runs waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turns {
    /// Whether the last place went to a woken run.
    last_was_woken: bool,
}

impl Turns {
    /// Removes the run that gets the next place.
    pub fn next(&mut self, queue: &mut Queue) -> Option<Run> {
        let is_turn_of_new = self.last_was_woken && !queue.new.is_empty();
        let is_woken = !is_turn_of_new && !queue.woken.is_empty();
        self.last_was_woken = is_woken;
        if is_woken { queue.woken.pop_front() } else { queue.new.pop_front() }
    }
}
