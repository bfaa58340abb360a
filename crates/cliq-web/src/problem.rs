//! Errors of the API as RFC 9457 problems.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cliq_lifecycle::StepError;
use cliq_model::StoreError;
use cliq_orchestrator::SteerError;
use cliq_project::ProjectError;
use cliq_project::internals::PlanCommandError;
use cliq_protocol::MAX_JSON_VALUES;
use cliq_review::{Refusal, ReviewsError};
use cliq_supervisor::internals::PhaseError;
use cliq_supervisor::internals::workspace_files::FileError;
use cliq_supervisor::{ChangeError, RegisterError, RequestError, SteeringRefusal, WorkspaceIoError};
use cliq_workflow::Diagnostic;
use serde::Serialize;
use utoipa::ToSchema;

/// Problem document (RFC 9457).
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct Problem {
    /// Stable name of the kind of problem: `urn:cliq:problem:NAME`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Kind of problem in words.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// Cause and remedy.
    pub detail: String,
    /// Single problems, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Seconds to wait before a retry.
    #[serde(skip)]
    pub retry_after: Option<u32>,
}

/// Content type of a problem.
pub const PROBLEM_JSON: &str = "application/problem+json";

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

    /// Returns a problem for a malformed request (400).
    #[must_use]
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", "The request is malformed", detail)
    }

    /// Returns a problem for a missing or wrong token (401).
    #[must_use]
    pub fn unauthorized() -> Self {
        let detail =
            "send a token as `Authorization: Bearer TOKEN`, or sign in; `cliq server token create` makes one";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "A valid token is needed", detail)
    }

    /// Returns a problem for a request that is not allowed (403).
    #[must_use]
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "This is not allowed", detail)
    }

    /// Returns a problem for an unknown address or object (404).
    #[must_use]
    pub fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "Not found", what)
    }

    /// Returns a problem for a method that the address does not support (405).
    #[must_use]
    pub fn method_not_allowed() -> Self {
        let detail = "see `Allow` for the methods that this address takes";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "The method is not allowed", detail)
    }

    /// Returns a problem for a state that does not allow the request (409).
    #[must_use]
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", "The state does not allow this", detail)
    }

    /// Returns a problem for an object that no longer exists (410).
    #[must_use]
    pub fn gone(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "gone", "No longer available", detail)
    }

    /// Returns a problem for a body over `limit` bytes (413).
    #[must_use]
    pub fn too_large(limit: usize) -> Self {
        let detail = format!("the body has more than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The body is too large", detail)
    }

    /// Returns a problem for a JSON body with too many values (413).
    #[must_use]
    pub fn too_many_values() -> Self {
        let detail = format!("the JSON body has more than {MAX_JSON_VALUES} values");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The body is too large", detail)
    }

    /// Returns a problem for a body that arrived too slowly (408).
    #[must_use]
    pub fn timeout() -> Self {
        let detail = "the body did not arrive in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, "timeout", "The request took too long", detail)
    }

    /// Returns a problem for a body that is not of the type `expected` (415).
    #[must_use]
    pub fn media_type(expected: &str) -> Self {
        let detail = format!("send the body as {expected}");
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Self::new(status, "media-type", "The type of the body is not supported", detail)
    }

    /// Returns a problem for values that break rules (422). `errors` has one sentence per rule.
    #[must_use]
    pub fn unprocessable(detail: impl Into<String>, errors: Vec<String>) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self { errors, ..Self::new(status, "invalid", "The request cannot be carried out", detail) }
    }

    /// Returns a problem for a caller over its rate limit (429).
    #[must_use]
    pub fn too_many() -> Self {
        let detail = "too many requests; wait a moment";
        let status = StatusCode::TOO_MANY_REQUESTS;
        Self { retry_after: Some(1), ..Self::new(status, "rate-limit", "Too many requests", detail) }
    }

    /// Returns a problem for a temporary failure (503).
    #[must_use]
    pub fn unavailable(detail: impl Into<String>) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self { retry_after: Some(2), ..Self::new(status, "unavailable", "Not available now", detail) }
    }

    /// Returns the problem of a steering message that was refused.
    #[must_use]
    pub fn of_steering(refusal: SteeringRefusal) -> Self {
        match refusal {
            SteeringRefusal::NoRun => Self::not_found("there is no run of this id"),
            SteeringRefusal::NoWorkspace => Self::gone(refusal.to_string()),
            SteeringRefusal::Files(error) => error.into(),
            SteeringRefusal::Store(error) => error.into(),
            SteeringRefusal::Refused(error) => match &error {
                SteerError::Ended(_)
                | SteerError::TooMany
                | SteerError::Conflict(_)
                | SteerError::NoSuchPhase { .. }
                | SteerError::NoAgent(_) => Self::conflict(error.to_string()),
                _ => Self::unavailable(error.to_string()),
            },
            _ => Self::unavailable(refusal.to_string()),
        }
    }

    /// Returns the problem of a change that was refused. `change` is the participle of its verb, such as "cancelled".
    #[must_use]
    pub fn of_change(error: ChangeError, change: &str) -> Self {
        match error {
            ChangeError::NoRun => Self::not_found("there is no run of this id"),
            ChangeError::DelegationIsOver | ChangeError::NotLast(_) => Self::conflict(error.to_string()),
            ChangeError::NotAllowed(reason) => Self::conflict(format!("{reason}, and cannot be {change}")),
            ChangeError::Files(error) => error.into(),
            ChangeError::Store(error) => error.into(),
        }
    }

    /// HTTP status of the response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
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
        // Pages render the problem themselves.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "cannot use the database");
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

