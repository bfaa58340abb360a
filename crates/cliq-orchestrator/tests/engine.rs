//! Single steps of the pipeline machine. The simulation has its rules; these are the details.

use std::collections::BTreeSet;
use std::sync::Arc;

use cliq_orchestrator::PipelineStatus;
use cliq_orchestrator::internals::{Amount, Effect, Input, Limits, PhaseState, PhaseWait, Pipeline, Report};
use cliq_protocol::{Budget, CommandResult};
use cliq_workflow::{NoFiles, PhaseId, check};
use serde_json::json;

/// A pipeline of a team, and its phases by name.
fn pipeline(phases: &str) -> (Pipeline, impl Fn(&str) -> PhaseId) {
    let text = format!("name: '@local/t'\nworkflow:\n  phases:\n{phases}");
    let checked = check(&text, &NoFiles);
    let workflow = Arc::new(checked.workflow.unwrap_or_else(|| panic!("{:?}", checked.diagnostics)));
    let names: Vec<_> = workflow.phases().map(|(id, phase)| (phase.name.clone(), id)).collect();
    let find = move |name: &str| names.iter().find(|(known, _)| *known == *name).expect("a phase").1;
    (Pipeline::new(workflow), find)
}

fn started(pipeline: &mut Pipeline, limits: Limits) -> Vec<Effect> {
    pipeline.step(Input::Start { max_parallel: None, limits, kept: Vec::new() })
}

fn resumed(pipeline: &mut Pipeline, from: Option<PhaseId>) -> Vec<Effect> {
    pipeline.step(Input::Resume { from, max_parallel: None, limits: Limits::default() })
}

fn done(phase: PhaseId) -> Input {
    Input::AgentCompleted { phase, result: None }
}

fn commands(phase: PhaseId, results: &[(&str, bool)]) -> Input {
    let results = results.iter().map(|(name, pass)| CommandResult::new(*name, *pass)).collect();
    Input::CommandsFinished { phase, results }
}

fn verdict(phase: PhaseId, outcome: &str) -> Input {
    let target = if outcome == "ROUTE" { json!("work") } else { json!(null) };
    let result = json!({"verdict": {"outcome": outcome, "reason": "so", "target": target}});
    Input::AgentCompleted { phase, result: Some(result) }
}

fn finish(effects: &[Effect]) -> Option<(PipelineStatus, Option<&str>)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Finish { status, reason, .. } => Some((*status, reason.as_deref())),
        _ => None,
    })
}

const GATE: &str = "    - {name: work, type: standard, agent: claude-code}
    - {name: gate, type: gate, agent: claude-code, depends_on: [work], commands: [{name: c, run: 'true'}], max_iterations: 3}
    - {name: after, type: standard, agent: claude-code, depends_on: [gate]}
";

/// Runs until the gate has sent the work back once and asks again.
fn routed() -> (Pipeline, impl Fn(&str) -> PhaseId) {
    let (mut pipeline, id) = pipeline(GATE);
    started(&mut pipeline, Limits::default());
    pipeline.step(done(id("work")));
    assert_eq!((pipeline.evaluation(id("gate")), pipeline.activations(id("work"))), (1, 1));
    pipeline.step(commands(id("gate"), &[("c", false)]));
    pipeline.step(verdict(id("gate"), "ROUTE"));
    assert_eq!(pipeline.routed_by(id("work")), Some(id("gate")));
    pipeline.step(done(id("work")));
    (pipeline, id)
}

#[test]
fn activations_and_evaluations_are_counted() {
    let (mut pipeline, id) = routed();
    assert_eq!((pipeline.evaluation(id("gate")), pipeline.activations(id("work"))), (2, 2));
    assert_eq!((pipeline.activations(id("gate")), pipeline.activations(id("after"))), (1, 0));
    pipeline.step(commands(id("gate"), &[("c", true)]));
    pipeline.step(verdict(id("gate"), "PASS"));
    assert_eq!(finish(&pipeline.step(done(id("after")))), Some((PipelineStatus::Completed, None)));
    // A gate that runs again has numbers of its own.
    resumed(&mut pipeline, Some(id("gate")));
    assert_eq!((pipeline.evaluation(id("gate")), pipeline.activations(id("gate"))), (4, 2));
    assert_eq!(pipeline.activations(id("work")), 2);
}

