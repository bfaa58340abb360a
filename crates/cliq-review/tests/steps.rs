//! Single steps of a review: limits, guards, and fixed words.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use cliq_protocol::Timestamp;
use cliq_protocol::{Object, PhaseName, ReviewSpec, Reviewers};
use cliq_review::{
    Answer, AuditReference, Channel, Choice, Comment, Content, Directory, DirectoryError, Event, Link,
    LinkToken, NewReview, NoticeKind, NoticeState, Refusal, Review, ReviewId, ReviewState, Via, next_record,
};
use serde_json::{Value, json};

const ID: &str = "0123456789abcdef0123456789abcdef";
const HOUR: i64 = 3_600_000;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(millis)
}

fn review_routing_to(block: Value, route_targets: &[&str]) -> Review {
    let spec = ReviewSpec::from_value(block).unwrap();
    let names: Vec<String> = spec.reviewers.names().into_iter().map(str::to_owned).collect();
    let channels = names.into_iter().map(|name| (name, vec![Channel::parse("slack:team").unwrap()]));
    Review::new(NewReview {
        id: ID.parse().unwrap(),
        project: "/work/shop".into(),
        team: "@shop/web".parse().unwrap(),
        title: None,
        run_id: cliq_protocol::RunId::parse("r1").expect("an id"),
        phase: PhaseName::parse("approval").unwrap(),
        iteration: 2,
        max_iterations: 3,
        evaluation: 5,
        attempt: 7,
        reviewers: spec.reviewers.clone(),
        spec,
        route_targets: route_targets.iter().map(|name| PhaseName::parse(name).unwrap()).collect(),
        channels: channels.collect(),
        links: Vec::new(),
        now: at(0),
    })
}

fn review(block: Value) -> Review {
    review_routing_to(block, &["developer", "writer"])
}

fn answer(reviewer: &str, choice: Choice, words: &str) -> Event {
    let reason = (!words.is_empty()).then(|| words.to_owned());
    let (reviewer, actor) = (reviewer.to_owned(), reviewer.to_owned());
    Event::Answer(Answer { reviewer, actor, via: Via::CommandLine, choice, reason, inputs: Object::new() })
}

fn approve(name: &str) -> Event {
    answer(name, Choice::Approve, "")
}

fn step(review: &Review, event: &Event, millis: i64) -> Review {
    review.step(event, at(millis)).unwrap().unwrap()
}

#[test]
fn deadline_is_the_first_moment_that_is_too_late() {
    let review = review(json!({"reviewer": "ann", "timeout": "1h"}));
    assert!(review.step(&approve("ann"), at(HOUR - 1)).is_ok());
    for late in [HOUR, HOUR + 1] {
        assert_eq!(review.step(&approve("ann"), at(late)), Err(Refusal::Expired(at(HOUR))));
    }
    assert_eq!(review.step(&Event::Clock, at(HOUR - 1)), Ok(None));
    assert_eq!(step(&review, &Event::Clock, HOUR).state, ReviewState::Expired { at: at(HOUR) });
}

#[test]
fn cancel_ends_a_pending_review_once() {
    let pending = review(json!({"reviewer": "ann"}));
    let cancel = Event::Cancel { reason: "not needed".to_owned() };
    let cancelled = step(&pending, &cancel, 3);
    assert_eq!(cancelled.state, ReviewState::Cancelled { at: at(3), reason: "not needed".to_owned() });
    assert_eq!(cancelled.step(&cancel, at(4)), Ok(None));
    assert_eq!(step(&pending, &approve("ann"), 3).step(&cancel, at(4)), Ok(None));
}

#[test]
fn links_are_replaced_only_while_the_review_is_pending() {
    let pending = review(json!({"reviewer": "ann"}));
    let links = vec![Link { reviewer: "ann".into(), sha256: "ab".into() }];
    let relink = Event::Relink { links: links.clone() };
    let relinked = step(&pending, &relink, 1);
    assert_eq!(relinked, Review { links, ..pending.clone() });
    assert_eq!(step(&pending, &approve("ann"), 1).step(&relink, at(2)), Ok(None));
}

#[test]
fn audit_is_recorded_once_and_only_after_the_end() {
    let audit = |file: &str| AuditReference { file: file.to_owned(), sha256: "ab".to_owned() };
    let first = Event::Audited(audit("a"));
    let pending = review(json!({"reviewer": "ann"}));
    assert_eq!(pending.step(&first, at(1)), Ok(None));
    let decided = step(&pending, &approve("ann"), 1);
    let audited = step(&decided, &first, 2);
    assert_eq!(audited, Review { audit: Some(audit("a")), ..decided });
    assert_eq!(audited.step(&Event::Audited(audit("b")), at(3)), Ok(None));
}

