//! Records: their form, and that a change is noticed.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use cliq_protocol::Timestamp;
use cliq_protocol::{CommandResult, Object, PhaseName, ReviewSpec};
use cliq_review::{
    Answer, Artifact, ArtifactView, AuditFile, ChainProblem, Choice, Content, Event, NewReview, Review, Via,
    next_record, read_record, verify_chain,
};
use serde_json::json;

fn decided(n: u32) -> Review {
    let spec =
        ReviewSpec::from_value(json!({"reviewer": ["ann", "bob"], "inputs": [{"name": "note"}]})).unwrap();
    let review = Review::new(NewReview {
        id: format!("{n:032x}").parse().unwrap(),
        project: "/work/shop".into(),
        team: "@shop/web".parse().unwrap(),
        title: None,
        run_id: cliq_protocol::RunId::parse("r1").expect("an id"),
        phase: PhaseName::parse("approval").unwrap(),
        iteration: n,
        max_iterations: 3,
        evaluation: n,
        attempt: 1,
        reviewers: spec.reviewers.clone(),
        spec,
        route_targets: vec![PhaseName::parse("developer").unwrap()],
        channels: vec![("ann".into(), vec!["email:ann@example.com".parse_channel()])],
        links: Vec::new(),
        now: Timestamp::from_unix_millis(0),
    });
    let inputs: Object = [("note".to_owned(), json!("a\nb"))].into_iter().collect();
    let inputs = if n == 1 { Object::new() } else { inputs };
    let choice = Choice::RequestChanges { to: None };
    let reason = Some("Two lines:\n# not a heading `x`".to_owned());
    let answer = Answer {
        reviewer: "bob".into(),
        actor: "root".into(),
        via: Via::CommandLine,
        choice,
        reason,
        inputs,
    };
    match review.step(&Event::Answer(answer.clone()), Timestamp::from_unix_millis(61_000)) {
        Ok(Some(review)) => review,
        // One line is one line.
        other => {
            assert!(other.is_err(), "{other:?}");
            let answer = Answer { inputs: Object::new(), ..answer };
            review.step(&Event::Answer(answer), Timestamp::from_unix_millis(61_000)).unwrap().unwrap()
        }
    }
}

trait ParseChannel {
    fn parse_channel(&self) -> cliq_review::Channel;
}
impl ParseChannel for str {
    fn parse_channel(&self) -> cliq_review::Channel {
        cliq_review::Channel::parse(self).unwrap()
    }
}

fn content() -> Content {
    let artifact =
        |path: &str, shown| Artifact { path: path.into(), size: 3, sha256: Some("ab".into()), shown };
    Content {
        checks: vec![CommandResult::new("tests", true)],
        artifacts: vec![
            artifact("a.md", ArtifactView::Markdown { text: "x".into(), cut: false }),
            artifact("b.bin", ArtifactView::Binary),
        ],
        ..Content::default()
    }
}

fn chain() -> Vec<(AuditFile, String, String)> {
    let mut files: Vec<(AuditFile, String, String)> = Vec::new();
    for n in 1..=3 {
        let earlier: Vec<AuditFile> = files.iter().map(|(file, ..)| file.clone()).collect();
        let record = next_record(&decided(n), &content(), &earlier);
        let name = format!("approval.{n}");
        let read = read_record(&name, record.json.as_bytes(), Some(record.markdown.as_bytes())).unwrap();
        files.push((read, record.json, record.markdown));
    }
    files
}

#[test]
fn the_record_for_people_and_for_programs() {
    let files = chain();
    let (_, json, markdown) = &files[1];
    insta::assert_snapshot!("record_json", json);
    insta::assert_snapshot!("record_markdown", markdown);
}

#[test]
fn a_change_is_noticed() {
    let files = chain();
    let read: Vec<AuditFile> = files.iter().map(|(file, ..)| file.clone()).collect();
    assert_eq!(verify_chain(&read), []);
    // A changed word in a record that is not the last.
    let (_, json, markdown) = &files[0];
    let forged = json.replace("requested changes", "approved it all!!");
    assert_ne!(&forged, json);
    let mut changed = read.clone();
    changed[0] = read_record("approval.1", forged.as_bytes(), Some(markdown.as_bytes())).unwrap();
    assert_eq!(
        verify_chain(&changed),
        [ChainProblem::Changed { name: "approval.1".into(), next: "approval.2".into() }]
    );
    // The last one: the store knows its hash.
    assert_ne!(
        read_record("x", files[2].1.replace("root", "ann").as_bytes(), None).unwrap().sha256,
        read[2].sha256
    );
    // A changed text, and a removed one.
    for found in [Some("other".to_owned()), None] {
        let mut changed = read.clone();
        changed[1].found_markdown = found;
        assert_eq!(verify_chain(&changed), [ChainProblem::Markdown("approval.2".into())]);
    }
    // A record that is gone, and one that stands there twice.
    assert_eq!(verify_chain(&[read[0].clone(), read[2].clone()]), [ChainProblem::Missing(2)]);
    let twice = AuditFile { name: "copy".into(), ..read[1].clone() };
    let problems = verify_chain(&[read[0].clone(), read[1].clone(), twice, read[2].clone()]);
    assert!(problems.iter().any(|problem| matches!(problem, ChainProblem::Twice(..))), "{problems:?}");
}
