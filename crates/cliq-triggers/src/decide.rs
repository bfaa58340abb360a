//! Concurrency groups. Pure.

use cliq_model::GroupState;
use cliq_protocol::RunId;

use crate::model::Policy;

/// Decision about a firing that is to start a run in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupDecision {
    /// Start the run.
    Start,
    /// Start nothing, with the reason.
    Skip(String),
    /// Wait for the group. Runs to cancel meanwhile.
    Wait(Vec<RunId>),
}

/// Decides about a firing. `state` may include the firing itself among those that wait.
#[must_use]
pub fn decide(policy: Policy, firing: i64, state: &GroupState) -> GroupDecision {
    let is_earlier_waiting = state.waiting.iter().any(|id| *id < firing);
    match policy {
        // A newer cause takes the place of those that wait.
        Policy::Cancel => match state.waiting.iter().rev().find(|id| **id > firing) {
            Some(newer) => GroupDecision::Skip(format!("firing {newer} of the same group is newer")),
            None if state.running.is_empty() => GroupDecision::Start,
            None => GroupDecision::Wait(state.running.clone()),
        },
        Policy::Skip => match (state.running.first(), is_earlier_waiting) {
            (Some(run), _) => GroupDecision::Skip(format!("run {run} of the same group is active")),
            (None, true) => GroupDecision::Skip("another firing of the same group waits".to_owned()),
            (None, false) => GroupDecision::Start,
        },
        Policy::Queue if state.running.is_empty() && !is_earlier_waiting => GroupDecision::Start,
        Policy::Queue => GroupDecision::Wait(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Outcome of a firing in the model of the test.
    #[derive(Debug, Clone, PartialEq, Eq)]
    enum Fate {
        Waiting,
        Running(RunId),
        Ended,
        Skipped,
    }

    fn state_of(firings: &BTreeMap<i64, Fate>) -> GroupState {
        let running = firings.values().filter_map(|fate| match fate {
            Fate::Running(run) => Some(run.clone()),
            _ => None,
        });
        let waiting = firings.iter().filter(|(_, fate)| **fate == Fate::Waiting).map(|(id, _)| *id);
        GroupState { version: 0, running: running.collect(), waiting: waiting.collect() }
    }

    proptest! {
        /// Causes arrive, runs end, decisions are made, in any order: at most one run is active, and nothing waits for ever.
        #[test]
        fn groups_have_one_run_at_a_time_and_lose_nothing(
            policy in prop::sample::select(vec![Policy::Queue, Policy::Skip, Policy::Cancel]),
            steps in prop::collection::vec(0_u8..3, 1..80),
        ) {
            let mut firings: BTreeMap<i64, Fate> = BTreeMap::new();
            let mut order = Vec::new();
            let decide_all = |firings: &mut BTreeMap<i64, Fate>, order: &mut Vec<i64>| {
                let waiting: Vec<i64> = firings.iter().filter(|(_, f)| **f == Fate::Waiting).map(|(id, _)| *id).collect();
                for id in waiting {
                    match decide(policy, id, &state_of(firings)) {
                        GroupDecision::Start => {
                            order.push(id);
                            firings.insert(id, Fate::Running(cliq_fs::new_run_id()));
                        }
                        GroupDecision::Skip(_) => { firings.insert(id, Fate::Skipped); }
                        GroupDecision::Wait(_) => {}
                    }
                }
            };
            for step in steps {
                match step {
                    0 => { firings.insert(firings.len() as i64 + 1, Fate::Waiting); }
                    1 => decide_all(&mut firings, &mut order),
                    _ => for fate in firings.values_mut() {
                        if matches!(fate, Fate::Running(_)) { *fate = Fate::Ended; }
                    }
                }
                prop_assert!(state_of(&firings).running.len() <= 1);
            }
            // Runs end and decisions are made until nothing changes: all have a fate.
            for _ in 0..=firings.len() {
                decide_all(&mut firings, &mut order);
                for fate in firings.values_mut() {
                    if matches!(fate, Fate::Running(_)) { *fate = Fate::Ended; }
                }
            }
            prop_assert!(firings.values().all(|fate| matches!(fate, Fate::Ended | Fate::Skipped)), "{:?}", firings);
            prop_assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "in the order of arrival: {:?}", order);
            if policy == Policy::Queue {
                prop_assert!(firings.values().all(|fate| *fate == Fate::Ended));
            }
        }
    }

    #[test]
    fn cancel_asks_for_the_end_of_the_active_run() {
        let run = cliq_fs::new_run_id();
        let state = GroupState { version: 3, running: vec![run.clone()], waiting: vec![7] };
        assert_eq!(decide(Policy::Cancel, 7, &state), GroupDecision::Wait(vec![run.clone()]));
        assert_eq!(decide(Policy::Queue, 7, &state), GroupDecision::Wait(Vec::new()));
        assert!(
            matches!(decide(Policy::Skip, 7, &state), GroupDecision::Skip(reason) if reason.contains(run.as_str()))
        );
        let newer = GroupState { waiting: vec![7, 9], ..state };
        assert!(
            matches!(decide(Policy::Cancel, 7, &newer), GroupDecision::Skip(reason) if reason.contains('9'))
        );
    }
}