#[test]
fn a_notice_is_settled_once() {
    let pending = review(json!({"reviewer": ["ann", "bob"]}));
    let settle = |n: usize, state| Event::NoticeSettled { id: format!("{ID}-q{n}"), state };
    assert_eq!(pending.planned_notices().count(), 2);
    let sent = step(&pending, &settle(1, NoticeState::Sent), 1);
    let planned: Vec<&str> = sent.planned_notices().map(|notice| notice.reviewer.as_str()).collect();
    assert_eq!(planned, ["ann"]);
    assert_eq!(sent.notices[1].state, NoticeState::Sent);
    let failed = NoticeState::Failed { error: "no".to_owned() };
    assert_eq!(sent.step(&settle(1, failed), at(2)), Ok(None));
    assert_eq!(sent.step(&settle(2, NoticeState::Sent), at(2)), Ok(None), "there is no such notice");
    assert_eq!(sent.step(&settle(0, NoticeState::Planned), at(2)), Ok(None), "it is planned already");
}

#[test]
fn words_are_trimmed_kept_and_limited() {
    let pending = review(json!({"reviewer": "ann"}));
    let decided = step(&pending, &answer("ann", Choice::Reject, "  too long \n"), 1);
    assert_eq!(decided.answers[0].answer.reason.as_deref(), Some("too long"));
    let limit = 64 * 1024;
    assert!(pending.step(&answer("ann", Choice::Reject, &"x".repeat(limit)), at(1)).is_ok());
    let too_long = pending.step(&answer("ann", Choice::Reject, &"x".repeat(limit + 1)), at(1));
    assert_eq!(too_long, Err(Refusal::TooLong));
    assert_eq!(Refusal::TooLong.to_string(), "the words are longer than 64 KiB");
}

#[test]
fn no_interval_means_no_reminder() {
    let mut pending = review(json!({"reviewer": "ann", "timeout": "1d"}));
    for every in [None, Some(0)] {
        pending.remind_every = every;
        assert_eq!(pending.step(&Event::Clock, at(10 * HOUR)), Ok(None));
    }
    pending.remind_every = Some(3600);
    let reminded = step(&pending, &Event::Clock, HOUR);
    assert_eq!((reminded.reminders, reminded.planned_notices().count()), (1, 2));
    assert_eq!(reminded.notices[1].kind, NoticeKind::Reminder);
}

#[test]
fn changes_go_to_the_only_phase_without_naming_it() {
    let ask = |targets: &[&str]| {
        let review = review_routing_to(json!({"reviewer": "ann"}), targets);
        review.step(&answer("ann", Choice::RequestChanges { to: None }, "shorter"), at(1))
    };
    let decided = ask(&["writer"]).unwrap().unwrap();
    let to = Some(PhaseName::parse("writer").unwrap());
    assert_eq!(decided.answers[0].answer.choice, Choice::RequestChanges { to });
    assert!(ask(&[]).unwrap_err().to_string().ends_with("the phases are: none"));
}

#[test]
fn a_reviewer_in_two_groups_is_waited_for_once() {
    let pending = review(json!({"reviewer": {"policy": "all", "members": [
        {"policy": "any", "members": ["ann", "bob"]},
        {"policy": "any", "members": ["ann", "cleo"]},
    ]}}));
    assert_eq!(pending.waits_for(), ["ann", "bob", "cleo"]);
    assert_eq!(step(&pending, &approve("ann"), 1).waits_for(), Vec::<&str>::new());
}

#[test]
fn a_signed_in_person_answers_for_a_reviewer_only_if_it_is_clear_for_whom() {
    let who = |block: Value| review(block).reviewer_for(None, "root");
    // `any` on the outside: one approval of bob suffices, ann needs another one.
    let mixed = json!({"reviewer": {"policy": "any", "members": [
        {"policy": "all", "members": ["ann", "dan"]}, "bob"]}});
    assert!(matches!(who(mixed), Err(Refusal::WhichReviewer { .. })), "`all` inside leaves it open");
    assert_eq!(who(json!({"reviewer": ["bob", "ann"]})).unwrap(), "bob");
    let names = json!({"reviewer": {"policy": "all", "members": ["ann", "bob"]}});
    assert_eq!(who(names.clone()), Err(Refusal::WhichReviewer { names: "ann, bob".to_owned() }));
    let rejected = step(&review(names), &answer("ann", Choice::Reject, ""), 1);
    assert_eq!(rejected.reviewer_for(None, "root").unwrap(), "ann", "the machine refuses with the reason");
}

