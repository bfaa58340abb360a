//! Tasks that need the same file, and drafts of several planners.

use cliq_lifecycle::{
    Config, Event, Plan, PlanFile, PlanState, Purpose, Role, Slots, Stage, StartReason, WaitingFor, WorkId,
};

use super::world::{World, file};

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
    assert!(matches!(world.stage("w1-t2"), Stage::Running { .. }), "no task holds it");
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
    // No task that could change the file holds it any more.
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
