//! The wait for the end of a review as a state machine: what the agent of a human gate does next.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use cliq_protocol::{Timestamp, WaitingReview};

use crate::machine::Event;
use crate::notice::{Notice, NoticeState};
use crate::review::Review;

/// Interval of the check that the pages are still served.
const PAGES: Duration = Duration::from_secs(5);
/// Maximum time of a delivery without an outcome. The limit of the delivery itself is shorter.
const DELIVERY: Duration = Duration::from_secs(120);

/// Wait for the end of a review. Each [`WaitEffect`] is answered with one [`WaitEvent`].
#[derive(Debug, Clone)]
pub struct ReviewWait {
    review: Review,
    stage: Stage,
    /// Uptime of the agent from which on the pages are checked again.
    next_look: Duration,
    pages: Pages,
    waker: Waker,
    /// Whether the store did not answer the last request.
    is_away: bool,
    /// Uptime at the request for each notice that this agent requested.
    requested: HashMap<String, Duration>,
    /// Notices of this round that were not checked.
    unchecked: VecDeque<Notice>,
    /// Whether the review was over before the notices of this round.
    was_over: bool,
    reported: Option<WaitingReview>,
}

/// Request that a wait expects the answer of, if the answer alone does not tell.
#[derive(Debug, Clone)]
enum Stage {
    Other,
    /// The clock is applied, before the notices.
    Clock,
    /// The record of this notice is read.
    Check(Notice),
    /// The wait is reported, after the notices.
    Report,
}

/// Point in time for a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Time of the clock. It may jump.
    pub time: Timestamp,
    /// Time since the agent started. It never jumps.
    pub uptime: Duration,
}

/// Pages of the review for people who are signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pages {
    /// There are none.
    None,
    /// Pages below this base URL.
    At(String),
}

/// Program that wakes a parked run after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waker {
    /// The program that has the review has the run too.
    Present,
    /// The server that has the review does not have the run.
    Absent,
    /// The server that has the review was not asked yet, or did not answer.
    Unknown,
}

/// Record of a delivery that the orchestrator keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// No request for the delivery has arrived.
    None,
    /// The delivery has started.
    Begun,
    /// The delivery has ended.
    Settled(NoticeState),
}

/// Event of a wait.
#[derive(Debug, Clone, PartialEq)]
pub enum WaitEvent {
    /// The agent has started, or its pause is over.
    Woken {
        /// Time of the event.
        now: Moment,
    },
    /// As `Woken`, and the agent was asked to end.
    Cancelled,
    /// The pages were located.
    Located {
        /// Pages that are served now.
        pages: Pages,
        /// Program that wakes the run, if it was asked for.
        waker: Option<Waker>,
    },
    /// The store returned the review.
    Fetched {
        /// The review.
        review: Box<Review>,
        /// Time of the event.
        now: Moment,
    },
    /// The store did not answer.
    Unreachable {
        /// Reason, for people.
        reason: String,
    },
    /// An event was applied to the review. `None` if the store refused it or did not answer.
    Applied(Option<Box<Review>>),
    /// The record of a delivery was read.
    Checked {
        /// Record of the delivery.
        delivery: Delivery,
        /// Time of the event.
        now: Moment,
    },
    /// The effect without a result was performed.
    Done,
}

/// Effect of a wait, for the agent to perform.
#[derive(Debug, Clone, PartialEq)]
pub enum WaitEffect {
    /// Make sure that pages are served, and return [`WaitEvent::Located`].
    Locate {
        /// Whether to ask the server that has the review if it has the run too.
        asks_waker: bool,
    },
    /// Fetch the review, and return [`WaitEvent::Fetched`] or [`WaitEvent::Unreachable`].
    Fetch,
    /// Pause until the store may be reachable again, and return [`WaitEvent::Woken`].
    PauseAway {
        /// Reason to report. `None` if it was reported before: a server may be away for hours.
        reason: Option<String>,
    },
    /// Apply an event to the review, and return [`WaitEvent::Applied`].
    Apply(Event),
    /// Read the record of a delivery, and return [`WaitEvent::Checked`].
    Check(Notice),
    /// Request the delivery of a notice, and return [`WaitEvent::Done`].
    Request(Notice),
    /// Report the wait, and return [`WaitEvent::Done`].
    Report {
        /// State of the wait.
        waiting: Box<WaitingReview>,
        /// Whether the reviewers or the deadline changed: the message is for people.
        is_news: bool,
    },
    /// Pause, and return [`WaitEvent::Woken`].
    Pause {
        /// Time until which only a change of the review matters, if there is one.
        due: Option<Timestamp>,
    },
    /// Begin the next round without a pause: return [`WaitEvent::Woken`].
    Again,
    /// End without a result: the agent was asked to end.
    End,
    /// The review is over, and its notices were requested.
    Finish,
}

