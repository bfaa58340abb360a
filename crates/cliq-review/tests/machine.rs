//! Properties of the machine: one decision at most, nothing changes after it, every schedule ends, `all` needs each member.

use std::collections::BTreeSet;

use cliq_protocol::Timestamp;
use cliq_protocol::{Object, Outcome as GateOutcome, PhaseName, ReviewSpec, Reviewers};
use cliq_review::{
    Answer, Channel, Choice, Event, LinkToken, NewReview, NoticeKind, NoticeState, Outcome, Refusal, Review,
    ReviewState, Via,
};
use proptest::prelude::*;
use serde_json::json;

const DAY: i64 = 86_400_000;

fn phase(name: &str) -> PhaseName {
    PhaseName::parse(name).expect("a name")
}

fn review(block: serde_json::Value) -> Review {
    let spec = ReviewSpec::from_value(block).expect("a review block");
    let channel = |text: &str| Channel::parse(text).expect("a channel");
    let channels = spec
        .reviewers
        .names()
        .into_iter()
        .map(|name| (name.to_owned(), vec![channel("slack:team")]))
        .collect();
    Review::new(NewReview {
        id: "0123456789abcdef0123456789abcdef".parse().expect("an id"),
        project: "/work/shop".into(),
        team: "@shop/web".parse().expect("a name"),
        title: None,
        run_id: cliq_protocol::RunId::parse("r1").expect("an id"),
        phase: phase("approval"),
        iteration: 1,
        max_iterations: 3,
        evaluation: 1,
        attempt: 1,
        reviewers: spec.reviewers.clone(),
        spec,
        route_targets: vec![phase("developer"), phase("writer")],
        channels,
        links: Vec::new(),
        now: Timestamp::from_unix_millis(0),
    })
}

fn answer(reviewer: &str, choice: Choice, words: &str) -> Event {
    let reason = (!words.is_empty()).then(|| words.to_owned());
    let (reviewer, actor) = (reviewer.to_owned(), reviewer.to_owned());
    Event::Answer(Answer { reviewer, actor, via: Via::CommandLine, choice, reason, inputs: Object::new() })
}

fn reviewers() -> impl Strategy<Value = serde_json::Value> {
    let name = prop_oneof![Just("ann"), Just("bob"), Just("cleo"), Just("dan")].prop_map(|name| json!(name));
    let leaf = prop_oneof![name.clone(), name];
    leaf.prop_recursive(3, 12, 3, |inner| {
        (any::<bool>(), prop::collection::vec(inner, 1..4))
            .prop_map(|(all, members)| json!({"policy": if all { "all" } else { "any" }, "members": members}))
    })
}

fn event() -> impl Strategy<Value = Event> {
    let name = prop_oneof![Just("ann"), Just("bob"), Just("cleo"), Just("dan"), Just("eve")];
    let to = prop_oneof![Just(None), Just(Some(phase("developer"))), Just(Some(phase("nowhere")))];
    let choice = prop_oneof![
        6 => Just(Choice::Approve),
        1 => to.prop_map(|to| Choice::RequestChanges { to }),
        1 => Just(Choice::Reject),
    ];
    prop_oneof![
        6 => (name, choice, prop_oneof![Just(""), Just("words")]).prop_map(|(who, choice, words)| answer(who, choice, words)),
        3 => Just(Event::Clock),
        1 => Just(Event::Cancel { reason: "not needed".into() }),
        1 => (0..3_usize).prop_map(|n| Event::NoticeSettled { id: format!("0123456789abcdef0123456789abcdef-q{n}"), state: NoticeState::Sent }),
    ]
}

