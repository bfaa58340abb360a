//! Pages of runs and reviews in the browser.

use cliq_terminal::{ActionResult, RunKey, Source};

use super::machine::{Machine, sentence};
use super::server_api::ServerApi;
use crate::commands::review::show_link;
use crate::commands::server;
use crate::gateway;

/// Opens the page of a run on the server of this machine, or the page of its review without one. Without a desktop the link is shown.
pub(super) fn open(machine: &Machine, run: &RunKey) -> Result<ActionResult, String> {
    let known = machine.known(run)?;
    let link = match ServerApi::record() {
        Some(record) if has_run(machine, &known.id) => {
            let link = server::link(&record).map_err(|failure| sentence(&failure))?;
            format!("{link}&to=/runs/{}", known.id)
        }
        _ => review_link(machine, run)?,
    };
    let home = gateway::home().map_err(|failure| sentence(&failure))?;
    let is_opened = show_link(&home, &link);
    let message = if is_opened { "opened in the browser".to_owned() } else { String::new() };
    Ok(ActionResult { message, chosen: None, link: Some(link).filter(|_| !is_opened) })
}

/// Whether the server has the run: it follows runs of registered projects only.
fn has_run(machine: &Machine, id: &str) -> bool {
    matches!(machine.server.get(&format!("/runs/{id}")), Ok(Some(_)))
}

/// Link to the page of the pending review of a run, which the run itself serves.
fn review_link(machine: &Machine, run: &RunKey) -> Result<String, String> {
    let none = if ServerApi::record().is_some() {
        "the server does not know this run: register its project on the page \"Projects\" of the server"
    } else {
        "no page shows this run: `cliq server start` serves pages of registered projects"
    };
    let detail = machine.detail(run)?;
    let review = detail.phases.iter().find_map(|phase| phase.review.clone()).ok_or(none)?;
    let home = gateway::home().map_err(|failure| sentence(&failure))?;
    let kept = cliq_project::internals::kept_review(&home, &review).ok_or(none)?;
    let found = machine.review(run, &review)?;
    let reviewer = found.review.reviewer_for(None, &crate::reviews::user());
    let reviewer = reviewer.map_err(|refusal| refusal.to_string())?;
    kept.link(&reviewer).ok_or_else(|| none.to_owned())
}