impl From<PlanCommandError> for Problem {
    fn from(error: PlanCommandError) -> Self {
        match error {
            PlanCommandError::Step(error) => error.into(),
            PlanCommandError::Project(error) => error.into(),
            PlanCommandError::File(why) => Self::unprocessable(why, Vec::new()),
            other => Self::conflict(other.to_string()),
        }
    }
}

impl From<FileError> for Problem {
    fn from(error: FileError) -> Self {
        Self::not_found(error.to_string())
    }
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Self {
        let detail = error.to_string();
        match error {
            RequestError::Values(errors) => {
                Self::unprocessable(detail, errors.iter().map(ToString::to_string).collect())
            }
            RequestError::Inputs(errors) => {
                let title = "The inputs do not fit the team";
                let detail = format!("team {} is called with other inputs than it declares", errors.team);
                Self { errors: errors.lines(), ..Self::new(StatusCode::CONFLICT, "inputs", title, detail) }
            }
            RequestError::TeamInvalid { diagnostics, .. } => {
                let line = |d: &Diagnostic| format!("line {}: {} ({})", d.span.line, d.message, d.help);
                Self::unprocessable(detail, diagnostics.iter().map(line).collect())
            }
            // The request is right, and the state of the server does not allow it now.
            RequestError::ProjectGone | RequestError::UnknownProject(_) | RequestError::NoAssembledTeam => {
                Self::conflict(detail)
            }
            RequestError::Project(error) => error.into(),
            RequestError::Store(error) => error.into(),
            RequestError::Interrupted(_) | RequestError::Files(_) => Self::unavailable(detail),
            _ => Self::unprocessable(detail, Vec::new()),
        }
    }
}

impl From<PhaseError> for Problem {
    fn from(error: PhaseError) -> Self {
        match error {
            PhaseError::Project(error) => error.into(),
            PhaseError::NotResumable { .. } => Self::conflict(error.to_string()),
        }
    }
}

impl From<ReviewsError> for Problem {
    fn from(error: ReviewsError) -> Self {
        match &error {
            ReviewsError::NotFound(_) => Self::not_found("there is no review of this id"),
            ReviewsError::Refused { refusal, .. } => match refusal {
                Refusal::Expired(_) => Self::gone(refusal.to_string()),
                Refusal::Decided(_) | Refusal::Cancelled(_) | Refusal::Answered(_) => {
                    Self::conflict(refusal.to_string())
                }
                Refusal::Inputs(problems) => {
                    Self::unprocessable("the form is not filled in right", problems.clone())
                }
                _ => Self::unprocessable(refusal.to_string(), Vec::new()),
            },
            _ => {
                tracing::error!(%error, "cannot use the reviews");
                Self::unavailable("the reviews cannot be used at the moment; the server's log says why")
            }
        }
    }
}

impl From<ProjectError> for Problem {
    fn from(error: ProjectError) -> Self {
        use ProjectError as P;
        match &error {
            P::UnknownTeam { nearest, .. } => {
                let hint = nearest.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                Self::conflict(format!("{error}{hint}"))
            }
            P::TeamInvalid { team, .. } | P::AssembledTeamInvalid(team) => {
                let line = |d: &Diagnostic| {
                    format!("line {}, column {}: {} ({})", d.span.line, d.span.column, d.message, d.help)
                };
                Self::unprocessable(error.to_string(), team.diagnostics.iter().map(line).collect())
            }
            P::Lock(_) | P::NoTeam | P::Builder(_) => Self::conflict(error.to_string()),
            P::Io(_) | P::File(_) => {
                tracing::error!(%error, "cannot use a file");
                Self::unavailable("a file cannot be used at the moment; the server's log says why")
            }
            _ => Self::unprocessable(error.to_string(), Vec::new()),
        }
    }
}

impl From<WorkspaceIoError> for Problem {
    fn from(error: WorkspaceIoError) -> Self {
        Self::unavailable(error.to_string())
    }
}

impl From<RegisterError> for Problem {
    fn from(error: RegisterError) -> Self {
        match error {
            RegisterError::Files(error) => error.into(),
            RegisterError::Store(error) => error.into(),
            other => Self::unavailable(other.to_string()),
        }
    }
}
