//! The pipeline machine under random workflows and random luck: whatever the agents do and in whatever order things
//! happen, dependencies are honoured, no phase runs twice at once, budgets hold, every run ends, and replaying what
//! happened rebuilds the same state.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use cliq_orchestrator::{
    Effect, Input, Journal, PhaseState, Pipeline, PipelineStatus, Record, RunEvent, RunView,
    ValidatedWorkflow,
};
use cliq_protocol::{CommandResult, PhaseName, Timestamp};
use cliq_workflow::{NoFiles, PhaseId, check};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

/// What a generated phase is.
#[derive(Debug, Clone)]
struct Shape {
    kind: u8,
    depends_on: Vec<bool>,
    route_to: Vec<bool>,
    budget: u8,
}

fn shape() -> impl Strategy<Value = Shape> {
    (0u8..4, vec(prop::bool::weighted(0.35), 14), vec(prop::bool::weighted(0.4), 20), 1u8..=5)
        .prop_map(|(kind, depends_on, route_to, budget)| Shape { kind, depends_on, route_to, budget })
}

/// A valid team of main phases `m0…` and support phases `s0…`.
fn workflow(main: &[Shape], support: &[Shape]) -> Arc<ValidatedWorkflow> {
    let mut yml = "name: \"@t/t\"\nworkflow:\n  phases:\n".to_owned();
    let mut write_main = |name: String, shape: &Shape, before: usize, upstream: &BTreeSet<usize>| {
        let kind = ["standard", "gate", "exec", "gate"][shape.kind as usize];
        let _ = writeln!(yml, "    - name: {name}\n      type: {kind}");
        let depends: Vec<String> =
            (0..before).filter(|&d| shape.depends_on[d]).map(|d| format!("m{d}")).collect();
        if !depends.is_empty() {
            let _ = writeln!(yml, "      depends_on: [{}]", depends.join(", "));
        }
        if kind == "exec" {
            let _ = writeln!(yml, "      commands: [{{name: c, run: 'true'}}]");
        }
        if kind == "gate" {
            let mains = upstream.iter().filter(|&&d| shape.route_to[d]).map(|d| format!("m{d}"));
            let supports = (0..support.len())
                .map(|s| format!("s{s}"))
                .enumerate()
                .filter(|(s, other)| shape.route_to[14 + s] && *other != name)
                .map(|(_, other)| other);
            let targets: Vec<String> = mains.chain(supports).collect();
            let _ = writeln!(
                yml,
                "      route_to: [{}]\n      max_iterations: {}",
                targets.join(", "),
                shape.budget
            );
        }
    };
    let mut upstream: Vec<BTreeSet<usize>> = Vec::new();
    for (n, shape) in main.iter().enumerate() {
        let mut all = BTreeSet::new();
        for d in (0..n).filter(|&d| shape.depends_on[d]) {
            all.insert(d);
            all.extend(&upstream[d]);
        }
        write_main(format!("m{n}"), shape, n, &all);
        upstream.push(all);
    }
    if !support.is_empty() {
        yml.push_str("  support:\n");
    }
    let mut write = |name: String, shape: &Shape| {
        let kind = ["standard", "gate", "exec", "gate"][shape.kind as usize];
        let _ = writeln!(yml, "    - name: {name}\n      type: {kind}");
        if kind == "exec" {
            let _ = writeln!(yml, "      commands: [{{name: c, run: 'true'}}]");
        }
        if kind == "gate" {
            let targets: Vec<String> = (0..support.len())
                .filter(|s| shape.route_to[14 + s])
                .map(|s| format!("s{s}"))
                .filter(|s| *s != name)
                .collect();
            let _ = writeln!(
                yml,
                "      route_to: [{}]\n      max_iterations: {}",
                targets.join(", "),
                shape.budget
            );
        }
    };
    for (s, shape) in support.iter().enumerate() {
        write(format!("s{s}"), shape);
    }
    let checked = check(&yml, &NoFiles);
    Arc::new(checked.workflow.unwrap_or_else(|| panic!("{:#?}\n{yml}", checked.diagnostics)))
}

/// A driver that obeys, with a source of luck. Gives the inputs in their order and the final machine.
struct Simulation {
    pipeline: Pipeline,
    inputs: Vec<Input>,
    running: BTreeSet<PhaseId>,
    starts: Vec<PhaseId>,
    finished: Option<PipelineStatus>,
    stopping: bool,
}

