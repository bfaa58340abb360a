//! The scheduler in every order of events.

use std::collections::BTreeMap;

use cliq_eval::suite::SuiteBudget;
use cliq_eval::{Effect, Event, MAX_ATTEMPTS, Scheduler};
use cliq_model::RunTotals;
use cliq_protocol::Timestamp;
use proptest::prelude::*;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    Running,
    Counted,
    GivenUp,
    Skipped,
}

fn usage(tokens: u64) -> RunTotals {
    RunTotals { tokens_in: tokens, tokens_out: 0, cost_usd: None }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Each trial ends once, no more than the limit work at a time, nothing starts after the budget or a stop, and the end comes.
    #[test]
    fn each_trial_ends_once(
        trials in 0_usize..12,
        done in prop::collection::vec(any::<bool>(), 12),
        max_parallel in 1_u32..5,
        budget in prop::option::of(1_u64..2000),
        choices in prop::collection::vec((0_u8..10, any::<prop::sample::Index>(), 1_i64..100_000), 0..400),
    ) {
        let states = (0..trials).map(|n| (done[n], 0));
        let limits = SuiteBudget { tokens: budget, usd: None };
        let mut scheduler = Scheduler::new(states, max_parallel, limits, RunTotals::default());
        let mut outcomes: BTreeMap<usize, Outcome> = BTreeMap::new();
        let mut attempts = vec![0_u32; trials];
        let (mut now, mut is_stopped, mut finished, mut used) = (0_i64, false, 0, 0_u64);
        let mut pending: Vec<Event> = vec![Event::Tick];
        let mut steps = choices.into_iter().chain(std::iter::repeat((0, any_index(), 100_000)));
        for _ in 0..2000 {
            let event = pending.pop().unwrap_or(Event::Tick);
            match event {
                Event::Counted { trial, usage } => { outcomes.insert(trial, Outcome::Counted); used += usage.tokens(); }
                Event::Infrastructure { trial, usage } => { outcomes.remove(&trial); attempts[trial] += 1; used += usage.tokens(); }
                Event::Returned { trial } => { outcomes.remove(&trial); }
                Event::Stopped => is_stopped = true,
                Event::Tick => {}
            }
            let effects = scheduler.step(event, Timestamp::from_unix_millis(now));
            let mut waits_until = None::<i64>;
            for effect in effects {
                match effect {
                    Effect::Start { trial } => {
                        prop_assert!(!done[trial] && !is_stopped && finished == 0);
                        prop_assert!(budget.is_none_or(|most| used < most));
                        prop_assert!(outcomes.insert(trial, Outcome::Running).is_none(), "trial {trial} starts twice");
                    }
                    Effect::GiveUp { trial } => {
                        prop_assert_eq!(attempts[trial], MAX_ATTEMPTS);
                        prop_assert!(outcomes.insert(trial, Outcome::GivenUp).is_none());
                    }
                    Effect::Skip { trial } => {
                        prop_assert!(budget.is_some_and(|most| used >= most));
                        prop_assert!(outcomes.insert(trial, Outcome::Skipped).is_none());
                    }
                    Effect::Wake { at } => { prop_assert!(at.unix_millis() > now); waits_until = Some(at.unix_millis()); }
                    Effect::Finish => finished += 1,
                }
            }
            let running: Vec<usize> = outcomes.iter().filter(|(_, o)| **o == Outcome::Running).map(|(t, _)| *t).collect();
            prop_assert!(running.len() <= max_parallel as usize);
            prop_assert!(finished <= 1);
            if finished == 1 {
                prop_assert!(running.is_empty());
                break;
            }
            prop_assert!(!running.is_empty() || waits_until.is_some(), "nothing goes on");
            let (choice, index, pause) = steps.next().unwrap_or((0, any_index(), 1));
            now += pause;
            if let Some(until) = waits_until.filter(|_| running.is_empty()) {
                now = now.max(until);
            }
            pending.push(match (choice, running.is_empty()) {
                (9, _) => Event::Stopped,
                (_, true) => Event::Tick,
                (8, false) => Event::Returned { trial: running[index.index(running.len())] },
                (0..=4, false) => Event::Counted { trial: running[index.index(running.len())], usage: usage(u64::from(choice) * 30) },
                (_, false) => Event::Infrastructure { trial: running[index.index(running.len())], usage: usage(10) },
            });
        }
        prop_assert_eq!(finished, 1, "the end comes");
        if !is_stopped {
            prop_assert_eq!(outcomes.len(), (0..trials).filter(|n| !done[*n]).count(), "each trial has an end");
        }
    }
}

fn any_index() -> prop::sample::Index {
    // The first one: an index has no constructor.
    use proptest::strategy::{Strategy, ValueTree};
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    any::<prop::sample::Index>().new_tree(&mut runner).map_or_else(|_| unreachable!(), |tree| tree.current())
}
