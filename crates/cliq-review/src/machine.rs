//! State machine of a review.
//!
//! There is one decision at most, and after it nothing changes but the record of what was told to whom.

use cliq_protocol::{Object, PhaseName};
use serde::{Deserialize, Serialize};

use crate::comment::{AcceptedComment, Comment};
use crate::notice::{NoticeKind, NoticeState};
use crate::refusal::{MAX_COMMENT, MAX_COMMENTS, MAX_ON_LINES, MAX_WORDS, Refusal};
use crate::review::{AcceptedAnswer, Answer, AuditReference, Choice, Link, Outcome, Review, ReviewState};
use cliq_protocol::Timestamp;

/// Something that happens to a review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A reviewer answers.
    Answer(Answer),
    /// Adds a comment.
    Comment(Comment),
    /// Takes a comment away, by its author, while the review is pending.
    WithdrawComment {
        /// Id of the comment.
        id: String,
        /// Author.
        actor: String,
    },
    /// Time has passed: reminders and the deadline.
    Clock,
    /// The review is not needed any more.
    Cancel {
        /// Reason.
        reason: String,
    },
    /// A notice was sent, or not.
    NoticeSettled {
        /// The notice.
        id: String,
        /// Outcome of the notice.
        #[serde(flatten)]
        state: NoticeState,
    },
    /// Adds links: an agent that does not have the earlier ones makes its own. The newest 4 of each reviewer are valid.
    Relink {
        /// New links.
        links: Vec<Link>,
    },
    /// The record was written.
    Audited(AuditReference),
}

/// Maximum number of valid links of a reviewer.
const MAX_LINKS: usize = 4;

impl Review {
    /// The review after an event; `None` if the event changes nothing.
    ///
    /// # Errors
    /// An answer, or a cancellation, that does not count, with the reason.
    pub fn step(&self, event: &Event, now: Timestamp) -> Result<Option<Self>, Refusal> {
        match event {
            Event::Answer(answer) => self.answer(answer, now).map(Some),
            Event::Comment(comment) => self.comment(comment, now),
            Event::WithdrawComment { id, actor } => self.withdraw_comment(id, actor, now),
            Event::Clock => Ok(self.clock(now)),
            Event::Cancel { .. } if !self.is_pending() => Ok(None),
            Event::Cancel { reason } => {
                let state = ReviewState::Cancelled { at: now, reason: reason.clone() };
                Ok(Some(self.ended(state, now)))
            }
            Event::NoticeSettled { id, state } => {
                let mut next = self.clone();
                let notice = next.notices.iter_mut().find(|notice| notice.id == *id);
                let Some(notice) = notice.filter(|notice| notice.state == NoticeState::Planned) else {
                    return Ok(None);
                };
                notice.state = state.clone();
                Ok((*state != NoticeState::Planned).then_some(next))
            }
            Event::Relink { links } if self.is_pending() => {
                let mut valid: Vec<Link> = Vec::new();
                for link in links.iter().chain(&self.links) {
                    let own = valid.iter().filter(|known| known.reviewer == link.reviewer);
                    if own.count() < MAX_LINKS {
                        valid.push(link.clone());
                    }
                }
                Ok(Some(Self { links: valid, ..self.clone() }))
            }
            Event::Relink { .. } => Ok(None),
            Event::Audited(audit) if !self.is_pending() && self.audit.is_none() => {
                Ok(Some(Self { audit: Some(audit.clone()), ..self.clone() }))
            }
            Event::Audited(_) => Ok(None),
        }
    }

    /// Whether nothing can be answered any more, and why.
    fn refusal(&self, now: Timestamp) -> Option<Refusal> {
        match &self.state {
            ReviewState::Pending if now >= self.deadline => Some(Refusal::Expired(self.deadline)),
            ReviewState::Pending => None,
            ReviewState::Decided { .. } => Some(Refusal::Decided(self.ending().unwrap_or_default())),
            ReviewState::Expired { .. } => Some(Refusal::Expired(self.deadline)),
            ReviewState::Cancelled { reason, .. } => Some(Refusal::Cancelled(reason.clone())),
        }
    }

