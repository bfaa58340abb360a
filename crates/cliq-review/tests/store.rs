//! Reviews of a store: deadlines that have passed count, and the first answer wins.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cliq_model::StoreError;
use cliq_protocol::Timestamp;
use cliq_protocol::{CommandResult, Object, PhaseName, ReviewSpec};
use cliq_review::{
    Answer, Choice, Content, Event, NewReview, Outcome, Review, ReviewFilter, ReviewId, ReviewState,
    ReviewStore, Reviews, ReviewsError, StoredReviews, Via,
};
use serde_json::json;

const DAY: i64 = 86_400_000;

/// Returns a review whose deadline is a day after 1970.
fn review(id: u32, evaluation: u32) -> Review {
    let spec = ReviewSpec::from_value(json!({"reviewer": ["ann", "bob"], "timeout": "1d"})).unwrap();
    Review::new(NewReview {
        id: format!("{id:032x}").parse().unwrap(),
        project: "/work/shop".into(),
        team: "@shop/web".parse().unwrap(),
        title: None,
        run_id: cliq_protocol::RunId::parse("r1").expect("an id"),
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
        now: Timestamp::from_unix_millis(0),
    })
}

fn answer(reviewer: &str, choice: Choice, words: &str) -> Event {
    let (reviewer, actor) = (reviewer.to_owned(), reviewer.to_owned());
    let reason = Some(words.to_owned());
    Event::Answer(Answer { reviewer, actor, via: Via::CommandLine, choice, reason, inputs: Object::new() })
}

/// Store in memory in which rivals are sometimes faster.
#[derive(Debug, Default)]
struct Memory {
    rows: Mutex<BTreeMap<ReviewId, (Review, i64)>>,
    contents: Mutex<BTreeMap<ReviewId, Content>>,
    /// Filters of the queries so far.
    filters: Mutex<Vec<ReviewFilter>>,
    removed_before: Mutex<Option<Timestamp>>,
    rivals: Mutex<u32>,
}

#[async_trait]
impl ReviewStore for Memory {
    async fn add_review(&self, review: &Review, content: &Content) -> Result<bool, StoreError> {
        let mut rows = self.rows.lock().unwrap();
        if rows.values().any(|(other, _)| other.key() == review.key()) {
            return Ok(false);
        }
        self.contents.lock().unwrap().insert(review.id.clone(), content.clone());
        Ok(rows.insert(review.id.clone(), (review.clone(), 1)).is_none())
    }
    async fn review(&self, id: &ReviewId) -> Result<Option<(Review, i64)>, StoreError> {
        Ok(self.rows.lock().unwrap().get(id).cloned())
    }
    async fn review_content(&self, id: &ReviewId) -> Result<Option<Content>, StoreError> {
        Ok(self.contents.lock().unwrap().get(id).cloned())
    }
    async fn reviews(&self, filter: &ReviewFilter) -> Result<Vec<Review>, StoreError> {
        self.filters.lock().unwrap().push(filter.clone());
        Ok(self.rows.lock().unwrap().values().map(|(review, _)| review.clone()).collect())
    }
    async fn save_review(&self, review: &Review, version: i64) -> Result<bool, StoreError> {
        let mut rows = self.rows.lock().unwrap();
        let mut rivals = self.rivals.lock().unwrap();
        let row = rows.get_mut(&review.id).unwrap();
        if *rivals > 0 {
            *rivals -= 1;
            let rival = answer("bob", Choice::Reject, "no");
            if let Ok(Some(next)) = row.0.step(&rival, Timestamp::from_unix_millis(5)) {
                *row = (next, row.1 + 1);
            }
        }
        if row.1 != version {
            return Ok(false);
        }
        *row = (review.clone(), version + 1);
        Ok(true)
    }
    async fn remove_reviews(&self, before: Timestamp) -> Result<u64, StoreError> {
        *self.removed_before.lock().unwrap() = Some(before);
        Ok(7)
    }
}

#[tokio::test]
async fn the_first_answer_wins_and_the_second_is_told_of_it() {
    let store = Arc::new(Memory::default());
    let reviews = StoredReviews::new(store.clone(), || Timestamp::from_unix_millis(6));
    let first = review(1, 1);
    assert_eq!(reviews.create(&first, &Content::default()).await.unwrap(), first);
    let mut second = first.clone();
    second.id = ReviewId::random().unwrap();
    assert_eq!(reviews.create(&second, &Content::default()).await.unwrap().id, first.id, "made once");
    *store.rivals.lock().unwrap() = 1;
    let said = reviews.apply(&first.id, answer("ann", Choice::Approve, "")).await.unwrap_err();
    let ReviewsError::Refused { refusal, review } = said else { panic!("{said}") };
    assert!(refusal.to_string().contains("rejected by bob"), "{refusal}");
    assert!(matches!(review.state, ReviewState::Decided { outcome: Outcome::Rejected, .. }));
}

