//! Properties of the wait for a review, with a store that loses answers, reviewers, and deliveries that take their time.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cliq_protocol::{Object, PhaseName, ReviewSpec, Timestamp, WaitingReview};
use cliq_review::{
    Answer, Channel, Choice, Delivery, Event, Moment, NewReview, NoticeState, Pages, Review, ReviewWait, Via,
    WaitEffect, WaitEvent, Waker,
};
use proptest::prelude::*;
use serde_json::json;

fn review() -> Review {
    let spec = ReviewSpec::from_value(json!({
        "reviewer": {"policy": "all", "members": ["ann", "bob"]}, "timeout": "1h", "remind_every": "10m",
    }))
    .unwrap();
    let channel = || vec![Channel::parse("slack:team").unwrap()];
    Review::new(NewReview {
        id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
        project: "/work/shop".into(),
        team: "@shop/web".parse().unwrap(),
        title: None,
        run_id: "r1".parse().unwrap(),
        phase: PhaseName::parse("approval").unwrap(),
        iteration: 1,
        max_iterations: 3,
        evaluation: 1,
        attempt: 1,
        reviewers: spec.reviewers.clone(),
        channels: spec.reviewers.names().into_iter().map(|name| (name.to_owned(), channel())).collect(),
        spec,
        route_targets: Vec::new(),
        links: Vec::new(),
        now: Timestamp::from_unix_millis(0),
    })
}

/// Fate of one request to the world.
#[derive(Debug, Clone, Copy)]
enum Luck {
    Good,
    /// The store does not answer.
    Away,
    /// A reviewer answers before the request.
    Answer(&'static str),
    /// Deliveries that have started end before the request.
    Deliver,
    /// The run is cancelled before the agent wakes.
    Cancel,
}

fn luck() -> impl Strategy<Value = Luck> {
    prop_oneof![
        8 => Just(Luck::Good),
        2 => Just(Luck::Away),
        1 => prop_oneof![Just(Luck::Answer("ann")), Just(Luck::Answer("bob"))],
        3 => Just(Luck::Deliver),
        1 => any::<bool>().prop_map(|cancels| if cancels { Luck::Cancel } else { Luck::Good }),
    ]
}

/// World around a wait, and what it has seen.
struct World {
    stored: Review,
    millis: i64,
    deliveries: BTreeMap<String, Delivery>,
    requested: BTreeSet<String>,
    reported: Option<WaitingReview>,
    is_away: bool,
    is_cancelled: bool,
    /// Effects since the last pause.
    busy: usize,
}

impl World {
    fn now(&self) -> Moment {
        let uptime = Duration::from_millis(u64::try_from(self.millis).unwrap());
        Moment { time: Timestamp::from_unix_millis(self.millis), uptime }
    }

    fn apply(&mut self, event: &Event) -> Option<Box<Review>> {
        if let Ok(Some(next)) = self.stored.step(event, Timestamp::from_unix_millis(self.millis)) {
            self.stored = next;
        }
        Some(Box::new(self.stored.clone()))
    }

    fn befall(&mut self, luck: Luck) {
        match luck {
            Luck::Good | Luck::Away => {}
            Luck::Answer(who) => {
                let (reviewer, actor) = (who.to_owned(), who.to_owned());
                let (via, choice, reason) = (Via::CommandLine, Choice::Approve, None);
                let answer = Answer { reviewer, actor, via, choice, reason, inputs: Object::new() };
                self.apply(&Event::Answer(answer));
            }
            Luck::Deliver => {
                for delivery in self.deliveries.values_mut() {
                    *delivery = Delivery::Settled(NoticeState::Sent);
                }
            }
            Luck::Cancel => self.is_cancelled = true,
        }
    }

    fn woken(&mut self) -> WaitEvent {
        self.busy = 0;
        if self.is_cancelled { WaitEvent::Cancelled } else { WaitEvent::Woken { now: self.now() } }
    }

