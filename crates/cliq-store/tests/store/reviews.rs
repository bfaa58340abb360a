//! Reviews, and what their reviewers are shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use cliq_model::{AuditFilter, AuditStore};
use cliq_protocol::{Object, PhaseName, ReviewSpec, ReviewSubject, RunId, Timestamp};
use cliq_review::{
    Answer, AuditReference, Choice, Content, Event, NewReview, PriorHandoff, Review, ReviewFilter, ReviewId,
    ReviewStore, Reviews, ReviewsError, StoredReviews, Via,
};
use serde_json::json;

use super::test_database::Place;

static NOW: AtomicI64 = AtomicI64::new(1000);

pub(crate) fn now() -> Timestamp {
    Timestamp::from_unix_millis(NOW.load(Ordering::Relaxed))
}

pub(crate) fn review(run: &str, project: &str, evaluation: u32, created: i64) -> Review {
    let spec = ReviewSpec::from_value(
        json!({"reviewer": ["ann", "bob"], "inputs": [{"name": "x", "default": "\u{0}é"}]}),
    );
    let spec = spec.unwrap();
    Review::new(NewReview {
        id: ReviewId::random().unwrap(),
        project: project.into(),
        team: "@a/b".parse().unwrap(),
        title: None,
        run_id: run.parse().expect("an id"),
        phase: PhaseName::parse("approval").unwrap(),
        iteration: 1,
        max_iterations: 3,
        evaluation,
        attempt: 1,
        reviewers: spec.reviewers.clone(),
        spec,
        route_targets: Vec::new(),
        channels: Vec::new(),
        links: Vec::new(),
        now: Timestamp::from_unix_millis(created),
    })
}

pub(crate) fn approve(name: &str) -> Event {
    let (reviewer, actor) = (name.to_owned(), name.to_owned());
    let answer = Answer {
        reviewer,
        actor,
        via: Via::Api,
        choice: Choice::Approve,
        reason: None,
        inputs: Object::new(),
    };
    Event::Answer(answer)
}

fn reject(name: &str) -> Event {
    match approve(name) {
        Event::Answer(answer) => Event::Answer(Answer { choice: Choice::Reject, ..answer }),
        other => other,
    }
}

pub(crate) async fn a_review_is_stored_as_it_is(place: &impl Place) {
    let store = place.store().await;
    let new = review("r1", "/p", 1, 1000);
    let from = PhaseName::parse("writer").unwrap();
    let content =
        Content { handed_over: vec![PriorHandoff { from, text: "a\u{0}b".into() }], ..Content::default() };
    assert!(store.add_review(&new, &content).await.unwrap());
    assert_eq!(store.review(&new.id).await.unwrap(), Some((new.clone(), 1)));
    assert_eq!(store.review_content(&new.id).await.unwrap(), Some(content.clone()));
    // The same evaluation again, under another id.
    let mut again = review("r1", "/p", 1, 2000);
    assert!(!store.add_review(&again, &content).await.unwrap());
    again.attempt = 2;
    assert!(store.add_review(&again, &content).await.unwrap());
    assert!(store.save_review(&new, 1).await.unwrap());
    assert!(!store.save_review(&new, 1).await.unwrap());
    assert_eq!(store.review(&ReviewId::random().unwrap()).await.unwrap(), None);
}

pub(crate) async fn of_two_answers_at_the_same_moment_one_counts(place: &impl Place) {
    for _ in 0..20 {
        let (one, two) = (place.store().await, place.store().await);
        let new = review("r1", "/p", 1, 1000);
        let new = Review { run_id: new.id.as_str().parse().expect("an id"), ..new };
        let (one, two) = (StoredReviews::new(Arc::new(one), now), StoredReviews::new(Arc::new(two), now));
        one.create(&new, &Content::default()).await.unwrap();
        let answers = tokio::join!(one.apply(&new.id, approve("ann")), two.apply(&new.id, approve("bob")));
        let won = [&answers.0, &answers.1].iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(won, 1);
        for lost in [answers.0, answers.1].into_iter().filter_map(Result::err) {
            assert!(matches!(lost, ReviewsError::Refused { .. }), "{lost}");
        }
        assert_eq!(one.get(&new.id).await.unwrap().unwrap().answers.len(), 1);
    }
}

/// Entries of the audit log for requests of agents: one for each answer, whatever is recorded about the review later.
pub(crate) async fn requests_are_in_the_audit_log(place: &impl Place) {
    let store = place.store().await;
    let reviews = StoredReviews::new(Arc::new(place.store().await), now);
    let subject = |title: &str| ReviewSubject::Permission {
        agent: "mine".to_owned(),
        title: title.to_owned(),
        tool: "execute".to_owned(),
        paths: Vec::new(),
        details: None,
    };
    for (n, title) in [(1, "rm -r build"), (2, "ls")] {
        let new = review("r1", "/p", n, 1).about(subject(title));
        store.add_review(&new, &Content::default()).await.unwrap();
        let answer = if n == 1 { approve("ann") } else { reject("ann") };
        reviews.apply(&new.id, answer).await.unwrap();
        let audit = AuditReference { file: "f".to_owned(), sha256: "s".to_owned() };
        reviews.apply(&new.id, Event::Audited(audit)).await.unwrap();
    }
    let entries =
        store.audit(&AuditFilter { limit: 10, after: Some(0), ..AuditFilter::default() }).await.unwrap();
    let told: Vec<String> = entries
        .iter()
        .map(|entry| format!("{} {} {}", entry.action.action, entry.action.outcome, entry.action.target))
        .collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].starts_with("permission allowed mine asks for permission: execute: rm -r build (run r1"),
        "{told:?}"
    );
    assert!(told[1].starts_with("permission refused mine asks for permission: execute: ls"), "{told:?}");
}

pub(crate) async fn lists_and_removal(place: &impl Place) {
    let store = place.store().await;
    for (run, project, evaluation, created) in [("r1", "/p", 1, 1), ("r1", "/p", 2, 2), ("r2", "/q", 1, 3)] {
        store.add_review(&review(run, project, evaluation, created), &Content::default()).await.unwrap();
    }
    let reviews = StoredReviews::new(Arc::new(store), now);
    let list = async |filter: ReviewFilter| -> Vec<String> {
        reviews.list(&filter).await.unwrap().iter().map(Review::key).collect()
    };
    let (project, run_id) = (Some("/p".to_owned()), RunId::parse("r2").ok());
    assert_eq!(
        list(ReviewFilter { project: project.clone(), ..Default::default() }).await,
        ["r1/approval/2/1", "r1/approval/1/1"]
    );
    assert_eq!(list(ReviewFilter { run_id, ..Default::default() }).await, ["r2/approval/1/1"]);
    let first = reviews.list(&ReviewFilter { project, limit: 1, ..Default::default() }).await.unwrap();
    reviews.apply(&first[0].id, approve("bob")).await.unwrap();
    assert_eq!(
        list(ReviewFilter { pending: true, ..Default::default() }).await,
        ["r2/approval/1/1", "r1/approval/1/1"]
    );
    assert_eq!(
        reviews.remove_before(Timestamp::from_unix_millis(2)).await.unwrap(),
        0,
        "those that wait stay"
    );
    assert_eq!(reviews.remove_before(Timestamp::from_unix_millis(3)).await.unwrap(), 1);
    assert_eq!(reviews.content(&first[0].id).await.unwrap(), None);
}
