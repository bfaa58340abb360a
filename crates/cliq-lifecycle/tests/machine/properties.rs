//! Properties for all events.

use std::collections::BTreeMap;

use cliq_gateway::SignalType;
use cliq_lifecycle::{
    Command, Config, Event, Infrastructure, Plan, PlanState, Purpose, Role, Slots, Stage, TaskLoop,
    WaitingFor, WorkId,
};
use cliq_markers::MarkerKind;
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::world::World;

/// Choice among the possible events.
#[derive(Debug, Clone)]
enum Choice {
    Signal(usize, u32, u32),
    Says(usize, usize, bool),
    NotStarted(usize),
    Command(usize),
}

fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        3 => (0_usize..13, 0_u32..3, 0_u32..4).prop_map(|(kind, wave, task)| Choice::Signal(kind, wave, task)),
        8 => (0_usize..8, 0_usize..20, prop::bool::weighted(0.9)).prop_map(|(job, marker, own)| Choice::Says(job, marker, own)),
        1 => (0_usize..8).prop_map(Choice::NotStarted),
        1 => (0_usize..7).prop_map(Choice::Command),
    ]
}

fn apply(world: &mut World, choice: &Choice, pending: &mut Vec<(SignalType, Map<String, Value>)>) {
    let event = match choice {
        Choice::Signal(kind, wave, task) => {
            let kind = SignalType::all().nth(*kind).expect("thirteen");
            let number = |key: &str, n: u32| (key.to_owned(), Value::from(n));
            Event::Signal {
                kind,
                payload: Map::from_iter([number("wave_number", *wave), number("task_number", *task)]),
            }
        }
        Choice::Says(at, marker, own) => {
            let Some(job) = world.plan.jobs.get(*at % world.plan.jobs.len().max(1)) else { return };
            let subject = match job.purpose {
                Purpose::Work(id) if *own => id.to_string(),
                _ => "w1-t1".to_owned(),
            };
            let text = MarkerKind::all()
                .nth(*marker)
                .map_or("?".to_owned(), |kind| kind.format().replace("[task_id]", &subject));
            Event::JobEnded { job: job.id, text, success: *own, usage: None }
        }
        Choice::NotStarted(at) => {
            let Some(job) = world.plan.jobs.get(*at % world.plan.jobs.len().max(1)) else { return };
            Event::JobNotStarted { job: job.id, why: "no such program".into() }
        }
        Choice::Command(at) => Event::Person(match at {
            0 => Command::StartOver,
            1 => Command::Reimplement,
            2 => Command::RequestReview,
            3 => Command::Reopen,
            _ => Command::Answer { question: world.plan.questions.first().map(|q| q.id), text: "yes".into() },
        }),
    };
    let before = world.plan.clone();
    match world.step(event) {
        Ok(effects) => pending.extend(effects.emit),
        Err(_) => assert_eq!(world.plan, before, "what does not fit changes nothing"),
    }
    // What was emitted comes back sooner or later.
    if !pending.is_empty() {
        let (kind, payload) = pending.remove(0);
        if let Ok(effects) = world.step(Event::Signal { kind, payload }) {
            pending.extend(effects.emit);
        }
    }
}

fn holds(world: &World, before: &Plan, choice: &Choice) {
    let plan = &world.plan;
    // Slots.
    let count = |roles: &[Role]| {
        let of_work = plan.jobs.iter().filter(|job| !job.settled && matches!(job.purpose, Purpose::Work(_)));
        of_work.filter(|job| job.role.is_some_and(|role| roles.contains(&role))).count()
    };
    let slots = world.config.slots;
    assert!(count(&[Role::Critic]) <= slots.critics as usize);
    assert!(count(&[Role::Auditor]) <= slots.auditors as usize);
    assert!(count(&[Role::Developer, Role::Coder, Role::BusinessAnalyst]) <= slots.developers as usize);
    assert!(count(&[Role::Planner, Role::Architect, Role::Reviewer, Role::Master, Role::Fixer]) <= 1);
    // What runs belongs to what there is, and the other way round.
    for (id, work) in &plan.works {
        if let Stage::Running { job, role } = work.stage {
            let job = plan.jobs.iter().find(|other| other.id == job).expect("its job is there");
            assert!(job.purpose == Purpose::Work(*id) && job.role == Some(role) && !job.settled);
        }
        if let Stage::Held { by: WaitingFor::Person { question }, .. } = work.stage {
            assert!(plan.questions.iter().any(|other| other.id == question), "its question is open");
        }
    }
    let mut ids: Vec<u64> = plan.jobs.iter().map(|job| job.id).collect();
    ids.dedup();
    assert_eq!(ids.len(), plan.jobs.len());
    // No tasks wait for each other in a circle.
    for id in plan.works.keys() {
        let (mut at, mut steps) = (*id, 0);
        while let Some(Stage::Held { by: WaitingFor::File { holder, .. }, .. }) =
            plan.works.get(&at).map(|work| &work.stage)
        {
            (at, steps) = (*holder, steps + 1);
            assert!(steps <= plan.works.len(), "a circle of files");
        }
    }
    // While blocked or while a person is asked, nothing new starts.
    let new: Vec<_> = plan.jobs.iter().filter(|job| job.id >= before.next).collect();
    if !plan.questions.is_empty() {
        assert!(new.is_empty() || before.questions != plan.questions, "{new:?} while a person is asked");
    }
    if plan.infrastructure != Infrastructure::Fine && before.infrastructure != Infrastructure::Fine {
        assert!(
            new.iter().all(|job| matches!(job.purpose, Purpose::Infrastructure | Purpose::Merge { .. })),
            "{new:?} while blocked"
        );
    }
    // With markers, only an audit completes a task.
    if world.config.task_loop == TaskLoop::Markers {
        let complete = |plan: &Plan| -> BTreeMap<WorkId, u64> {
            let tasks = plan.tasks().filter(|(_, work)| work.stage == Stage::Complete);
            tasks.map(|(id, _)| (id, 0)).collect()
        };
        let newly = complete(plan)
            .keys()
            .filter(|id| before.works.get(id).is_none_or(|work| work.stage != Stage::Complete))
            .count();
        let audited = matches!(choice, Choice::Says(at, marker, _) if {
            let job = before.jobs.get(*at % before.jobs.len().max(1));
            job.is_some_and(|job| job.role == Some(Role::Auditor)) && MarkerKind::all().nth(*marker) == Some(MarkerKind::AuditPassed)
        });
        assert!(newly == 0 || (newly == 1 && audited), "{choice:?} completed a task");
    }
    // Its document is all of it.
    let text = serde_json::to_string(plan).expect("JSON");
    assert_eq!(serde_json::from_str::<Plan>(&text).expect("read back"), *plan);
}

