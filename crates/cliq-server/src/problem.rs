//! Errors of the API as RFC 9457 problems.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cliq_gateway::GatewayError;
use cliq_lifecycle::StepError;
use cliq_project::ProjectError;
use serde::Serialize;
use utoipa::ToSchema;

/// What went wrong (RFC 9457).
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct Problem {
    /// A stable name of the kind of problem: `urn:cliq:problem:NAME`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The kind of problem in words.
    pub(crate) title: String,
    /// The HTTP status.
    pub(crate) status: u16,
    /// What happened, and how to mend it.
    pub(crate) detail: String,
    /// Each single problem, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) errors: Vec<String>,
    /// Seconds after which to try again.
    #[serde(skip)]
    pub(crate) retry_after: Option<u32>,
}

/// The content type of a problem.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

impl Problem {
    fn new(status: StatusCode, name: &str, title: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:cliq:problem:{name}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            errors: Vec::new(),
            retry_after: None,
        }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", "The request is malformed", detail)
    }

    pub(crate) fn unauthorized() -> Self {
        let detail =
            "send a token as `Authorization: Bearer TOKEN`, or sign in; `cliq server token create` makes one";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "A valid token is needed", detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "This is not allowed", detail)
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "There is no such thing", what)
    }

    pub(crate) fn method_not_allowed() -> Self {
        let detail = "see `Allow` for the methods that this address takes";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "The method is not allowed", detail)
    }

    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", "The state does not allow this", detail)
    }

    pub(crate) fn gone(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "gone", "It is no longer there", detail)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let detail = format!("the body has more than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The body is too large", detail)
    }

    pub(crate) fn timeout() -> Self {
        let detail = "the body did not arrive in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, "timeout", "The request took too long", detail)
    }

    pub(crate) fn media_type(expected: &str) -> Self {
        let detail = format!("send the body as {expected}");
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Self::new(status, "media-type", "The type of the body is not supported", detail)
    }

    pub(crate) fn unprocessable(detail: impl Into<String>, errors: Vec<String>) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self { errors, ..Self::new(status, "invalid", "The request cannot be carried out", detail) }
    }

    pub(crate) fn too_many() -> Self {
        let detail = "too many requests; wait a moment";
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self { retry_after: Some(1), ..Self::new(status, "rate-limit", "Too many requests", detail) }
    }

    pub(crate) fn unavailable(detail: impl Into<String>) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self { retry_after: Some(2), ..Self::new(status, "unavailable", "Not available now", detail) }
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status(), [(header::CONTENT_TYPE, PROBLEM_JSON)], body).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if self.status() == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // Pages show a problem in their own way.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<GatewayError> for Problem {
    fn from(error: GatewayError) -> Self {
        tracing::error!(%error, "the database cannot be used");
        Self::unavailable("the database cannot be used at the moment; the server's log says why")
    }
}

impl From<StepError> for Problem {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Gateway(error) => error.into(),
            StepError::NoPlan { plan, .. } => Self::not_found(format!("there is no plan `{plan}`")),
            other => Self::conflict(other.to_string()),
        }
    }
}

impl From<ProjectError> for Problem {
    fn from(error: ProjectError) -> Self {
        use ProjectError as P;
        match &error {
            P::UnknownTeam { nearest, .. } => {
                let hint = nearest.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                Self::unprocessable(format!("{error}{hint}"), Vec::new())
            }
            P::TeamInvalid { team, .. } | P::AssembledTeamInvalid(team) => {
                let line = |d: &cliq_workflow::Diagnostic| {
                    format!("line {}, column {}: {} ({})", d.span.line, d.span.column, d.message, d.help)
                };
                Self::unprocessable(error.to_string(), team.diagnostics.iter().map(line).collect())
            }
            P::Lock(_) => Self::conflict(error.to_string()),
            P::Io(_) | P::File(_) => {
                tracing::error!(%error, "a file cannot be used");
                Self::unavailable("a file cannot be used at the moment; the server's log says why")
            }
            _ => Self::unprocessable(error.to_string(), Vec::new()),
        }
    }
}
