//! Single steps: what ends a job, answers of each role, questions, waves.

use cliq_gateway::PlanName;
use cliq_lifecycle::{
    Command, Config, Event, Infrastructure, Plan, PlanFile, PlanState, Role, Stage, StartReason, TaskLoop,
};

use super::world::{World, file};

fn answer(world: &mut World, question: Option<u64>, text: &str) -> Result<(), String> {
    world.step(Event::Person(Command::Answer { question, text: text.to_owned() })).map(drop)
}

fn ended(world: &mut World, role: Role, work: &str, text: &str, success: bool) {
    let job = world.job(role, work);
    let event = Event::JobEnded { job, text: text.to_owned(), success, usage: None };
    let effects = world.step(event).expect("it fits");
    world.emitted(&effects);
}

fn failed_to_start(world: &mut World, role: Role, work: &str) {
    let job = world.job(role, work);
    world.step(Event::JobNotStarted { job, why: "no such program".to_owned() }).expect("it fits");
}

fn brief(world: &World, role: Role, work: &str) -> cliq_lifecycle::Brief {
    let id = world.job(role, work);
    world.plan.jobs.iter().find(|job| job.id == id).and_then(|job| job.brief.clone()).expect("a brief")
}

/// A plan whose agents answer by markers, up to its review.
fn reviewing() -> World {
    let mut world = World::markers(Config::default());
    for task in ["w1-t1", "w1-t2", "w1-t3", "w2-t1"] {
        world.complete(task);
    }
    assert_eq!(world.plan.state, PlanState::Reviewing);
    world
}

#[test]
fn markers_of_the_plans_own_agents_are_signals() {
    let mut world = reviewing();
    world.says(Role::Reviewer, "plan", "REVIEW_FAILED: plan\n\nRequired Fixes:\n- name it\n");
    assert_eq!((world.plan.state, world.running()), (PlanState::Implementing, vec!["fixer plan".to_owned()]));
    assert!(brief(&world, Role::Fixer, "plan").text.contains("name it"));
    world.says(Role::Fixer, "plan", "READY_FOR_REVIEW: plan\n");
    assert_eq!(world.running(), ["reviewer plan"]);
    world.says(Role::Reviewer, "plan", "REVIEW_PASSED: plan\n");
    assert_eq!((world.plan.state, world.running()), (PlanState::Verifying, vec!["master plan".to_owned()]));
    world.says(Role::Master, "plan", "AUDIT_FAILED: plan\n\nFailed Items:\n- the moon\n");
    assert_eq!((world.plan.verify_cycles, world.running()), (1, vec!["fixer plan".to_owned()]));
    assert!(brief(&world, Role::Fixer, "plan").text.contains("the moon"));
    world.says(Role::Fixer, "plan", "READY_FOR_REVIEW: plan\n");
    world.says(Role::Reviewer, "plan", "REVIEW_PASSED: plan\n");
    world.says(Role::Master, "plan", "AUDIT_PASSED: plan\n");
    assert_eq!(world.plan.state, PlanState::Done);
}