/// Agents that do all well: after any events the plan gets done.
fn goes_well(world: &mut World, mut pending: Vec<(SignalType, Map<String, Value>)>) {
    for _ in 0..400 {
        if world.plan.state == PlanState::Done {
            return;
        }
        if let Some((kind, payload)) = (!pending.is_empty()).then(|| pending.remove(0)) {
            if let Ok(effects) = world.step(Event::Signal { kind, payload }) {
                pending.extend(effects.emit);
            }
            continue;
        }
        let event = if let Some(question) = world.plan.questions.first() {
            Event::Person(Command::Answer { question: Some(question.id), text: "go on".into() })
        } else if let Some(job) = world.plan.jobs.first() {
            let id = match job.purpose {
                Purpose::Work(id) => id.to_string(),
                _ => String::new(),
            };
            let text = match job.role {
                Some(Role::Coder | Role::Fixer | Role::Developer) => format!("READY_FOR_REVIEW: {id}"),
                Some(Role::Critic | Role::Reviewer) => format!("REVIEW_PASSED: {id}"),
                Some(Role::Auditor | Role::Master) => format!("AUDIT_PASSED: {id}"),
                Some(Role::BusinessAnalyst) => format!("EXPANDED_TASK_SPECIFICATION: {id}"),
                Some(Role::Remediation) => "REMEDIATION_COMPLETE".to_owned(),
                Some(Role::HealthAuditor) => "HEALTH_AUDIT: HEALTHY".to_owned(),
                Some(Role::Expert) => "EXPERT_ADVICE: r1".to_owned(),
                Some(Role::Planner | Role::Architect) | None => String::new(),
            };
            Event::JobEnded { job: job.id, text, success: true, usage: None }
        } else if world.plan.is_stuck() {
            Event::Signal { kind: SignalType::RetryWave, payload: Map::new() }
        } else {
            match world.plan.state {
                PlanState::Cancelled => Event::Person(Command::Reopen),
                PlanState::Ready if world.config.auto_implement => {
                    Event::Signal { kind: SignalType::PlanStart, payload: Map::new() }
                }
                // What was emitted and lost by the test is emitted again.
                PlanState::Planning => {
                    Event::Signal { kind: SignalType::PlannerFinished, payload: Map::new() }
                }
                _ => {
                    let wave = Map::from_iter([("wave_number".to_owned(), (world.plan.wave + 1).into())]);
                    Event::Signal { kind: SignalType::ImplementWave, payload: wave }
                }
            }
        };
        let effects = world.step(event.clone());
        pending.extend(effects.unwrap_or_else(|why| panic!("{event:?}: {why}\n{:#?}", world.plan)).emit);
    }
    panic!("it is never done: {:#?}", world.plan);
}

fn config() -> impl Strategy<Value = Config> {
    (any::<[bool; 5]>(), 1_u32..3, 1_u32..3).prop_map(|(flags, cycles, slots)| Config {
        auto_readiness_review: flags[0],
        readiness_max_verify_cycles: cycles,
        task_loop: if flags[1] { TaskLoop::Markers } else { TaskLoop::Signals },
        slots: Slots { developers: slots, critics: 1, auditors: 1 },
        auto_implement: flags[2],
        architect: flags[3],
        business_analyst: flags[4],
        planners: cycles,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rules_hold_for_all_events(config in config(), branches: bool, choices in prop::collection::vec(choice(), 0..60)) {
        let mut world = World::new(config);
        world.file.branches = branches;
        let mut pending = Vec::new();
        let _ = world.step(Event::Signal { kind: SignalType::PlanStart, payload: Map::new() }).map(|f| pending.extend(f.emit));
        for choice in &choices {
            let before = world.plan.clone();
            apply(&mut world, choice, &mut pending);
            holds(&world, &before, choice);
        }
        // A person may always give it up.
        let mut cancelled = World { plan: world.plan.clone(), file: world.file.clone(), config };
        if cancelled.plan.state != PlanState::Cancelled {
            cancelled.step(Event::Person(Command::Cancel)).expect("from everywhere");
            prop_assert!(cancelled.plan.state == PlanState::Cancelled && cancelled.plan.jobs.is_empty() && cancelled.plan.questions.is_empty());
        }
        goes_well(&mut world, pending);
    }
}
