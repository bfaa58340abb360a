//! A review: the question, who has to answer, and how it stands.

use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_protocol::{
    Form, Object, Outcome as GateOutcome, PhaseName, ReviewSpec, ReviewSubject, Reviewers, RunId, TeamName,
    Verdict, WaitingReview,
};
use serde::{Deserialize, Serialize};

use crate::comment::{self, AcceptedComment};
use crate::id::{LinkToken, ReviewId};
use crate::notice::{Notice, NoticeKind, NoticeState};
use crate::people::{Channel, first_sufficient, is_all};
use crate::place::Place;
use crate::refusal::Refusal;
use crate::via::Via;
use cliq_protocol::Timestamp;

/// Choice of a reviewer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Choice {
    /// The run goes on: PASS.
    Approve,
    /// A phase works again: ROUTE.
    RequestChanges {
        /// The phase. May be left out where there is only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<PhaseName>,
    },
    /// The run ends: ESCALATE.
    Reject,
}

impl Choice {
    /// The word for it, as on the command line.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::RequestChanges { .. } => "request-changes",
            Self::Reject => "reject",
        }
    }

    /// The choice in the past tense: `approved`.
    #[must_use]
    pub fn done(&self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::RequestChanges { .. } => "requested changes",
            Self::Reject => "rejected",
        }
    }
}

/// An answer of a reviewer, as it comes in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// In whose name.
    pub reviewer: String,
    /// Actual person: the user of the machine, or the label of a token.
    pub actor: String,
    /// The way by which it came.
    pub via: Via,
    /// Choice of the reviewer.
    #[serde(flatten)]
    pub choice: Choice,
    /// The words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Values of the form.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub inputs: Object,
}

/// An answer that counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AcceptedAnswer {
    /// Time of arrival.
    pub at: Timestamp,
    /// The answer. Its inputs have the types of the form, and a request for changes has its phase.
    #[serde(flatten)]
    pub answer: Answer,
}

impl AcceptedAnswer {
    /// Returns the answering person for people: the reviewer, and the actor if that is another person.
    #[must_use]
    pub fn by(&self) -> String {
        let Answer { reviewer, actor, .. } = &self.answer;
        if actor == reviewer { reviewer.clone() } else { format!("{reviewer} (by {actor})") }
    }
}

/// Outcome of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The run goes on.
    Approved,
    /// A phase works again.
    ChangesRequested {
        /// The phase.
        to: PhaseName,
    },
    /// The run ends.
    Rejected,
}

/// State of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ReviewState {
    /// The review is pending.
    Pending,
    /// The review is decided.
    Decided {
        /// Time.
        at: Timestamp,
        /// Outcome of the review.
        #[serde(flatten)]
        outcome: Outcome,
    },
    /// The deadline has passed.
    Expired {
        /// Time at which that was seen.
        at: Timestamp,
    },
    /// The review is no longer needed.
    Cancelled {
        /// Time.
        at: Timestamp,
        /// Reason.
        reason: String,
    },
}

impl ReviewState {
    /// The word for it, as in JSON and in the store.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Decided { .. } => "decided",
            Self::Expired { .. } => "expired",
            Self::Cancelled { .. } => "cancelled",
        }
    }
}

/// Stored form of a reviewer's link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Owner.
    pub reviewer: String,
    /// The SHA-256 of its token.
    pub sha256: String,
}

/// Reference to the record of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditReference {
    /// The file, from the workspace.
    pub file: String,
    /// SHA-256 of the file.
    pub sha256: String,
}