    fn answer(&self, answer: &Answer, now: Timestamp) -> Result<Self, Refusal> {
        if let Some(refusal) = self.refusal(now) {
            return Err(refusal);
        }
        self.reviewer_for(Some(&answer.reviewer), &answer.actor)?;
        if self.answers.iter().any(|a| a.answer.reviewer == answer.reviewer) {
            return Err(Refusal::Answered(answer.reviewer.clone()));
        }
        let reason =
            answer.reason.as_deref().map(str::trim).filter(|words| !words.is_empty()).map(str::to_owned);
        if reason.as_ref().is_some_and(|words| words.len() > MAX_WORDS) {
            return Err(Refusal::TooLong);
        }
        let (choice, outcome) = match &answer.choice {
            Choice::Approve => (Choice::Approve, None),
            Choice::Reject => (Choice::Reject, Some(Outcome::Rejected)),
            Choice::RequestChanges { to } => {
                let to = self.target(to.as_ref())?;
                if reason.is_none() && self.on_lines().next().is_none() {
                    return Err(Refusal::NoWords);
                }
                (Choice::RequestChanges { to: Some(to.clone()) }, Some(Outcome::ChangesRequested { to }))
            }
        };
        let inputs: Object =
            self.form.check(&answer.inputs, choice == Choice::Approve).map_err(Refusal::Inputs)?;
        let mut next = self.clone();
        let answer = Answer { choice, reason, inputs, ..answer.clone() };
        next.answers.push(AcceptedAnswer { at: now, answer });
        let outcome = outcome.or_else(|| next.is_satisfied().then_some(Outcome::Approved));
        Ok(match outcome {
            Some(outcome) => next.ended(ReviewState::Decided { at: now, outcome }, now),
            None => next,
        })
    }

    fn comment(&self, comment: &Comment, now: Timestamp) -> Result<Option<Self>, Refusal> {
        let is_same =
            |known: &AcceptedComment| known.comment.id == comment.id && known.comment.actor == comment.actor;
        if let Some(known) = self.comments.iter().find(|known| is_same(known)) {
            let is_repeated =
                known.comment.text == comment.text.trim() && known.comment.place == comment.place;
            return if is_repeated || self.refusal(now).is_some() {
                Ok(None)
            } else {
                Err(Refusal::CommentId)
            };
        }
        if let Some(refusal) = self.refusal(now) {
            return Err(refusal);
        }
        let text = comment.text.trim();
        if text.is_empty() || text.len() > MAX_COMMENT {
            return Err(Refusal::CommentLength);
        }
        if self.comments.len() >= MAX_COMMENTS {
            return Err(Refusal::TooManyComments);
        }
        let on_lines: usize = self.on_lines().map(|(_, words)| words.len()).sum();
        if comment.place.is_some() && on_lines + text.len() > MAX_ON_LINES {
            return Err(Refusal::CommentsTooLong);
        }
        let mut next = self.clone();
        let comment = Comment { text: text.to_owned(), ..comment.clone() };
        next.comments.push(AcceptedComment { at: now, comment });
        Ok(Some(next))
    }

    fn withdraw_comment(&self, id: &str, actor: &str, now: Timestamp) -> Result<Option<Self>, Refusal> {
        let is_it = |known: &&AcceptedComment| known.comment.id == id;
        let own = self.comments.iter().find(|known| is_it(known) && known.comment.actor == actor);
        let Some(own) = own.or_else(|| self.comments.iter().find(is_it)) else { return Ok(None) };
        if let Some(refusal) = self.refusal(now) {
            return Err(refusal);
        }
        if own.comment.actor != actor {
            return Err(Refusal::NotYourComment(own.comment.actor.clone()));
        }
        let mut next = self.clone();
        next.comments.retain(|known| known.comment.id != id || known.comment.actor != actor);
        Ok(Some(next))
    }

    fn target(&self, to: Option<&PhaseName>) -> Result<PhaseName, Refusal> {
        let known = || {
            let names: Vec<&str> = self.route_targets.iter().map(PhaseName::as_str).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        match (to, self.route_targets.as_slice()) {
            (None, [only]) => Ok(only.clone()),
            (None, _) => Err(Refusal::Target { to: "no phase in particular".to_owned(), known: known() }),
            (Some(to), targets) if targets.contains(to) => Ok(to.clone()),
            (Some(to), _) => Err(Refusal::Target { to: format!("`{to}`"), known: known() }),
        }
    }

    fn clock(&self, now: Timestamp) -> Option<Self> {
        if !self.is_pending() {
            return None;
        }
        if now >= self.deadline {
            return Some(self.ended(ReviewState::Expired { at: now }, now));
        }
        let every = self.remind_every.filter(|every| *every > 0)?;
        let seconds = now.since(self.created).as_secs();
        let number = seconds / every;
        if number <= self.reminders {
            return None;
        }
        // One reminder, however many were missed.
        let mut next = self.clone();
        next.reminders = number;
        let ways = self.ways(|name| self.waits_for().contains(&name));
        next.plan(NoticeKind::Reminder, &format!("r{number}-"), ways, now);
        Some(next)
    }

    fn ended(&self, state: ReviewState, now: Timestamp) -> Self {
        let mut next = self.clone();
        // Requests and reminders that were not sent yet have no sense any more.
        next.notices.retain(|notice| notice.state != NoticeState::Planned);
        let told: Vec<_> = next.ways(|_| true);
        next.state = state;
        next.plan(NoticeKind::Outcome, "o", told, now);
        next
    }
}