impl Simulation {
    fn new(workflow: Arc<ValidatedWorkflow>) -> Self {
        Self {
            pipeline: Pipeline::new(workflow),
            inputs: Vec::new(),
            running: BTreeSet::new(),
            starts: Vec::new(),
            finished: None,
            stopping: false,
        }
    }

    fn step(&mut self, input: Input) {
        self.inputs.push(input.clone());
        for effect in self.pipeline.step(input) {
            assert!(self.finished.is_none(), "{effect:?} after the end");
            match effect {
                Effect::RunAgent { phase, .. } | Effect::RunCommands { phase, .. } => {
                    assert!(!self.stopping, "something starts while the run is stopped");
                    assert!(self.running.insert(phase), "{phase:?} runs twice at once");
                    self.starts.push(phase);
                }
                Effect::StopAll => self.stopping = true,
                Effect::Finish { status, .. } => {
                    assert!(self.running.is_empty(), "the run ends while something runs");
                    self.finished = Some(status);
                }
                Effect::DeliverVerdict { to, .. } => assert!(!to.is_empty()),
                Effect::Report(_) => {}
            }
        }
        if self.starts.len() < 1000 {
            self.pipeline.assert_invariants();
        }
    }

    /// Something of what runs comes back, as luck has it.
    fn come_back(&mut self, which: usize, luck: u8) {
        let phase = *self.running.iter().nth(which % self.running.len()).expect("something runs");
        self.running.remove(&phase);
        let workflow = Arc::clone(self.pipeline.workflow());
        let spec = workflow.phase(phase);
        let asked =
            self.pipeline.gate(phase).is_some_and(|gate| *gate.state() == cliq_gate::GateState::Judging);
        let commands = spec.kind.is_gate() && !asked || spec.kind == cliq_protocol::PhaseKind::Exec;
        self.step(if luck < 6 || self.stopping && luck < 128 {
            Input::WorkFailed { phase, reason: "bad luck".to_owned() }
        } else if commands {
            let pass = luck > 20;
            Input::CommandsFinished { phase, results: vec![CommandResult::new("c", pass)] }
        } else if asked {
            let targets = &spec.route_targets;
            let verdict = match luck {
                0..20 => json!({"verdict": "ROUTE:nobody"}),
                20..26 => json!({"verdict": "ESCALATE"}),
                26..140 if !targets.is_empty() => {
                    let target = &workflow.phase(targets[luck as usize % targets.len()]).name;
                    json!({"verdict": format!("ROUTE:{target}")})
                }
                26..40 => json!({}),
                _ => json!({"verdict": "PASS"}),
            };
            Input::AgentCompleted { phase, result: Some(verdict) }
        } else {
            Input::AgentCompleted { phase, result: None }
        });
    }
}

