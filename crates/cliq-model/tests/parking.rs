//! Parking, waking, and the turns of woken and new runs.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use std::collections::VecDeque;

use cliq_model::{Cause, Change, LifecycleEvent, Queue, Run, RunOrigin, RunState, Turns, park, wake};
use cliq_protocol::Timestamp;
use proptest::prelude::*;

const UNTIL: Timestamp = Timestamp::from_unix_millis(1_767_312_000_000);
const NOW: Timestamp = Timestamp::from_unix_millis(1_767_225_600_000);

fn run(origin: RunOrigin) -> Run {
    let mut run = Run::new(cliq_fs::new_run_id(), "@a/b".parse().unwrap(), origin, "/w".into(), NOW);
    run.life.step(LifecycleEvent::Dispatched).unwrap();
    run.life.step(LifecycleEvent::Began).unwrap();
    run.replica = Some("replica-1".into());
    run
}

fn parked(run: Run) -> Change {
    let mut change = Change::of(run);
    park(&mut change, &["r1".to_owned(), "r2".to_owned()], UNTIL, NOW).unwrap();
    change
}

fn events(change: &Change) -> Vec<&str> {
    change.events.iter().map(cliq_model::NewRunEvent::data).collect()
}

#[test]
fn parked_run_holds_nothing_and_knows_its_reviews() {
    let change = parked(run(RunOrigin::Server));
    assert_eq!(change.run.life.state, RunState::Waiting);
    assert_eq!((change.run.replica.as_deref(), change.run.wake_at), (None, Some(UNTIL)));
    assert_eq!(change.parked_on, ["r1", "r2"]);
    let expected = format!(r#"{{"event":"run_waiting","on":["r1","r2"],"until":"{UNTIL}","ts":"{NOW}"}}"#);
    let same: serde_json::Value = serde_json::from_str(events(&change)[0]).unwrap();
    assert_eq!(same, serde_json::from_str::<serde_json::Value>(&expected).unwrap());
    assert!(!change.run.life.state.is_active() && !change.run.life.state.is_final());
}

#[test]
fn run_of_a_person_is_not_woken() {
    let change = parked(run(RunOrigin::Project));
    assert_eq!(change.run.life.state, RunState::Waiting);
    assert_eq!((change.run.wake_at, change.parked_on), (None, Vec::new()));
}

#[test]
fn woken_run_is_resumed_in_its_turn() {
    for (cause, by) in [(Cause::Review { review: "r1".into() }, "review"), (Cause::Time, "time")] {
        let change = wake(parked(run(RunOrigin::Delegated)).run, cause.clone(), NOW).unwrap();
        assert_eq!(change.run.life.state, RunState::Queued);
        assert!(change.run.life.resume && change.run.life.parked);
        assert_eq!((change.run.wake_at, change.run.woken_at), (None, Some(NOW)));
        assert!(events(&change)[0].contains(&format!(r#""by":"{by}""#)), "{:?}", change.events);
        assert!(change.parked_on.is_empty());
        assert!(wake(change.run, cause, NOW).is_err(), "woken twice");
    }
}

#[test]
fn only_a_running_run_parks() {
    let mut change = Change::of(parked(run(RunOrigin::Server)).run);
    assert!(park(&mut change, &[], UNTIL, NOW).is_err());
    assert!(wake(run(RunOrigin::Server), Cause::Time, NOW).is_err());
}

#[test]
fn run_that_parks_as_it_is_cancelled_is_queued_to_be_cancelled() {
    let mut cancelled = run(RunOrigin::Server);
    cancelled.life.step(LifecycleEvent::CancelRequested).unwrap();
    let mut change = parked(cancelled);
    assert_eq!((change.run.life.state, change.run.wake_at), (RunState::Queued, None));
    assert!(change.run.life.parked && change.run.woken_at.is_some() && change.parked_on.is_empty());
    change.run.life.step(LifecycleEvent::Dispatched).unwrap();
    assert!(change.run.life.resume, "its orchestrator cancels the reviews");
}

#[test]
fn cancelled_while_parked_or_woken() {
    let mut waiting = parked(run(RunOrigin::Server)).run;
    waiting.life.step(LifecycleEvent::CancelRequested).unwrap();
    assert_eq!(waiting.life.state, RunState::Queued);
    assert!(waiting.life.cancel_requested && waiting.life.resume);
    waiting.life.step(LifecycleEvent::CancelRequested).unwrap();
    assert_eq!(waiting.life.state, RunState::Queued, "a second request changes nothing");
    waiting.life.step(LifecycleEvent::Dispatched).unwrap();
    let effects = waiting.life.step(LifecycleEvent::Began).unwrap();
    assert_eq!(effects, [cliq_model::LifecycleEffect::SendCancel]);
}

#[test]
fn parked_run_can_be_resumed_by_a_person() {
    let mut run = parked(run(RunOrigin::Project)).run;
    run.life.step(LifecycleEvent::TakenUp).unwrap();
    assert_eq!(run.life.state, RunState::Running);
    assert!(!run.life.parked);
}

/// Runs with telling numbers: woken ones below 1000.
fn queue(woken: u32, new: u32) -> Queue {
    let numbered = |numbers: std::ops::Range<u32>| -> VecDeque<Run> {
        numbers.map(|n| Run { caller: n.to_string(), ..run(RunOrigin::Server) }).collect()
    };
    Queue { woken: numbered(0..woken), new: numbered(1000..1000 + new) }
}

#[test]
fn heads_that_cannot_start_are_skipped() {
    let mut queue = queue(3, 3);
    queue.skip(|run| ["0", "1", "1000", "1002"].contains(&run.caller.as_str()));
    let left = |runs: &VecDeque<Run>| runs.iter().map(|run| run.caller.clone()).collect::<Vec<_>>();
    assert_eq!(left(&queue.woken), ["2"]);
    assert_eq!(left(&queue.new), ["1001", "1002"], "only the heads");
    assert!(!queue.is_empty() && Queue::default().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each run gets a place, each kind in its order; woken runs are ahead, but not twice in a row while new runs are queued.
    #[test]
    fn turns_are_fair(woken in 0_u32..30, new in 0_u32..30) {
        let (mut queue, mut turns, mut order) = (queue(woken, new), Turns::default(), Vec::new());
        loop {
            let (has_woken, has_new) = (!queue.woken.is_empty(), !queue.new.is_empty());
            let Some(run) = turns.next(&mut queue) else {
                prop_assert!(!has_woken && !has_new, "a run is left");
                break;
            };
            let number: u32 = run.caller.parse().unwrap();
            let is_woken = number < 1000;
            if has_woken && has_new {
                let last_was_woken = order.last().is_some_and(|last| *last < 1000);
                prop_assert_eq!(is_woken, !last_was_woken);
            }
            order.push(number);
        }
        let (first, second): (Vec<u32>, Vec<u32>) = order.into_iter().partition(|number| *number < 1000);
        prop_assert_eq!(first, (0..woken).collect::<Vec<_>>());
        prop_assert_eq!(second, (1000..1000 + new).collect::<Vec<_>>());
    }
}
