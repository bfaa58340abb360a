//! The agent of human gates: makes a review, or goes on with the one that there is, and waits for its decision.
//!
//! Stateless: the agent may be killed at any moment. The next one finds the review by its key, the links in the cliq home, the
//! notices by the orchestrator's files, and the record by its review.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use camino::Utf8PathBuf;
use cliq_fs::{CliqDir, PipelineStatus, read_status};
use cliq_protocol::{NotifyRequest, Object, ReviewSpec, WaitingReview};
use cliq_review::{
    Directory, Event, NewReview, NoticeKind, NoticeState, Review, ReviewFilter, ReviewId, ReviewState,
    Reviews, ReviewsError,
};
use cliq_sdk::{Agent, Completion, GateContext};
use cliq_settings::{ReviewSettings, Settings};
use serde_json::{Value, json};

use super::links::KeptReview;
#[cfg(not(feature = "remote-reviews"))]
use super::no_server::ServerReviews;
use super::notices::{Delivery, delivery};
#[cfg(feature = "remote-reviews")]
use super::server::ServerReviews;
use super::wakeups::Wakeups;
use super::{content, records};
use crate::{Host, Project};

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Polling intervals of the store of this machine, and of a remote server.
const POLL: Duration = Duration::from_millis(200);
const POLL_REMOTE: Duration = Duration::from_millis(1000);
/// Interval of the check that the pages are still served.
const PAGES: Duration = Duration::from_secs(5);
/// The same while only a change of the review matters.
const IDLE_PAGES: Duration = Duration::from_secs(15);
/// Time for which an unreachable server is retried before the review is created on this machine.
const SERVER_PATIENCE: Duration = Duration::from_secs(15);
/// Maximum time of a delivery without an outcome. The limit of the delivery itself is shorter.
const DELIVERY: Duration = Duration::from_secs(120);

/// Address of the pages of a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageAddress {
    /// The address that links begin with.
    pub base_url: String,
    /// Whether people who are signed in find the review there too.
    pub has_dashboard: bool,
    /// Instruction that makes the pages reachable from another machine.
    pub hint: Option<String>,
}

/// Capabilities of a program that runs the agent: reviews of this machine, and pages for them.
#[async_trait]
pub trait ReviewBackend: Send + Sync {
    /// The reviews of this machine.
    ///
    /// # Errors
    /// The store cannot be opened.
    async fn reviews(&self) -> Result<Arc<dyn Reviews>, String>;

    /// Returns the base URL of the review pages. Starts a local page server if no cliq server is running.
    ///
    /// # Errors
    /// There are none, and none can be served.
    async fn pages(&self, reviews: &Arc<dyn Reviews>, review: &ReviewId) -> Result<PageAddress, String>;

    /// Returns the named pipe into which each change of a review writes. `None` if the reviews are kept elsewhere: the agent polls
    /// then.
    fn wake_file(&self, _: &ReviewId) -> Option<Utf8PathBuf> {
        None
    }
}

/// The agent of human gates. It works on a runtime with threads of its own, IO and time, on which pages may be served after it is done.
pub fn review_agent(host: Host, backend: Arc<dyn ReviewBackend>, runtime: tokio::runtime::Handle) -> Agent {
    Agent::new().gate(move |ctx| {
        runtime.block_on(async {
            let wakeups = Wakeups::new()?;
            let gate = Gate::new(ctx, &host, Arc::clone(&backend))?;
            gate.run(wakeups).await
        })
    })
}

/// A human gate that is at work.
struct Gate<'a> {
    ctx: &'a GateContext,
    backend: Arc<dyn ReviewBackend>,
    home: Utf8PathBuf,
    /// The `.cliq` of the run.
    dir: CliqDir,
    project: Project,
    settings: Settings,
    spec: ReviewSpec,
    reviewers: cliq_protocol::Reviewers,
    directory: Directory,
    evaluation: u32,
    /// Id of the run, or of the outermost run around it.
    outermost_run: Option<String>,
}

/// A review with the way to reach it.
struct ExistingReview {
    review: Review,
    kept: KeptReview,
    reviews: Arc<dyn Reviews>,
}