fn simulate(
    workflow: Arc<ValidatedWorkflow>,
    max_parallel: Option<usize>,
    luck: &[(usize, u8)],
    interruption: Option<(usize, bool)>,
) -> Simulation {
    let mut sim = Simulation::new(workflow);
    sim.step(Input::Start { max_parallel });
    let mut steps = 0;
    while sim.finished.is_none() {
        assert!(!sim.running.is_empty(), "nothing runs and nothing ends: {:?}", sim.pipeline);
        if interruption.is_some_and(|(at, _)| at == steps) {
            let cancel = interruption.is_some_and(|(_, cancel)| cancel);
            sim.step(if cancel { Input::Cancel } else { Input::Fail { reason: "no disk".to_owned() } });
        } else {
            let (which, luck) = luck[steps % luck.len()];
            sim.come_back(which, luck);
        }
        steps += 1;
        assert!(steps < 200_000, "the run does not end");
    }
    sim
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens(
        main in vec(shape(), 1..12), support in vec(shape(), 0..4),
        luck in vec((any::<usize>(), any::<u8>()), 1..60),
        max_parallel in prop::option::of(1usize..4),
        interruption in prop::option::weighted(0.3, (0usize..30, any::<bool>())),
    ) {
        let workflow = workflow(&main, &support);
        let sim = simulate(Arc::clone(&workflow), max_parallel, &luck, interruption);
        let status = sim.finished.expect("it ended");
        let completed: BTreeSet<PhaseId> = sim.pipeline.completed().collect();
        let all_main = workflow.phases().filter(|(_, p)| !p.support).all(|(id, _)| completed.contains(&id));
        if status == PipelineStatus::Completed {
            prop_assert!(all_main);
        }
        if status == PipelineStatus::Escalated {
            let escalated = workflow.phases().any(|(id, _)| matches!(sim.pipeline.state(id), PhaseState::Escalated(_)));
            prop_assert!(escalated);
        }
        // Nothing starts before what it depends on was done; the order of starts shows it.
        let mut started = BTreeSet::new();
        for &phase in &sim.starts {
            for before in &workflow.phase(phase).depends_on {
                prop_assert!(started.contains(before));
            }
            started.insert(phase);
        }
        // The same inputs give the same state, and so does the journal that they are written to.
        let mut again = Pipeline::new(Arc::clone(&workflow));
        sim.inputs.iter().cloned().for_each(|input| drop(again.step(input)));
        prop_assert_eq!(format!("{again:?}"), format!("{:?}", sim.pipeline));
        let journal = journal_of(&sim.inputs, &workflow);
        prop_assert_eq!(format!("{:?}", journal.replay(workflow)), format!("{:?}", sim.pipeline));
    }

    /// An input that fits nothing changes nothing, whenever it comes.
    #[test]
    fn stray_inputs_are_ignored(main in vec(shape(), 1..8), phase in 0usize..8, which in 0u8..3) {
        let workflow = workflow(&main, &[]);
        let mut pipeline = Pipeline::new(Arc::clone(&workflow));
        let ids: Vec<PhaseId> = workflow.phases().map(|(id, _)| id).collect();
        let phase = ids[phase % ids.len()];
        let stray = match which {
            0 => Input::CommandsFinished { phase, results: vec![] },
            1 => Input::AgentCompleted { phase, result: None },
            _ => Input::WorkFailed { phase, reason: String::new() },
        };
        prop_assert_eq!(pipeline.step(stray), vec![]);
        pipeline.assert_invariants();
    }
}

/// The inputs as the driver journals them, through the bytes of a file.
fn journal_of(inputs: &[Input], workflow: &ValidatedWorkflow) -> Journal {
    let name = |id: PhaseId| workflow.phase(id).name.clone();
    let dir = tempfile::tempdir().expect("a directory");
    let path = camino::Utf8Path::from_path(dir.path()).expect("utf-8").join("journal.jsonl");
    let mut bytes = Vec::new();
    for input in inputs {
        let event = match input.clone() {
            Input::Start { max_parallel } => RunEvent::RunStarted {
                version: 1,
                run_id: "r".into(),
                team: "t".into(),
                cliq_version: "0".into(),
                pid: 1,
                max_parallel,
                inputs: Default::default(),
            },
            Input::CommandsFinished { phase, results } => {
                RunEvent::CommandsFinished { phase: name(phase), iteration: 1, results }
            }
            Input::AgentCompleted { phase, result } => {
                RunEvent::AgentCompleted { phase: name(phase), result }
            }
            Input::WorkFailed { phase, reason } => {
                RunEvent::WorkFailed { phase: name(phase), reason, output_tail: None, log_file: None }
            }
            Input::Cancel => RunEvent::CancelRequested { by: "test".into() },
            Input::Fail { reason } => RunEvent::OrchestratorFailed { reason },
        };
        bytes.extend(Record { ts: Timestamp::from_unix_millis(0), event }.encode());
    }
    bytes.extend(b"{\"event\":\"torn");
    std::fs::write(&path, bytes).expect("written");
    let journal = Journal::read(&path).expect("readable").expect("there");
    assert!(journal.torn);
    journal
}

fn fixed(yml: &str) -> Arc<ValidatedWorkflow> {
    Arc::new(check(&format!("name: \"@t/t\"\nworkflow:\n{yml}"), &NoFiles).workflow.expect("valid"))
}