/// A review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Review {
    /// Id of the review.
    pub id: ReviewId,
    /// The workspace of the run.
    pub project: Utf8PathBuf,
    /// The team.
    pub team: TeamName,
    /// Title of the run, if it has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The run.
    pub run_id: RunId,
    /// The phase that waits.
    pub phase: PhaseName,
    /// Number of the phase's evaluation, 1-based.
    pub iteration: u32,
    /// Maximum number of evaluations.
    pub max_iterations: u32,
    /// Number of the phase's evaluation in the whole run.
    pub evaluation: u32,
    /// Number of the review for this evaluation, 1-based. Earlier ones were cancelled.
    pub attempt: u32,
    /// Reviewers who must approve.
    pub reviewers: Reviewers,
    /// Phases that may be asked to work again.
    #[serde(default)]
    pub route_targets: Vec<PhaseName>,
    /// Form for the reviewers.
    #[serde(default, skip_serializing_if = "Form::is_empty")]
    pub form: Form,
    /// Request of an agent at work, if the review is about one and not of a human gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<ReviewSubject>,
    /// When it was made.
    pub created: Timestamp,
    /// When it expires.
    pub deadline: Timestamp,
    /// Interval of reminders in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remind_every: Option<u64>,
    /// The number of the last reminder.
    #[serde(default)]
    pub reminders: u64,
    /// The links of the reviewers.
    #[serde(default)]
    pub links: Vec<Link>,
    /// The notifications of its reviewers.
    #[serde(default)]
    pub notices: Vec<Notice>,
    /// The answers that count.
    #[serde(default)]
    pub answers: Vec<AcceptedAnswer>,
    /// Comments, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<AcceptedComment>,
    /// State of the review.
    #[serde(flatten)]
    pub state: ReviewState,
    /// Reference to the record, once the record is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditReference>,
}

/// Parts of a new review.
#[derive(Debug, Clone)]
pub struct NewReview {
    /// See [`Review`].
    pub id: ReviewId,
    /// See [`Review`].
    pub project: Utf8PathBuf,
    /// See [`Review`].
    pub team: TeamName,
    /// See [`Review`].
    pub title: Option<String>,
    /// See [`Review`].
    pub run_id: RunId,
    /// See [`Review`].
    pub phase: PhaseName,
    /// See [`Review`].
    pub iteration: u32,
    /// See [`Review`].
    pub max_iterations: u32,
    /// See [`Review`].
    pub evaluation: u32,
    /// See [`Review`].
    pub attempt: u32,
    /// The review block of the phase.
    pub spec: ReviewSpec,
    /// Reviewers, with groups replaced by their members.
    pub reviewers: Reviewers,
    /// See [`Review`].
    pub route_targets: Vec<PhaseName>,
    /// Channels of each reviewer.
    pub channels: Vec<(String, Vec<Channel>)>,
    /// See [`Review`].
    pub links: Vec<Link>,
    /// Time of creation.
    pub now: Timestamp,
}

impl Review {
    /// A review that waits, with notices of the request.
    #[must_use]
    pub fn new(new: NewReview) -> Self {
        let mut review = Self {
            id: new.id,
            project: new.project,
            team: new.team,
            title: new.title,
            run_id: new.run_id,
            phase: new.phase,
            iteration: new.iteration,
            max_iterations: new.max_iterations,
            evaluation: new.evaluation,
            attempt: new.attempt,
            reviewers: new.reviewers,
            route_targets: new.route_targets,
            form: new.spec.inputs,
            subject: None,
            created: new.now,
            deadline: new.now.after(new.spec.timeout),
            remind_every: new.spec.remind_every.map(|every| every.as_secs()),
            reminders: 0,
            links: new.links,
            notices: Vec::new(),
            answers: Vec::new(),
            comments: Vec::new(),
            state: ReviewState::Pending,
            audit: None,
        };
        let names: Vec<String> = review.reviewers.names().into_iter().map(str::to_owned).collect();
        let known = new.channels.into_iter().filter(|(name, _)| names.contains(name));
        let ways = known
            .flat_map(|(name, channels)| channels.into_iter().map(move |channel| (name.clone(), channel)));
        review.plan(NoticeKind::Request, "q", ways.collect(), new.now);
        review
    }

    /// Returns the unique key of the review: run, phase, evaluation or number of the request, attempt.
    #[must_use]
    pub fn key(&self) -> String {
        let Self { run_id, phase, evaluation, attempt, subject, .. } = self;
        let ask = if subject.is_some() { "ask-" } else { "" };
        format!("{run_id}/{phase}/{ask}{evaluation}/{attempt}")
    }