#[test]
fn run_begins_once() {
    let (mut pipeline, id) = pipeline(GATE);
    assert!(!started(&mut pipeline, Limits::default()).is_empty());
    assert_eq!(started(&mut pipeline, Limits::default()), []);
    assert!(pipeline.state(id("work")).is_working());
}

#[test]
fn forgotten_phases_are_reported_if_they_had_run() {
    let (mut pipeline, id) = routed();
    pipeline.step(Input::Cancel);
    pipeline.step(Input::WorkFailed { phase: id("gate"), reason: "ended".into(), cause: None });
    let reset = |effects: Vec<Effect>| -> BTreeSet<PhaseId> {
        let of = |effect| match effect {
            Effect::Report(Report::PhaseReset { phase }) => Some(phase),
            _ => None,
        };
        effects.into_iter().filter_map(of).collect()
    };
    let effects = resumed(&mut pipeline, Some(id("gate")));
    assert_eq!(reset(effects), BTreeSet::from([id("gate")]), "`after` has never run");
    assert!(pipeline.state(id("gate")).is_working(), "`work` is complete");
    pipeline.step(commands(id("gate"), &[("c", true)]));
    pipeline.step(verdict(id("gate"), "PASS"));
    assert_eq!(finish(&pipeline.step(done(id("after")))), Some((PipelineStatus::Completed, None)));
    assert_eq!(reset(resumed(&mut pipeline, Some(id("work")))), ["work", "gate", "after"].map(&id).into());
    assert_eq!(*pipeline.state(id("gate")), PhaseState::Waiting, "it depends on `work`");
}

#[test]
fn support_phases_do_not_count() {
    let (mut pipeline, id) = pipeline(
        "    - {name: a, type: standard, agent: claude-code}
    - {name: g, type: gate, agent: claude-code, depends_on: [a], commands: [{name: c, run: 'true'}], route_to: [help]}
  support:
    - {name: help, type: standard, agent: claude-code}
",
    );
    started(&mut pipeline, Limits::default());
    pipeline.step(done(id("a")));
    pipeline.step(commands(id("g"), &[("c", true)]));
    let effects = pipeline.step(verdict(id("g"), "PASS"));
    assert_eq!(finish(&effects), Some((PipelineStatus::Completed, None)));
    assert_eq!(*pipeline.state(id("help")), PhaseState::Waiting);
    // With what depends on it, but nothing else.
    resumed(&mut pipeline, Some(id("g")));
    assert_eq!((*pipeline.state(id("a")) == PhaseState::Completed, pipeline.is_finished()), (true, false));
    pipeline.step(commands(id("g"), &[("c", true)]));
    assert_eq!(finish(&pipeline.step(verdict(id("g"), "PASS"))), Some((PipelineStatus::Completed, None)));
}

const COMMANDS: &str = "    - {name: e, type: exec, commands: [{name: soft, run: 'true', escalate_on_fail: false}, {name: hard, run: 'true'}]}
    - {name: beside, type: standard, agent: claude-code}
";

#[test]
fn failed_command_escalates_unless_it_may_fail() {
    for (results, reason) in [
        (&[("soft", false), ("hard", true)][..], None),
        (&[("soft", true), ("hard", false)], Some("phase `e`: command `hard` failed")),
        (&[("soft", false), ("hard", false)], Some("phase `e`: command `hard` failed")),
        (&[("unknown", false)], Some("phase `e`: command `unknown` failed")),
    ] {
        let (mut pipeline, id) = pipeline(COMMANDS);
        started(&mut pipeline, Limits::default());
        let effects = pipeline.step(commands(id("e"), results));
        let drains = effects.iter().any(|effect| matches!(effect, Effect::Report(Report::Draining { .. })));
        assert_eq!(drains, reason.is_some(), "what runs beside it may finish");
        let end = if reason.is_some() { PipelineStatus::Escalated } else { PipelineStatus::Completed };
        let effects = pipeline.step(done(id("beside")));
        assert_eq!(finish(&effects), Some((end, reason)));
    }
}

