//! The machines of plans and tasks: tables, and what holds whatever happens (SPEC section 13).

use std::collections::BTreeMap;

use cliq_gateway::SignalType;
use cliq_lifecycle::{
    Command, Config, Context, Effects, Event, Infrastructure, Plan, PlanFile, PlanState, Purpose, Role,
    Slots, Stage, StartReason, TaskLoop, WaitingFor, WorkId, plan_table, task_table,
};
use cliq_markers::MarkerKind;
use proptest::prelude::*;
use serde_json::{Map, Value};

const TWO_WAVES: &str = "Goal.\n\n## Wave 1\n\n### Task 1: a\nFiles: a.rs\nDo a.\n\n### Task 2: b\nDo b.\n\n### Task 3: c\nDo c.\n\n## Wave 2\n\n### Task 1: d\nDo d.\n";

fn file() -> PlanFile {
    PlanFile::parse(TWO_WAVES).expect("a plan")
}

struct World {
    plan: Plan,
    file: PlanFile,
    config: Config,
}

impl World {
    fn new(config: Config) -> Self {
        Self { plan: Plan::new(file()), file: file(), config }
    }

    fn markers(config: Config) -> Self {
        let mut world = Self::new(Config { task_loop: TaskLoop::Markers, ..config });
        world.signal("implement_wave", r#"{"wave_number":1}"#);
        world
    }

    fn step(&mut self, event: Event) -> Result<Effects, String> {
        let context = Context { config: self.config, file: Ok(&self.file) };
        self.plan.step(event, &context)
    }

    fn try_signal(&mut self, kind: &str, payload: &str) -> Result<Effects, String> {
        let payload = serde_json::from_str(payload)
            .unwrap_or_else(|_| Map::from_iter([("body".to_owned(), payload.into())]));
        self.step(Event::Signal { kind: SignalType::parse(kind).expect("a type"), payload })
    }

    #[track_caller]
    fn signal(&mut self, kind: &str, payload: &str) -> Effects {
        let effects = self.try_signal(kind, payload).expect("it fits");
        self.emitted(&effects);
        effects
    }

    /// What is emitted comes back.
    fn emitted(&mut self, effects: &Effects) {
        for (kind, payload) in effects.emit.clone() {
            let effects = self.step(Event::Signal { kind, payload }).expect("what is emitted fits");
            self.emitted(&effects);
        }
    }

    /// The running job of a work, or of infrastructure, in a role.
    #[track_caller]
    fn job(&self, role: Role, work: &str) -> u64 {
        let is_it = |purpose: &Purpose| match purpose {
            Purpose::Work(id) | Purpose::Advise(id) => id.to_string() == work,
            Purpose::Infrastructure => work == "infra",
            Purpose::Merge { .. } => false,
        };
        let found =
            self.plan.jobs.iter().find(|job| !job.settled && job.role == Some(role) && is_it(&job.purpose));
        found.unwrap_or_else(|| panic!("no {role} for {work}: {:#?}", self.plan)).id
    }

    #[track_caller]
    fn says(&mut self, role: Role, work: &str, text: &str) -> Effects {
        let job = self.job(role, work);
        let effects = self
            .step(Event::JobEnded { job, text: text.to_owned(), success: true, usage: None })
            .expect("it fits");
        self.emitted(&effects);
        effects
    }

    #[track_caller]
    fn stage(&self, work: &str) -> &Stage {
        &self.plan.works[&work.parse::<WorkId>().expect("an id")].stage
    }

    fn running(&self) -> Vec<String> {
        let jobs = self.plan.jobs.iter().filter(|job| !job.settled);
        let name = |purpose: &Purpose| match purpose {
            Purpose::Work(id) => id.to_string(),
            Purpose::Advise(id) => format!("for {id}"),
            Purpose::Infrastructure => "infra".to_owned(),
            Purpose::Merge { wave } => format!("merge {wave}"),
        };
        jobs.map(|job| format!("{} {}", job.role.map_or("-", Role::as_str), name(&job.purpose))).collect()
    }

    fn complete(&mut self, work: &str) {
        self.says(Role::Developer, work, &format!("READY_FOR_REVIEW: {work}"));
        self.says(Role::Critic, work, &format!("REVIEW_PASSED: {work}"));
        self.says(Role::Auditor, work, &format!("AUDIT_PASSED: {work}"));
    }
}

#[test]
fn tables() {
    insta::assert_snapshot!("plan_table", plan_table());
    insta::assert_snapshot!("task_table", task_table());
    let docs = include_str!("../../../docs/signals.md");
    for table in [plan_table(), task_table()] {
        assert!(docs.contains(&table), "docs/signals.md has not this table:\n{table}");
    }
}

#[test]
fn a_plan_from_ready_to_done() {
    let mut world = World::new(Config::default());
    let effects = world.signal("plan_start", "");
    assert_eq!(effects.emit[0].0, SignalType::PlannerFinished, "it has waves: nobody needs to plan it");
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

#[test]
fn file_conflicts_queue_behind_the_holder() {
    let mut world = World::markers(Config::default());
    world.says(Role::Developer, "w1-t2", "FILE CONFLICT: a.rs\n\nAssigned To: UNKNOWN\n");
    let holder = WorkId::Task { wave: 1, task: 1 };
    assert!(
        matches!(world.stage("w1-t2"), Stage::Held { by: WaitingFor::File { holder: h, .. }, .. } if *h == holder),
        "its task names the file"
    );
    world.says(Role::Developer, "w1-t1", "FILE CONFLICT: b.rs\n\nAssigned To: w1-t2\n");
    assert!(matches!(world.stage("w1-t1"), Stage::Running { .. }), "they would wait for each other for ever");
    world.complete("w1-t1");
    assert!(matches!(world.stage("w1-t2"), Stage::Running { .. }));
    world.says(Role::Developer, "w1-t2", "FILE CONFLICT: nobody.rs\n");
    assert!(matches!(world.stage("w1-t2"), Stage::Running { .. }), "nobody has it");
}

const NO_WAIT: &str = "\n\nAssigned To: w1-t1\nI Need To: add a field\nCan Wait: NO\n";

fn brief_of(world: &World, role: Role, work: &str) -> cliq_lifecycle::Brief {
    let job = world.job(role, work);
    world.plan.jobs.iter().find(|other| other.id == job).and_then(|job| job.brief.clone()).expect("a brief")
}

#[test]
fn a_change_that_cannot_wait_is_handed_to_the_holder() {
    let mut world = World::markers(Config::default());
    world.says(Role::Developer, "w1-t2", &format!("FILE CONFLICT: a.rs{NO_WAIT}"));
    let brief = brief_of(&world, Role::Developer, "w1-t2");
    assert!(
        brief.why == StartReason::GoOn && brief.text.contains("Task w1-t1 makes the change of a.rs"),
        "{brief:?}"
    );
    // The holder is at work: it gets the change before it is reviewed, and in its next brief.
    world.says(Role::Developer, "w1-t1", "READY_FOR_REVIEW: w1-t1");
    let brief = brief_of(&world, Role::Developer, "w1-t1");
    assert!(brief.why == StartReason::Addition && brief.text.contains("add a field"), "{brief:?}");
    world.complete("w1-t1");
    assert_eq!(*world.stage("w1-t1"), Stage::Complete);
    // Nobody has the file any more who could change it.
    world.says(Role::Developer, "w1-t2", &format!("FILE CONFLICT: a.rs{NO_WAIT}"));
    assert!(matches!(world.stage("w1-t2"), Stage::Held { by: WaitingFor::Person { .. }, .. }));
    assert!(world.plan.questions[0].text.contains("a.rs"));
}

#[test]
fn a_change_comes_late_and_is_not_lost() {
    // The holder is with its auditor, who passes it: it works again before it is complete.
    let mut world = World::markers(Config::default());
    world.says(Role::Developer, "w1-t1", "READY_FOR_REVIEW: w1-t1");
    world.says(Role::Critic, "w1-t1", "REVIEW_PASSED: w1-t1");
    world.says(Role::Developer, "w1-t2", &format!("FILE CONFLICT: a.rs{NO_WAIT}"));
    world.says(Role::Auditor, "w1-t1", "AUDIT_PASSED: w1-t1");
    assert_eq!(brief_of(&world, Role::Developer, "w1-t1").why, StartReason::Addition);
    // One that has not begun gets it with its first brief.
    let mut world = World::markers(Config {
        slots: Slots { developers: 1, critics: 1, auditors: 1 },
        ..Config::default()
    });
    world.says(Role::Developer, "w1-t1", "FILE CONFLICT: x.rs\n\nAssigned To: w1-t3\nCan Wait: NO\n");
    world.complete("w1-t1");
    world.complete("w1-t2");
    assert_eq!(brief_of(&world, Role::Developer, "w1-t3").why, StartReason::Addition);
}

#[test]
fn with_branches_both_change_the_file_and_the_merge_knows() {
    let mut world = World::markers(Config::default());
    world.plan.file.branches = true;
    world.says(Role::Developer, "w1-t2", &format!("FILE CONFLICT: a.rs{NO_WAIT}"));
    let brief = brief_of(&world, Role::Developer, "w1-t2");
    assert!(brief.text.contains("in your own worktree") && brief.text.contains("w1-t1"), "{brief:?}");
    for task in ["w1-t1", "w1-t2", "w1-t3"] {
        world.complete(task);
    }
    let merge =
        world.plan.jobs.iter().find(|job| matches!(job.purpose, Purpose::Merge { .. })).expect("a merge");
    let text = &merge.brief.as_ref().expect("a brief").text;
    assert!(text.contains("a.rs: changed by w1-t2 and by w1-t1"), "{text}");
    let job = merge.id;
    world.step(Event::JobEnded { job, text: "conflict".into(), success: false, usage: None }).unwrap();
    assert!(world.plan.questions[0].text.contains("a.rs: changed by w1-t2 and by w1-t1"));
}

#[test]
fn drafts_of_several_planners_are_merged_by_one() {
    let empty = PlanFile::parse("Goal.\n").expect("a plan");
    let mut world = World::new(Config { planners: 3, ..Config::default() });
    (world.plan, world.file) = (Plan::new(empty.clone()), empty);
    world.signal("plan_start", "");
    assert_eq!(world.running(), ["planner draft-1", "planner draft-2", "planner draft-3"]);
    assert!(world.try_signal("plan_start", "").unwrap().ignored.is_some());
    world.signal("planner_draft_finished", r#"{"planner_id": 2}"#);
    world.signal("planner_draft_finished", r#"{"planner_id": "planner-3"}"#);
    assert_eq!(world.running(), ["planner draft-1"]);
    // One that says nothing and ends well has its draft too.
    world.says(Role::Planner, "draft-1", "I wrote it.");
    assert_eq!(world.running(), ["planner plan"]);
    let brief = brief_of(&world, Role::Planner, "plan");
    assert!(brief.why == StartReason::MergeDrafts && brief.text.contains("drafts/draft-3.md"), "{brief:?}");
    world.file = file();
    world.signal("planner_finished", "");
    assert_eq!(world.plan.state, PlanState::Implementing);
    assert_eq!(world.plan.wave, 1);
    // A planner that finishes the plan alone settles the others.
    let empty = PlanFile::parse("Goal.\n").expect("a plan");
    let mut world = World::new(Config { planners: 2, auto_implement: false, ..Config::default() });
    (world.plan, world.file) = (Plan::new(empty.clone()), empty);
    world.signal("plan_start", "");
    world.file = file();
    world.signal("planner_finished", "");
    assert_eq!((world.plan.state, world.running().len(), world.plan.works.len()), (PlanState::Ready, 0, 0));
}

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
fn what_nobody_understands() {
    let mut world = World::markers(Config::default());
    for why in [
        StartReason::Checkpoint,
        StartReason::Checkpoint,
        StartReason::Anew,
        StartReason::Checkpoint,
        StartReason::Checkpoint,
    ] {
        world.says(Role::Developer, "w1-t1", "I am done!");
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
fn whoever_is_asked_where_it_stands_may_say_so() {
    let mut world = World::markers(Config::default());
    let brief = |world: &World| {
        let job = world.job(Role::Developer, "w1-t1");
        world.plan.jobs.iter().find(|other| other.id == job).unwrap().brief.clone().unwrap()
    };
    let stands = "CHECKPOINT: w1-t1\n\nProgress: half of it\n";
    // Asked or not, nobody stands somewhere for ever.
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
    assert!(text.contains("CHECKPOINT: w1-t1"), "it is told how to answer: {text}");
}

#[test]
fn what_cannot_be_completed_waits_until_others_have_gone_first() {
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

/// What may happen, by choice among what there is.
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
    // Nobody waits in a circle.
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

/// Somebody who does all well: whatever happened before, the plan gets done.
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
                // What was emitted and lost by the test: whoever emits it again.
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
    fn whatever_happens(config in config(), branches: bool, choices in prop::collection::vec(choice(), 0..60)) {
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
