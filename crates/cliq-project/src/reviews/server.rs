//! The reviews of a cliq server elsewhere, over its API.

use std::time::Duration;

use async_trait::async_trait;
use cliq_http::{Answer, Client, Limits, Request};
use cliq_model::StoreError;
use cliq_orchestrator::internals::spawn_blocking;
use cliq_review::{Choice, Content, Event, Refusal, Review, ReviewFilter, ReviewId, Reviews, ReviewsError};
use cliq_settings::Secret;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Deadlines of a call and of the head of its response.
const CALL: Duration = Duration::from_secs(60);
const FIRST_BYTE: Duration = Duration::from_secs(20);
/// The most bytes of a response.
const LIMIT: u64 = 64 << 20;

/// The reviews of a server elsewhere.
#[derive(Debug, Clone)]
pub struct ServerReviews {
    url: String,
    token: Option<Secret>,
    http: Client,
}

/// Reply to a call.
enum Reply {
    Ok(Value),
    NotFound,
    /// The server refuses: what it says.
    Refused(String),
}

impl ServerReviews {
    /// The reviews of the server at `url`, for the holder of a token.
    #[must_use]
    pub fn new(url: &str, token: Option<Secret>) -> Self {
        // Who asks tries again by itself.
        let limits =
            Limits { first_byte: FIRST_BYTE, whole: CALL, tries: 1, answer: LIMIT, ..Limits::default() };
        Self { url: url.trim_end_matches('/').to_owned(), token, http: Client::new(limits) }
    }

    /// Whether the server has this run.
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached or refuses the token.
    pub async fn has_run(&self, id: &str) -> Result<bool, ReviewsError> {
        Ok(matches!(self.call("GET", format!("/runs/{id}"), None).await?, Reply::Ok(_)))
    }

    /// Calls block their thread: each has one of its own.
    async fn call(
        &self,
        method: &'static str,
        path: String,
        body: Option<Value>,
    ) -> Result<Reply, ReviewsError> {
        let this = self.clone();
        let called = spawn_blocking(move || this.call_blocking(method, &path, body.as_ref())).await;
        Ok(called.map_err(|error| StoreError::new(format!("a call ended: {error}")))??)
    }

    fn call_blocking(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Reply, StoreError> {
        let url = format!("{}/api/v1{path}", self.url);
        let broken = |why: String| StoreError::new(format!("the review server {}: {why}", self.url));
        let mut request = match method {
            "GET" => Request::get(url),
            "PUT" => Request::put(url),
            "DELETE" => Request::delete(url),
            _ => Request::post(url),
        };
        // What they mean here is no failure of the call.
        request = request.called("it").answers(&[401, 403, 404, 409, 410, 422]);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(token) = &self.token {
            request = request.secret_header("authorization", format!("Bearer {}", token.reveal()));
        }
        let answer = self.http.send(&request).map_err(|error| broken(error.message))?;
        match answer.status {
            404 => Ok(Reply::NotFound),
            409 | 410 | 422 => Ok(Reply::Refused(said(&answer))),
            401 | 403 => {
                Err(broken(format!("it does not take the token of `hug.token` ({})", said(&answer))))
            }
            _ => Ok(Reply::Ok(read(&answer).map_err(broken)?)),
        }
    }

    fn decode<T: DeserializeOwned>(&self, value: Value) -> Result<T, ReviewsError> {
        let broken = |error| {
            StoreError::new(format!(
                "the review server {} does not speak this version's language: {error}",
                self.url
            ))
        };
        Ok(serde_json::from_value(value).map_err(broken)?)
    }

    async fn change(
        &self,
        method: &'static str,
        id: &ReviewId,
        path: String,
        body: Option<Value>,
        event: &Event,
    ) -> Result<Review, ReviewsError> {
        match self.call(method, path, body).await? {
            Reply::Ok(value) => self.decode(value),
            Reply::NotFound => Err(ReviewsError::NotFound(id.clone())),
            Reply::Refused(said) => {
                let review = self.get(id).await?.ok_or_else(|| ReviewsError::NotFound(id.clone()))?;
                // The same machine gives the same reason.
                let now = cliq_fs::now();
                let refusal = review.step(event, now).err().unwrap_or(Refusal::Server(said));
                Err(ReviewsError::Refused { refusal, review: Box::new(review) })
            }
        }
    }
}

fn read(answer: &Answer) -> Result<Value, String> {
    serde_json::from_slice(&answer.body).map_err(|error| format!("its answer is not JSON: {error}"))
}

/// Returns the message of a problem document.
fn said(answer: &Answer) -> String {
    let value = read(answer).unwrap_or_default();
    let detail = value.get("detail").and_then(Value::as_str).unwrap_or("no reason was given").to_owned();
    let errors =
        value.get("errors").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    errors.fold(detail, |text, error| format!("{text}; {error}"))
}

#[async_trait]
impl Reviews for ServerReviews {
    async fn create(&self, review: &Review, content: &Content) -> Result<Review, ReviewsError> {
        let body = json!({"review": review, "content": content});
        match self.call("PUT", format!("/reviews/{}", review.id), Some(body)).await? {
            Reply::Ok(value) => self.decode(value),
            Reply::NotFound => {
                Err(StoreError::new(format!("{} is not a cliq server with reviews", self.url)).into())
            }
            Reply::Refused(said) => Err(ReviewsError::Refused {
                refusal: Refusal::Server(said),
                review: Box::new(review.clone()),
            }),
        }
    }

