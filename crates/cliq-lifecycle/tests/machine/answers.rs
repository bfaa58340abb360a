//! Usage, answers that cannot be understood, and branches.

use cliq_gateway::SignalType;
use cliq_lifecycle::{Command, Config, Event, Purpose, Role, StartReason};

use super::world::World;

#[test]
fn usage_counts_for_task_and_role() {
    let mut world = World::markers(Config::default());
    let usage =
        cliq_orchestrator::UsageSummary::of([&cliq_protocol::Usage { tokens_in: 7, ..Default::default() }]);
    let job = world.job(Role::Developer, "w1-t1");
    let text = "READY_FOR_REVIEW: w1-t1".to_owned();
    let effects =
        world.step(Event::JobEnded { job, text, success: true, usage: Some(usage.clone()) }).unwrap();
    assert!(effects.notes.iter().any(|note| note.kind == "usage" && note.detail["role"] == "developer"));
    let stopped = Event::StoppedJobUsed { purpose: Purpose::Infrastructure, role: Role::Remediation, usage };
    world.step(stopped).unwrap();
    let by_task = serde_json::to_value(&world.plan.usage).unwrap();
    assert_eq!(
        (&by_task["w1-t1"]["developer"]["tokens_in"], &by_task["plan"]["remediation"]["tokens_in"]),
        (&7.into(), &7.into())
    );
    assert_eq!(world.plan.total_usage().unwrap().tokens_in, 14);
}

#[test]
fn unknown_output() {
    let mut world = World::markers(Config::default());
    for (why, level) in [
        (StartReason::Checkpoint, "warning"),
        (StartReason::Checkpoint, "error"),
        (StartReason::Anew, "error"),
        (StartReason::Checkpoint, "warning"),
        (StartReason::Checkpoint, "error"),
    ] {
        let effects = world.says(Role::Developer, "w1-t1", "I am done!");
        let note = effects.notes.iter().find(|note| note.kind == "unknown_output").unwrap();
        assert_eq!(note.detail["level"], level);
        let job = world.job(Role::Developer, "w1-t1");
        assert_eq!(
            world.plan.jobs.iter().find(|other| other.id == job).unwrap().brief.as_ref().unwrap().why,
            why
        );
    }
    world.says(Role::Developer, "w1-t1", "I am done!");
    assert!(world.plan.questions[0].text.contains("I am done!"));
}