    /// Performs an effect. Returns `None` at the end.
    fn perform(&mut self, effect: WaitEffect, luck: Luck) -> Result<Option<WaitEvent>, TestCaseError> {
        self.befall(luck);
        self.busy += 1;
        prop_assert!(self.busy < 60, "the wait does not rest");
        let is_away = matches!(luck, Luck::Away);
        Ok(Some(match effect {
            WaitEffect::Locate { asks_waker } => WaitEvent::Located {
                pages: Pages::At("http://pages".to_owned()),
                waker: (asks_waker && !is_away).then_some(Waker::Present),
            },
            WaitEffect::Fetch if is_away => WaitEvent::Unreachable { reason: "away".to_owned() },
            WaitEffect::Fetch => {
                self.is_away = false;
                WaitEvent::Fetched { review: Box::new(self.stored.clone()), now: self.now() }
            }
            WaitEffect::PauseAway { reason } => {
                prop_assert_eq!(reason.is_some(), !self.is_away, "an outage is reported once");
                self.is_away = true;
                self.millis += 2_000;
                self.woken()
            }
            WaitEffect::Apply(_) if is_away => WaitEvent::Applied(None),
            WaitEffect::Apply(event) => WaitEvent::Applied(self.apply(&event)),
            WaitEffect::Check(notice) => {
                let delivery = self.deliveries.get(&notice.id).cloned().unwrap_or(Delivery::None);
                WaitEvent::Checked { delivery, now: self.now() }
            }
            WaitEffect::Request(notice) => {
                prop_assert!(self.requested.insert(notice.id.clone()), "{} is requested again", notice.id);
                self.deliveries.insert(notice.id, Delivery::Begun);
                WaitEvent::Done
            }
            WaitEffect::Report { waiting, .. } => {
                prop_assert_ne!(self.reported.as_ref(), Some(&*waiting), "a report that changes nothing");
                self.reported = Some(*waiting);
                WaitEvent::Done
            }
            WaitEffect::Pause { due } => {
                prop_assert!(self.reported.is_some(), "a pause before the first report");
                prop_assert_eq!(self.reported.as_ref().unwrap().due.is_some(), due.is_some());
                self.millis += 30_000;
                self.woken()
            }
            WaitEffect::Again => {
                let busy = self.busy;
                let event = self.woken();
                self.busy = busy;
                event
            }
            WaitEffect::End => {
                prop_assert!(self.is_cancelled);
                return Ok(None);
            }
            WaitEffect::Finish => {
                prop_assert!(!self.stored.is_pending());
                // Each notice of the end was requested or has its outcome.
                for notice in self.stored.planned_notices() {
                    prop_assert!(self.requested.contains(&notice.id), "{} was not requested", notice.id);
                }
                return Ok(None);
            }
        }))
    }
}

proptest! {
    /// For any answers, outages and deliveries: the wait ends with the review, requests each notice once, and reports each change once.
    #[test]
    fn wait_ends_with_its_review(lucks in prop::collection::vec(luck(), 1..300), waker in prop_oneof![Just(Waker::Present), Just(Waker::Unknown)]) {
        let stored = review();
        let mut wait = ReviewWait::new(stored.clone(), waker);
        let mut world = World {
            stored,
            millis: 0,
            deliveries: BTreeMap::new(),
            requested: BTreeSet::new(),
            reported: None,
            is_away: false,
            is_cancelled: false,
            busy: 0,
        };
        let mut event = world.woken();
        // The review expires after an hour: 120 pauses.
        for luck in lucks.into_iter().chain(std::iter::repeat_n(Luck::Good, 4_000)) {
            let effect = wait.step(event);
            match world.perform(effect, luck)? {
                Some(next) => event = next,
                None => return Ok(()),
            }
        }
        prop_assert!(false, "the wait does not end");
    }

    /// For any events in any order, also those that answer no effect: the wait does not panic, and finishes only after the end of the review.
    #[test]
    fn stray_events_do_no_harm(choices in prop::collection::vec((0u8..8, 0u64..7_200_000), 0..200)) {
        let mut wait = ReviewWait::new(review(), Waker::Unknown);
        for (which, millis) in choices {
            let now = Moment { time: Timestamp::from_unix_millis(i64::try_from(millis).unwrap()), uptime: Duration::from_millis(millis) };
            let effect = wait.step(match which {
                0 => WaitEvent::Woken { now },
                1 => WaitEvent::Located { pages: Pages::None, waker: Some(Waker::Absent) },
                2 => WaitEvent::Fetched { review: Box::new(wait.review().clone()), now },
                3 => WaitEvent::Unreachable { reason: String::new() },
                4 => WaitEvent::Applied(wait.review().step(&Event::Clock, now.time).ok().flatten().map(Box::new)),
                5 => WaitEvent::Checked { delivery: Delivery::Begun, now },
                6 => WaitEvent::Cancelled,
                _ => WaitEvent::Done,
            });
            prop_assert!(effect != WaitEffect::Finish || !wait.review().is_pending());
        }
    }
}
