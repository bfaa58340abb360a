//! The reviews of a cliq server elsewhere, over its API.

use std::time::Duration;

use async_trait::async_trait;
use cliq_http::ureq::http::Response;
use cliq_http::ureq::{Agent, Body};
use cliq_review::{
    Choice, Content, Event, Refusal, Review, ReviewFilter, ReviewId, Reviews, ReviewsError, StoreError, Time,
};
use cliq_settings::Secret;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long a call may take, and how long the beginning of its response.
const CALL: Duration = Duration::from_secs(60);
const FIRST_BYTE: Duration = Duration::from_secs(20);
/// The most bytes of a response.
const LIMIT: u64 = 64 << 20;

/// The reviews of a server elsewhere.
#[derive(Debug, Clone)]
pub struct ServerReviews {
    url: String,
    token: Option<Secret>,
    http: Agent,
}

/// What a call gave.
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
        Self { url: url.trim_end_matches('/').to_owned(), token, http: cliq_http::client(FIRST_BYTE) }
    }

    /// Calls block their thread: each has one of its own.
    async fn call(
        &self,
        method: &'static str,
        path: String,
        body: Option<Value>,
    ) -> Result<Reply, ReviewsError> {
        let this = self.clone();
        let called =
            tokio::task::spawn_blocking(move || this.call_blocking(method, &path, body.as_ref())).await;
        Ok(called.map_err(|error| StoreError::new(format!("a call ended: {error}")))??)
    }

    fn call_blocking(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Reply, StoreError> {
        let url = format!("{}/api/v1/reviews{path}", self.url);
        let broken = |why: String| StoreError::new(format!("the review server {}: {why}", self.url));
        let authorization = self.token.as_ref().map(|token| format!("Bearer {}", token.reveal()));
        let sent = match body {
            None => {
                let mut request = self.http.get(&url).config().timeout_global(Some(CALL)).build();
                if let Some(authorization) = authorization {
                    request = request.header("authorization", authorization);
                }
                request.call()
            }
            Some(body) => {
                let request = if method == "PUT" { self.http.put(&url) } else { self.http.post(&url) };
                let mut request = request.config().timeout_global(Some(CALL)).build();
                if let Some(authorization) = authorization {
                    request = request.header("authorization", authorization);
                }
                request.send_json(body)
            }
        };
        let response = sent.map_err(|error| broken(error.to_string()))?;
        let status = response.status().as_u16();
        match status {
            200..300 => Ok(Reply::Ok(read(response).map_err(broken)?)),
            404 => Ok(Reply::NotFound),
            409 | 410 | 422 => Ok(Reply::Refused(said(response))),
            401 | 403 => {
                Err(broken(format!("it does not take the token of `hug.token` ({})", said(response))))
            }
            _ => Err(broken(format!("it answered {status}: {}", said(response)))),
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
        id: &ReviewId,
        path: String,
        body: Value,
        event: &Event,
    ) -> Result<Review, ReviewsError> {
        match self.call("POST", path, Some(body)).await? {
            Reply::Ok(value) => self.decode(value),
            Reply::NotFound => Err(ReviewsError::NotFound(id.clone())),
            Reply::Refused(said) => {
                let review = self.get(id).await?.ok_or_else(|| ReviewsError::NotFound(id.clone()))?;
                // The same machine gives the same reason.
                let now = Time::from_millis(cliq_fs::now_millis());
                let refusal = review.step(event, now).err().unwrap_or(Refusal::Server(said));
                Err(ReviewsError::Refused { refusal, review: Box::new(review) })
            }
        }
    }
}

fn read(response: Response<Body>) -> Result<Value, String> {
    let text = response.into_body().with_config().limit(LIMIT).read_to_string();
    let text = text.map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| format!("its answer is no JSON: {error}"))
}

/// What a problem says.
fn said(response: Response<Body>) -> String {
    let value = read(response).unwrap_or_default();
    let detail = value.get("detail").and_then(Value::as_str).unwrap_or("no reason was given").to_owned();
    let errors =
        value.get("errors").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    errors.fold(detail, |text, error| format!("{text}; {error}"))
}

#[async_trait]
impl Reviews for ServerReviews {
    async fn create(&self, review: &Review, content: &Content) -> Result<Review, ReviewsError> {
        let body = json!({"review": review, "content": content});
        match self.call("PUT", format!("/{}", review.id), Some(body)).await? {
            Reply::Ok(value) => self.decode(value),
            Reply::NotFound => {
                Err(StoreError::new(format!("{} is no cliq server with reviews", self.url)).into())
            }
            Reply::Refused(said) => Err(ReviewsError::Refused {
                refusal: Refusal::Server(said),
                review: Box::new(review.clone()),
            }),
        }
    }

    async fn get(&self, id: &ReviewId) -> Result<Option<Review>, ReviewsError> {
        match self.call("GET", format!("/{id}"), None).await? {
            Reply::Ok(value) => self.decode(value).map(Some),
            Reply::NotFound => Ok(None),
            Reply::Refused(said) => Err(StoreError::new(said).into()),
        }
    }

    async fn content(&self, id: &ReviewId) -> Result<Option<Content>, ReviewsError> {
        match self.call("GET", format!("/{id}/content"), None).await? {
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
            ("run_id", filter.run_id.clone()),
            ("limit", limit),
        ];
        let parts: Vec<_> = parts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let path = format!("?{}", serde_urlencoded::to_string(parts).unwrap_or_default());
        match self.call("GET", path, None).await? {
            Reply::Ok(mut value) => self.decode(value["reviews"].take()),
            Reply::NotFound => {
                Err(StoreError::new(format!("{} is no cliq server with reviews", self.url)).into())
            }
            Reply::Refused(said) => Err(StoreError::new(said).into()),
        }
    }

    async fn apply(&self, id: &ReviewId, event: Event) -> Result<Review, ReviewsError> {
        let Event::Answer(answer) = &event else {
            let body = json!(event);
            return self.change(id, format!("/{id}/events"), body, &event).await;
        };
        let mut body = json!({"verdict": answer.choice.as_str(), "reviewer": answer.reviewer, "reason": answer.reason, "inputs": answer.inputs});
        if let Choice::RequestChanges { to: Some(to) } = &answer.choice {
            body["to"] = json!(to);
        }
        self.change(id, format!("/{id}/decision"), body, &event).await
    }
}
