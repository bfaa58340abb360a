//! Deterministic simulation of the pipeline machine: random teams, random agents, random delays, kills, cancellations
//! and resumptions, all in virtual time and all from a seed. A failing case is shrunk and its seed kept.

mod interruptions;
mod journal;
mod schedule;
mod teams;
mod world;

use std::collections::BTreeSet;
use std::sync::Arc;

use cliq_orchestrator::PipelineStatus;
use cliq_orchestrator::internals::{Amount, Decision, Input, PhaseState, Pipeline};
use cliq_workflow::PhaseId;
use proptest::collection::vec;
use proptest::prelude::*;

use journal::journal_of;
use schedule::{Schedule, schedule, tight_schedule};
use teams::{Team, team};
use world::World;

/// Schedules that each random team is run under.
const SCHEDULES: usize = 50;

/// A tenth of the cases, unless all tests run (`./test --all`) or `PROPTEST_CASES` says otherwise.
fn cases(all: u32) -> ProptestConfig {
    let is_quick = std::env::var("NEXTEST_PROFILE").is_ok_and(|profile| profile != "ci");
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    let cases = cases.unwrap_or(if is_quick { all / 10 } else { all });
    ProptestConfig { cases, max_shrink_iters: 4000, ..ProptestConfig::default() }
}

/// For any events and deaths of the orchestrator, dependencies are honoured, no phase runs twice at once or again once
/// complete, budgets hold, and every run ends.
fn rules_hold(team: &Team, schedules: &[Schedule]) -> Result<(), TestCaseError> {
    let workflow = team.workflow();
    for schedule in schedules {
        let world = World::run(&workflow, schedule);
        let status = world.finished.expect("it ended");
        if schedule.is_uninterrupted() {
            prop_assert!(world.starts <= workflow.max_activations(), "{} starts", world.starts);
        }
        let completed: BTreeSet<PhaseId> = world.pipeline.completed().collect();
        let mut main = workflow.phases().filter(|(_, p)| !p.support).map(|(id, _)| id);
        if status == PipelineStatus::Completed {
            prop_assert!(main.all(|id| completed.contains(&id)));
        }
        if status == PipelineStatus::Escalated {
            let mut states = workflow.phases().map(|(id, _)| world.pipeline.state(id));
            prop_assert!(states.any(|state| matches!(state, PhaseState::Escalated(_))));
        }
    }
    Ok(())
}

// 100,000 schedules in two tests, so that two cores share them.
proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn rules_hold_for_50_000_schedules(team in team(), schedules in vec(schedule(), SCHEDULES)) {
        rules_hold(&team, &schedules)?;
    }

    #[test]
    fn rules_hold_for_50_000_more(team in team(), schedules in vec(schedule(), SCHEDULES)) {
        rules_hold(&team, &schedules)?;
    }
}