    /// Whether it waits.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.state == ReviewState::Pending
    }

    /// Whether a reviewer approved.
    fn approves(&self, name: &str) -> bool {
        self.answers.iter().any(|a| a.answer.reviewer == name && a.answer.choice == Choice::Approve)
    }

    /// Reviewers who have not answered and whose answer still matters. Empty once it is over.
    #[must_use]
    pub fn waits_for(&self) -> Vec<&str> {
        let mut names = Vec::new();
        if self.is_pending() {
            self.missing(&self.reviewers, &mut names);
        }
        names
    }

    fn missing<'a>(&'a self, reviewers: &'a Reviewers, names: &mut Vec<&'a str>) {
        if reviewers.is_satisfied(&|name: &str| self.approves(name)) {
            return;
        }
        match reviewers {
            Reviewers::Name(name) if names.contains(&name.as_str()) => {}
            Reviewers::Name(name) => names.push(name),
            Reviewers::Group { members, .. } => members.iter().for_each(|member| self.missing(member, names)),
        }
    }

    pub(crate) fn is_satisfied(&self) -> bool {
        self.reviewers.is_satisfied(&|name: &str| self.approves(name))
    }

    /// The reviewer of an answer that may name none: the actor, if a reviewer; the only one who is waited for; one whose approval alone
    /// is enough.
    ///
    /// # Errors
    /// `named` is not a reviewer; or several have to answer, and it is not clear which of them this is.
    pub fn reviewer_for(&self, named: Option<&str>, actor: &str) -> Result<String, Refusal> {
        let names = self.reviewers.names();
        if let Some(named) = named {
            return match names.iter().find(|name| **name == named) {
                Some(name) => Ok((*name).to_owned()),
                None => Err(Refusal::NotAReviewer { name: named.to_owned(), known: names.join(", ") }),
            };
        }
        if names.contains(&actor) {
            return Ok(actor.to_owned());
        }
        let waits_for = self.waits_for();
        let approves = |name: &str| self.approves(name);
        let found = match waits_for.as_slice() {
            [only] => Some(*only),
            _ if is_all(&self.reviewers) => None,
            _ => first_sufficient(&self.reviewers, &approves),
        };
        match found {
            Some(name) => Ok(name.to_owned()),
            // Refused for a better reason by the machine.
            None if !self.is_pending() => {
                Ok(names.first().map(|name| (*name).to_owned()).unwrap_or_default())
            }
            None => Err(Refusal::WhichReviewer { names: waits_for.join(", ") }),
        }
    }

    /// The reviewer whose link has this token.
    #[must_use]
    pub fn reviewer_of(&self, token: &LinkToken) -> Option<&str> {
        self.links.iter().find(|link| token.matches(&link.sha256)).map(|link| link.reviewer.as_str())
    }

    /// Returns the values of the form from all answers. If two reviewers filled in the same field, the later answer counts.
    #[must_use]
    pub fn inputs(&self) -> Object {
        self.answers.iter().flat_map(|a| a.answer.inputs.clone()).collect()
    }

    /// Comments on lines with their words, in their order. They go along with a request for changes.
    pub fn on_lines(&self) -> impl Iterator<Item = (&Place, &str)> {
        self.comments
            .iter()
            .filter_map(|said| Some((said.comment.place.as_ref()?, said.comment.text.as_str())))
    }

    /// The gate's verdict. `None` while it waits, and where it was cancelled.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        let last = self.answers.last();
        let words = last.and_then(|last| last.answer.reason.clone());
        let with_words = |head: String| match &words {
            Some(words) => format!("{head}: {words}"),
            None => head,
        };
        let verdict = match &self.state {
            ReviewState::Pending | ReviewState::Cancelled { .. } => return None,
            ReviewState::Decided { outcome: Outcome::Approved, .. } => {
                let by: Vec<String> = self.answers.iter().map(AcceptedAnswer::by).collect();
                Verdict::pass(with_words(format!("approved by {}", by.join(" and "))))
            }
            // What is to be done, in the reviewer's words and the comments on lines.
            ReviewState::Decided { outcome: Outcome::ChangesRequested { to }, .. } => {
                let on_lines = self.on_lines().next().map(|_| comment::instructions(self.on_lines()));
                let parts: Vec<&str> = words.as_deref().into_iter().chain(on_lines.as_deref()).collect();
                let mut verdict = Verdict::route(to.clone(), parts.join("\n\n"));
                if on_lines.is_some() {
                    verdict.extra.insert("comments".to_owned(), comment::documents(self.on_lines()));
                }
                verdict
            }
            ReviewState::Decided { outcome: Outcome::Rejected, .. } => {
                let by = last.map(AcceptedAnswer::by).unwrap_or_default();
                Verdict::escalate(with_words(format!("rejected by {by}")))
            }
            ReviewState::Expired { .. } => {
                let deadline = self.deadline;
                Verdict::escalate(format!(
                    "the review expired: {} did not answer until {deadline}",
                    self.reviewers
                ))
            }
        };
        debug_assert!(
            !matches!(verdict.outcome, GateOutcome::Route(_))
                || !verdict.reason.as_deref().unwrap_or_default().is_empty()
        );
        Some(verdict)
    }

    /// Returns the end of the review in a sentence, or `None` while it is pending.
    #[must_use]
    pub fn ending(&self) -> Option<String> {
        let last = self.answers.last();
        let by = last.map(AcceptedAnswer::by).unwrap_or_default();
        let via = last.map(|last| last.answer.via.as_str()).unwrap_or_default();
        Some(match &self.state {
            ReviewState::Pending => return None,
            ReviewState::Decided { at, outcome: Outcome::Approved } => {
                let all: Vec<String> = self.answers.iter().map(AcceptedAnswer::by).collect();
                format!("approved by {} at {at} ({via})", all.join(" and "))
            }
            ReviewState::Decided { at, outcome: Outcome::ChangesRequested { to } } => {
                format!("{by} requested changes by {to} at {at} ({via})")
            }
            ReviewState::Decided { at, outcome: Outcome::Rejected } => {
                format!("rejected by {by} at {at} ({via})")
            }
            ReviewState::Expired { .. } => format!("expired at {}", self.deadline),
            ReviewState::Cancelled { at, reason } => format!("cancelled at {at}: {reason}"),
        })
    }

    /// As displays of the run show it. `page` is its address for people who are signed in.
    #[must_use]
    pub fn waiting(&self, page: Option<String>) -> WaitingReview {
        WaitingReview {
            id: self.id.to_string(),
            reviewers: self.waits_for().into_iter().map(str::to_owned).collect(),
            since: self.created.into(),
            until: self.deadline.into(),
            due: None,
            others: Vec::new(),
            page,
            route_targets: self.route_targets.clone(),
            inputs: self.form.clone(),
            asks: self.subject.as_ref().map(ReviewSubject::sentence),
            answer: self.subject.as_ref().and_then(|subject| Some(self.ask_answer()?.sentence(subject))),
        }
    }

    /// Time at which its state changes by itself: the next reminder, or the deadline. `None` once it is over.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        if !self.is_pending() {
            return None;
        }
        let reminder = self.remind_every.map(|every| {
            let after = every.saturating_mul(self.reminders + 1);
            self.created.after(Duration::from_secs(after))
        });
        Some(reminder.map_or(self.deadline, |reminder| reminder.min(self.deadline)))
    }

    /// Notices that are to be sent.
    pub fn planned_notices(&self) -> impl Iterator<Item = &Notice> {
        self.notices.iter().filter(|notice| notice.state == NoticeState::Planned)
    }

    pub(crate) fn plan(&mut self, kind: NoticeKind, mark: &str, ways: Vec<(String, Channel)>, at: Timestamp) {
        for (n, (reviewer, channel)) in ways.into_iter().enumerate() {
            let id = format!("{}-{mark}{n}", self.id);
            self.notices.push(Notice { id, kind, reviewer, channel, at, state: NoticeState::Planned });
        }
    }

    /// The ways by which reviewers were asked, of those whose name is chosen.
    pub(crate) fn ways(&self, chosen: impl Fn(&str) -> bool) -> Vec<(String, Channel)> {
        let requests = self.notices.iter().filter(|notice| notice.kind == NoticeKind::Request);
        let requests = requests.filter(|notice| chosen(&notice.reviewer));
        requests.map(|notice| (notice.reviewer.clone(), notice.channel.clone())).collect()
    }
}