#[tokio::test]
async fn an_answer_after_the_deadline_finds_an_expired_review() {
    let store = Arc::new(Memory::default());
    let reviews = StoredReviews::new(store.clone(), || Timestamp::from_unix_millis(2 * DAY));
    let first = review(1, 1);
    reviews.create(&first, &Content::default()).await.unwrap();
    let said = reviews.apply(&first.id, answer("ann", Choice::Approve, "")).await.unwrap_err();
    assert!(said.to_string().contains("has expired"), "{said}");
    let row = store.rows.lock().unwrap()[&first.id].clone();
    assert_eq!((row.0.state.as_str(), row.1), ("expired", 2), "the refusal stores the end");
    assert_eq!(reviews.get(&first.id).await.unwrap().unwrap().state.as_str(), "expired");
}

fn before_deadline() -> Timestamp {
    Timestamp::from_unix_millis(DAY - 1)
}

fn at_deadline() -> Timestamp {
    Timestamp::from_unix_millis(DAY)
}

async fn store_of(reviews: &[Review]) -> Arc<Memory> {
    let store = Arc::new(Memory::default());
    for review in reviews {
        assert!(store.add_review(review, &Content::default()).await.unwrap());
    }
    store
}

#[tokio::test]
async fn create_finds_the_review_of_the_same_key_among_others() {
    let (first, second) = (review(1, 1), review(2, 2));
    let store = store_of(&[first.clone(), second.clone()]).await;
    let reviews = StoredReviews::new(store.clone(), before_deadline);
    let again = review(3, 2);
    assert_eq!(reviews.create(&again, &Content::default()).await.unwrap().id, second.id);
    let filter = store.filters.lock().unwrap().pop().unwrap();
    assert_eq!(
        (filter.run_id.as_ref().map(cliq_protocol::RunId::as_str), filter.limit),
        (Some("r1"), 1000),
        "all reviews of the run"
    );
}

#[tokio::test]
async fn content_is_that_of_the_review() {
    let store = Arc::new(Memory::default());
    let reviews = StoredReviews::new(store, before_deadline);
    let content = Content { checks: vec![CommandResult::new("tests", true)], ..Content::default() };
    let review = review(1, 1);
    reviews.create(&review, &content).await.unwrap();
    assert_eq!(reviews.content(&review.id).await.unwrap(), Some(content));
    assert_eq!(reviews.content(&"f".repeat(32).parse().unwrap()).await.unwrap(), None);
}

#[tokio::test]
async fn a_passed_deadline_expires_the_review_when_it_is_read() {
    let review = review(1, 1);
    let store = store_of(std::slice::from_ref(&review)).await;
    let early = StoredReviews::new(store.clone(), before_deadline);
    assert!(early.get(&review.id).await.unwrap().unwrap().is_pending());
    assert_eq!(early.list(&ReviewFilter::default()).await.unwrap(), std::slice::from_ref(&review));
    let late = StoredReviews::new(store.clone(), at_deadline);
    assert_eq!(late.get(&review.id).await.unwrap().unwrap().state.as_str(), "expired");
    assert_eq!(store.rows.lock().unwrap()[&review.id].1, 2, "the end is stored");
    // An end that is stored is not stored again.
    assert_eq!(late.get(&review.id).await.unwrap().unwrap().state.as_str(), "expired");
    assert_eq!(store.rows.lock().unwrap()[&review.id].1, 2);
}

#[tokio::test]
async fn list_of_pending_reviews_leaves_out_what_expires_now() {
    let (first, second) = (review(1, 1), review(2, 2));
    let store = store_of(&[first.clone(), second.clone()]).await;
    let early = StoredReviews::new(store.clone(), before_deadline);
    early.apply(&first.id, answer("ann", Choice::Approve, "")).await.unwrap();
    let pending = ReviewFilter { pending: true, ..ReviewFilter::default() };
    assert_eq!(early.list(&pending).await.unwrap(), std::slice::from_ref(&second));
    assert_eq!(early.list(&ReviewFilter::default()).await.unwrap().len(), 2);
    let late = StoredReviews::new(store, at_deadline);
    assert_eq!(late.list(&pending).await.unwrap(), []);
    let states: Vec<String> = late
        .list(&ReviewFilter::default())
        .await
        .unwrap()
        .iter()
        .map(|r| r.state.as_str().to_owned())
        .collect();
    assert_eq!(states, ["decided", "expired"]);
}

#[tokio::test]
async fn an_event_without_effect_changes_nothing() {
    let review = review(1, 1);
    let store = store_of(std::slice::from_ref(&review)).await;
    let reviews = StoredReviews::new(store.clone(), before_deadline);
    assert_eq!(reviews.apply(&review.id, Event::Clock).await.unwrap(), review);
    assert_eq!(store.rows.lock().unwrap()[&review.id].1, 1);
    let unknown: ReviewId = "f".repeat(32).parse().unwrap();
    assert!(matches!(reviews.apply(&unknown, Event::Clock).await, Err(ReviewsError::NotFound(_))));
}

#[tokio::test]
async fn remove_before_passes_the_time_and_returns_the_number() {
    let store = Arc::new(Memory::default());
    let reviews = StoredReviews::new(store.clone(), before_deadline);
    assert_eq!(reviews.remove_before(Timestamp::from_unix_millis(5)).await.unwrap(), 7);
    assert_eq!(*store.removed_before.lock().unwrap(), Some(Timestamp::from_unix_millis(5)));
}
