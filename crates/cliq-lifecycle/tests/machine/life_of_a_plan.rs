//! Tables of all situations, and a plan from ready to done.

use cliq_gateway::SignalType;
use cliq_lifecycle::{
    Command, Config, Event, Infrastructure, PlanState, Role, Slots, Stage, StartReason, plan_table,
    task_table,
};

use super::world::{World, file};

#[test]
fn tables() {
    insta::assert_snapshot!("plan_table", plan_table());
    insta::assert_snapshot!("task_table", task_table());
    let docs = include_str!("../../../../docs/signals.md");
    for table in [plan_table(), task_table()] {
        assert!(docs.contains(&table), "docs/signals.md has not this table:\n{table}");
    }
}

#[test]
fn a_plan_from_ready_to_done() {
    let mut world = World::new(Config::default());
    let effects = world.signal("plan_start", "");
    assert_eq!(effects.emit[0].0, SignalType::PlannerFinished, "it has waves: no planner is needed");
    assert_eq!(
        (world.plan.state, world.plan.wave),
        (PlanState::Implementing, 1),
        "the first wave begins by itself"
    );
    assert_eq!(world.running(), ["coder w1-t1", "coder w1-t2", "coder w1-t3"]);
    assert!(world.try_signal("implement_finished", "").expect("no error").ignored.is_some());
    for task in 1..=3 {
        assert_eq!(world.plan.wave, 1);
        world.signal("implement_task_finished", &format!(r#"{{"wave_number":1,"task_number":{task}}}"#));
    }
    assert_eq!(world.running(), ["coder w2-t1"]);
    assert!(world.try_signal("implement_task_finished", r#"{"wave_number":1,"task_number":1}"#).is_err());
    assert!(world.try_signal("implement_task_finished", r#"{"wave_number":2,"task_number":2}"#).is_err());
    world.signal("implement_task_finished", r#"{"wave_number":2,"task_number":1}"#);
    assert_eq!((world.plan.state, world.running()), (PlanState::Reviewing, vec!["reviewer plan".to_owned()]));
    world.signal("review_changes_requested", "name it better");
    assert_eq!((world.plan.state, world.running()), (PlanState::Implementing, vec!["fixer plan".to_owned()]));
    assert_eq!(world.plan.jobs.last().unwrap().brief.as_ref().unwrap().text, "name it better");
    world.signal("implement_finished", "");
    world.signal("review_approved", "");
    assert_eq!((world.plan.state, world.running()), (PlanState::Verifying, vec!["master plan".to_owned()]));
    world.signal("verify_approved", "");
    assert_eq!((world.plan.state, world.plan.force_promoted), (PlanState::Done, false));
}

#[test]
fn the_verify_cap_promotes_and_says_so() {
    let config = Config { readiness_max_verify_cycles: 2, ..Config::default() };
    let mut world = World::new(config);
    world.signal("plan_start", "");
    world.plan.state = PlanState::Verifying;
    world.signal("verify_failed", "no");
    assert_eq!((world.plan.state, world.plan.verify_cycles), (PlanState::Implementing, 1));
    world.plan.state = PlanState::Verifying;
    let effects = world.signal("verify_failed", "still no");
    assert_eq!((world.plan.state, world.plan.force_promoted), (PlanState::Done, true));
    assert!(effects.notes.iter().any(|note| note.kind == "force_promoted") && effects.emit.is_empty());
}

#[test]
fn without_verification_what_is_approved_is_done() {
    let mut world = World::new(Config { auto_readiness_review: false, ..Config::default() });
    world.plan.state = PlanState::Reviewing;
    world.signal("review_approved", "");
    assert_eq!(world.plan.state, PlanState::Done);
}

#[test]
fn only_an_audit_completes_a_task() {
    let mut world = World::markers(Config::default());
    world.says(Role::Developer, "w1-t1", "AUDIT_PASSED: w1-t1\n");
    assert!(
        matches!(world.stage("w1-t1"), Stage::Running { role: Role::Developer, .. }),
        "it is not the developer's to say"
    );
    world.says(Role::Developer, "w1-t1", "READY_FOR_REVIEW: w1-t1\n");
    world.says(Role::Critic, "w1-t1", "REVIEW_FAILED: w1-t1\n\nRequired Fixes:\n- fix it\n");
    let job = world.job(Role::Developer, "w1-t1");
    let brief = world.plan.jobs.iter().find(|other| other.id == job).unwrap().brief.clone().unwrap();
    assert_eq!((brief.why, brief.text.as_str()), (StartReason::Rework, "Required Fixes:\n- fix it"));
    world.says(Role::Developer, "w1-t1", "READY_FOR_REVIEW: w1-t1\n");
    world.says(Role::Critic, "w1-t1", "REVIEW_PASSED: w1-t1\n");
    world.says(Role::Auditor, "w1-t1", "AUDIT_PASSED: w1-t2\n");
    assert!(
        matches!(world.stage("w1-t1"), Stage::Running { role: Role::Auditor, .. }),
        "that is another task"
    );
    assert!(world.try_signal("implement_task_finished", r#"{"wave_number":1,"task_number":1}"#).is_err());
    world.says(Role::Auditor, "w1-t1", "AUDIT_PASSED: W1-T1\n");
    assert_eq!(*world.stage("w1-t1"), Stage::Complete);
}

#[test]
fn three_failures_and_a_task_is_given_up() {
    let mut world = World::markers(Config::default());
    for failure in 1..=3 {
        world.says(Role::Developer, "w1-t1", "READY_FOR_REVIEW: w1-t1\n");
        if failure == 2 {
            world.says(Role::Critic, "w1-t1", "REVIEW_PASSED: w1-t1\n");
            world.says(Role::Auditor, "w1-t1", "AUDIT_FAILED: w1-t1\n");
        } else {
            world.says(Role::Critic, "w1-t1", "REVIEW_FAILED: w1-t1\n");
        }
    }
    assert!(matches!(world.stage("w1-t1"), Stage::Failed { .. }));
    assert!(world.try_signal("advance_wave", "").is_err(), "others are at work");
    world.complete("w1-t2");
    world.complete("w1-t3");
    assert!(world.plan.is_stuck());
    let mut retried = World { plan: world.plan.clone(), file: file(), config: world.config };
    retried.signal("retry_wave", "");
    assert_eq!(retried.running(), ["developer w1-t1"]);
    world.signal("advance_wave", "");
    assert_eq!(world.running(), ["developer w2-t1"]);
}

#[test]
fn while_infrastructure_is_blocked_nothing_new_starts() {
    let mut world = World::markers(Config::default());
    world.says(Role::Developer, "w1-t1", "INFRA_BLOCKED: w1-t1\n\nIssue: no disk\n");
    world.says(Role::Developer, "w1-t2", "READY_FOR_REVIEW: w1-t2\n");
    assert_eq!(world.running(), ["developer w1-t3", "remediation infra"], "the critic waits");
    world.says(Role::Remediation, "infra", "REMEDIATION_COMPLETE\n");
    world.says(
        Role::HealthAuditor,
        "infra",
        "HEALTH_AUDIT: UNHEALTHY\n\nFailed Checks:\n- disk (local): FAIL\n",
    );
    assert_eq!(world.running(), ["developer w1-t3", "remediation infra"], "the second attempt");
    world.says(Role::Remediation, "infra", "no marker");
    world.says(Role::Remediation, "infra", "REMEDIATION_COMPLETE\n");
    world.says(Role::HealthAuditor, "infra", "HEALTH_AUDIT: UNHEALTHY\n");
    assert_eq!(world.running(), ["developer w1-t3"], "three attempts: a person is asked");
    assert!(world.plan.questions[0].text.contains("no disk"));
    world.step(Event::Person(Command::Answer { question: None, text: "there is room now".into() })).unwrap();
    world.says(Role::HealthAuditor, "infra", "HEALTH_AUDIT: HEALTHY\n");
    assert_eq!(world.plan.infrastructure, Infrastructure::Fine);
    assert_eq!(world.running(), ["developer w1-t3", "critic w1-t2", "developer w1-t1"]);
}

#[test]
fn a_person_is_asked_and_answers() {
    let mut world = World::markers(Config {
        slots: Slots { developers: 2, critics: 1, auditors: 1 },
        ..Config::default()
    });
    world.says(Role::Developer, "w1-t1", "SEEKING_DIVINE_CLARIFICATION\n\nQuestion: which port?\n");
    assert_eq!(world.running(), ["developer w1-t2"], "w1-t3 waits for the answer too");
    let id = world.plan.questions[0].id;
    assert!(world.step(Event::Person(Command::Answer { question: Some(id + 1), text: "x".into() })).is_err());
    world.step(Event::Person(Command::Answer { question: Some(id), text: "8080".into() })).unwrap();
    assert_eq!(world.running(), ["developer w1-t2", "developer w1-t1"]);
    let brief = world.plan.jobs.last().unwrap().brief.clone().unwrap();
    assert!(
        brief.why == StartReason::Answer && brief.text.contains("which port?") && brief.text.contains("8080")
    );
}

#[test]
fn experts_have_three_attempts() {
    let request = "EXPERT_REQUEST\nTarget Agent: db\n---DELEGATION PROMPT START---\nWhich index?\n---DELEGATION PROMPT END---\n";
    let mut world = World::markers(Config::default());
    world.says(Role::Developer, "w1-t1", request);
    world.says(Role::Expert, "w1-t1", "EXPERT_REQUEST\n");
    world.says(Role::Expert, "w1-t1", "EXPERT_ADVICE: r1\n\nRecommendation:\nThe second.\n");
    let brief = world.plan.jobs.last().unwrap().brief.clone().unwrap();
    assert!(brief.why == StartReason::Advice && brief.text.contains("The second."));
    world.says(Role::Developer, "w1-t1", request);
    for _ in 0..3 {
        world.says(Role::Expert, "w1-t1", "well");
    }
    assert!(world.plan.questions[0].text.contains("Which index?"));
    let mut world = World::markers(Config::default());
    world.says(Role::Developer, "w1-t1", request);
    world.says(Role::Expert, "w1-t1", "EXPERT_UNSUCCESSFUL: r1\n\nReason: no data\n");
    assert!(world.plan.questions[0].text.contains("no data"));
}
