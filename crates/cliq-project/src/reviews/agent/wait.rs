//! Wait for the end of a review: performs the effects of [`ReviewWait`].

use std::time::{Duration, Instant};

use cliq_fs::{PipelineStatus, read_status};
use cliq_protocol::{NotifyRequest, Object, Timestamp, WaitingReview};
use cliq_review::{Event, Moment, NoticeKind, Pages, Review, ReviewWait, WaitEffect, WaitEvent, Waker};
use serde_json::json;

use super::super::notices::delivery;
use super::super::wakeups::Wakeups;
use super::{AnyError, ExistingReview, Gate, PageAddress, outermost, println};

/// Polling intervals of the store of this machine, and of a remote server.
const POLL: Duration = Duration::from_millis(200);
const POLL_REMOTE: Duration = Duration::from_millis(1000);
/// Interval of the check that the pages are still served, while only a change of the review matters.
const IDLE_PAGES: Duration = Duration::from_secs(15);
impl Gate<'_> {
    /// Waits until the review is over.
    pub(super) async fn wait(
        &self,
        found: &mut ExistingReview,
        wakeups: &Wakeups,
    ) -> Result<Review, AnyError> {
        let started = Instant::now();
        let now = || Moment { time: cliq_fs::now(), uptime: started.elapsed() };
        let woken = || {
            if wakeups.is_cancelled() { WaitEvent::Cancelled } else { WaitEvent::Woken { now: now() } }
        };
        // Nothing else wakes a parked run for a review that is kept elsewhere.
        let waker = if found.kept.server.is_none() { Waker::Present } else { Waker::Unknown };
        let mut wait = ReviewWait::new(found.review.clone(), waker);
        let mut event = woken();
        loop {
            let effect = wait.step(event);
            found.review.clone_from(wait.review());
            event = match effect {
                WaitEffect::Locate { asks_waker } => {
                    let pages = self.locate(found).await?;
                    let waker = if asks_waker { self.waker(found).await } else { None };
                    WaitEvent::Located { pages, waker }
                }
                WaitEffect::Fetch => self.fetch(found, now).await?,
                WaitEffect::PauseAway { reason } => {
                    if let Some(error) = reason {
                        self.ctx.progress(format!(
                            "the review cannot be looked at just now; it is tried again: {error}"
                        ))?;
                    }
                    tokio::time::sleep(POLL_REMOTE * 2).await;
                    woken()
                }
                WaitEffect::Apply(event) => {
                    let applied = found.reviews.apply(&found.review.id, event).await;
                    WaitEvent::Applied(applied.ok().map(Box::new))
                }
                WaitEffect::Check(notice) => {
                    WaitEvent::Checked { delivery: delivery(&self.dir, &notice.id), now: now() }
                }
                WaitEffect::Request(notice) => {
                    self.ctx.reporter().notify(self.request(found, &notice))?;
                    WaitEvent::Done
                }
                WaitEffect::Report { waiting, is_news } => {
                    self.report(&waiting, is_news)?;
                    WaitEvent::Done
                }
                WaitEffect::Pause { due } => {
                    self.pause(found, due, wakeups).await;
                    woken()
                }
                WaitEffect::Again => woken(),
                WaitEffect::End => return self.ended(found).await,
                WaitEffect::Finish => return Ok(found.review.clone()),
            };
        }
    }

    async fn fetch(&self, found: &ExistingReview, now: impl Fn() -> Moment) -> Result<WaitEvent, AnyError> {
        match found.reviews.get(&found.review.id).await {
            Ok(Some(review)) => Ok(WaitEvent::Fetched { review: Box::new(review), now: now() }),
            Ok(None) => Err(format!("the review {} is gone from its store", found.review.id).into()),
            // A server that is away for a while keeps the review.
            Err(error) => Ok(WaitEvent::Unreachable { reason: error.to_string() }),
        }
    }

    fn report(&self, waiting: &WaitingReview, is_news: bool) -> Result<(), AnyError> {
        let who = waiting.reviewers.join(", ");
        let until = &waiting.until;
        let message = match &waiting.asks {
            Some(asks) => format!("{asks} (waits for {who}, until {until}; answer with `cliq review`)"),
            None => format!("waits for a review by {who}, until {until}; answer with `cliq review`"),
        };
        if is_news {
            println(&message);
        }
        Ok(self.ctx.reporter().review(message, waiting)?)
    }

    /// Waits for a change of the review, a deadline, or the next look at the pages.
    async fn pause(&self, found: &ExistingReview, due: Option<Timestamp>, wakeups: &Wakeups) {
        let poll = if found.kept.server.is_some() { POLL_REMOTE } else { POLL };
        // Nothing is to be sent: only a change of the review, a deadline or another server matters.
        let due = due.filter(|_| wakeups.are_complete());
        wakeups.wait(due.map_or(poll, |due| IDLE_PAGES.min(due.since(cliq_fs::now())))).await;
    }

    /// Returns whether the server that has the review also wakes the run, or `None` if the server did not answer.
    async fn waker(&self, found: &ExistingReview) -> Option<Waker> {
        let is_run_of = self.is_run_of(found.kept.server.as_ref()?).await.ok()?;
        Some(if is_run_of { Waker::Present } else { Waker::Absent })
    }

    /// Makes sure that pages are served. Returns those for people who are signed in.
    async fn locate(&self, found: &mut ExistingReview) -> Result<Pages, AnyError> {
        let address = match &found.kept.server {
            Some(url) => PageAddress { base_url: url.clone(), has_dashboard: true, hint: None },
            None => match self.backend.pages(&found.reviews, &found.review.id).await {
                Ok(address) => address,
                Err(why) => {
                    self.ctx.progress(format!(
                        "there is no page for the review: {why}; answer with `cliq review`"
                    ))?;
                    return Ok(Pages::None);
                }
            },
        };
        let pages = if address.has_dashboard { Pages::At(address.base_url.clone()) } else { Pages::None };
        let base_url = Some(address.base_url);
        if found.kept.base_url != base_url || found.kept.hint != address.hint {
            (found.kept.base_url, found.kept.hint) = (base_url, address.hint);
            found.kept.save(&self.home)?;
        }
        Ok(pages)
    }

    fn request(&self, found: &ExistingReview, notice: &cliq_review::Notice) -> NotifyRequest {
        let review = &found.review;
        let checks = self.ctx.checks();
        let mut payload = json!({
            "notice": notice.id, "review": review.id, "reviewer": notice.reviewer, "team": review.team, "phase": review.phase, "run_id": review.run_id,
            "workspace": review.project, "iteration": review.iteration, "max_iterations": review.max_iterations,
            "deadline": review.deadline, "route_targets": review.route_targets,
            "checks": {"passed": checks.iter().filter(|check| check.pass && !check.was_skipped()).count(), "total": checks.len()},
            "message": message(review, notice.kind),
        });
        if let Some(title) = &review.title {
            payload["title"] = title.as_str().into();
        }
        if let Some(subject) = &review.subject {
            payload["asks"] = subject.sentence().into();
        }
        if notice.kind == NoticeKind::Outcome {
            payload["state"] = json!(review.state.as_str());
            payload["verdict"] = json!(review.verdict().map(|verdict| verdict.to_value()));
            payload["ending"] = json!(review.ending());
        } else if let Some(link) = found.kept.link(&notice.reviewer) {
            payload["link"] = json!(link);
        }
        NotifyRequest {
            id: Some(notice.id.clone()),
            agent: notice.channel.agent.clone(),
            channel: Some(notice.channel.target.clone()),
            event: notice.kind.event().to_owned(),
            payload: Some(payload),
            extra: Object::new(),
        }
    }

    /// The agent is asked to end. A run that is cancelled needs no review; one whose orchestrator died goes on with it.
    async fn ended(&self, found: &ExistingReview) -> Result<Review, AnyError> {
        let outer = outermost(self.ctx)?;
        if read_status(&outer) != Some(PipelineStatus::Cancelled) {
            return Err("the run ended; the review stays open".into());
        }
        let reason = "the run was cancelled".to_owned();
        let review = found.reviews.apply(&found.review.id, Event::Cancel { reason }).await?;
        self.record(found, &review).await?;
        found.kept.remove(&self.home);
        Err(format!("the review is {}", review.state.as_str()).into())
    }
}

/// Returns the text of a notice.
fn message(review: &Review, kind: NoticeKind) -> String {
    let (phase, deadline) = (&review.phase, review.deadline);
    let team = match &review.title {
        Some(title) => format!("{title} ({})", review.team),
        None => review.team.to_string(),
    };
    if let Some(subject) = &review.subject {
        let asks = subject.sentence();
        return match kind {
            NoticeKind::Request => format!("{team}: phase `{phase}`: {asks}; answer until {deadline}"),
            NoticeKind::Reminder => {
                format!("{team}: phase `{phase}` still waits: {asks}; answer until {deadline}")
            }
            NoticeKind::Outcome => {
                let answer = review.ask_answer().map(|answer| answer.sentence(subject)).unwrap_or_default();
                format!("{team}: phase `{phase}`: {asks}: {answer}")
            }
        };
    }
    match kind {
        NoticeKind::Request => format!("{team}: phase `{phase}` asks for your review, until {deadline}"),
        NoticeKind::Reminder => {
            format!("{team}: phase `{phase}` still waits for your review, until {deadline}")
        }
        NoticeKind::Outcome => {
            format!("{team}: the review of phase `{phase}` is over: {}", review.ending().unwrap_or_default())
        }
    }
}