impl<'a> Gate<'a> {
    fn new(ctx: &'a GateContext, host: &Host, backend: Arc<dyn ReviewBackend>) -> Result<Self, AnyError> {
        let (spec, evaluation) = ctx.review()?;
        let home = host.home.clone().ok_or("cannot find the cliq home: set HOME or CLIQ_HOME")?;
        let dir = CliqDir::at(ctx.cliq_dir(), ctx.workspace())?;
        let project = Project::of(dir.clone(), host.clone());
        let settings = Project::of(outermost(ctx)?, host.clone()).settings()?;
        let directory = ReviewSettings::read(&settings).reviewers;
        let reviewers = directory.expand(&spec.reviewers)?;
        let path = host.environment.get("CLIQ_RUN_PATH").unwrap_or_default();
        let outermost_run = path.split_once('/').map(|(run, _)| run.to_owned());
        Ok(Self {
            ctx,
            backend,
            home,
            dir,
            project,
            settings,
            spec,
            reviewers,
            directory,
            evaluation,
            outermost_run,
        })
    }

    async fn run(&self, mut wakeups: Wakeups) -> Result<Completion, AnyError> {
        let mut found = match self.find().await? {
            Some(found) => found,
            None => self.create().await?,
        };
        self.cancel_earlier(&found).await;
        if found.kept.server.is_none() {
            self.backend.wake_file(&found.review.id).into_iter().for_each(|pipe| wakeups.listen(pipe));
        }
        let review = self.wait(&mut found, &wakeups).await?;
        self.finish(&found, review).await
    }

    /// The review that was made for this evaluation, if it can still be answered or was.
    async fn find(&self) -> Result<Option<ExistingReview>, AnyError> {
        let attempt_of = |kept: &KeptReview| kept.key.strip_prefix(&self.key(""))?.parse::<u32>().ok();
        let kept = super::kept_reviews(&self.home).into_iter();
        let newest =
            kept.filter_map(|kept| Some((attempt_of(&kept)?, kept))).max_by_key(|(attempt, _)| *attempt);
        if let Some((attempt, kept)) = newest {
            let reviews = self.reviews_of(&kept).await?;
            return match patiently(self.ctx, || reviews.get(&kept.id)).await? {
                // The one before died between the links and the review.
                None => self.make(kept, reviews, attempt).await.map(Some),
                Some(review) if matches!(review.state, ReviewState::Cancelled { .. }) => {
                    kept.remove(&self.home);
                    self.make_new(kept.server, reviews, attempt + 1).await.map(Some)
                }
                Some(review) => Ok(Some(ExistingReview { review, kept, reviews })),
            };
        }
        // The links may be lost, and the review not.
        let reviews = self.backend.reviews().await?;
        match self.listed(&*reviews).await? {
            None => Ok(None),
            Some(review) => self.adopt(None, reviews, review).await.map(Some),
        }
    }

    /// The review of this evaluation in a store.
    async fn listed(&self, reviews: &dyn Reviews) -> Result<Option<Review>, ReviewsError> {
        let same =
            |review: &Review| review.phase == self.ctx.phase().name && review.evaluation == self.evaluation;
        let filter =
            ReviewFilter { run_id: Some(self.ctx.run_id().clone()), limit: 1000, ..ReviewFilter::default() };
        Ok(reviews.list(&filter).await?.into_iter().filter(same).max_by_key(|review| review.attempt))
    }

    /// Goes on with a review of which this machine has no links.
    async fn adopt(
        &self,
        server: Option<String>,
        reviews: Arc<dyn Reviews>,
        review: Review,
    ) -> Result<ExistingReview, AnyError> {
        if matches!(review.state, ReviewState::Cancelled { .. }) {
            return self.make_new(server, reviews, review.attempt + 1).await;
        }
        let mut kept = self.new_links(server, review.attempt)?;
        kept.id = review.id.clone();
        kept.save(&self.home)?;
        let review = reviews.apply(&review.id, Event::Relink { links: kept.hashes() }).await?;
        Ok(ExistingReview { review, kept, reviews })
    }

