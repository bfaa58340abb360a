//! Extractors for paths, queries and bodies. Rejections are problems.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header;
use axum::http::request::Parts;
use bytes::Bytes;
use cliq_protocol::{has_too_many_values, lenient_bytes};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use crate::problem::Problem;

/// Maximum size of a body, in bytes.
pub const MAX_BODY: usize = 4 << 20;
/// Maximum size of a review with its content, in bytes.
const MAX_REVIEW: usize = 64 << 20;
/// Deadline for the whole body.
const BODY: Duration = Duration::from_secs(30);

/// Variables of the path.
#[derive(Debug)]
pub struct Path<T>(
    /// Value.
    pub T,
);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|path| Self(path.0)).map_err(|_| Problem::not_found("there is nothing at this address"))
    }
}

/// Query of the address.
#[derive(Debug)]
pub struct Query<T>(
    /// Value.
    pub T,
);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        read.map(|query| Self(query.0)).map_err(|error| Problem::bad_request(error.body_text()))
    }
}

/// JSON body.
#[derive(Debug)]
pub struct Json<T>(
    /// Value.
    pub T,
);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !has_type(&request, "application/json") {
            return Err(Problem::media_type("application/json"));
        }
        decode(&read_json_body(request.into_body()).await?).map(Self)
    }
}

/// Parses the syntax first, then the fields: a syntax error is a malformed request, a wrong field an invalid one.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let value: serde_json::Value =
        cliq_protocol::lenient_json(bytes).map_err(|error| Problem::bad_request(error.to_string()))?;
    serde_json::from_value(value)
        .map_err(|error| Problem::unprocessable("a field is wrong", vec![error.to_string()]))
}

/// Deserializes an optional whole number. JSON writes one in several ways: `3`, `3.0` and `3e0` are the same integer.
///
/// # Errors
/// Returns an error if the value is not a whole number in the range of `T`.
pub fn whole_number<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else { return Ok(None) };
    // 2^53: the largest range in which every whole number has a value of its own as a fraction.
    let is_whole = |n: &f64| n.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(n);
    let whole = number.as_u64().or_else(|| number.as_f64().filter(is_whole).map(|n| n as u64));
    let value = whole.and_then(|whole| T::try_from(whole).ok());
    value.map(Some).ok_or_else(|| D::Error::custom(format!("{number} is not a whole number in range")))
}

/// JSON body of a review with its content: files and changes.
#[derive(Debug)]
pub struct LargeJson<T>(
    /// Value.
    pub T,
);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for LargeJson<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !has_type(&request, "application/json") {
            return Err(Problem::media_type("application/json"));
        }
        decode(&few_values(read_limited(request.into_body(), MAX_REVIEW).await?)?).map(Self)
    }
}

/// Fields of a form in order.
#[derive(Debug)]
pub struct Form(
    /// Names and values.
    pub Vec<(String, String)>,
);

impl<S: Sync> FromRequest<S> for Form {
    type Rejection = Problem;
    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !has_type(&request, "application/x-www-form-urlencoded") {
            return Err(Problem::media_type("application/x-www-form-urlencoded"));
        }
        let bytes = read_limited(request.into_body(), MAX_BODY).await?;
        let fields = serde_urlencoded::from_bytes(&bytes);
        fields.map(Self).map_err(|error| Problem::bad_request(error.to_string()))
    }
}

impl Form {
    /// Returns the value of a field, or `None` if the field is missing or blank.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
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

/// Reads a whole JSON body of at most [`MAX_BODY`] bytes and [`MAX_JSON_VALUES`](cliq_protocol::MAX_JSON_VALUES) values.
///
/// # Errors
/// Returns a problem if the body is too large, too slow, or breaks off.
pub async fn read_json_body(body: Body) -> Result<Bytes, Problem> {
    few_values(read_limited(body, MAX_BODY).await?)
}

fn few_values(bytes: Bytes) -> Result<Bytes, Problem> {
    if has_too_many_values(&bytes) { Err(Problem::too_many_values()) } else { Ok(bytes) }
}

/// Returns a request with the same JSON body, of at most [`MAX_BODY`] bytes, in which text that is not Unicode is replaced by U+FFFD.
///
/// # Errors
/// Returns a problem if the body is too large, too slow, or breaks off.
pub async fn with_lenient_body(request: Request) -> Result<Request, Problem> {
    let (mut parts, body) = request.into_parts();
    let bytes = read_json_body(body).await?;
    let bytes = match lenient_bytes(&bytes) {
        Cow::Borrowed(_) => bytes,
        Cow::Owned(repaired) => {
            parts.headers.remove(header::CONTENT_LENGTH);
            repaired.into()
        }
    };
    Ok(Request::from_parts(parts, bytes.into()))
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
