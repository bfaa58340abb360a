//! The end of a log, which grows while the run goes on.

use std::sync::Arc;

use axum::extract::State;
use maud::html;

use crate::elements::size;
use crate::page::{Page, show};
use crate::runs::short;
use crate::text::shown;
use crate::visitor::Visitor;
use cliq_web::Core;
use cliq_web::{Path, read_log};

/// Number of trailing bytes that are displayed.
const TAIL: i64 = 64 << 10;

/// The page of a log.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path((id, name)): Path<(String, String)>,
) -> Page {
    let run = core.run(&id).await?;
    let is_final = run.life.state.is_final();
    let (team, log) = (run.team.clone(), name.clone());
    let read = core.in_project(&run, move |run, _| read_log(run, &log, -TAIL, TAIL.unsigned_abs()));
    let (bytes, from, total) = read.await?;
    let end = from + bytes.len() as u64;
    let url = format!("/api/v1/runs/{id}/logs/{name}");
    let content = html! {
        h1 { (name) }
        p { a href=(format!("/runs/{id}")) { (team) " " (short(&id)) } " · " a href=(url) { "as text" } " · " (size(total)) }
        @if from > 0 { p.quiet { "The last " (size(end - from)) ". The text has all of it, by " code { "?offset=" } "." } }
        pre.log #log tabindex="0" role="region" aria-label="Log" data-log=[(!is_final).then_some(&url)] data-offset=(end) { (shown(&bytes)) }
    };
    show(&visitor, &name, "", &content)
}