proptest! {
    #[test]
    fn one_decision_and_then_nothing_changes(
        who in reviewers(),
        remind in any::<bool>(),
        events in prop::collection::vec((event(), 0..4 * 3_600_000_i64), 1..40),
    ) {
        let mut block = json!({"reviewer": who, "timeout": "1d"});
        if remind {
            block["remind_every"] = json!("2h");
        }
        let mut review = review(block);
        let (mut now, mut ended, mut told) = (0, None::<ReviewState>, BTreeSet::new());
        for (event, pause) in events {
            now += pause;
            let before = review.clone();
            match review.step(&event, Timestamp::from_unix_millis(now)) {
                Ok(Some(next)) => review = next,
                Ok(None) => {}
                Err(refusal) => {
                    if let Some(ended) = &ended {
                        let right = match ended {
                            ReviewState::Decided { .. } => matches!(refusal, Refusal::Decided(_)),
                            ReviewState::Expired { .. } => matches!(refusal, Refusal::Expired(_)),
                            _ => matches!(refusal, Refusal::Cancelled(_)),
                        };
                        prop_assert!(right, "{refusal}");
                    }
                }
            }
            if let Some(ended) = &ended {
                // After the end only the record of who was told what changes.
                prop_assert_eq!(ended, &review.state);
                prop_assert_eq!(&before.answers, &review.answers);
                prop_assert_eq!(before.notices.len(), review.notices.len());
            } else if !review.is_pending() {
                ended = Some(review.state.clone());
            }
            // No reviewer approves twice, and only reviewers approve.
            let names: Vec<_> = review.answers.iter().map(|a| a.answer.reviewer.clone()).collect();
            prop_assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
            prop_assert!(names.iter().all(|name| review.reviewers.names().contains(&name.as_str())));
            // A notice keeps its id, and has it alone.
            let ids: BTreeSet<_> = review.notices.iter().map(|n| n.id.clone()).collect();
            prop_assert_eq!(ids.len(), review.notices.len());
            told.extend(ids);
            // An approval is one of enough people.
            let approves = |name: &str| review.answers.iter().any(|a| a.answer.reviewer == name && a.answer.choice == Choice::Approve);
            let enough = review.reviewers.is_satisfied(&approves);
            prop_assert_eq!(enough, matches!(review.state, ReviewState::Decided { outcome: Outcome::Approved, .. }) || (enough && !review.is_pending()));
            // Who is waited for could still change something.
            prop_assert_eq!(review.waits_for().is_empty(), !review.is_pending());
        }
        // Every schedule ends: time alone ends it.
        if review.is_pending() {
            review = review.step(&Event::Clock, Timestamp::from_unix_millis(now + DAY)).expect("no refusal").expect("it expires");
        }
        let verdict = review.verdict();
        prop_assert_eq!(verdict.is_none(), matches!(review.state, ReviewState::Cancelled { .. }));
        if let Some(verdict) = verdict {
            let right = match &review.state {
                ReviewState::Decided { outcome: Outcome::Approved, .. } => verdict.outcome == GateOutcome::Pass,
                ReviewState::Decided { outcome: Outcome::ChangesRequested { to }, .. } => verdict.outcome == GateOutcome::Route(to.clone()),
                _ => verdict.outcome == GateOutcome::Escalate,
            };
            prop_assert!(right);
        }
        // What is stored is read as it was.
        let text = serde_json::to_string(&review).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<Review>(&text).expect("a review"), review);
    }

    #[test]
    fn all_needs_each_member(approvals in prop::collection::vec(0..4_usize, 0..8)) {
        let names = ["ann", "bob", "cleo", "dan"];
        let mut review = review(json!({"reviewer": {"policy": "all", "members": names}}));
        let mut seen = BTreeSet::new();
        for n in approvals {
            let Some(name) = names.get(n) else { continue };
            if let Ok(Some(next)) = review.step(&answer(name, Choice::Approve, ""), Timestamp::from_unix_millis(1)) {
                review = next;
                seen.insert(n);
            }
            prop_assert_eq!(review.is_pending(), seen.len() < 4);
        }
    }

    #[test]
    fn reviewers_are_read_as_they_are_written(who in reviewers()) {
        let read = Reviewers::from_value(who, "reviewer").expect("reviewers");
        prop_assert_eq!(&Reviewers::from_value(read.to_value(), "reviewer").expect("reviewers"), &read);
    }
}

#[test]
fn reminders_go_to_who_has_not_answered_and_missed_ones_are_one() {
    let mut review = review(
        json!({"reviewer": {"policy": "all", "members": ["ann", "bob"]}, "remind_every": "1h", "timeout": "2d"}),
    );
    assert_eq!(
        review.notices.iter().map(|n| n.kind).collect::<Vec<_>>(),
        [NoticeKind::Request, NoticeKind::Request]
    );
    assert_eq!(review.next_due(), Some(Timestamp::from_unix_millis(3_600_000)));
    assert_eq!(review.step(&Event::Clock, Timestamp::from_unix_millis(3_599_999)), Ok(None));
    review =
        review.step(&answer("ann", Choice::Approve, ""), Timestamp::from_unix_millis(1)).unwrap().unwrap();
    review = review.step(&Event::Clock, Timestamp::from_unix_millis(10 * 3_600_000 + 5)).unwrap().unwrap();
    let reminders: Vec<_> = review
        .notices
        .iter()
        .filter(|n| n.kind == NoticeKind::Reminder)
        .map(|n| n.reviewer.as_str())
        .collect();
    assert_eq!(reminders, ["bob"]);
    assert_eq!(review.step(&Event::Clock, Timestamp::from_unix_millis(10 * 3_600_000 + 6)), Ok(None));
    review = review
        .step(&answer("bob", Choice::Approve, "fine"), Timestamp::from_unix_millis(10 * 3_600_000 + 7))
        .unwrap()
        .unwrap();
    let verdict = review.verdict().unwrap();
    assert_eq!(verdict.reason.as_deref(), Some("approved by ann and bob: fine"));
    assert!(review.planned_notices().all(|n| n.kind == NoticeKind::Outcome));
}

