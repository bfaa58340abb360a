//! Tokens of callers: list, creation, revocation. For admins.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Redirect;
use cliq_model::{Scope, Token};
use cliq_protocol::Timestamp;
use cliq_supervisor::internals::clock;
use cliq_web::{Core, Form, Path, Problem, create_token};
use maud::{Markup, html};

use crate::elements::{ago, badge, empty};
use crate::page::{Page, PageError, show};
use crate::text::shown;
use crate::visitor::Visitor;

/// Choices of validity, in days. 0 stands for no end.
const VALIDITY: [(u32, &str); 4] = [(30, "30 days"), (90, "90 days"), (365, "one year"), (0, "no end")];

/// The list of tokens.
pub(super) async fn page(visitor: Visitor, State(core): State<Arc<Core>>) -> Page {
    visitor.demand(Scope::Admin)?;
    list(&visitor, &core, None).await
}

/// Creates a token and shows it. No later page contains it.
pub(super) async fn create(visitor: Visitor, State(core): State<Arc<Core>>, form: Form) -> Page {
    visitor.demand(Scope::Admin)?;
    let invalid =
        |field: &str| Problem::unprocessable(format!("`{field}` is not one of the choices"), Vec::new());
    let scope = Scope::parse(form.get("scope").unwrap_or("read")).ok_or_else(|| invalid("scope"))?;
    let days: u32 = form.get("days").unwrap_or("0").parse().map_err(|_| invalid("days"))?;
    let label = form.get("label").unwrap_or_default();
    let secret = create_token(&core, label, scope, Some(days).filter(|days| *days > 0)).await?;
    let created = html! {
        div.note role="status" {
            p { strong { "The token “" (label) "” was created." } " Copy it now: it is not shown again." }
            pre #token tabindex="0" role="region" aria-label="Token" { (secret.reveal()) }
        }
    };
    list(&visitor, &core, Some(&created)).await
}

/// Revokes a token and shows the list.
pub(super) async fn revoke(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
) -> Result<Redirect, PageError> {
    visitor.demand(Scope::Admin)?;
    core.runs.revoke_token(&id).await.map_err(Problem::from)?;
    Ok(Redirect::to("/tokens"))
}

async fn list(visitor: &Visitor, core: &Core, created: Option<&Markup>) -> Page {
    let tokens = core.runs.tokens().await?;
    let now = clock::now();
    let content = html! {
        h1 { "Tokens" }
        p { "A program sends a token with each request: " code { "Authorization: Bearer cliq_…" } ". The server stores a hash of it." }
        @if let Some(created) = created { (created) }
        @if tokens.is_empty() { (empty("No tokens. The form below creates one.")) } @else {
            table {
                thead { tr { th { "Label" } th { "Scope" } th { "Created" } th { "Expires" } th { span.hidden { "Actions" } } } }
                tbody { @for token in &tokens { (row(token, now)) } }
            }
        }
        h2 { "New token" }
        form.stack method="post" action="/tokens" {
            label for="label" { "Label" }
            input #label name="label" maxlength="100" required placeholder="continuous integration";
            label for="scope" { "Scope" }
            select #scope name="scope" {
                option value="read" { "read: see everything but tokens" }
                option value="run" { "run: also start, cancel and steer runs" }
                option value="edit" { "edit: also write, try, install and publish teams" }
                option value="admin" { "admin: also projects and tokens" }
            }
            label for="days" { "Valid for" }
            select #days name="days" {
                @for (days, text) in VALIDITY { option value=(days) selected[days == 90] { (text) } }
            }
            button.primary type="submit" { "Create token" }
        }
    };
    show(visitor, "Tokens", "/tokens", &content)
}

fn row(token: &Token, now: Timestamp) -> Markup {
    let is_expired = token.expires_at.is_some_and(|end| end <= now);
    html! {
        tr {
            td.title { strong { (shown(token.label.as_bytes())) } " " code.quiet { "cliq_" (token.id) "_…" } }
            td data-label="scope" { (token.scope.as_str()) }
            td data-label="created" { (ago(token.created_at)) }
            td data-label="expires" {
                @match &token.expires_at {
                    Some(_) if is_expired => (badge("expired")),
                    Some(end) => time datetime=(end) title=(end) { (end.to_string().chars().take(10).collect::<String>()) },
                    None => "never",
                }
            }
            td {
                form.inline method="post" action=(format!("/tokens/{}/revoke", token.id)) {
                    button.danger type="submit" aria-label=(format!("Revoke {}", token.label)) { "Revoke" }
                }
            }
        }
    }
}
