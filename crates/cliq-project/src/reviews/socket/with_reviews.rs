//! A human gate in a container on the reviews of a machine, in memory.

use std::future::Future;

use cliq_model::MemoryStore;
use cliq_protocol::{Object, ReviewSpec, Timestamp};
use cliq_review::{Answer, Choice, NewReview, ReviewState, StoredReviews, Via};
use serde_json::json;

use super::*;

const WORKSPACE: &str = "/home/ada/shop";
/// Time of the clock of the reviews.
const NOW: Timestamp = Timestamp::from_unix_millis(10_000_000);

/// Machine whose reviews are in memory.
struct Machine(MemoryStore);

impl Machine {
    fn stored(&self) -> StoredReviews {
        StoredReviews::new(Arc::new(self.0.clone()), || NOW)
    }
}

#[async_trait]
impl ReviewBackend for Machine {
    async fn reviews(&self) -> Result<Arc<dyn Reviews>, String> {
        Ok(Arc::new(self.stored()))
    }

    async fn pages(&self, _: &Arc<dyn Reviews>, id: &ReviewId) -> Result<PageAddress, String> {
        Ok(PageAddress { base_url: format!("http://here/{id}"), has_dashboard: true, hint: None })
    }
}

/// Returns a review of an hour that was made at [`NOW`].
fn review(workspace: &str) -> Review {
    review_of(workspace, NOW)
}

fn review_of(workspace: &str, made: Timestamp) -> Review {
    let spec = ReviewSpec::from_value(json!({"reviewer": ["ann"], "timeout": "1h"})).expect("a review block");
    Review::new(NewReview {
        id: ReviewId::random().expect("random numbers"),
        project: workspace.into(),
        team: "@local/shop".parse().expect("a team"),
        title: None,
        run_id: "r1".parse().expect("an id"),
        phase: "approval".parse().expect("a phase"),
        iteration: 1,
        max_iterations: 3,
        evaluation: 1,
        attempt: 1,
        reviewers: spec.reviewers.clone(),
        spec,
        route_targets: Vec::new(),
        channels: Vec::new(),
        links: Vec::new(),
        now: made,
    })
}

fn approval() -> Event {
    Event::Answer(Answer {
        reviewer: "ann".to_owned(),
        actor: "ann".to_owned(),
        via: Via::Api,
        choice: Choice::Approve,
        reason: None,
        inputs: Object::new(),
    })
}

/// Runs a test in a container of [`WORKSPACE`]: `work` gets the reviews as the container reaches them, and those of the machine.
async fn in_container<F: Future<Output = ()>>(
    work: impl FnOnce(SocketReviews, StoredReviews, MemoryStore) -> F,
) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = Utf8Path::from_path(dir.path()).expect("UTF-8").join("reviews.sock");
    let socket = ReviewSocket::listen(&path).expect("listening");
    let store = MemoryStore::default();
    let machine = Machine(store.clone());
    let test = work(SocketReviews::new(path), machine.stored(), store);
    tokio::select! {
        () = test => {}
        () = socket.serve(Utf8Path::new(WORKSPACE), Arc::new(machine)) => panic!("the socket ended"),
    }
}

#[tokio::test]
async fn gate_finds_the_review_that_it_made_before() {
    in_container(async |container, machine, _| {
        let first = review(WORKSPACE);
        let content = Content { remarks: vec!["look".to_owned()], ..Content::default() };
        assert_eq!(container.create(&first, &content).await.unwrap(), first);
        // A gate that was killed asks for the same evaluation again.
        let again = Review { id: ReviewId::random().unwrap(), ..first.clone() };
        assert_eq!(container.create(&again, &content).await.unwrap().id, first.id);
        assert_eq!(machine.list(&ReviewFilter::default()).await.unwrap().len(), 1);
        assert_eq!(container.content(&first.id).await.unwrap(), Some(content));
        assert!(container.pages(&first.id).await.unwrap().base_url.ends_with(first.id.as_str()));
    })
    .await;
}

#[tokio::test]
async fn gate_sees_the_answer_of_a_person() {
    in_container(async |container, machine, _| {
        let review = review(WORKSPACE);
        container.create(&review, &Content::default()).await.unwrap();
        assert!(container.get(&review.id).await.unwrap().unwrap().is_pending());
        machine.apply(&review.id, approval()).await.unwrap();
        let seen = container.get(&review.id).await.unwrap().unwrap();
        assert!(matches!(seen.state, ReviewState::Decided { .. }), "{:?}", seen.state);
        assert_eq!(seen.answers[0].answer.reviewer, "ann");
    })
    .await;
}

#[tokio::test]
async fn gate_reaches_no_review_of_another_workspace() {
    in_container(async |container, machine, _| {
        let other = review("/home/ada/other");
        let refused = container.create(&other, &Content::default()).await.expect_err("refused").to_string();
        assert!(refused.contains("another workspace"), "{refused}");
        machine.create(&other, &Content::default()).await.unwrap();
        assert_eq!(container.get(&other.id).await.unwrap(), None);
        assert!(matches!(container.content(&other.id).await, Err(ReviewsError::NotFound(_))));
        let cancel = Event::Cancel { reason: "mine".to_owned() };
        assert!(matches!(container.apply(&other.id, cancel).await, Err(ReviewsError::NotFound(_))));
        let all = ReviewFilter { project: Some("/home/ada/other".to_owned()), ..ReviewFilter::default() };
        assert!(container.list(&all).await.unwrap().is_empty(), "the filter is that of the workspace");
        assert!(machine.get(&other.id).await.unwrap().unwrap().is_pending());
    })
    .await;
}

#[tokio::test]
async fn cancelled_review_takes_no_answer() {
    in_container(async |container, machine, _| {
        let review = review(WORKSPACE);
        container.create(&review, &Content::default()).await.unwrap();
        let cancel = Event::Cancel { reason: "the phase is evaluated anew".to_owned() };
        container.apply(&review.id, cancel).await.unwrap();
        let late = machine.apply(&review.id, approval()).await;
        assert!(
            matches!(late, Err(ReviewsError::Refused { refusal: Refusal::Cancelled(_), .. })),
            "{late:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn gate_is_told_when_the_store_fails_and_goes_on_after() {
    in_container(async |container, _, store| {
        let review = review(WORKSPACE);
        store.fail(1);
        let failed = container.create(&review, &Content::default()).await.expect_err("the store fails");
        assert!(failed.to_string().contains("locked"), "{failed}");
        assert_eq!(container.create(&review, &Content::default()).await.unwrap().id, review.id);
    })
    .await;
}

#[tokio::test]
async fn review_past_its_deadline_has_expired() {
    in_container(async |container, machine, _| {
        let review = review_of(WORKSPACE, Timestamp::UNIX_EPOCH);
        container.create(&review, &Content::default()).await.unwrap();
        let seen = container.get(&review.id).await.unwrap().unwrap();
        assert!(matches!(seen.state, ReviewState::Expired { .. }), "{:?}", seen.state);
        let late = machine.apply(&review.id, approval()).await;
        assert!(matches!(late, Err(ReviewsError::Refused { refusal: Refusal::Expired(_), .. })), "{late:?}");
    })
    .await;
}