impl ReviewWait {
    /// A wait that has not begun.
    #[must_use]
    pub fn new(review: Review, waker: Waker) -> Self {
        Self {
            review,
            stage: Stage::Other,
            next_look: Duration::ZERO,
            pages: Pages::None,
            waker,
            is_away: false,
            requested: HashMap::new(),
            unchecked: VecDeque::new(),
            was_over: false,
            reported: None,
        }
    }

    /// The review as it was last fetched or changed.
    #[must_use]
    pub fn review(&self) -> &Review {
        &self.review
    }

    /// Takes an event, and returns the next effect.
    pub fn step(&mut self, event: WaitEvent) -> WaitEffect {
        let stage = std::mem::replace(&mut self.stage, Stage::Other);
        match event {
            WaitEvent::Cancelled => WaitEffect::End,
            WaitEvent::Woken { now } if self.review.is_pending() && now.uptime >= self.next_look => {
                self.next_look = now.uptime.saturating_add(PAGES);
                WaitEffect::Locate { asks_waker: self.waker == Waker::Unknown }
            }
            WaitEvent::Woken { .. } => WaitEffect::Fetch,
            WaitEvent::Located { pages, waker } => {
                self.pages = pages;
                self.waker = waker.unwrap_or(self.waker);
                WaitEffect::Fetch
            }
            WaitEvent::Unreachable { reason } => {
                let is_first = !std::mem::replace(&mut self.is_away, true);
                WaitEffect::PauseAway { reason: is_first.then_some(reason) }
            }
            WaitEvent::Fetched { review, now } => {
                (self.review, self.is_away) = (*review, false);
                if self.review.next_due().is_some_and(|due| now.time >= due) {
                    self.stage = Stage::Clock;
                    return WaitEffect::Apply(Event::Clock);
                }
                self.begin_notices()
            }
            WaitEvent::Applied(review) => {
                if let Some(review) = review {
                    self.review = *review;
                }
                match stage {
                    Stage::Clock => self.begin_notices(),
                    Stage::Other | Stage::Check(_) | Stage::Report => self.next_notice(),
                }
            }
            WaitEvent::Checked { delivery, now } => match stage {
                Stage::Check(notice) => self.checked(notice, delivery, now),
                Stage::Other | Stage::Clock | Stage::Report => self.next_notice(),
            },
            WaitEvent::Done => match stage {
                Stage::Report => self.pause(),
                Stage::Other | Stage::Clock | Stage::Check(_) => self.next_notice(),
            },
        }
    }

    fn begin_notices(&mut self) -> WaitEffect {
        self.was_over = !self.review.is_pending();
        self.unchecked = self.review.planned_notices().cloned().collect();
        self.next_notice()
    }

    fn next_notice(&mut self) -> WaitEffect {
        let Some(notice) = self.unchecked.pop_front() else { return self.end_round() };
        self.stage = Stage::Check(notice.clone());
        WaitEffect::Check(notice)
    }

    fn checked(&mut self, notice: Notice, delivery: Delivery, now: Moment) -> WaitEffect {
        let asked = self.requested.get(&notice.id).map(|asked| now.uptime.saturating_sub(*asked));
        let state = match delivery {
            Delivery::Settled(state) => state,
            // Its delivery began before this agent did, and ended with the run.
            Delivery::Begun if asked.is_none_or(|asked| asked > DELIVERY) => NoticeState::Unknown,
            Delivery::None if asked.is_none() => {
                self.requested.insert(notice.id.clone(), now.uptime);
                return WaitEffect::Request(notice);
            }
            Delivery::Begun | Delivery::None => return self.next_notice(),
        };
        WaitEffect::Apply(Event::NoticeSettled { id: notice.id, state })
    }

    /// The notices of this round were checked.
    fn end_round(&mut self) -> WaitEffect {
        if self.was_over {
            return WaitEffect::Finish;
        }
        // It ended while what became of a notice was recorded: those of its end are still to be sent.
        if !self.review.is_pending() {
            return WaitEffect::Again;
        }
        let page = match &self.pages {
            Pages::None => None,
            Pages::At(base) => Some(format!("{base}/reviews/{}", self.review.id)),
        };
        let mut waiting = self.review.waiting(page);
        waiting.due = self.due().map(Into::into);
        if self.reported.as_ref() == Some(&waiting) {
            return self.pause();
        }
        let is_news = self
            .reported
            .as_ref()
            .is_none_or(|before| before.reviewers != waiting.reviewers || before.until != waiting.until);
        self.reported = Some(waiting.clone());
        self.stage = Stage::Report;
        WaitEffect::Report { waiting: Box::new(waiting), is_news }
    }

    /// Returns the time until which the agent has nothing to do, if a parked run would be woken before it.
    fn due(&self) -> Option<Timestamp> {
        let is_settled = self.review.planned_notices().next().is_none();
        self.review.next_due().filter(|_| self.waker == Waker::Present && is_settled)
    }

    fn pause(&self) -> WaitEffect {
        WaitEffect::Pause { due: self.due() }
    }
}