#[test]
fn key_has_run_phase_evaluation_and_attempt() {
    assert_eq!(review(json!({"reviewer": "ann"})).key(), "r1/approval/5/7");
}

#[test]
fn words_of_choices_and_notices_are_fixed() {
    let choices = [Choice::Approve, Choice::RequestChanges { to: None }, Choice::Reject];
    assert_eq!(choices.map(|choice| choice.as_str()), ["approve", "request-changes", "reject"]);
    let kinds = [NoticeKind::Request, NoticeKind::Reminder, NoticeKind::Outcome];
    assert_eq!(kinds.map(NoticeKind::event), ["hug_review", "hug_reminder", "hug_outcome"]);
}

#[test]
fn ids_and_tokens_have_32_lower_case_hexadecimal_digits() {
    let id: ReviewId = ID.parse().unwrap();
    assert_eq!((id.as_str(), id.to_string()), (ID, ID.to_owned()));
    let token = LinkToken::parse(ID).unwrap();
    assert_eq!(token.reveal(), ID);
    assert!(token.matches(&token.hash()) && !token.matches(ID));
    assert_eq!(format!("{token:?}"), "LinkToken(…)");
    let upper = ID.to_uppercase();
    let longer = format!("{ID}0");
    let other = ID.replace('f', "g");
    for wrong in ["", &ID[1..], &longer, &upper, &other] {
        assert!(wrong.parse::<ReviewId>().is_err(), "{wrong}");
        assert!(LinkToken::parse(wrong).is_none(), "{wrong}");
    }
}

#[test]
fn channels_have_an_agent_and_a_target() {
    let parts = |text| Channel::parse(text).map(|channel| (channel.agent, channel.target));
    let pair = |agent: &str, target: &str| Some((agent.to_owned(), target.to_owned()));
    assert_eq!(parts("slack"), pair("slack", "default"));
    assert_eq!(parts("email:a@b.example"), pair("email", "a@b.example"));
    assert_eq!(parts("webhook:https://x.example:8"), pair("webhook", "https://x.example:8"));
    for wrong in ["", ":x", "a:", " a:x", "a: x", "a:x ", "a\n:x", "a:x\u{7}", "a :x"] {
        assert_eq!(parts(wrong), None, "{wrong:?}");
    }
}

fn directory(value: &Value) -> Result<Directory, String> {
    Directory::from_value(value).map_err(|error| error.to_string())
}

#[test]
fn directory_knows_people_and_groups() {
    let directory = directory(&json!([
        {"name": "ann", "channels": ["slack:ann", "email:ann@example.com"]},
        {"name": "bob"},
        {"name": "team", "members": ["ann", "bob"], "policy": "all"},
    ]))
    .unwrap();
    let channels: Vec<String> = directory.channels("ann").iter().map(ToString::to_string).collect();
    assert_eq!(channels, ["slack:ann", "email:ann@example.com"]);
    assert_eq!(directory.channels("bob"), []);
    assert_eq!(directory.channels("eve"), []);
    let expanded = directory.expand(&Reviewers::Name("team".into())).unwrap();
    assert_eq!(expanded.names(), ["ann", "bob"]);
    assert!(!expanded.is_satisfied(&|name: &str| name == "ann"));
    assert_eq!(directory.expand(&Reviewers::Name("eve".into())).unwrap(), Reviewers::Name("eve".into()));
}

#[test]
fn directory_reports_wrong_entries() {
    for (value, part) in [
        (json!({}), "it is a list"),
        (json!(["ann"]), "entry 1: write {name, channels}"),
        (json!([{"name": "ann"}, {"name": "bob", "mail": "x"}]), "entry 2: it has no field `mail`"),
        (json!([{"name": ""}]), "entry 1: `name` is a text"),
        (json!([{"channels": []}]), "entry 1: `name` is a text"),
        (json!([{"name": "ann"}, {"name": "ann"}]), "entry 2: the name `ann` stands there twice"),
        (json!([{"name": "g", "members": ["x"]}, {"name": "g"}]), "entry 2: the name `g` stands there twice"),
        (json!([{"name": "ann"}, {"name": "ann", "members": ["x"]}]), "entry 2: the name `ann`"),
        (json!([{"name": "ann", "channels": ["a:"]}]), "entry 1: a channel is a text"),
        (json!([{"name": "ann", "channels": "slack"}]), "entry 1: `channels` is a list"),
        (json!([{"name": "g", "members": "x y", "policy": "most"}]), "entry 1: "),
    ] {
        let error = directory(&value).expect_err(&value.to_string());
        assert!(error.contains(part), "{value}: {error}");
    }
}