#[test]
fn coder_completes_a_task_by_a_marker() {
    let mut world = World::new(Config::default());
    world.signal("implement_wave", r#"{"wave_number":1}"#);
    world.says(Role::Coder, "w1-t1", "READY_FOR_REVIEW: w1-t1\n");
    assert_eq!(*world.stage("w1-t1"), Stage::Complete);
    assert_eq!(world.plan.state, PlanState::Implementing);
}

#[test]
fn planner_and_architect_need_success_and_no_words() {
    let empty = PlanFile::parse("Goal.\n").expect("a file");
    let mut world = World {
        plan: Plan::new(empty),
        file: file(),
        config: Config { architect: true, ..Config::default() },
    };
    world.signal("plan_start", "");
    ended(&mut world, Role::Planner, "plan", "", false);
    assert_eq!(brief(&world, Role::Planner, "plan").why, StartReason::Checkpoint, "it did not end well");
    ended(&mut world, Role::Planner, "plan", "", true);
    assert_eq!(world.running(), ["architect plan"]);
    ended(&mut world, Role::Architect, "plan", "", false);
    assert_eq!(world.running(), ["architect plan"]);
    assert_eq!(brief(&world, Role::Architect, "plan").why, StartReason::Checkpoint);
    ended(&mut world, Role::Architect, "plan", "", true);
    assert_eq!((world.plan.wave, world.plan.elaborated), (1, true));
    assert!(world.running().contains(&"coder w1-t1".to_owned()));
}

#[test]
fn planner_whose_file_has_no_waves_is_told() {
    let empty = || PlanFile::parse("Goal.\n").expect("a file");
    let mut world = World { plan: Plan::new(empty()), file: empty(), config: Config::default() };
    world.signal("plan_start", "");
    ended(&mut world, Role::Planner, "plan", "done", true);
    let given = brief(&world, Role::Planner, "plan");
    assert!(given.text.contains("the plan has no waves") && given.text.contains("done"), "{given:?}");
    assert!(world.try_signal("plan_start", "").expect("no error").ignored.is_some(), "a planner is at work");
    // One planner writes the plan itself; several write drafts.
    for (planners, running) in [(1, vec!["planner plan"]), (2, vec!["planner draft-1", "planner draft-2"])] {
        let config = Config { planners, ..Config::default() };
        let mut world = World { plan: Plan::new(empty()), file: empty(), config };
        world.signal("plan_start", "");
        let names: Vec<String> = world.running();
        assert_eq!(names.len(), running.len(), "{names:?}");
        assert_eq!(names[0] == "planner plan", planners == 1, "{names:?}");
    }
}

#[test]
fn agent_that_cannot_start_is_a_question() {
    let mut world = World::markers(Config::default());
    failed_to_start(&mut world, Role::Developer, "w1-t1");
    let question = world.plan.questions[0].clone();
    assert_eq!(question.text, "developer cannot be started: no such program");
    assert!(matches!(world.stage("w1-t1"), Stage::Held { role: Role::Developer, .. }));
    assert!(answer(&mut world, Some(question.id + 100), "x").unwrap_err().contains("no open question"));
    answer(&mut world, Some(question.id), "installed").expect("it fits");
    assert_eq!(brief(&world, Role::Developer, "w1-t1").why, StartReason::Answer);
    assert!(answer(&mut world, None, "x").unwrap_err().contains("no question is open"));
    // Several questions: an answer says which.
    failed_to_start(&mut world, Role::Developer, "w1-t1");
    failed_to_start(&mut world, Role::Developer, "w1-t2");
    let refused = answer(&mut world, None, "x").unwrap_err();
    assert!(refused.contains("several questions") && refused.contains("say which one"), "{refused}");
    let id = world.plan.questions[1].id;
    answer(&mut world, Some(id), "installed").expect("it fits");
    assert_eq!(world.plan.questions.len(), 1);
    answer(&mut world, None, "installed too").expect("only one is left");
    assert!(world.plan.questions.is_empty());
    assert!(world.step(Event::JobNotStarted { job: 9999, why: "x".into() }).is_err());
}

#[test]
fn remediation_that_cannot_start_is_a_question() {
    let mut world = World::markers(Config::default());
    world.says(Role::Developer, "w1-t1", "INFRA_BLOCKED: w1-t1\n\nIssue: no disk\n");
    failed_to_start(&mut world, Role::Remediation, "infra");
    assert!(world.plan.questions[0].text.starts_with("remediation cannot be started"));
    answer(&mut world, None, "there is room now").expect("it fits");
    let given = brief(&world, Role::HealthAuditor, "infra");
    assert!(
        given.text.contains("no disk") && given.text.contains("A person says: there is room now"),
        "{given:?}"
    );
    let Infrastructure::Blocked { attempt, .. } = &world.plan.infrastructure else { panic!("it is blocked") };
    assert_eq!(*attempt, 1);
    world.says(
        Role::HealthAuditor,
        "infra",
        "HEALTH_AUDIT: UNHEALTHY\n\nFailed Checks:\n- disk (local): FAIL\n",
    );
    assert!(brief(&world, Role::Remediation, "infra").text.contains("disk (local)"), "the report grows");
}

#[test]
fn job_that_was_settled_changes_nothing() {
    let mut world = World::new(Config::default());
    world.signal("implement_wave", r#"{"wave_number":1}"#);
    let job = world.job(Role::Coder, "w1-t1");
    world.signal("implement_task_finished", r#"{"wave_number":1,"task_number":1}"#);
    let before = world.plan.works.clone();
    let again = world.try_signal("implement_task_finished", r#"{"wave_number":1,"task_number":1}"#);
    assert_eq!(again.expect("no error").ignored, Some("the task is complete already"));
    let text = "INFRA_BLOCKED: w1-t1\n".to_owned();
    world.step(Event::JobEnded { job, text, success: true, usage: None }).expect("it fits");
    assert_eq!(world.plan.works, before);
    assert_eq!(world.plan.infrastructure, Infrastructure::Fine);
}

#[test]
fn experts_are_known_once() {
    let mut world = World::markers(Config::default());
    for _ in 0..2 {
        world.says(Role::Developer, "w1-t1", "EXPERT_CREATED: db\n\nREADY_FOR_REVIEW: w1-t1\n");
        world.says(Role::Critic, "w1-t1", "EXPERT_CREATED: db\n\nREVIEW_FAILED: w1-t1\n");
    }
    assert_eq!(world.plan.experts, ["db"]);
}

#[test]
fn bare_tasks_are_specified_first_if_there_is_an_analyst() {
    let text = "Goal.\n\n## Wave 1\n\n### Task 1: a\n\n### Task 2: b\nDo b.\n";
    let file = || PlanFile::parse(text).expect("a plan");
    for (business_analyst, first) in [(true, "business-analyst w1-t1"), (false, "developer w1-t1")] {
        let config = Config { business_analyst, task_loop: TaskLoop::Markers, ..Config::default() };
        let mut world = World { plan: Plan::new(file()), file: file(), config };
        world.signal("implement_wave", r#"{"wave_number":1}"#);
        let running = world.running();
        assert!(running.contains(&first.to_owned()), "{running:?}");
        assert!(running.contains(&"developer w1-t2".to_owned()), "{running:?}");
    }
}

#[test]
fn refusals_say_where_the_waves_are() {
    let mut world = World::new(Config { architect: true, ..Config::default() });
    world.signal("implement_wave", r#"{"wave_number":1}"#);
    let refused = |world: &mut World, kind: &str, payload: &str| world.try_signal(kind, payload).unwrap_err();
    let done = r#"{"wave_number":1,"task_number":1}"#;
    assert!(refused(&mut world, "implement_task_finished", done).contains("the architect is at work"));
    world.signal("elaborator_finished", "");
    assert!(
        refused(&mut world, "implement_wave", r#"{"wave_number":2}"#).contains("wave 1 of 2 is not over")
    );
    assert!(refused(&mut world, "advance_wave", "").contains("wave 1 of 2 is not over"));
    for task in 1..=3 {
        let payload = format!(r#"{{"wave_number":1,"task_number":{task}}}"#);
        world.try_signal("implement_task_finished", &payload).expect("it fits");
    }
    assert!(refused(&mut world, "implement_wave", r#"{"wave_number":3}"#).contains("the next one is 2"));
    world.signal("implement_wave", r#"{"wave_number":2}"#);
    world.plan.wave_over = true;
    assert!(refused(&mut world, "retry_wave", "").contains("wave 2 was the last one"));
}

#[test]
fn signals_of_effects_have_their_payload() {
    let mut world = World::new(Config::default());
    let name = PlanName::parse("search").expect("a name");
    let context = cliq_lifecycle::Context { config: world.config, file: Ok(&world.file) };
    let kind = cliq_gateway::SignalType::PlanStart;
    let event = Event::Signal { kind, payload: serde_json::Map::new() };
    let effects = world.plan.step(event, &context).expect("it fits");
    let signals = effects.signals(&name);
    assert_eq!(signals.len(), 1);
    let next = world.try_signal("planner_finished", "").expect("it fits").signals(&name);
    assert!(format!("{next:?}").contains("wave_number"), "{next:?}");
}

fn merge(world: &World) -> u64 {
    world.plan.jobs.iter().find(|job| job.role.is_none()).expect("a merge").id
}

/// A finished task does not end a wave whose branches are being merged, or whose merge waits for a person.
#[test]
fn wave_with_branches_is_merged_once() {
    let mut world = World::new(Config::default());
    world.file.branches = true;
    world.signal("implement_wave", r#"{"wave_number":1}"#);
    for task in 1..=3 {
        world.signal("implement_task_finished", &format!(r#"{{"wave_number":1,"task_number":{task}}}"#));
    }
    assert_eq!(world.running(), ["- merge 1"]);
    // Any other step: there is still one merge.
    let _ = world.try_signal("implement_task_finished", r#"{"wave_number":1,"task_number":1}"#);
    assert_eq!(world.running(), ["- merge 1"]);
    let job = merge(&world);
    world.step(Event::JobNotStarted { job, why: "no git".into() }).expect("it fits");
    assert!(world.plan.questions[0].text.starts_with("merge cannot be started: no git"));
    let _ = world.try_signal("implement_task_finished", r#"{"wave_number":1,"task_number":1}"#);
    assert_eq!((world.running().len(), world.plan.questions.len()), (0, 1));
    answer(&mut world, None, "git is there").expect("it fits");
    assert_eq!(world.running(), ["- merge 1"]);
    // The plan was cancelled and begun again: the old merge means nothing.
    let job = merge(&world);
    let mut other = World { plan: world.plan.clone(), file: world.file.clone(), config: world.config };
    other.plan.wave = 2;
    other.step(Event::JobEnded { job, text: String::new(), success: true, usage: None }).expect("it fits");
    assert!(!other.plan.wave_over);
}

#[test]
fn stuck_wave_says_so_once_and_keeps_what_others_need() {
    let mut world = World::markers(Config::default());
    let failed = "READY_FOR_REVIEW: w1-t1\n";
    for _ in 0..3 {
        world.says(Role::Developer, "w1-t1", failed);
        world.says(Role::Critic, "w1-t1", "REVIEW_FAILED: w1-t1\n");
    }
    world.complete("w1-t2");
    let job = world.job(Role::Developer, "w1-t3");
    for (role, text) in [(Role::Developer, "READY_FOR_REVIEW: w1-t3"), (Role::Critic, "REVIEW_PASSED: w1-t3")]
    {
        world.says(role, "w1-t3", text);
    }
    assert_ne!(world.job(Role::Auditor, "w1-t3"), job);
    let effects = world.says(Role::Auditor, "w1-t3", "AUDIT_PASSED: w1-t3");
    let stuck = effects.notes.iter().filter(|note| note.kind == "stuck").count();
    assert_eq!((stuck, world.plan.is_stuck()), (1, true));
    world.plan.works.get_mut(&"w1-t1".parse().expect("an id")).expect("a task").additions.push("more".into());
    world.signal("retry_wave", "");
    assert!(brief(&world, Role::Developer, "w1-t1").text.contains("more"));
}

#[test]
fn reviewed_plan_settles_the_questions_of_its_agents_only() {
    let mut world = reviewing();
    world.says(Role::Reviewer, "plan", "SEEKING_DIVINE_CLARIFICATION\n\nQuestion: which style?\n");
    assert_eq!(world.plan.questions.len(), 1);
    world.signal("review_changes_requested", "no");
    assert!(world.plan.questions.is_empty(), "the reviewer's question is of no use any more");
    let mut world = World::markers(Config::default());
    world.says(Role::Developer, "w1-t1", "SEEKING_DIVINE_CLARIFICATION\n\nQuestion: which port?\n");
    world.plan.state = PlanState::Reviewing;
    world.signal("review_changes_requested", "no");
    assert_eq!(world.plan.questions.len(), 1, "a task's question stays");
}

/// Markers of success of an agent that failed do not count; those against the work do.
#[test]
fn success_of_an_agent_that_failed_does_not_count() {
    let mut world = World::markers(Config::default());
    ended(&mut world, Role::Developer, "w1-t1", "READY_FOR_REVIEW: w1-t1\n", false);
    assert!(matches!(world.stage("w1-t1"), Stage::Running { role: Role::Developer, .. }));
    let asked = brief(&world, Role::Developer, "w1-t1");
    assert_eq!(asked.why, StartReason::Checkpoint);
    assert!(
        asked.text.contains("The agent failed: its READY_FOR_REVIEW: w1-t1 does not count."),
        "{asked:?}"
    );
    world.says(Role::Developer, "w1-t1", "READY_FOR_REVIEW: w1-t1\n");
    ended(&mut world, Role::Critic, "w1-t1", "REVIEW_PASSED: w1-t1\n", false);
    assert!(matches!(world.stage("w1-t1"), Stage::Running { role: Role::Critic, .. }));
    world.says(Role::Critic, "w1-t1", "REVIEW_PASSED: w1-t1\n");
    ended(&mut world, Role::Auditor, "w1-t1", "AUDIT_PASSED: w1-t1\n", false);
    assert!(matches!(world.stage("w1-t1"), Stage::Running { role: Role::Auditor, .. }));
    ended(
        &mut world,
        Role::Auditor,
        "w1-t1",
        "AUDIT_FAILED: w1-t1\n\nFailed Items:\n- x\n\nAUDIT_PASSED: w1-t1\n",
        false,
    );
    assert_eq!(brief(&world, Role::Developer, "w1-t1").why, StartReason::Rework);
    // Infrastructure is not healthy because an agent that failed says so.
    ended(&mut world, Role::Developer, "w1-t1", "INFRA_BLOCKED: w1-t1\n\nIssue: no disk\n", false);
    for text in ["REMEDIATION_COMPLETE\n"; 2] {
        ended(&mut world, Role::Remediation, "infra", text, false);
    }
    assert!(world.running().contains(&"remediation infra".to_owned()), "{:?}", world.running());
    world.says(Role::Remediation, "infra", "REMEDIATION_COMPLETE\n");
    ended(&mut world, Role::HealthAuditor, "infra", "HEALTH_AUDIT: HEALTHY\n", false);
    assert_ne!(world.plan.infrastructure, Infrastructure::Fine);
}

/// Bound on the attempts of an agent that works behind others, whose answers come in between.
#[test]
fn agent_behind_others_that_always_fails_leads_to_a_person() {
    for failing in [Role::Critic, Role::Auditor] {
        let mut world = World::markers(Config::default());
        let mut jobs = 0;
        while world.plan.questions.is_empty() {
            jobs += 1;
            assert!(jobs < 40, "{failing}: no end");
            let at = match world.stage("w1-t1") {
                Stage::Running { role, .. } => *role,
                stage => panic!("{stage:?}"),
            };
            let word = match at {
                Role::Developer => "READY_FOR_REVIEW",
                Role::Critic => "REVIEW_PASSED",
                _ => "AUDIT_PASSED",
            };
            ended(&mut world, at, "w1-t1", &format!("{word}: w1-t1\n"), at != failing);
        }
        assert!(
            world.plan.questions[0].text.contains("said nothing that can be understood, 6 times"),
            "{jobs}"
        );
        assert!(matches!(world.stage("w1-t1"), Stage::Held { role, .. } if *role == failing));
    }
}
