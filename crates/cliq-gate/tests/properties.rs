//! Properties of a gate with any agent, commands and targets.

use cliq_gate::{Gate, GateEffect, GateEvent, GateSpec, GateState};
use cliq_protocol::{CommandResult, Outcome, PhaseName, Verdict};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

fn name(text: &str) -> PhaseName {
    PhaseName::parse(text).expect("a name")
}

fn spec() -> impl Strategy<Value = GateSpec> {
    (0u32..6, proptest::sample::subsequence(vec!["dev", "fixer", "architect"], 0..=3), any::<bool>())
        .prop_map(|(max_iterations, targets, human)| GateSpec {
            max_iterations,
            route_targets: targets.into_iter().map(name).collect(),
            human,
            required: Vec::new(),
        })
}

fn answer() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        1 => Just(Some(json!({"verdict": {"outcome": "PASS"}}))),
        4 => prop_oneof![Just("dev"), Just("fixer"), Just("stranger")]
            .prop_map(|t| Some(json!({"verdict": Verdict::route(name(t), "no").to_value()}))),
        1 => Just(Some(json!({"verdict": "ESCALATE"}))),
        1 => Just(Some(json!({"verdict": {"outcome": "ROUTE"}}))),
        1 => Just(Some(json!("PASS"))),
        1 => Just(None),
    ]
}

fn event() -> impl Strategy<Value = GateEvent> {
    prop_oneof![
        2 => Just(GateEvent::Start),
        4 => vec(any::<bool>(), 0..3).prop_map(|passes| GateEvent::CommandsFinished(
            passes.into_iter().enumerate().map(|(i, p)| CommandResult::new(format!("c{i}"), p)).collect())),
        6 => answer().prop_map(GateEvent::AgentAnswered),
        1 => ".*".prop_map(GateEvent::AgentFailed),
        4 => Just(GateEvent::TargetFinished),
    ]
}

proptest! {
    /// A driver that performs all effects ends within `max_iterations`, for any answers.
    #[test]
    fn gate_ends_within_max_iterations(spec in spec(), answers in vec(answer(), 40), checks in vec(any::<bool>(), 10)) {
        let budget = spec.max_iterations.max(1);
        let mut gate = Gate::new(spec);
        let mut answers = answers.into_iter();
        let mut effect = gate.step(GateEvent::Start);
        let (mut asked, mut evaluations) = (0, 0);
        loop {
            effect = match effect {
                GateEffect::RunCommands { iteration } => {
                    evaluations += 1;
                    prop_assert_eq!(iteration, evaluations);
                    let pass = checks[evaluations as usize % checks.len()];
                    gate.step(GateEvent::CommandsFinished(vec![CommandResult::new("c", pass)]))
                }
                GateEffect::AskAgent { .. } => {
                    asked += 1;
                    gate.step(GateEvent::AgentAnswered(answers.next().expect("enough answers")))
                }
                GateEffect::Route { target } => {
                    prop_assert!(gate.spec().route_targets.contains(&target));
                    gate.step(GateEvent::TargetFinished)
                }
                GateEffect::Pass | GateEffect::Escalate { .. } => break,
                GateEffect::Nothing => panic!("a driver that obeys is never ignored"),
            };
        }
        prop_assert!(evaluations <= budget && asked <= 2 * budget);
        prop_assert!(gate.history().len() as u32 <= budget);
    }

    /// Any events in any order: no pass without a PASS, the history only grows, ends stay ends, and the same events
    /// give the same state.
    #[test]
    fn gate_invariants_under_any_events(spec in spec(), events in vec(event(), 0..60)) {
        let mut gate = Gate::new(spec.clone());
        for event in &events {
            let before = gate.clone();
            let effect = gate.step(event.clone());
            prop_assert!(gate.history().starts_with(before.history()));
            prop_assert!(gate.iteration() <= spec.max_iterations.max(1));
            if matches!(before.state(), GateState::Passed | GateState::Escalated) {
                prop_assert_eq!(&effect, &GateEffect::Nothing);
            }
            if effect == GateEffect::Nothing {
                prop_assert_eq!(&gate, &before);
            }
            if *gate.state() == GateState::Passed {
                prop_assert!(gate.history().last().is_some_and(|e| e.verdict.outcome == Outcome::Pass));
            }
        }
        let mut again = Gate::new(spec);
        for event in events {
            again.step(event);
        }
        prop_assert_eq!(again, gate);
    }

    /// A person is never asked while a command fails.
    #[test]
    fn people_are_not_troubled_with_failures(mut spec in spec(), checks in vec(any::<bool>(), 0..4)) {
        spec.human = true;
        let mut gate = Gate::new(spec);
        gate.step(GateEvent::Start);
        let all = checks.iter().all(|p| *p);
        let results = checks.into_iter().map(|p| CommandResult::new("c", p)).collect();
        let asked = matches!(gate.step(GateEvent::CommandsFinished(results)), GateEffect::AskAgent { .. });
        prop_assert_eq!(asked, all);
    }
}

#[test]
fn an_invalid_verdict_is_given_back_once_with_the_reason() {
    let spec =
        GateSpec { max_iterations: 3, route_targets: vec![name("dev")], human: false, required: Vec::new() };
    let mut gate = Gate::new(spec);
    gate.step(GateEvent::Start);
    gate.step(GateEvent::CommandsFinished(vec![]));
    let bad = || GateEvent::AgentAnswered(Some(json!({"verdict": "ROUTE:nobody"})));
    let reason = "cannot route to `nobody`: this gate may route to dev";
    assert_eq!(gate.step(bad()), GateEffect::AskAgent { iteration: 1, rejected: Some(reason.to_owned()) });
    let GateEffect::Escalate { reason: second } = gate.step(bad()) else { panic!("escalates") };
    assert!(second.contains(reason), "{second}");
    assert!(gate.history().is_empty());
}

#[test]
fn a_route_on_the_last_evaluation_escalates_and_says_so() {
    let spec =
        GateSpec { max_iterations: 1, route_targets: vec![name("dev")], human: false, required: Vec::new() };
    let mut gate = Gate::new(spec);
    gate.step(GateEvent::Start);
    gate.step(GateEvent::CommandsFinished(vec![CommandResult::new("tests", false)]));
    let verdict = Verdict::route(name("dev"), "tests fail");
    let effect = gate.step(GateEvent::AgentAnswered(Some(json!({"verdict": verdict.to_value()}))));
    let reason = "the budget of 1 iteration is spent; the last verdict was ROUTE to dev: tests fail";
    assert_eq!(effect, GateEffect::Escalate { reason: reason.to_owned() });
    assert_eq!(gate.history().len(), 1);
}

#[test]
fn a_gate_that_passed_can_be_asked_again_and_remembers() {
    let mut gate = Gate::new(GateSpec {
        max_iterations: 2,
        route_targets: vec![name("dev")],
        human: false,
        required: Vec::new(),
    });
    let pass = || GateEvent::AgentAnswered(Some(json!({"verdict": "PASS"})));
    assert_eq!(gate.step(GateEvent::Restart), GateEffect::Nothing);
    for event in [GateEvent::Start, GateEvent::CommandsFinished(vec![])] {
        gate.step(event);
    }
    assert_eq!(gate.step(pass()), GateEffect::Pass);
    assert_eq!(gate.step(GateEvent::Restart), GateEffect::RunCommands { iteration: 1 });
    gate.step(GateEvent::CommandsFinished(vec![]));
    assert_eq!(gate.step(pass()), GateEffect::Pass);
    assert_eq!(gate.history().len(), 2);
}