#[test]
fn a_big_pipeline_is_linear() {
    // Not a timing: with anything quadratic in it this would not end in a test's time.
    let mut yml = "  phases:\n".to_owned();
    for n in 0..20_000 {
        let depends = if n < 100 {
            String::new()
        } else {
            format!(", depends_on: [p{}, p{}, p{}]", n - 100, n - 99, n - 50)
        };
        let _ = writeln!(yml, "    - {{name: p{n}, type: standard{depends}}}");
    }
    let workflow = fixed(&yml);
    let sim = simulate(workflow, Some(64), &[(3, 255), (40, 200)], None);
    assert_eq!(sim.finished, Some(PipelineStatus::Completed));
    assert_eq!(sim.starts.len(), 20_000);
}

#[test]
fn events_are_pinned() {
    let name = |text: &str| PhaseName::parse(text).expect("a name");
    let verdict = cliq_protocol::Verdict::route(name("dev"), "red");
    let mut failed = CommandResult::new("tests", false);
    failed.exit_code = Some(1);
    let events = [
        RunEvent::RunStarted {
            version: 1,
            run_id: "r1".into(),
            team: "@t/t".into(),
            cliq_version: "0.1.0".into(),
            pid: 7,
            max_parallel: Some(2),
            inputs: [("a".to_owned(), "b".to_owned())].into(),
        },
        RunEvent::PhaseStarted {
            phase: name("dev"),
            kind: cliq_protocol::PhaseKind::Standard,
            iteration: 2,
            routed_by: Some(name("gate")),
        },
        RunEvent::AgentStarted { phase: name("dev"), iteration: 2, agent: "x".into(), pid: Some(8) },
        RunEvent::CommandStarted { phase: name("gate"), command: "tests".into() },
        RunEvent::CommandFinished { phase: name("gate"), result: failed.clone() },
        RunEvent::CommandsFinished { phase: name("gate"), iteration: 1, results: vec![failed] },
        RunEvent::Progress { phase: name("dev"), message: "half".into() },
        RunEvent::NotifyRequested { phase: name("dev"), agent: "slack".into(), about: "help".into() },
        RunEvent::AgentCompleted { phase: name("dev"), result: Some(json!({"n": 1})) },
        RunEvent::WorkFailed {
            phase: name("dev"),
            reason: "died".into(),
            output_tail: Some("ouch\n".into()),
            log_file: Some("logs/dev.1.log".into()),
        },
        RunEvent::Verdict { gate: name("gate"), iteration: 1, max_iterations: 3, verdict },
        RunEvent::VerdictRejected { gate: name("gate"), iteration: 1, reason: "none".into() },
        RunEvent::PhaseCompleted { phase: name("dev") },
        RunEvent::PhaseEscalated { phase: name("dev"), reason: "died".into() },
        RunEvent::PhaseStopped { phase: name("dev") },
        RunEvent::Draining { running: vec![name("dev")] },
        RunEvent::Warning { phase: None, message: "odd".into() },
        RunEvent::CancelRequested { by: "cliq cancel".into() },
        RunEvent::OrchestratorFailed { reason: "no disk".into() },
        RunEvent::RunFinished {
            status: PipelineStatus::Escalated,
            reason: Some("why".into()),
            phase: Some(name("dev")),
        },
    ];
    let mut text = String::new();
    for event in events {
        let record = Record { ts: Timestamp::from_unix_millis(1_780_034_654_222), event };
        let line = record.encode();
        assert_eq!(Record::decode(&line).unwrap(), record);
        let _ = writeln!(text, "{}    {}", String::from_utf8(line).unwrap(), record.event.describe());
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_view_counts_time_and_iterations() {
    let workflow = fixed("  phases:\n    - {name: dev, type: standard}\n");
    let mut view = RunView::new(&workflow);
    let dev = PhaseName::parse("dev").unwrap();
    let mut at =
        |ms: i64, event: RunEvent| view.apply(&Record { ts: Timestamp::from_unix_millis(ms), event });
    let started = || RunEvent::PhaseStarted {
        phase: dev.clone(),
        kind: cliq_protocol::PhaseKind::Standard,
        iteration: 1,
        routed_by: None,
    };
    at(1000, started());
    at(1500, RunEvent::PhaseCompleted { phase: dev.clone() });
    at(5000, started());
    at(5250, RunEvent::PhaseCompleted { phase: dev.clone() });
    assert_eq!((view.phases[0].iterations, view.phases[0].duration_ms), (2, 750));
}