#[test]
fn failed_command_names_its_exit_status() {
    let (mut pipeline, id) = pipeline(COMMANDS);
    started(&mut pipeline, Limits::default());
    pipeline.step(done(id("beside")));
    let results = vec![CommandResult { exit_code: Some(7), ..CommandResult::new("hard", false) }];
    let effects = pipeline.step(Input::CommandsFinished { phase: id("e"), results });
    let reason = Some("phase `e`: command `hard` failed with exit status 7");
    assert_eq!(finish(&effects), Some((PipelineStatus::Escalated, reason)));
}

#[test]
fn commands_that_were_ended_with_the_run_are_stopped() {
    for (result, state) in [(false, PhaseState::Stopped), (true, PhaseState::Completed)] {
        let (mut pipeline, id) = pipeline(COMMANDS);
        started(&mut pipeline, Limits::default());
        assert!(pipeline.step(Input::Cancel).contains(&Effect::StopAll));
        assert_eq!(pipeline.step(Input::Cancel), [], "asked once");
        pipeline.step(commands(id("e"), &[("hard", result)]));
        assert_eq!(*pipeline.state(id("e")), state);
        let reason = "ended".to_owned();
        let effects = pipeline.step(Input::WorkFailed { phase: id("beside"), reason, cause: None });
        assert_eq!(finish(&effects), Some((PipelineStatus::Cancelled, None)));
        assert_eq!(*pipeline.state(id("beside")), PhaseState::Stopped);
    }
}

#[test]
fn run_that_cannot_go_on_fails_with_its_reason() {
    let (mut pipeline, id) = pipeline(GATE);
    started(&mut pipeline, Limits::default());
    assert_eq!(pipeline.step(Input::Fail { reason: "disk full".into() }), [Effect::StopAll]);
    let effects = pipeline.step(done(id("work")));
    assert_eq!(finish(&effects), Some((PipelineStatus::Failed, Some("disk full"))));
    assert_eq!(*pipeline.state(id("work")), PhaseState::Completed, "it was done in time");
}

const BESIDE: &str = "    - {name: a, type: standard, agent: claude-code}
    - {name: b, type: standard, agent: claude-code}
    - {name: e, type: exec, commands: [{name: c, run: 'true'}]}
    - {name: other, type: standard, agent: codex}
    - {name: g, type: gate, agent: claude-code, commands: [{name: c, run: 'true'}]}
";