#[test]
fn groups_nest_sixteen_deep_and_never_contain_themselves() {
    let chain = |depth: usize| {
        let mut items: Vec<Value> = (0..depth)
            .map(|n| json!({"name": format!("g{n}"), "members": [format!("g{}", n + 1)]}))
            .collect();
        items.push(json!({"name": format!("g{depth}"), "channels": []}));
        Value::Array(items)
    };
    let deepest = directory(&chain(16)).unwrap();
    assert_eq!(deepest.expand(&Reviewers::Name("g0".into())).unwrap().names(), ["g16"]);
    assert!(directory(&chain(17)).unwrap_err().contains("more than 16 deep"));
    let circle = json!([{"name": "a", "members": ["b", "x"]}, {"name": "b", "members": ["a"]}]);
    assert!(matches!(Directory::from_value(&circle), Err(DirectoryError::Circle(_))));
}

fn comment(id: &str, actor: &str, text: &str) -> Event {
    Event::Comment(Comment {
        id: id.into(),
        actor: actor.into(),
        via: Via::A2a,
        text: text.into(),
        place: None,
    })
}

#[test]
fn comments_are_kept_and_decide_nothing() {
    let review = review(json!({"reviewer": "ann"}));
    let said = step(&review, &comment("m1", "carl", "  Mind the gap.\n"), 5);
    assert!(said.is_pending() && said.answers.is_empty());
    assert_eq!((said.comments[0].at, said.comments[0].comment.text.as_str()), (at(5), "Mind the gap."));
    // The same message by the same author counts once, also after the end.
    assert_eq!(said.step(&comment("m1", "carl", "Mind the gap."), at(6)), Ok(None));
    assert_eq!(step(&said, &comment("m1", "eve", "Me too."), 6).comments.len(), 2);
    assert_eq!(step(&said, &comment("m2", "carl", "Again."), 6).comments.len(), 2);
    let over = step(&said, &approve("ann"), 7);
    assert_eq!(over.step(&comment("m1", "carl", "x"), at(8)), Ok(None));
    assert!(matches!(over.step(&comment("m3", "carl", "x"), at(8)), Err(Refusal::Decided(_))));
    assert!(matches!(said.step(&comment("m3", "carl", "x"), said.deadline), Err(Refusal::Expired(_))));
    let record = next_record(&over, &Content::default(), &[]);
    assert!(
        record.markdown.contains("## Comments\n\n`carl` at")
            && record.markdown.contains("    Mind the gap.\n")
    );
    assert!(record.json.contains("Mind the gap."));
    let read: Review = serde_json::from_value(serde_json::to_value(&over).unwrap()).unwrap();
    assert_eq!(read, over);
    assert!(serde_json::to_value(&review).unwrap().get("comments").is_none());
}

#[test]
fn comments_have_limits() {
    let mut review = review(json!({"reviewer": "ann"}));
    for text in ["", " \n ", &"x".repeat(16 * 1024 + 1)] {
        assert_eq!(review.step(&comment("m", "carl", text), at(1)), Err(Refusal::CommentLength));
    }
    for n in 0..200 {
        review = step(&review, &comment(&n.to_string(), "carl", &"x".repeat(16 * 1024)), 1);
    }
    assert_eq!(review.step(&comment("m", "carl", "x"), at(1)), Err(Refusal::TooManyComments));
}

#[test]
fn groups_that_name_each_other_often_are_refused_before_they_are_expanded() {
    // 1.2 KB: expanded, it has 6^15 people.
    let bomb: serde_json::Value =
        serde_json::from_str(include_str!("../../../fixtures/fuzz/settings-reviewers-bomb.json")).unwrap();
    let error = Directory::from_value(&bomb["hug"]["reviewers"]).unwrap_err();
    assert!(matches!(&error, DirectoryError::TooLarge(_)), "{error}");
    assert!(error.to_string().contains("name each group once"), "{error}");
    // Many groups that share members are fine, and take linear time.
    let people = serde_json::json!([{"name": "ann"}, {"name": "bob"}]);
    let mut all = people.as_array().unwrap().clone();
    all.push(serde_json::json!({"name": "base", "members": ["ann", "bob"], "policy": "all"}));
    all.extend((0..20_000).map(|n| serde_json::json!({"name": format!("g{n}"), "members": ["base", "ann"]})));
    let directory = Directory::from_value(&serde_json::Value::Array(all)).unwrap();
    let expanded = directory.expand(&Reviewers::Name("g19999".to_owned())).unwrap();
    assert_eq!(expanded.to_string(), "(ann and bob) or ann");
}