    async fn get(&self, id: &ReviewId) -> Result<Option<Review>, ReviewsError> {
        match self.call("GET", format!("/reviews/{id}"), None).await? {
            Reply::Ok(value) => self.decode(value).map(Some),
            Reply::NotFound => Ok(None),
            Reply::Refused(said) => Err(StoreError::new(said).into()),
        }
    }

    async fn content(&self, id: &ReviewId) -> Result<Option<Content>, ReviewsError> {
        match self.call("GET", format!("/reviews/{id}/content"), None).await? {
            Reply::Ok(value) => self.decode(value).map(Some),
            Reply::NotFound => Ok(None),
            Reply::Refused(said) => Err(StoreError::new(said).into()),
        }
    }

    async fn list(&self, filter: &ReviewFilter) -> Result<Vec<Review>, ReviewsError> {
        let limit = (filter.limit > 0).then(|| filter.limit.to_string());
        let parts = [
            ("pending", Some(filter.pending.to_string())),
            ("project", filter.project.clone()),
            ("run_id", filter.run_id.as_ref().map(ToString::to_string)),
            ("limit", limit),
        ];
        let parts: Vec<_> = parts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let path = format!("/reviews?{}", serde_urlencoded::to_string(parts).unwrap_or_default());
        match self.call("GET", path, None).await? {
            Reply::Ok(mut value) => self.decode(value["reviews"].take()),
            Reply::NotFound => {
                Err(StoreError::new(format!("{} is not a cliq server with reviews", self.url)).into())
            }
            Reply::Refused(said) => Err(StoreError::new(said).into()),
        }
    }

    async fn apply(&self, id: &ReviewId, event: Event) -> Result<Review, ReviewsError> {
        let answer = match &event {
            Event::Answer(answer) => answer,
            Event::Comment(comment) => {
                let at = comment.place.as_ref();
                let at =
                    at.map(|place| json!({"path": place.path(), "side": place.side(), "line": place.line()}));
                let mut body = json!({"text": comment.text, "id": comment.id});
                body.as_object_mut()
                    .into_iter()
                    .for_each(|body| body.extend(at.clone().map(|at| ("at".to_owned(), at))));
                return self.change("POST", id, format!("/reviews/{id}/comments"), Some(body), &event).await;
            }
            Event::WithdrawComment { id: comment, .. } => {
                return self
                    .change("DELETE", id, format!("/reviews/{id}/comments/{comment}"), None, &event)
                    .await;
            }
            Event::Clock
            | Event::Cancel { .. }
            | Event::NoticeSettled { .. }
            | Event::Relink { .. }
            | Event::Audited(_) => {
                let body = json!(event);
                return self.change("POST", id, format!("/reviews/{id}/events"), Some(body), &event).await;
            }
        };
        let mut body = json!({"verdict": answer.choice.as_str(), "reviewer": answer.reviewer, "reason": answer.reason, "inputs": answer.inputs});
        if let Choice::RequestChanges { to: Some(to) } = &answer.choice {
            body["to"] = json!(to);
        }
        self.change("POST", id, format!("/reviews/{id}/decision"), Some(body), &event).await
    }
}
