//! Checks of every request: rate, `Host`, `Origin`, token. Headers of every response.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::COOKIE;
use super::audit::{self, Handled};
use crate::access_log::AccessLine;
use crate::app::App;
use cliq_web::Problem;
use cliq_web::{Caller, Via};

/// Pages load nothing from elsewhere and run no script but the server's own file. Frames show PDF documents of a run.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Checks a request, and logs its response.
pub(crate) async fn guard(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let id = request_id(request.headers());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let checked = check(&app, peer, &mut request).await;
    let caller = request.extensions().get::<Caller>().cloned();
    let pattern = request.extensions().get::<MatchedPath>().cloned();
    let mut response = match checked {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    // Before the caller gets its response: what was done is on record.
    let handled = Handled {
        caller: caller.as_ref(),
        method: &method,
        pattern: pattern.as_ref().map(MatchedPath::as_str),
        path: without_secret(&path),
        status: response.status().as_u16(),
        request_id: &id,
        peer: peer.ip(),
    };
    audit::record(&app, &handled).await;
    protect(response.headers_mut(), &id);
    let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let status = response.status().as_u16();
    app.metrics.responded(status, micros);
    app.access_log.write(&AccessLine {
        request_id: &id,
        peer: peer.ip(),
        caller: caller.as_ref().map(Caller::actor),
        method: method.as_str(),
        path: without_secret(&path),
        status,
        micros,
    });
    response
}

async fn check(app: &App, peer: SocketAddr, request: &mut Request) -> Result<(), Problem> {
    if !app.gatekeeper.admits(peer.ip()) {
        return Err(Problem::too_many());
    }
    let headers = request.headers();
    let host = header_text(headers, &header::HOST).or_else(|| request.uri().host());
    let Some(host) = host.filter(|host| app.gatekeeper.hosts.allows(host)) else {
        let detail =
            "the server does not answer to this `Host`; the setting `server.allowed_hosts` lists its names";
        return Err(Problem::forbidden(detail));
    };
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let origin = header_text(headers, &header::ORIGIN);
    if changes && origin.is_some_and(|origin| !is_own_origin(origin, host)) {
        return Err(Problem::forbidden("the request comes from a page of another site"));
    }
    let Some((token, via)) = credentials(headers) else { return Ok(()) };
    if changes && via == Via::Cookie && origin.is_none() {
        return Err(Problem::forbidden(
            "a browser sends `Origin` with such a request; programs send a token",
        ));
    }
    match app.gatekeeper.check(&token, via).await? {
        Some(caller) => {
            request.extensions_mut().insert(caller);
            Ok(())
        }
        // A session that ended is as none: the browser is asked to sign in.
        None if via == Via::Cookie => Ok(()),
        None if app.gatekeeper.count_failure(peer.ip()) => Err(Problem::unauthorized()),
        None => Err(Problem::too_many()),
    }
}

/// A path as it may be logged: the link of a reviewer is a secret.
pub(crate) fn without_secret(path: &str) -> &str {
    let end = path.strip_prefix("/review/").and_then(|rest| rest.find('/'));
    end.and_then(|end| path.get(.."/review/".len() + end)).unwrap_or(path)
}

pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether an `Origin` is of the server itself. Behind a reverse proxy its scheme may be another one.
pub(crate) fn is_own_origin(origin: &str, host: &str) -> bool {
    let authority = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

/// The token of a request. A header counts more than a cookie.
fn credentials(headers: &HeaderMap) -> Option<(String, Via)> {
    if let Some(value) = header_text(headers, &header::AUTHORIZATION) {
        let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
        let token = if scheme.eq_ignore_ascii_case("bearer") { token.trim() } else { "" };
        return Some((token.to_owned(), Via::Token));
    }
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|line| line.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .find(|(name, _)| *name == COOKIE)
        .map(|(_, value)| (value.to_owned(), Via::Cookie))
}

/// The id that the caller gave the request, where it is a plain one; else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = header_text(headers, &REQUEST_ID);
    let plain = |id: &&str| {
        (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    given.filter(plain).map_or_else(|| uuid::Uuid::now_v7().to_string(), str::to_owned)
}

pub(crate) fn protect(headers: &mut HeaderMap, id: &str) {
    // A PDF document has a policy of its own: the pages of this server may frame it.
    for (name, value) in [(header::CONTENT_SECURITY_POLICY, POLICY), (header::X_FRAME_OPTIONS, "DENY")] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With `no-referrer` a browser would send `Origin: null` with a form.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Responses depend on the caller: no cache keeps them.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins() {
        assert!(is_own_origin("http://localhost:4100", "localhost:4100"));
        assert!(is_own_origin("https://cliq.example", "CLIQ.example"));
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost:4101",
            "localhost:4100",
            "file://localhost:4100",
        ] {
            assert!(!is_own_origin(origin, "localhost:4100"), "{origin}");
        }
    }

    #[test]
    fn links_of_reviewers_are_not_logged() {
        assert_eq!(without_secret("/review/abc/secret"), "/review/abc");
        assert_eq!(without_secret("/review/abc/secret/more"), "/review/abc");
        assert_eq!(without_secret("/reviews/abc/x"), "/reviews/abc/x");
        assert_eq!(without_secret("/review/abc"), "/review/abc");
    }

    #[test]
    fn a_header_counts_more_than_a_cookie() {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_static("a=b; cliq_session=x; c"));
        assert_eq!(credentials(&headers), Some(("x".to_owned(), Via::Cookie)));
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("bearer y"));
        assert_eq!(credentials(&headers), Some(("y".to_owned(), Via::Token)));
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Basic eDp5"));
        assert_eq!(credentials(&headers), Some((String::new(), Via::Token)));
    }
}
