//! Reading paths, queries and bodies; what is wrong is a problem.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header;
use axum::http::request::Parts;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use super::MAX_BODY;
use crate::problem::Problem;

/// The most bytes of a review with its content.
const MAX_REVIEW: usize = 64 << 20;
/// How long a body may take.
const BODY: Duration = Duration::from_secs(30);

/// The variables of the path.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|path| Self(path.0)).map_err(|_| Problem::not_found("there is nothing at this address"))
    }
}

/// The query.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        read.map(|query| Self(query.0)).map_err(|error| Problem::bad_request(error.body_text()))
    }
}

/// A JSON body.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !has_type(&request, "application/json") {
            return Err(Problem::media_type("application/json"));
        }
        decode(&read(request).await?).map(Self)
    }
}

/// First the syntax, then the fields: the one is a malformed request, the other a wrong one.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let value: serde_json::Value =
        serde_json::from_slice(bytes).map_err(|error| Problem::bad_request(error.to_string()))?;
    serde_json::from_value(value)
        .map_err(|error| Problem::unprocessable("a field is wrong", vec![error.to_string()]))
}

/// A JSON body with the content of a review: files and changes.
pub(crate) struct LargeJson<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for LargeJson<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !has_type(&request, "application/json") {
            return Err(Problem::media_type("application/json"));
        }
        decode(&read_limited(request.into_body(), MAX_REVIEW).await?).map(Self)
    }
}

/// The fields of a form, in their order.
pub(crate) struct Form(pub(crate) Vec<(String, String)>);

impl<S: Sync> FromRequest<S> for Form {
    type Rejection = Problem;
    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !has_type(&request, "application/x-www-form-urlencoded") {
            return Err(Problem::media_type("application/x-www-form-urlencoded"));
        }
        let bytes = read(request).await?;
        let fields = serde_urlencoded::from_bytes(&bytes);
        fields.map(Self).map_err(|error| Problem::bad_request(error.to_string()))
    }
}

impl Form {
    /// The value of a field; `None` where it is missing or blank.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }
}

fn has_type(request: &Request, expected: &str) -> bool {
    let given = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    given.is_some_and(|given| {
        given.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(expected)
    })
}

async fn read(request: Request<Body>) -> Result<Bytes, Problem> {
    read_body(request.into_body()).await
}

/// A whole body of limited size.
pub(crate) async fn read_body(body: Body) -> Result<Bytes, Problem> {
    read_limited(body, MAX_BODY).await
}

async fn read_limited(body: Body, limit: usize) -> Result<Bytes, Problem> {
    let body = Limited::new(body, limit);
    match tokio::time::timeout(BODY, body.collect()).await {
        Err(_) => Err(Problem::timeout()),
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Problem::too_large(limit)),
        Ok(Err(error)) => Err(Problem::bad_request(format!("the body cannot be read: {error}"))),
    }
}
