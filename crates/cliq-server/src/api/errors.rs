//! The problems that each group of operations can give, for the description.
#![expect(dead_code, reason = "these types describe responses; handlers give `Problem`")]

use utoipa::IntoResponses;

use cliq_web::Problem;

/// Of every operation.
#[derive(IntoResponses)]
pub(crate) enum Reading {
    /// The request is malformed.
    #[response(status = 400, content_type = "application/problem+json")]
    BadRequest(#[to_schema] Problem),
    /// A valid token is needed.
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthorized(#[to_schema] Problem),
    /// The token does not allow this.
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(#[to_schema] Problem),
    /// There is no such thing.
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(#[to_schema] Problem),
    /// The workspace is gone.
    #[response(status = 410, content_type = "application/problem+json")]
    Gone(#[to_schema] Problem),
    /// Too many requests.
    #[response(status = 429, content_type = "application/problem+json")]
    TooMany(#[to_schema] Problem),
    /// The database or a file cannot be used now.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(#[to_schema] Problem),
}

/// Of operations that change something, beside those of [`Reading`].
#[derive(IntoResponses)]
pub(crate) enum Changing {
    /// The body did not arrive in time.
    #[response(status = 408, content_type = "application/problem+json")]
    Timeout(#[to_schema] Problem),
    /// The state does not allow this.
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(#[to_schema] Problem),
    /// The body is too large.
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(#[to_schema] Problem),
    /// The type of the body is not supported.
    #[response(status = 415, content_type = "application/problem+json")]
    MediaType(#[to_schema] Problem),
    /// The request cannot be carried out.
    #[response(status = 422, content_type = "application/problem+json")]
    Invalid(#[to_schema] Problem),
}