proptest! {
    #![proptest_config(cases(1500))]

    /// If agents give the same answers to the same questions, a run that was killed ends like one that was not: with the same
    /// verdicts and the same number of activations of each phase.
    #[test]
    fn a_resumed_run_ends_as_an_uninterrupted_one(team in team(), schedules in vec(schedule(), 8)) {
        let workflow = team.workflow();
        for schedule in schedules {
            let calm = World::run(&workflow, &schedule.steady());
            if calm.finished != Some(PipelineStatus::Completed) {
                continue;
            }
            let shaken = World::run(&workflow, &schedule.steady_but_killed());
            prop_assert_eq!(shaken.finished, calm.finished);
            prop_assert_eq!(shaken.histories(), calm.histories());
            prop_assert_eq!(shaken.completions, calm.completions);
        }
    }

    /// For any budget, raised at any time: what is counted exceeds it by one reply at most, no agent starts once
    /// it is spent, every run ends, and its journal gives the same state.
    #[test]
    fn budgets_hold(team in team(), schedule in tight_schedule()) {
        let workflow = team.workflow();
        let world = World::run(&workflow, &schedule);
        prop_assert!(world.finished.is_some());
        let journal = journal_of(&world.inputs, &workflow);
        prop_assert_eq!(journal.replay(workflow), world.pipeline);
    }

    /// For any phases that a run keeps from an earlier one: a kept phase runs only for a gate, the run ends as any other, and its journal gives
    /// the same state.
    #[test]
    fn kept_phases_are_not_run_again(
        team in team(),
        first in schedule(),
        schedules in vec(schedule(), 8),
        changed in vec(any::<prop::sample::Index>(), 0..3),
    ) {
        let workflow = team.workflow();
        let earlier = World::run(&workflow, &first);
        let ids: Vec<PhaseId> = workflow.phases().map(|(id, _)| id).collect();
        let changed: Vec<PhaseId> = changed.iter().map(|index| *index.get(&ids)).collect();
        let kept = earlier.keepable(&changed);
        prop_assert!(kept.iter().all(|kept| kept.fits(&workflow)));
        for schedule in schedules {
            let world = World::run_with(&workflow, &schedule, kept.clone());
            let done: BTreeSet<PhaseId> = world.pipeline.completed().collect();
            if world.finished == Some(PipelineStatus::Completed) {
                prop_assert!(workflow.phases().all(|(id, phase)| phase.support || done.contains(&id)));
            }
            if schedule.is_uninterrupted() {
                prop_assert!(world.starts <= workflow.max_activations(), "{} starts", world.starts);
            }
            let journal = journal_of(&world.inputs, &workflow);
            prop_assert_eq!(journal.replay(Arc::clone(&workflow)), world.pipeline);
        }
    }

    /// The same inputs give the same state, and so does the journal that they are written to, bytes and all.
    #[test]
    fn replay_equals_live(team in team(), schedule in schedule()) {
        let workflow = team.workflow();
        let world = World::run(&workflow, &schedule);
        let mut again = Pipeline::new(Arc::clone(&workflow));
        world.inputs.iter().cloned().for_each(|input| drop(again.step(input)));
        prop_assert_eq!(&again, &world.pipeline);
        let journal = journal_of(&world.inputs, &workflow);
        prop_assert_eq!(journal.replay(workflow), world.pipeline);
    }

    /// An input that fits nothing changes nothing, whenever it comes.
    #[test]
    fn stray_inputs_are_ignored(team in team(), schedule in schedule(), phase: prop::sample::Index, which in 0u8..7) {
        let workflow = team.workflow();
        let ids: Vec<PhaseId> = workflow.phases().map(|(id, _)| id).collect();
        let phase = *phase.get(&ids);
        let stray = |pipeline: &mut Pipeline| {
            let before = pipeline.clone();
            let effects = pipeline.step(match which {
                0 => Input::CommandsFinished { phase, results: vec![] },
                1 => Input::AgentCompleted { phase, result: None },
                2 => Input::UsageReported { phase, usage: Amount::default(), is_final: false },
                3 => Input::Decided { phase, decision: Decision::Run },
                4 => Input::RetryDue { phase: phase.with_item(3) },
                5 => Input::RetryDelayed { phase, due_ms: 1 },
                _ => Input::WorkFailed { phase: phase.with_item(7), reason: String::new(), cause: None },
            });
            assert_eq!(effects, vec![]);
            assert_eq!(*pipeline, before);
        };
        stray(&mut Pipeline::new(Arc::clone(&workflow)));
        let mut world = World::run(&workflow, &schedule);
        stray(&mut world.pipeline);
    }
}

#[test]
fn a_big_pipeline_is_linear() {
    // Not a timing: with anything quadratic in it this would not end in a test's time.
    let workflow = Team::layers(20_000).workflow();
    let world = World::run(&workflow, &Schedule::calm(7, Some(64)));
    assert_eq!(world.finished, Some(PipelineStatus::Completed));
    assert_eq!(world.completions.values().sum::<u32>(), 20_000);
}

#[test]
fn runs_of_reviews_park_and_complete() {
    let yml = "name: \"@t/t\"
phases:
  - {name: a, type: exec, commands: [{name: c, run: 'true'}]}
  - {name: b, type: hug, depends_on: [a], review: {reviewer: ann}}
  - {name: c, type: hug, depends_on: [a], review: {reviewer: bob}}
  - {name: d, type: exec, depends_on: [b, c], commands: [{name: c, run: 'true'}]}
";
    let workflow = Arc::new(cliq_workflow::check(yml, &cliq_workflow::NoFiles).workflow.expect("a team"));
    let worlds: Vec<World> =
        (0..200).map(|seed| World::run(&workflow, &Schedule::calm(seed, Some(1)))).collect();
    assert!(worlds.iter().all(|world| world.finished == Some(PipelineStatus::Completed)));
    assert!(worlds.iter().any(|world| world.parkings > 1), "a run may park again");
    assert!(worlds.iter().any(|world| world.parkings == 0), "agents may not say that they wait");
}
