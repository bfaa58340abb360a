//! Reviews about requests of agents at work (docs/agents.md).

use cliq_protocol::{AskAnswer, ReviewSubject};

use crate::review::{AcceptedAnswer, Outcome, Review, ReviewState};

impl Review {
    /// Makes the review one about a request of an agent at work. Its `evaluation` is then the number of the request.
    #[must_use]
    pub fn about(self, subject: ReviewSubject) -> Self {
        Self { subject: Some(subject), ..self }
    }

    /// Outcome of the request of an agent at work. `None` while it is pending, and for the review of a human gate.
    #[must_use]
    pub fn ask_answer(&self) -> Option<AskAnswer> {
        self.subject.as_ref()?;
        let last = self.answers.last();
        let by = last.map(AcceptedAnswer::by).unwrap_or_default();
        let reason = last.and_then(|last| last.answer.reason.clone());
        Some(match &self.state {
            ReviewState::Pending => return None,
            ReviewState::Decided { outcome: Outcome::Approved, .. } => {
                let all: Vec<String> = self.answers.iter().map(AcceptedAnswer::by).collect();
                AskAnswer::Approved { by: all.join(" and "), reason, inputs: self.inputs() }
            }
            ReviewState::Decided {
                outcome: Outcome::ChangesRequested { .. } | Outcome::Rejected, ..
            } => AskAnswer::Rejected { by, reason },
            ReviewState::Expired { .. } => AskAnswer::Expired {
                reason: format!("{} did not answer until {}", self.reviewers, self.deadline),
            },
            ReviewState::Cancelled { reason, .. } => AskAnswer::Withdrawn { reason: reason.clone() },
        })
    }
}
