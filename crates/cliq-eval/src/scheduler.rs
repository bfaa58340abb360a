//! Scheduler of trials: a pure machine. The driver performs its effects and reports what happened; time comes in with the events.

use std::time::Duration;

use cliq_model::RunTotals;
use cliq_protocol::Timestamp;

use crate::suite::SuiteBudget;

/// Maximum number of attempts of a trial whose infrastructure fails.
pub const MAX_ATTEMPTS: u32 = 5;
/// Delay before the second attempt. Each further delay is twice as long.
const FIRST_DELAY: Duration = Duration::from_secs(2);
/// Longest delay.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// State of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Waits for a slot, and until this time.
    Pending { not_before: Timestamp },
    /// At work.
    Running,
    /// Has a result.
    Finished,
}

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// Time has passed.
    Tick,
    /// A trial has ended with a result that counts.
    Counted {
        /// Index of the trial, 0-based.
        trial: usize,
        /// Usage of the attempt.
        usage: RunTotals,
    },
    /// The infrastructure of a trial failed.
    Infrastructure {
        /// Index of the trial, 0-based.
        trial: usize,
        /// Usage of the attempt.
        usage: RunTotals,
    },
    /// An attempt ended without a result because the evaluation stops. The trial is pending again.
    Returned {
        /// Index of the trial, 0-based.
        trial: usize,
    },
    /// No further trial is to start. Those at work end.
    Stopped,
}

/// Effect of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Start an attempt of a trial.
    Start {
        /// Index of the trial, 0-based.
        trial: usize,
    },
    /// Record that the infrastructure failed in every attempt.
    GiveUp {
        /// Index of the trial, 0-based.
        trial: usize,
    },
    /// Record that the budget was used up before the trial started.
    Skip {
        /// Index of the trial, 0-based.
        trial: usize,
    },
    /// Report [`Event::Tick`] at this time.
    Wake {
        /// Time of the event.
        at: Timestamp,
    },
    /// The evaluation is over.
    Finish,
}

/// Scheduler of the trials of one evaluation.
#[derive(Debug, Clone)]
pub struct Scheduler {
    trials: Vec<(State, u32)>,
    max_parallel: usize,
    budget: SuiteBudget,
    used: RunTotals,
    running: usize,
    /// Index of the first trial that may be pending.
    next: usize,
    is_stopped: bool,
    is_finished: bool,
}

impl Scheduler {
    /// Creates a scheduler. `trials` says for each trial whether it has a result, and how many attempts failed before; `used` is the
    /// usage of all attempts before.
    #[must_use]
    pub fn new(
        trials: impl IntoIterator<Item = (bool, u32)>,
        max_parallel: u32,
        budget: SuiteBudget,
        used: RunTotals,
    ) -> Self {
        let state = |is_finished| {
            if is_finished { State::Finished } else { State::Pending { not_before: Timestamp::MIN } }
        };
        Self {
            trials: trials.into_iter().map(|(done, attempts)| (state(done), attempts)).collect(),
            max_parallel: max_parallel.max(1) as usize,
            budget,
            used,
            running: 0,
            next: 0,
            is_stopped: false,
            is_finished: false,
        }
    }

    /// Usage of all attempts.
    #[must_use]
    pub fn used(&self) -> RunTotals {
        self.used
    }

    /// Number of failed attempts of a trial.
    #[must_use]
    pub fn attempts(&self, trial: usize) -> u32 {
        self.trials.get(trial).map_or(0, |(_, attempts)| *attempts)
    }

    /// Applies an event that happened at `now`.
    pub fn step(&mut self, event: Event, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Tick => {}
            Event::Stopped => self.is_stopped = true,
            Event::Returned { trial } => {
                if self.ends(trial, &RunTotals::default()) {
                    self.trials[trial].0 = State::Pending { not_before: now };
                    self.next = self.next.min(trial);
                }
            }
            Event::Counted { trial, usage } => {
                if self.ends(trial, &usage) {
                    self.trials[trial].0 = State::Finished;
                }
            }
            Event::Infrastructure { trial, usage } => {
                if self.ends(trial, &usage) {
                    let attempts = self.trials[trial].1.saturating_add(1);
                    let state = if attempts >= MAX_ATTEMPTS {
                        effects.push(Effect::GiveUp { trial });
                        State::Finished
                    } else {
                        let delay = FIRST_DELAY.saturating_mul(1 << (attempts - 1).min(16));
                        State::Pending { not_before: now.after(delay.min(LONGEST_DELAY)) }
                    };
                    self.trials[trial] = (state, attempts);
                    self.next = self.next.min(trial);
                }
            }
        }
        self.start(now, &mut effects);
        effects
    }

    /// Records the end of an attempt. Returns `false` if the trial was not at work.
    fn ends(&mut self, trial: usize, usage: &RunTotals) -> bool {
        if self.trials.get(trial).is_none_or(|(state, _)| *state != State::Running) {
            return false;
        }
        self.running -= 1;
        self.used.add(usage);
        true
    }

    fn is_budget_used(&self) -> bool {
        self.budget.tokens.is_some_and(|most| self.used.tokens() >= most)
            || self.budget.usd.is_some_and(|most| self.used.cost_usd.unwrap_or(0.0) >= most)
    }

    fn start(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        while self.trials.get(self.next).is_some_and(|(state, _)| *state == State::Finished) {
            self.next += 1;
        }
        let mut wake = None::<Timestamp>;
        for trial in self.next..self.trials.len() {
            let State::Pending { not_before } = self.trials[trial].0 else { continue };
            if self.is_stopped {
                break;
            }
            if self.is_budget_used() {
                self.trials[trial].0 = State::Finished;
                effects.push(Effect::Skip { trial });
                continue;
            }
            if self.running >= self.max_parallel {
                break;
            }
            if not_before > now {
                wake = Some(wake.map_or(not_before, |at| at.min(not_before)));
                continue;
            }
            self.trials[trial].0 = State::Running;
            self.running += 1;
            effects.push(Effect::Start { trial });
        }
        effects.extend(wake.map(|at| Effect::Wake { at }));
        let is_over = self.running == 0
            && (self.is_stopped || self.trials.iter().all(|(state, _)| *state == State::Finished));
        if is_over && !self.is_finished {
            self.is_finished = true;
            effects.push(Effect::Finish);
        }
    }
}
