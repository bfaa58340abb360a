//! Single steps of a gate: one event in one state, and its effect.

use cliq_gate::{Gate, GateEffect, GateEvent, GateSpec, GateState};
use cliq_protocol::{CommandResult, PhaseName};
use serde_json::json;

fn gate(max_iterations: u32) -> Gate {
    let route_targets = vec![PhaseName::parse("dev").expect("a name")];
    Gate::new(GateSpec { max_iterations, route_targets, human: false, required: Vec::new() })
}

/// Returns a gate whose agent judges its `n`-th evaluation.
fn judging(max_iterations: u32, n: u32) -> Gate {
    let mut gate = gate(max_iterations);
    gate.step(GateEvent::Start);
    gate.step(GateEvent::CommandsFinished(vec![CommandResult::new("test", true)]));
    for _ in 1..n {
        gate.step(route());
        gate.step(GateEvent::TargetFinished);
        gate.step(GateEvent::CommandsFinished(vec![CommandResult::new("test", true)]));
    }
    gate
}

fn route() -> GateEvent {
    GateEvent::AgentAnswered(Some(json!({"verdict": {"outcome": "ROUTE", "target": "dev"}})))
}

#[test]
fn iteration_counts_evaluations() {
    assert_eq!(gate(3).iteration(), 0);
    for n in 1..=3 {
        assert_eq!(judging(3, n).iteration(), n);
    }
}

#[test]
fn pass_with_a_target_is_given_back() {
    let mut gate = judging(3, 1);
    let answer = |target: serde_json::Value| {
        GateEvent::AgentAnswered(Some(json!({"verdict": {"outcome": "PASS", "target": target}})))
    };
    let GateEffect::AskAgent { iteration: 1, rejected: Some(why) } = gate.step(answer(json!("dev"))) else {
        panic!("{gate:?}")
    };
    assert_eq!(why, "it is a PASS with the target `dev`: a PASS has none");
    for none in [json!(null), json!("")] {
        assert_eq!(judging(3, 1).step(answer(none)), GateEffect::Pass);
    }
    assert!(matches!(gate.step(answer(json!("dev"))), GateEffect::Escalate { .. }), "{gate:?}");
}

#[test]
fn checks_are_those_of_the_current_evaluation() {
    let mut gate = gate(3);
    assert_eq!(gate.checks(), []);
    gate.step(GateEvent::Start);
    let first = vec![CommandResult::new("test", false), CommandResult::new("lint", true)];
    gate.step(GateEvent::CommandsFinished(first.clone()));
    assert_eq!(gate.checks(), first);
    gate.step(route());
    gate.step(GateEvent::TargetFinished);
    let second = vec![CommandResult::new("test", true)];
    gate.step(GateEvent::CommandsFinished(second.clone()));
    assert_eq!(gate.checks(), second);
}

#[test]
fn resume_repeats_an_interrupted_evaluation_without_cost() {
    let mut gate = judging(3, 2);
    assert_eq!(gate.step(GateEvent::Resume), GateEffect::RunCommands { iteration: 2 });
    assert_eq!(gate.step(GateEvent::Resume), GateEffect::RunCommands { iteration: 2 });
    assert_eq!((gate.state(), gate.iteration()), (&GateState::Checking, 2));
}

#[test]
fn resume_allows_a_second_invalid_verdict_again() {
    let mut gate = judging(3, 1);
    gate.step(GateEvent::AgentAnswered(None));
    gate.step(GateEvent::Resume);
    gate.step(GateEvent::CommandsFinished(Vec::new()));
    let effect = gate.step(GateEvent::AgentAnswered(None));
    assert!(matches!(effect, GateEffect::AskAgent { rejected: Some(_), .. }), "{effect:?}");
}

#[test]
fn resume_after_escalation_restores_the_whole_budget() {
    let mut gate = judging(2, 2);
    assert!(matches!(gate.step(route()), GateEffect::Escalate { .. }));
    assert_eq!(gate.step(GateEvent::Resume), GateEffect::RunCommands { iteration: 1 });
    assert_eq!((gate.state(), gate.iteration()), (&GateState::Checking, 1));
    gate.step(GateEvent::CommandsFinished(Vec::new()));
    assert!(matches!(gate.step(route()), GateEffect::Route { .. }));
}

#[test]
fn failed_agent_escalates_with_its_reason() {
    let mut gate = judging(3, 1);
    let effect = gate.step(GateEvent::AgentFailed("exit status 1".to_owned()));
    assert_eq!(effect, GateEffect::Escalate { reason: "exit status 1".to_owned() });
    assert_eq!(gate.state(), &GateState::Escalated);
    assert_eq!(gate.history(), [], "no verdict was given");
}

#[test]
fn last_iteration_escalates_instead_of_routing() {
    for budget in 1..=3 {
        for n in 1..budget {
            assert!(matches!(judging(budget, n).step(route()), GateEffect::Route { .. }), "{n} of {budget}");
        }
        let effect = judging(budget, budget).step(route());
        let GateEffect::Escalate { reason } = effect else { panic!("{budget} of {budget}: {effect:?}") };
        assert!(reason.contains(&format!("the budget of {budget} iteration")), "{reason}");
    }
}
