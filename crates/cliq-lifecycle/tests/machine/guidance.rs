//! Guidance of people for the agents of a plan.

use cliq_lifecycle::{Command, Config, Event, Role, WorkId, brief};
use cliq_protocol::{NewSteering, Timestamp};

use super::world::World;

fn send(world: &mut World, id: &str, text: &str, task: Option<&str>) -> Result<(), String> {
    let new = NewSteering::new(id, "Ana", text, None).expect("a message");
    let message = new.received_at(Timestamp::from_unix_millis(0));
    let task = task.map(|task| task.parse::<WorkId>().expect("an id"));
    world.step(Event::Person(Command::Guide { message, task })).map(drop)
}

/// The brief of the job that works on a task.
fn brief_of(world: &World, role: Role, task: &str) -> String {
    let id = world.job(role, task);
    let job = world.plan.jobs.iter().find(|job| job.id == id).expect("a job");
    brief(&world.plan, "p", camino::Utf8Path::new("/p/plan.md"), job)
}

fn jobs(world: &World, id: &str) -> Vec<u64> {
    world.plan.guidance.iter().find(|guidance| guidance.message.id == id).expect("a message").jobs.clone()
}

#[test]
fn agents_that_start_later_receive_the_guidance_for_their_work() {
    let mut world = World::markers(Config::default());
    let first = world.job(Role::Developer, "w1-t1");
    send(&mut world, "m1", "for all", None).unwrap();
    send(&mut world, "m2", "for the second", Some("w1-t2")).unwrap();
    assert!(!brief_of(&world, Role::Developer, "w1-t1").contains("for all"), "it has started before");
    assert_eq!((jobs(&world, "m1"), jobs(&world, "m2")), (vec![], vec![]));
    world.says(Role::Developer, "w1-t1", "READY_FOR_REVIEW: w1-t1");
    let text = brief_of(&world, Role::Critic, "w1-t1");
    assert!(text.contains("### From Ana at 1970-01-01T00:00:00.000Z\n\n> for all"), "{text}");
    assert!(text.contains("does not replace it") && !text.contains("for the second"), "{text}");
    let critic = world.job(Role::Critic, "w1-t1");
    assert!(jobs(&world, "m1").contains(&critic) && !jobs(&world, "m1").contains(&first));
    // Each job receives a message once.
    let mut all = jobs(&world, "m1");
    all.dedup();
    assert_eq!(all, jobs(&world, "m1"));
}

#[test]
fn guidance_outside_of_the_rules_is_refused() {
    let mut world = World::markers(Config::default());
    assert!(send(&mut world, "m1", "x", Some("w9-t9")).unwrap_err().contains("no task w9-t9"));
    send(&mut world, "m1", "x", None).unwrap();
    send(&mut world, "m1", "x", None).unwrap();
    assert!(send(&mut world, "m1", "y", None).unwrap_err().contains("another message with the id `m1`"));
    assert!(send(&mut world, "m1", "x", Some("plan")).unwrap_err().contains("another message"));
    for n in 1..200 {
        send(&mut world, &format!("n{n}"), "x", None).unwrap();
    }
    assert!(send(&mut world, "last", "x", None).unwrap_err().contains("200 messages"));
    assert_eq!(world.plan.guidance.len(), 200);
    world.step(Event::Person(Command::Cancel)).unwrap();
    assert!(send(&mut world, "last", "x", None).unwrap_err().contains("takes no messages"));
    send(&mut world, "m1", "x", None).unwrap();
}