fn ended(effects: &[Effect]) -> BTreeSet<PhaseId> {
    let of = |effect: &Effect| match effect {
        Effect::EndAgent { phase, .. } => Some(*phase),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

fn usage(phase: PhaseId, tokens: u64, is_final: bool) -> Input {
    Input::UsageReported { phase, usage: Amount { tokens, ..Amount::default() }, is_final }
}

fn limited(run: Option<u64>, phase: Option<(PhaseId, u64)>) -> Limits {
    let budget = |tokens| Budget { tokens: Some(tokens), usd: None };
    Limits {
        run: run.map(budget).unwrap_or_default(),
        phases: phase.into_iter().map(|(id, tokens)| (id, budget(tokens))).collect(),
        models: BTreeSet::new(),
    }
}

/// The run's budget ends all agents that use a model; not commands, gates that run theirs, and agents that never reported.
#[test]
fn exceeded_budget_of_the_run_ends_agents_that_use_models() {
    let (mut pipeline, id) = pipeline(BESIDE);
    started(&mut pipeline, limited(Some(10), None));
    assert_eq!(ended(&pipeline.step(usage(id("a"), 10, false))), BTreeSet::new());
    assert_eq!(ended(&pipeline.step(usage(id("a"), 11, false))), ["a", "b"].map(&id).into());
    assert_eq!(
        ended(&pipeline.step(usage(id("b"), 5, false))),
        BTreeSet::new(),
        "asked once, and not heard any more"
    );
    assert!(!pipeline.takes_usage(id("a")) && pipeline.takes_usage(id("other")));
}

#[test]
fn agent_that_reports_with_its_end_is_not_ended() {
    let (mut pipeline, id) = pipeline(BESIDE);
    started(&mut pipeline, limited(Some(10), None));
    assert_eq!(ended(&pipeline.step(usage(id("a"), 11, true))), [id("b")].into());
    assert!(pipeline.takes_usage(id("a")));
}

#[test]
fn gate_that_judges_is_ended_too() {
    let (mut pipeline, id) = pipeline(BESIDE);
    started(&mut pipeline, limited(Some(10), None));
    pipeline.step(commands(id("g"), &[("c", true)]));
    assert_eq!(ended(&pipeline.step(usage(id("a"), 11, false))), ["a", "b", "g"].map(&id).into());
}

#[test]
fn exceeded_budget_of_a_phase_ends_its_agent_only() {
    let (mut pipeline, id) = pipeline(BESIDE);
    started(&mut pipeline, limited(None, Some((id("a"), 10))));
    assert_eq!(ended(&pipeline.step(usage(id("b"), 100, false))), BTreeSet::new());
    assert_eq!(pipeline.remaining_budget(id("a")).tokens, Some(10));
    assert_eq!(ended(&pipeline.step(usage(id("a"), 11, false))), [id("a")].into());
    assert_eq!(pipeline.remaining_budget(id("a")).tokens, Some(0));
}

/// Commands need no budget, agents do.
#[test]
fn spent_budget_refuses_agents_and_not_commands() {
    let (mut pipeline, id) = pipeline(
        "    - {name: a, type: standard, agent: claude-code}
    - {name: e, type: exec, depends_on: [a], commands: [{name: c, run: 'true'}]}
    - {name: b, type: standard, agent: claude-code, depends_on: [e]}
",
    );
    started(&mut pipeline, limited(Some(10), None));
    pipeline.step(usage(id("a"), 10, true));
    let effects = pipeline.step(done(id("a")));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::RunCommands { iteration: 1, .. })));
    let effects = pipeline.step(commands(id("e"), &[("c", true)]));
    let (status, reason) = finish(&effects).expect("the end");
    assert_eq!(status, PipelineStatus::Escalated);
    assert!(
        reason.is_some_and(|why| why.contains("phase `b`: the run's budget of 10 tokens is spent")),
        "{reason:?}"
    );
    assert_eq!(pipeline.activations(id("b")), 0);
    // With a larger budget it goes on.
    let limits = limited(Some(100), None);
    let effects = pipeline.step(Input::Resume { from: None, max_parallel: None, limits });
    assert!(
        effects.iter().any(
            |effect| matches!(effect, Effect::RunAgent { phase, iteration: 1, .. } if *phase == id("b"))
        )
    );
}

#[test]
fn phases_that_are_not_there_change_nothing() {
    let (_, id) = pipeline(BESIDE);
    let beyond = id("g");
    let (mut small, _) = pipeline("    - {name: a, type: standard, agent: claude-code}\n");
    started(&mut small, Limits::default());
    for input in [
        done(beyond),
        commands(beyond, &[]),
        usage(beyond, 1, false),
        Input::PhaseWaits { phase: beyond, wait: None },
    ] {
        assert_eq!(small.step(input), []);
    }
}

#[test]
fn verdicts_are_delivered_to_those_that_they_concern() {
    let delivered = |effects: &[Effect]| -> Vec<PhaseId> {
        let to = |effect: &Effect| match effect {
            Effect::DeliverVerdict { to, .. } => Some(to.clone()),
            _ => None,
        };
        effects.iter().filter_map(to).flatten().collect()
    };
    let (mut pipeline, id) = routed();
    pipeline.step(commands(id("gate"), &[("c", false)]));
    assert_eq!(delivered(&pipeline.step(verdict(id("gate"), "ROUTE"))), [id("work")]);
    pipeline.step(done(id("work")));
    pipeline.step(commands(id("gate"), &[("c", true)]));
    assert_eq!(delivered(&pipeline.step(verdict(id("gate"), "PASS"))), [id("after")]);
}

const ASKING: &str =
    "    - {name: ask, type: hug, commands: [{name: c, run: 'true'}], review: {reviewer: ann}}
    - {name: beside, type: standard, agent: claude-code}
";

fn idle(phase: PhaseId, due_ms: i64) -> Input {
    Input::PhaseWaits { phase, wait: Some(PhaseWait { reviews: vec!["r".into()], due_ms }) }
}

