//! Schedules of runs: failures, limits and interruptions.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Course of one run.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    /// Decides every delay and every piece of luck.
    pub(crate) seed: u64,
    /// Failure rate in percent.
    pub(crate) failures: u64,
    pub(crate) max_parallel: Option<usize>,
    pub(crate) interruptions: Vec<Interruption>,
    /// Whether equal questions get equal answers, and nothing fails.
    pub(crate) steady: bool,
    /// The tokens that the run may use at first. Each resumption doubles it. Without it, agents report nothing.
    pub(crate) budget: Option<u64>,
}

/// After so many returns, the run is interrupted; then it is resumed.
#[derive(Debug, Clone)]
pub(crate) struct Interruption {
    pub(crate) after: u16,
    pub(crate) how: Course,
    pub(crate) from: Option<Index>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Course {
    /// SIGKILL: nothing that was under way is heard of again.
    Kill,
    Cancel,
    DiskFull,
}

pub(crate) fn schedule() -> impl Strategy<Value = Schedule> {
    let how = prop_oneof![4 => Just(Course::Kill), 1 => Just(Course::Cancel), 1 => Just(Course::DiskFull)];
    let interruption = (0u16..30, how, prop::option::weighted(0.15, any::<Index>()))
        .prop_map(|(after, how, from)| Interruption { after, how, from });
    let parallel = prop_oneof![2 => Just(None), 1 => (1usize..5).prop_map(Some)];
    (any::<u64>(), prop_oneof![Just(0), Just(1), Just(10)], parallel, vec(interruption, 0..5)).prop_map(
        |(seed, failures, max_parallel, interruptions)| Schedule {
            seed,
            failures,
            max_parallel,
            interruptions,
            steady: false,
            budget: None,
        },
    )
}

/// A schedule with a budget.
pub(crate) fn tight_schedule() -> impl Strategy<Value = Schedule> {
    (schedule(), 1u64..2000).prop_map(|(schedule, budget)| Schedule { budget: Some(budget), ..schedule })
}

impl Schedule {
    /// Whether nothing interrupts the run.
    pub(crate) fn is_uninterrupted(&self) -> bool {
        self.interruptions.is_empty()
    }

    pub(crate) fn calm(seed: u64, max_parallel: Option<usize>) -> Self {
        Self { seed, failures: 0, max_parallel, interruptions: Vec::new(), steady: true, budget: None }
    }

    /// The same with agents that do not change their mind, and nothing that interrupts.
    pub(crate) fn steady(&self) -> Self {
        Self { steady: true, interruptions: Vec::new(), ..self.clone() }
    }

    /// As [`Schedule::steady`], but killed at the same moments and resumed where it stood.
    pub(crate) fn steady_but_killed(&self) -> Self {
        let killed = |i: &Interruption| Interruption { how: Course::Kill, from: None, ..i.clone() };
        Self { interruptions: self.interruptions.iter().map(killed).collect(), ..self.steady() }
    }
}
