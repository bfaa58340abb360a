//! Forms that a card gets when a person opens them: to answer a review, to steer or cancel a run. Each leads back to the page that it came from.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Html;
use cliq_protocol::MAX_STEERING_TEXT;
use cliq_web::{Core, Path, Problem};
use maud::html;

use crate::page::PageError;
use crate::visitor::Visitor;

/// Form of a review, as a part of a page.
pub(crate) async fn answer_form(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
) -> Result<Html<String>, PageError> {
    let form = crate::review::short_form(&core, &visitor, &id).await?;
    Ok(Html(form.into_string()))
}

/// Forms of a run that has not ended, as a part of a page.
pub(crate) async fn run_forms(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
) -> Result<Html<String>, PageError> {
    let run = core.run(&id).await?;
    if run.life.state.is_final() {
        return Ok(Html(html! { p { "The run has ended." } }.into_string()));
    }
    if !visitor.may_run() {
        return Err(Problem::forbidden("steering needs a token with the scope `run`").into());
    }
    let field = format!("guidance-{}", run.id);
    let forms = html! {
        form.stack method="post" action=(format!("/runs/{}/steer", run.id)) {
            // A form that is sent twice sends one message.
            input type="hidden" name="id" value=(uuid::Uuid::now_v7());
            input type="hidden" name="back" value="/";
            label for=(field) { "Message to the agents" }
            textarea id=(field) name="text" rows="2" required maxlength=(MAX_STEERING_TEXT) {}
            p { button.primary type="submit" { "Send" } }
        }
        form method="post" action=(format!("/runs/{}/cancel", run.id)) {
            input type="hidden" name="back" value="/";
            button.danger type="submit" disabled[run.life.cancel_requested] { "Cancel the run" }
        }
    };
    Ok(Html(forms.into_string()))
}