#[test]
fn run_waits_once_nothing_else_is_to_be_done() {
    let (mut pipeline, id) = pipeline(ASKING);
    assert_eq!(pipeline.waits(), None, "it has not begun");
    started(&mut pipeline, Limits::default());
    pipeline.step(idle(id("ask"), 5));
    assert_eq!(pipeline.waits(), None, "its commands run");
    pipeline.step(commands(id("ask"), &[("c", true)]));
    pipeline.step(idle(id("ask"), 5));
    assert_eq!(pipeline.waits(), None, "another phase works");
    pipeline.step(done(id("beside")));
    let wait = pipeline.waits().expect("it waits");
    assert_eq!((wait.reviews.as_slice(), wait.until_ms), (&["r".to_owned()][..], 5));
    pipeline.step(Input::PhaseWaits { phase: id("ask"), wait: None });
    assert_eq!(pipeline.waits(), None, "its agent works again");
    pipeline.step(idle(id("ask"), 7));
    let mut cancelled = pipeline.clone();
    cancelled.step(Input::Cancel);
    assert_eq!(cancelled.waits(), None, "it ends");
    pipeline.step(Input::Park);
    assert!(pipeline.is_parked() && pipeline.waits().is_none());
    assert_eq!(pipeline.step(verdict(id("ask"), "PASS")), [], "its agents have ended");
    let effects = resumed(&mut pipeline, None);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::RunAgent { .. })), "{effects:?}");
    assert!(
        !effects.iter().any(|effect| matches!(effect, Effect::RunCommands { .. })),
        "the commands have run"
    );
}

#[test]
fn team_phase_waits_with_the_reviews_of_its_run() {
    let (mut pipeline, id) = pipeline("    - {name: sub, type: team, team: '@t/inner'}\n");
    let limits = Limits { run: Budget { tokens: Some(10), usd: None }, ..Limits::default() };
    started(&mut pipeline, limits);
    let wait = PhaseWait { reviews: vec!["a".into(), "b".into()], due_ms: 5 };
    pipeline.step(Input::PhaseWaits { phase: id("sub"), wait: Some(wait) });
    assert_eq!(pipeline.waits().expect("it waits").reviews, ["a", "b"]);
    pipeline.step(Input::Park);
    let effects = resumed(&mut pipeline, None);
    let [Effect::RunAgent { iteration: 1, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(pipeline.waits(), None, "its agent has started");
    pipeline.step(done(id("sub")));
    assert!(pipeline.is_finished());
}

/// A review takes no place from the moment that its agent is idle.
#[test]
fn open_review_leaves_its_place_to_others() {
    let (mut pipeline, id) = pipeline(ASKING);
    pipeline.step(Input::Start { max_parallel: Some(1), limits: Limits::default(), kept: Vec::new() });
    assert_eq!(*pipeline.state(id("beside")), PhaseState::Queued);
    pipeline.step(commands(id("ask"), &[("c", true)]));
    assert_eq!(*pipeline.state(id("beside")), PhaseState::Queued);
    pipeline.step(idle(id("ask"), 5));
    assert!(pipeline.state(id("beside")).is_working());
}

#[test]
fn work_that_is_sent_back_has_its_last_completed_activation() {
    let (mut pipeline, id) = pipeline(GATE);
    let first = started(&mut pipeline, Limits::default());
    let of = |effects: &[Effect]| {
        effects.iter().find_map(|effect| match effect {
            Effect::RunAgent { iteration, continues, previous, .. } => {
                Some((*iteration, *continues, *previous))
            }
            _ => None,
        })
    };
    assert_eq!(of(&first), Some((1, None, None)));
    pipeline.step(done(id("work")));
    pipeline.step(commands(id("gate"), &[("c", false)]));
    assert_eq!(of(&pipeline.step(verdict(id("gate"), "ROUTE"))), Some((2, None, Some(1))));
    // The orchestrator dies: the same work goes on.
    pipeline.step(Input::Interrupt);
    assert_eq!(of(&resumed(&mut pipeline, None)), Some((3, Some(2), Some(1))));
    pipeline.step(Input::Interrupt);
    // A phase that is run again by a person has never run.
    assert_eq!(of(&resumed(&mut pipeline, Some(id("work")))), Some((4, None, None)));
}