#[test]
fn a_request_for_changes_needs_words_and_a_phase() {
    let review = review(json!({"reviewer": "ann"}));
    let ask = |to: Option<&str>, words| {
        review.step(
            &answer("ann", Choice::RequestChanges { to: to.map(phase) }, words),
            Timestamp::from_unix_millis(1),
        )
    };
    assert_eq!(ask(Some("developer"), ""), Err(Refusal::NoWords));
    assert_eq!(ask(Some("developer"), "  \n "), Err(Refusal::NoWords));
    assert!(ask(None, "x").unwrap_err().to_string().contains("developer, writer"));
    assert!(ask(Some("other"), "x").unwrap_err().to_string().contains("`other`"));
    let decided = ask(Some("writer"), "shorter, please").unwrap().unwrap();
    let verdict = decided.verdict().unwrap();
    assert_eq!(
        (verdict.to_string().as_str(), verdict.reason.as_deref()),
        ("ROUTE:writer", Some("shorter, please"))
    );
}

#[test]
fn inputs_have_the_types_of_the_form() {
    let review = review(json!({"reviewer": "ann", "inputs": [
        {"name": "version", "label": "Version", "required": true},
        {"name": "count", "type": "number", "default": 3},
        {"name": "sure", "type": "boolean"},
        {"name": "channel", "choices": ["stable", "beta"], "default": "beta"},
    ]}));
    let with = |inputs: serde_json::Value, choice| {
        let inputs = inputs.as_object().cloned().unwrap_or_default();
        let answer = Answer {
            reviewer: "ann".into(),
            actor: "ann".into(),
            via: Via::Link,
            choice,
            reason: Some("w".into()),
            inputs,
        };
        review.step(&Event::Answer(answer), Timestamp::from_unix_millis(1))
    };
    let said = with(json!({"count": "x", "sure": "maybe", "other": 1}), Choice::Approve).unwrap_err();
    let Refusal::Inputs(problems) = said else { panic!("{said}") };
    assert_eq!(problems.len(), 4, "{problems:?}");
    let decided =
        with(json!({"version": "1.2", "count": "4.5", "sure": "yes"}), Choice::Approve).unwrap().unwrap();
    assert_eq!(
        json!(decided.inputs()),
        json!({"version": "1.2", "count": 4.5, "sure": true, "channel": "beta"})
    );
    // Who asks for changes need not fill in what an approval needs.
    assert!(with(json!({}), Choice::RequestChanges { to: Some(phase("writer")) }).is_ok());
}

#[test]
fn reviewer_must_be_named_if_ambiguous() {
    let any = review(json!({"reviewer": ["ann", "bob"]}));
    assert_eq!(any.reviewer_for(None, "root").unwrap(), "ann");
    assert_eq!(any.reviewer_for(None, "bob").unwrap(), "bob");
    assert!(any.reviewer_for(Some("eve"), "root").is_err());
    let all = review(json!({"reviewer": {"policy": "all", "members": ["ann", "bob"]}}));
    assert!(matches!(all.reviewer_for(None, "root"), Err(Refusal::WhichReviewer { .. })));
    let all = all.step(&answer("ann", Choice::Approve, ""), Timestamp::from_unix_millis(1)).unwrap().unwrap();
    assert_eq!(all.reviewer_for(None, "root").unwrap(), "bob");
    assert_eq!(
        all.step(&answer("ann", Choice::Reject, ""), Timestamp::from_unix_millis(2)),
        Err(Refusal::Answered("ann".into()))
    );
}

#[test]
fn a_token_is_of_one_reviewer() {
    let mut review = review(json!({"reviewer": ["ann", "bob"]}));
    let token = LinkToken::random().unwrap();
    review.links = vec![cliq_review::Link { reviewer: "bob".into(), sha256: token.hash() }];
    assert_eq!(review.reviewer_of(&token), Some("bob"));
    assert_eq!(review.reviewer_of(&LinkToken::random().unwrap()), None);
    assert!(!format!("{token:?}").contains(token.reveal()));
}