    /// The review at the server of the settings, which may have it from an agent on another machine, or a new one: there, or on this
    /// machine if there is no server or it does not answer.
    async fn create(&self) -> Result<ExistingReview, AnyError> {
        if let Some((url, reviews)) = self.remote() {
            let began = Instant::now();
            loop {
                match self.listed(&*reviews).await {
                    Ok(None) => return self.make_new(Some(url), reviews, 1).await,
                    Ok(Some(review)) => return self.adopt(Some(url), reviews, review).await,
                    Err(error) if began.elapsed() > SERVER_PATIENCE => {
                        self.ctx.progress(format!(
                            "the review server cannot be used, so the review is made on this machine: {error}"
                        ))?;
                        break;
                    }
                    Err(error) => self.ctx.progress(format!("trying the review server again: {error}"))?,
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        self.make_new(None, self.backend.reviews().await?, 1).await
    }

    fn remote(&self) -> Option<(String, Arc<dyn Reviews>)> {
        let url = ReviewSettings::read(&self.settings).server_url?.trim_end_matches('/').to_owned();
        let reviews = self.server(&url);
        Some((url, reviews))
    }

    fn server(&self, url: &str) -> Arc<dyn Reviews> {
        Arc::new(self.client(url))
    }

    fn client(&self, url: &str) -> ServerReviews {
        ServerReviews::new(url, ReviewSettings::read(&self.settings).token)
    }

    /// Whether the server that has the review also has the run, and so wakes it after an answer.
    async fn is_run_of(&self, url: &str) -> Result<bool, ReviewsError> {
        match &self.outermost_run {
            Some(run) => self.client(url).has_run(run).await,
            None => Ok(false),
        }
    }

    async fn reviews_of(&self, kept: &KeptReview) -> Result<Arc<dyn Reviews>, AnyError> {
        match &kept.server {
            None => Ok(self.backend.reviews().await?),
            Some(url) => Ok(self.server(url)),
        }
    }

    /// The key of the review of this evaluation, of an attempt.
    fn key(&self, attempt: impl std::fmt::Display) -> String {
        format!("{}/{}/{}/{attempt}", self.ctx.run_id(), self.ctx.phase().name, self.evaluation)
    }

    fn new_links(&self, server: Option<String>, attempt: u32) -> Result<KeptReview, AnyError> {
        let names = self.reviewers.names().into_iter();
        let project = self.ctx.workspace().to_owned();
        Ok(KeptReview::new(self.key(attempt), project, server, names)
            .ok_or("the system has no random numbers")?)
    }

    async fn make_new(
        &self,
        server: Option<String>,
        reviews: Arc<dyn Reviews>,
        attempt: u32,
    ) -> Result<ExistingReview, AnyError> {
        let kept = self.new_links(server, attempt)?;
        // First the links, then the review: one that dies in between makes the review with these links.
        kept.save(&self.home)?;
        self.make(kept, reviews, attempt).await
    }

    async fn make(
        &self,
        kept: KeptReview,
        reviews: Arc<dyn Reviews>,
        attempt: u32,
    ) -> Result<ExistingReview, AnyError> {
        self.ctx.progress("collecting what the reviewers are shown")?;
        let content = content::collect(self.ctx, &self.project, &self.spec.artifacts);
        let journal = self.project.recorded_run(None)?.journal;
        let run = cliq_orchestrator::RunView::of(&journal);
        let channels = |name: &str| (name.to_owned(), self.directory.channels(name).to_vec());
        let review = Review::new(NewReview {
            id: kept.id.clone(),
            project: self.ctx.workspace().to_owned(),
            team: run.team,
            title: run.title,
            run_id: self.ctx.run_id().clone(),
            phase: self.ctx.phase().name.clone(),
            iteration: self.ctx.iteration(),
            max_iterations: self.ctx.max_iterations(),
            evaluation: self.evaluation,
            attempt,
            spec: self.spec.clone(),
            reviewers: self.reviewers.clone(),
            route_targets: self.ctx.route_targets().to_vec(),
            channels: self.reviewers.names().into_iter().map(channels).collect(),
            links: kept.hashes(),
            now: cliq_fs::now(),
        });
        let review = patiently(self.ctx, || reviews.create(&review, &content)).await?;
        Ok(ExistingReview { review, kept, reviews })
    }

    /// Reviews of earlier evaluations of the phase are not needed any more.
    async fn cancel_earlier(&self, found: &ExistingReview) {
        let filter = ReviewFilter {
            run_id: Some(self.ctx.run_id().clone()),
            pending: true,
            ..ReviewFilter::default()
        };
        let Ok(pending) = found.reviews.list(&filter).await else { return };
        for other in
            pending.iter().filter(|other| other.phase == found.review.phase && other.id != found.review.id)
        {
            let reason = "the phase is evaluated anew".to_owned();
            // Where that fails, the deadline ends it.
            let _ = found.reviews.apply(&other.id, Event::Cancel { reason }).await;
            if let Some(kept) = KeptReview::load(&self.home, &other.key()) {
                kept.remove(&self.home);
            }
        }
    }

    /// Waits until the review is over.
    async fn wait(&self, found: &mut ExistingReview, wakeups: &Wakeups) -> Result<Review, AnyError> {
        let (mut requested, mut reported, mut is_away) = (HashMap::new(), None, false);
        let mut next_look = Instant::now();
        let mut has_dashboard = found.kept.server.is_some();
        // Nothing else wakes a parked run for a review that is kept elsewhere.
        let mut is_woken = found.kept.server.is_none().then_some(true);
        let poll = if found.kept.server.is_some() { POLL_REMOTE } else { POLL };
        loop {
            if wakeups.is_cancelled() {
                return self.ended(found).await;
            }
            if found.review.is_pending() && Instant::now() >= next_look {
                next_look = Instant::now() + PAGES;
                has_dashboard = self.locate(found).await?;
                if let (None, Some(url)) = (is_woken, &found.kept.server) {
                    is_woken = self.is_run_of(url).await.ok();
                }
            }
            // A server that is away for a while keeps the review.
            match found.reviews.get(&found.review.id).await {
                Ok(Some(review)) => (found.review, is_away) = (review, false),
                Ok(None) => {
                    return Err(format!("the review {} is gone from its store", found.review.id).into());
                }
                Err(error) => {
                    // Said once: a server may be away for hours.
                    if !is_away {
                        self.ctx.progress(format!(
                            "the review cannot be looked at just now; it is tried again: {error}"
                        ))?;
                        is_away = true;
                    }
                    tokio::time::sleep(POLL_REMOTE * 2).await;
                    continue;
                }
            }
            if found.review.next_due().is_some_and(|due| cliq_fs::now() >= due)
                && let Ok(review) = found.reviews.apply(&found.review.id, Event::Clock).await
            {
                found.review = review;
            }
            let was_over = !found.review.is_pending();
            self.send_notices(found, &mut requested).await?;
            if was_over {
                return Ok(found.review.clone());
            }
            // It ended while what became of a notice was recorded: those of its end are still to be sent.
            if !found.review.is_pending() {
                continue;
            }
            let page = has_dashboard.then(|| {
                found.kept.base_url.as_ref().map(|base| format!("{base}/reviews/{}", found.review.id))
            });
            let mut waiting = found.review.waiting(page.flatten());
            if is_woken == Some(true) && found.review.planned_notices().next().is_none() {
                waiting.due = found.review.next_due().map(Into::into);
            }
            if reported.as_ref() != Some(&waiting) {
                let who = waiting.reviewers.join(", ");
                let message = format!(
                    "waits for a review by {who}, until {}; answer with `cliq review`",
                    waiting.until
                );
                let seen = |waiting: &WaitingReview| (waiting.reviewers.clone(), waiting.until.clone());
                if reported.as_ref().map(seen) != Some(seen(&waiting)) {
                    println(&message);
                }
                self.ctx.reporter().review(message, &waiting)?;
                reported = Some(waiting.clone());
            }
            // Nothing is to be sent: only a change of the review, a deadline or another server matters.
            let due = waiting.due.filter(|_| wakeups.are_complete()).and_then(|due| due.time());
            wakeups.wait(due.map_or(poll, |due| IDLE_PAGES.min(due.since(cliq_fs::now())))).await;
        }
    }

    /// Sees to it that there are pages. Gives whether they have a dashboard.
    async fn locate(&self, found: &mut ExistingReview) -> Result<bool, AnyError> {
        let address = match &found.kept.server {
            Some(url) => PageAddress { base_url: url.clone(), has_dashboard: true, hint: None },
            None => match self.backend.pages(&found.reviews, &found.review.id).await {
                Ok(address) => address,
                Err(why) => {
                    self.ctx.progress(format!(
                        "there is no page for the review: {why}; answer with `cliq review`"
                    ))?;
                    return Ok(false);
                }
            },
        };
        let base_url = Some(address.base_url);
        if found.kept.base_url != base_url || found.kept.hint != address.hint {
            (found.kept.base_url, found.kept.hint) = (base_url, address.hint);
            found.kept.save(&self.home)?;
        }
        Ok(address.has_dashboard)
    }

    /// Asks for notices that are due, and records what became of them.
    async fn send_notices(
        &self,
        found: &mut ExistingReview,
        requested: &mut HashMap<String, Instant>,
    ) -> Result<(), AnyError> {
        let planned: Vec<_> = found.review.planned_notices().cloned().collect();
        for notice in planned {
            let asked = requested.get(&notice.id).map(Instant::elapsed);
            let state = match delivery(&self.dir, &notice.id) {
                Delivery::Settled(state) => state,
                // Its delivery began before this agent did, and ended with the run.
                Delivery::Begun if asked.is_none_or(|asked| asked > DELIVERY) => NoticeState::Unknown,
                Delivery::None if asked.is_none() => {
                    self.ctx.reporter().notify(self.request(found, &notice))?;
                    requested.insert(notice.id, Instant::now());
                    continue;
                }
                Delivery::Begun | Delivery::None => continue,
            };
            let event = Event::NoticeSettled { id: notice.id, state };
            if let Ok(review) = found.reviews.apply(&found.review.id, event).await {
                found.review = review;
            }
        }
        Ok(())
    }

    fn request(&self, found: &ExistingReview, notice: &cliq_review::Notice) -> NotifyRequest {
        let review = &found.review;
        let checks = self.ctx.checks();
        let mut payload = json!({
            "notice": notice.id, "review": review.id, "reviewer": notice.reviewer, "team": review.team, "phase": review.phase, "run_id": review.run_id,
            "workspace": review.project, "iteration": review.iteration, "max_iterations": review.max_iterations,
            "deadline": review.deadline, "route_targets": review.route_targets,
            "checks": {"passed": checks.iter().filter(|check| check.pass).count(), "total": checks.len()},
            "message": message(review, notice.kind),
        });
        if let Some(title) = &review.title {
            payload["title"] = title.as_str().into();
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

    async fn record(&self, found: &ExistingReview, review: &Review) -> Result<(), AnyError> {
        if review.audit.is_some() {
            return Ok(());
        }
        let content = patiently(self.ctx, || found.reviews.content(&review.id)).await?.unwrap_or_default();
        let audit = records::write(&self.dir, review, &content)?;
        patiently(self.ctx, || found.reviews.apply(&review.id, Event::Audited(audit.clone()))).await?;
        Ok(())
    }

    /// The verdict, after the record.
    async fn finish(&self, found: &ExistingReview, review: Review) -> Result<Completion, AnyError> {
        self.record(found, &review).await?;
        found.kept.remove(&self.home);
        println(&review.ending().unwrap_or_default());
        let Some(mut verdict) = review.verdict() else {
            return Err(format!("the review was {}", review.ending().unwrap_or_default()).into());
        };
        verdict.extra.insert("review".to_owned(), json!(review.id));
        let mut data = Object::new();
        let inputs = review.inputs();
        if !review.form.is_empty() {
            data.insert("inputs".to_owned(), Value::Object(inputs));
        }
        Ok(self.ctx.decide_with(&verdict, &data)?)
    }
}

/// Returns the text of a notice.
fn message(review: &Review, kind: NoticeKind) -> String {
    let (phase, deadline) = (&review.phase, review.deadline);
    let team = match &review.title {
        Some(title) => format!("{title} ({})", review.team),
        None => review.team.clone(),
    };
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

/// The `.cliq` of the project: a team within a team works in a directory of its own below it.
fn outermost(ctx: &GateContext) -> Result<CliqDir, AnyError> {
    let own = CliqDir::at(ctx.cliq_dir(), ctx.workspace())?;
    Ok(CliqDir::at(own.outermost(), ctx.workspace())?)
}

/// Calls until the store answers: a database or a server that is away comes back.
async fn patiently<T, F: Future<Output = Result<T, ReviewsError>>>(
    ctx: &GateContext,
    call: impl Fn() -> F,
) -> Result<T, AnyError> {
    let mut pause = Duration::from_millis(250);
    for _ in 0..40 {
        match call().await {
            Err(ReviewsError::Store(error)) => ctx.progress(format!("trying again: {error}"))?,
            other => return Ok(other?),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(15));
    }
    Ok(call().await?)
}

/// Prints a message to the log of the phase.
#[expect(clippy::print_stdout, reason = "the standard output of an agent is its log")]
fn println(text: &str) {
    println!("{text}");
}