#[test]
fn planner_and_architect_register_experts_beside_their_work() {
    let created = "The plan is written.\n\nEXPERT_CREATED: sql-expert\n\nGap Filled: queries\n";
    let mut world = World::new(Config { architect: true, auto_implement: true, ..Config::default() });
    world.signal("implement_wave", r#"{"wave_number":1}"#);
    let effects = world.says(Role::Architect, "plan", created);
    assert!(effects.notes.iter().all(|note| note.kind != "unknown_output"), "{effects:?}");
    assert_eq!(world.plan.experts, ["sql-expert"]);
    assert_eq!(world.plan.wave, 1, "the first wave began");
    // Another role ends its answer with its own marker.
    let effects = world.says(Role::Coder, "w1-t1", created);
    assert!(effects.notes.iter().any(|note| note.kind == "unknown_output"), "{effects:?}");
    // A marker of another meaning is still an answer that nobody expects.
    let mut world = World::new(Config { architect: true, ..Config::default() });
    world.signal("implement_wave", r#"{"wave_number":1}"#);
    let effects = world.says(
        Role::Architect,
        "plan",
        "EXPERT_CREATED: a\n\nSEEKING_DIVINE_CLARIFICATION\n\nQuestion: which?\n",
    );
    assert!(effects.notes.iter().any(|note| note.kind == "question"), "{effects:?}");
    assert_eq!(world.plan.experts, ["a"]);
}

#[test]
fn an_agent_that_is_asked_for_its_state_may_answer_with_checkpoint() {
    let mut world = World::markers(Config::default());
    let brief = |world: &World| {
        let job = world.job(Role::Developer, "w1-t1");
        world.plan.jobs.iter().find(|other| other.id == job).unwrap().brief.clone().unwrap()
    };
    let stands = "CHECKPOINT: w1-t1\n\nProgress: half of it\n";
    // An agent cannot stay at a checkpoint for ever, asked for it or not.
    for (said, why) in [
        ("I am done!", StartReason::Checkpoint),
        (stands, StartReason::Resend),
        (stands, StartReason::Checkpoint),
        ("CHECKPOINT: w1-t2\n", StartReason::Anew),
        (stands, StartReason::Checkpoint),
        (stands, StartReason::Resend),
    ] {
        world.says(Role::Developer, "w1-t1", said);
        assert_eq!(brief(&world).why, why, "{said}");
    }
    assert!(brief(&world).text.contains("half of it"));
    let job = world.plan.jobs.iter().find(|job| job.id == world.job(Role::Developer, "w1-t1")).unwrap();
    let text = cliq_lifecycle::brief(&world.plan, "p", "plan.md".into(), job);
    assert!(text.contains("> Progress: half of it") && !text.contains("CHECKPOINT: w1-t1"), "{text}");
    world.says(Role::Developer, "w1-t1", "what?");
    let job = world.plan.jobs.iter().find(|job| job.id == world.job(Role::Developer, "w1-t1")).unwrap();
    let text = cliq_lifecycle::brief(&world.plan, "p", "plan.md".into(), job);
    assert!(text.contains("CHECKPOINT: w1-t1"), "the brief explains how to answer: {text}");
}

#[test]
fn incomplete_task_waits_for_the_rest_of_the_wave() {
    let mut world = World::markers(Config::default());
    world.says(Role::Developer, "w1-t1", "TASK_INCOMPLETE: w1-t1\n\nNeeded: a key\n");
    assert!(world.plan.questions.is_empty());
    world.complete("w1-t2");
    world.complete("w1-t3");
    assert!(world.plan.questions[0].text.contains("a key"));
    world.step(Event::Person(Command::Answer { question: None, text: "here".into() })).unwrap();
    world.complete("w1-t1");
    assert_eq!(world.plan.wave, 2);
}

#[test]
fn branches_are_merged_before_the_next_wave() {
    let mut world = World::new(Config::default());
    world.file.branches = true;
    world.signal("implement_wave", r#"{"wave_number":1}"#);
    for task in 1..=3 {
        world.signal("implement_task_finished", &format!(r#"{{"wave_number":1,"task_number":{task}}}"#));
    }
    assert_eq!(world.running(), ["- merge 1"]);
    let job = world.plan.jobs.iter().find(|job| job.role.is_none()).unwrap().id;
    world
        .step(Event::JobEnded { job, text: "conflict in a.rs".into(), success: false, usage: None })
        .unwrap();
    assert!(world.plan.questions[0].text.contains("conflict in a.rs"));
    world.step(Event::Person(Command::Answer { question: None, text: "merged".into() })).unwrap();
    let job = world.plan.jobs.iter().find(|job| job.role.is_none()).unwrap().id;
    let effects =
        world.step(Event::JobEnded { job, text: String::new(), success: true, usage: None }).unwrap();
    assert_eq!(effects.emit[0].0, SignalType::ImplementWave);
}

#[test]
fn merge_waits_for_the_answer_of_a_person() {
    let mut world = World::new(Config::default());
    world.file.branches = true;
    world.signal("implement_wave", r#"{"wave_number":1}"#);
    world.says(Role::Coder, "w1-t1", "INFRA_BLOCKED: w1-t1\n\nno database\n");
    let job = world.job(Role::Remediation, "infra");
    world.step(Event::JobNotStarted { job, why: "no such program".into() }).unwrap();
    assert_eq!(world.plan.questions.len(), 1);
    for task in 1..=3 {
        world.signal("implement_task_finished", &format!(r#"{{"wave_number":1,"task_number":{task}}}"#));
    }
    let merges = |world: &World| world.running().contains(&"- merge 1".to_owned());
    assert!(!merges(&world), "{:?}", world.running());
    world.step(Event::Person(Command::Answer { question: None, text: "go on".into() })).unwrap();
    assert!(merges(&world), "{:?}", world.running());
}
