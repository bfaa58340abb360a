//! Records of requests that change something (docs/sign-in.md).

use axum::http::Method;
use cliq_model::AuditAction;
use cliq_supervisor::internals::clock;
use cliq_web::{Caller, Via};

use crate::app::App;

/// A request with its response.
pub(super) struct Handled<'a> {
    pub(super) caller: Option<&'a Caller>,
    pub(super) method: &'a Method,
    /// Pattern of the address, such as `/api/v1/runs/{id}/cancel`.
    pub(super) pattern: Option<&'a str>,
    /// Path without secrets.
    pub(super) path: &'a str,
    pub(super) status: u16,
    pub(super) request_id: &'a str,
    pub(super) peer: std::net::IpAddr,
}

/// Records a request if it is an action. Calls of MCP and A2A are recorded where they are understood, and webhooks as firings.
pub(super) async fn record(app: &App, request: &Handled<'_>) {
    if let Some(action) = action_of(request)
        && let Err(error) = app.core.audit.add_audit(&action).await
    {
        tracing::error!(%error, action = action.action, actor = action.actor, "cannot record an action");
    }
}

fn action_of(request: &Handled<'_>) -> Option<AuditAction> {
    let path = request.path;
    let changes = !matches!(*request.method, Method::GET | Method::HEAD | Method::OPTIONS);
    let is_recorded_elsewhere = ["/mcp", "/a2a", "/hooks/"].iter().any(|prefix| path.starts_with(prefix));
    // They answer a question and change nothing.
    let is_question = ["/validate", "/test", "/try"].iter().any(|question| path.ends_with(question));
    if !changes || is_recorded_elsewhere || is_question {
        return None;
    }
    let (actor, person, via) = match request.caller {
        Some(caller) => {
            let via = if caller.via == Via::Cookie { "page" } else { "api" };
            (caller.actor().to_owned(), caller.mail().map(str::to_owned), via)
        }
        None if path.starts_with("/review/") => ("link of a reviewer".to_owned(), None, "link"),
        None => return None,
    };
    Some(AuditAction {
        ts: clock::now(),
        actor,
        person,
        via: via.to_owned(),
        action: format!("{} {}", request.method, request.pattern.unwrap_or(path)),
        target: path.to_owned(),
        outcome: request.status.to_string(),
        request_id: Some(request.request_id.to_owned()),
        peer: Some(request.peer.to_string()),
    })
}

/// Records the outcome of a sign-in.
pub(super) async fn record_sign_in(app: &App, actor: &str, mail: Option<&str>, how: &str, is_done: bool) {
    let action = AuditAction {
        ts: clock::now(),
        actor: actor.to_owned(),
        person: mail.map(str::to_owned),
        via: "page".to_owned(),
        action: "sign in".to_owned(),
        target: how.to_owned(),
        outcome: if is_done { "ok" } else { "failed" }.to_owned(),
        request_id: None,
        peer: None,
    };
    if let Err(error) = app.core.audit.add_audit(&action).await {
        tracing::error!(%error, actor, "cannot record a sign-in");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_reads_are_no_actions() {
        let request = |method: &'static Method, path: &'static str| {
            let handled = Handled {
                caller: None,
                method,
                pattern: None,
                path,
                status: 200,
                request_id: "r",
                peer: std::net::IpAddr::from([127, 0, 0, 1]),
            };
            action_of(&handled)
        };
        assert!(request(&Method::GET, "/review/a").is_none());
        assert!(request(&Method::POST, "/api/v1/runs").is_none(), "no caller is known");
        let action = request(&Method::POST, "/review/a").expect("an action");
        assert_eq!((action.via.as_str(), action.action.as_str()), ("link", "POST /review/a"));
        assert!(request(&Method::POST, "/mcp").is_none());
        assert!(request(&Method::POST, "/review/a/test").is_none());
    }
}
