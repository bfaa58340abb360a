//! Reviews as gates of the protocol.

use cliq_acp::agent::{Gate, GateAnswer};
use cliq_project::Project;
use cliq_protocol::{Object, PhaseName};
use cliq_review::Choice;

use super::report::OpenReview;
use crate::commands::review;
use crate::failure::Failure;

/// Returns the gate of a review.
pub(super) fn of(open: &OpenReview) -> Gate {
    let OpenReview { call, phase, review } = open;
    let short = review.id.get(..8).unwrap_or(&review.id);
    let who = review.reviewers.join(", ");
    let asks = review.asks.as_ref().map(|asks| format!("{asks}\n\n")).unwrap_or_default();
    let text = format!(
        "{asks}{phase} waits for {who}, until {}. `cliq review show {short} --full` shows checks, artifacts and changes; \
         `cliq review open {short}` opens the page.",
        review.until
    );
    let hint = format!("`cliq review approve {short}`, `request-changes` or `reject` answers it.");
    let title = match &review.asks {
        Some(asks) => format!("{phase}: {asks}"),
        None => format!("Review of {phase}"),
    };
    let gate = Gate::new(review.id.clone(), call.clone(), title);
    // The agent of the phase goes on without what it is refused.
    let gate = if review.asks.is_some() { gate.with_choices("Allow once", "Refuse") } else { gate };
    gate.with_content(vec![text.into()], hint)
        .with_targets(review.route_targets.iter().map(ToString::to_string).collect())
        .with_form(review.inputs.clone())
}

/// Answers a review in the name of this machine's user.
pub(super) async fn answer(project: &Project, gate: &str, answer: GateAnswer) -> Result<(), Failure> {
    let (choice, reason, inputs) = match answer {
        GateAnswer::Approve { inputs } => (Choice::Approve, None, inputs),
        GateAnswer::Changes { to, words } => {
            let to = PhaseName::parse(&to).map_err(|error| Failure::usage(error.to_string()))?;
            (Choice::RequestChanges { to: Some(to) }, Some(words), Object::new())
        }
        GateAnswer::Reject => (Choice::Reject, None, Object::new()),
    };
    review::answer_in_editor(project, gate, choice, reason, inputs).await
}
