//! The life cycle of a run, for every order of events.

use cliq_model::{
    Death, LastRun, Lifecycle, LifecycleEffect, LifecycleEvent, MAX_RECOVERIES, RecordedRun, Recovery, Run,
    RunOrigin, RunOutcome, RunState,
};
use proptest::prelude::*;

fn last_run() -> LastRun {
    let run = Run::new(
        cliq_fs::new_run_id(),
        "@a/b".parse().expect("a name"),
        RunOrigin::Server,
        "/w".into(),
        cliq_protocol::Timestamp::UNIX_EPOCH,
    );
    LastRun::check(&run, RecordedRun::None, None).expect("no other run is there")
}

fn event() -> impl Strategy<Value = LifecycleEvent> {
    let end = prop::sample::select(RunOutcome::ALL.to_vec());
    let death = prop_oneof![Just(Death::NeverBegan), Just(Death::ProjectBusy), Just(Death::Died)];
    let recovery = prop_oneof![Just(Recovery::Fail), Just(Recovery::Resume)];
    prop_oneof![
        3 => Just(LifecycleEvent::Dispatched),
        3 => Just(LifecycleEvent::Began),
        2 => end.prop_map(LifecycleEvent::Ended),
        2 => (death, recovery).prop_map(|(death, recovery)| LifecycleEvent::Lost(death, recovery)),
        2 => Just(LifecycleEvent::Parked),
        2 => Just(LifecycleEvent::Woken),
        1 => Just(LifecycleEvent::CancelRequested),
        2 => Just(LifecycleEvent::Resumed(last_run())),
        1 => Just(LifecycleEvent::TakenUp),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_order_of_events_keeps_the_rules(events in prop::collection::vec(event(), 0..60)) {
        let mut life = Lifecycle::default();
        let mut starts_since_queued = 0;
        for event in events {
            let before = life.clone();
            match life.step(event) {
                Err(refused) => {
                    prop_assert_eq!(&life, &before, "a refused event changes nothing");
                    prop_assert_eq!(refused.state, before.state);
                }
                Ok(effects) => {
                    if before.state.is_final() {
                        let left = match event {
                            LifecycleEvent::Resumed(_) => RunState::Queued,
                            LifecycleEvent::TakenUp => RunState::Running,
                            _ => panic!("an end is left only by a resume"),
                        };
                        prop_assert_eq!(life.state, left);
                    }
                    if life.state == RunState::Queued || event == LifecycleEvent::TakenUp {
                        starts_since_queued = 0;
                    }
                    let starts = effects.iter().filter(|effect| **effect == LifecycleEffect::Start).count();
                    starts_since_queued += starts;
                    prop_assert!(starts <= 1);
                    prop_assert!(starts == 0 || life.state == RunState::Starting, "what is started is active");
                    prop_assert!(starts_since_queued <= 1 + MAX_RECOVERIES as usize, "recoveries are bounded");
                    // What began is never begun a second time: it is resumed.
                    prop_assert!(starts == 0 || life.resume || !before.began);
                    prop_assert!(life.state != RunState::Waiting || life.began && life.parked && !life.cancel_requested);
                    prop_assert!(before.state != RunState::Waiting || starts == 0, "a parked run takes its turn in the queue");
                    prop_assert!(!life.parked || !matches!(life.state, RunState::Running) && !life.state.is_final());
                    prop_assert!(!effects.contains(&LifecycleEffect::RemoveWorkspace) || life.state == RunState::Failed);
                    prop_assert!(!effects.contains(&LifecycleEffect::SendCancel) || life.state == RunState::Running);
                }
            }
        }
    }

    /// No event changes an outcome. Only the orchestrator itself, which has begun the run again, gives it another one.
    #[test]
    fn no_sequence_of_events_overwrites_an_outcome(events in prop::collection::vec(event(), 0..80)) {
        let mut life = Lifecycle::default();
        let mut outcome = None;
        for event in events {
            if life.step(event).is_err() {
                continue;
            }
            if matches!(event, LifecycleEvent::Began | LifecycleEvent::TakenUp) {
                outcome = None;
            }
            if let Some(found) = life.state.outcome() {
                prop_assert_eq!(*outcome.get_or_insert(found), found, "after {:?}", event);
                prop_assert_eq!(life.former, None);
            }
            // The former outcome is known for as long as the attempt may come to nothing.
            if outcome.is_some() && !life.state.is_final() {
                prop_assert_eq!(life.former, outcome);
            }
        }
    }

    /// After a request to cancel no orchestrator is started any more, and each way to lose the run ends it. Only a parked run is started
    /// again: its orchestrator cancels the reviews.
    #[test]
    fn a_cancelled_run_is_not_started_again(events in prop::collection::vec(event(), 0..40)) {
        let mut life = Lifecycle::default();
        let _ = life.step(LifecycleEvent::Dispatched);
        let _ = life.step(LifecycleEvent::CancelRequested);
        for event in events.into_iter().filter(|event| !matches!(event, LifecycleEvent::Resumed(_) | LifecycleEvent::TakenUp)) {
            let was_parked = life.parked;
            let effects = life.step(event).unwrap_or_default();
            prop_assert!(was_parked || !effects.contains(&LifecycleEffect::Start));
            prop_assert!(life.parked || life.state != RunState::Queued);
            prop_assert!(life.state != RunState::Waiting);
        }
    }
}

#[test]
fn a_run_that_began_is_resumed_and_not_begun_again() {
    let mut life = Lifecycle::default();
    for event in [
        LifecycleEvent::Dispatched,
        LifecycleEvent::Began,
        LifecycleEvent::Ended(RunOutcome::Escalated),
        LifecycleEvent::Resumed(last_run()),
    ] {
        life.step(event).expect("it fits");
    }
    assert!(life.resume && life.state == RunState::Queued);
}
