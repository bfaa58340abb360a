//! The agent of human gates: makes a review, or goes on with the one that there is, and waits for its decision.
//!
//! Stateless: the agent may be killed at any moment. The next one finds the review by its key, the links in the cliq home, the
//! notices by the orchestrator's files, and the record by its review.

mod wait;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use camino::Utf8PathBuf;
use cliq_fs::CliqDir;
use cliq_protocol::{AskAnswer, Object, ReviewSpec, TeamName};
use cliq_review::{
    Content, Directory, Event, NewReview, Review, ReviewFilter, ReviewId, ReviewState, Reviews, ReviewsError,
};
use cliq_sdk::{Agent, Completion, GateContext};
use cliq_settings::{ReviewSettings, Settings};
use serde_json::{Value, json};

use super::links::KeptReview;
#[cfg(not(feature = "remote-reviews"))]
use super::no_server::ServerReviews;
#[cfg(feature = "remote-reviews")]
use super::server::ServerReviews;
use super::wakeups::Wakeups;
use super::{content, records};
use crate::{Host, Project};

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Time for which an unreachable server is retried before the review is created on this machine.
const SERVER_PATIENCE: Duration = Duration::from_secs(15);

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
        if self.ctx.ask().is_some_and(|ask| ask.withdraw) {
            return self.withdraw().await;
        }
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
        let own = self.key("");
        let same = |review: &Review| review.key().starts_with(&own);
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
        let ask = if self.ctx.ask().is_some() { "ask-" } else { "" };
        format!("{}/{}/{ask}{}/{attempt}", self.ctx.run_id(), self.ctx.phase().name, self.evaluation)
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
        let earlier = self.round_before(&*reviews).await?;
        let earlier = earlier.as_ref().map(|(review, shown)| (review, shown));
        let content = content::collect(self.ctx, &self.project, &self.spec.artifacts, earlier);
        let journal = self.project.recorded_run(None)?.journal;
        let run = cliq_orchestrator::RunView::of(&journal);
        let channels = |name: &str| (name.to_owned(), self.directory.channels(name).to_vec());
        let review = Review::new(NewReview {
            id: kept.id.clone(),
            project: self.ctx.workspace().to_owned(),
            team: TeamName::parse(&run.team)?,
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
        let review = match self.ctx.ask() {
            Some(ask) => review.about(ask.subject.clone()),
            None => review,
        };
        let review = patiently(self.ctx, || reviews.create(&review, &content)).await?;
        Ok(ExistingReview { review, kept, reviews })
    }

    /// Returns the review of the round before, with its content, if it has comments on lines.
    async fn round_before(&self, reviews: &dyn Reviews) -> Result<Option<(Review, Content)>, AnyError> {
        if self.ctx.ask().is_some() {
            return Ok(None);
        }
        let filter =
            ReviewFilter { run_id: Some(self.ctx.run_id().clone()), limit: 1000, ..ReviewFilter::default() };
        let all = patiently(self.ctx, || reviews.list(&filter)).await?;
        let is_earlier = |review: &Review| {
            review.phase == self.ctx.phase().name
                && review.subject.is_none()
                && review.evaluation < self.evaluation
                && matches!(review.state, ReviewState::Decided { .. })
        };
        let before =
            all.into_iter().filter(is_earlier).max_by_key(|review| (review.evaluation, review.attempt));
        let Some(review) = before.filter(|review| review.on_lines().next().is_some()) else {
            return Ok(None);
        };
        let content = patiently(self.ctx, || reviews.content(&review.id)).await?.unwrap_or_default();
        Ok(Some((review, content)))
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

    /// Cancels the review of a request that is not needed any more. An answer that came before counts.
    async fn withdraw(&self) -> Result<Completion, AnyError> {
        let nothing = AskAnswer::Withdrawn { reason: "the agent withdrew its request".to_owned() };
        let Some(found) = self.existing().await? else { return Ok(self.ctx.answer_ask(&nothing)) };
        let reason = "the agent withdrew its request".to_owned();
        let event = Event::Cancel { reason };
        let review = patiently(self.ctx, || found.reviews.apply(&found.review.id, event.clone())).await?;
        self.record(&found, &review).await?;
        found.kept.remove(&self.home);
        Ok(self.ctx.answer_ask(&review.ask_answer().unwrap_or(nothing)))
    }

    /// The review of this request, whatever became of it. Makes none.
    async fn existing(&self) -> Result<Option<ExistingReview>, AnyError> {
        let own = self.key("");
        for kept in super::kept_reviews(&self.home) {
            if kept.key.starts_with(&own) {
                let reviews = self.reviews_of(&kept).await?;
                let review = patiently(self.ctx, || reviews.get(&kept.id)).await?;
                if let Some(review) = review {
                    return Ok(Some(ExistingReview { review, kept, reviews }));
                }
            }
        }
        Ok(None)
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
        if let Some(answer) = review.ask_answer() {
            // Also for an answer that came while the run was parked or dead: the journal has it once, with its person.
            let over = review.waiting(None);
            self.ctx.reporter().review(over.answer.clone().unwrap_or_default(), &over)?;
            return Ok(self.ctx.answer_ask(&answer));
        }
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
