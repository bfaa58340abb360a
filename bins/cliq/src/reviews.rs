//! The reviews of this machine, for the `hug` agent and for `cliq review`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use cliq_project::internals::{PageAddress, REVIEW_SOCKET, ReviewBackend, SocketReviews};
use cliq_protocol::Timestamp;
use cliq_review::{Review, ReviewId, Reviews, StoredReviews};
use cliq_server::ReviewPages;
use cliq_settings::{ReviewSettings, Settings};
use tokio::sync::Mutex;

use crate::failure::Failure;
use crate::gateway;
use crate::server_record::server_url;

/// Time for which pages are served after the decision, and time without a request after which they count as unused. Agents have 5 s
/// to end.
const OUTLAST: Duration = Duration::from_secs(4);
const LOOKED_AT: Duration = Duration::from_secs(15);
/// Time for which pages are served after the decision for requests that are under way: a second answer gets a refusal, and no broken
/// connection.
const IN_FLIGHT: Duration = Duration::from_millis(500);

/// Now.
pub(crate) fn now() -> Timestamp {
    cliq_fs::now()
}

/// The reviews of this machine.
pub(crate) async fn open() -> Result<Arc<dyn Reviews>, Failure> {
    Ok(Arc::new(StoredReviews::new(gateway::open().await?, now)))
}

/// In a container, the reviews of the machine that it runs on.
fn socket() -> Option<SocketReviews> {
    std::env::var(REVIEW_SOCKET).ok().filter(|path| !path.is_empty()).map(SocketReviews::new)
}

/// The user of this machine, for the record of who answered.
pub(crate) fn user() -> String {
    let named =
        ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()));
    let uid = rustix::process::getuid().as_raw().to_string();
    // A process without a terminal may have neither variable.
    let users = || cliq_fs::read_text(Utf8Path::new("/etc/passwd"), 16 << 20).unwrap_or_default();
    let is_own = |line: &str| line.split(':').nth(2) == Some(&uid);
    let listed = || {
        users().lines().find(|line| is_own(line)).and_then(|line| Some(line.split(':').next()?.to_owned()))
    };
    named.or_else(listed).unwrap_or_else(|| format!("user {uid}"))
}

/// Renders reviewers, waiting time, deadline and links of a review for a display of the run. Links are secrets: they come from the
/// cliq home.
pub(crate) fn lines(home: Option<&Utf8Path>, review: &cliq_protocol::WaitingReview) -> Vec<String> {
    let mut lines: Vec<String> = review.asks.iter().map(|asks| crate::ui::plain(asks).to_string()).collect();
    lines.push(format!(
        "waits for {} since {}, until {}",
        review.reviewers.join(", "),
        review.since,
        review.until
    ));
    let kept = home.and_then(|home| cliq_project::internals::kept_review(home, &review.id));
    if let Some(kept) = &kept {
        let links = review.reviewers.iter().filter_map(|name| Some((name, kept.link(name)?)));
        lines.extend(links.map(|(name, link)| format!("{name}: {link}")));
    }
    lines.extend(kept.and_then(|kept| kept.hint));
    let short = review.id.get(..8).unwrap_or(&review.id);
    lines.push(format!("or: cliq review show {short}, cliq review approve {short}"));
    lines
}

/// As [`lines`], for a parked run: its process served the pages and has ended.
pub(crate) fn parked_line(review: &cliq_protocol::WaitingReview) -> String {
    let (who, short) = (review.reviewers.join(", "), review.id.get(..8).unwrap_or(&review.id));
    let asks = review.asks.as_ref().map(|asks| format!("{}: ", crate::ui::plain(asks))).unwrap_or_default();
    format!(
        "{asks}waits for {who} since {}, until {}: cliq review show {short}, cliq review approve {short}",
        review.since, review.until
    )
}

/// Reviews of this machine for the `hug` agent: store and pages.
#[derive(Default)]
pub(crate) struct MachineReviews {
    reviews: Mutex<Option<Arc<dyn Reviews>>>,
    /// The pages that this program serves, while no server does.
    own_pages: Mutex<Option<ReviewPages>>,
}

impl MachineReviews {
    /// Serves the pages for a moment more, longer where people look at them: who decided sees the outcome, and so do the others. The run does not
    /// wait for it.
    pub(crate) async fn outlast_pages(&self) {
        let is_looked_at = match self.own_pages.lock().await.as_ref() {
            Some(pages) => pages.looked_at().is_some_and(|ago| ago < LOOKED_AT),
            None => return,
        };
        let Ok(mut ended) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) else {
            return;
        };
        let outlast = if is_looked_at { OUTLAST } else { IN_FLIGHT };
        let _ = tokio::time::timeout(outlast, ended.recv()).await;
    }
}

#[async_trait]
impl ReviewBackend for MachineReviews {
    async fn reviews(&self) -> Result<Arc<dyn Reviews>, String> {
        let mut kept = self.reviews.lock().await;
        if let Some(reviews) = kept.as_ref() {
            return Ok(Arc::clone(reviews));
        }
        let opened: Arc<dyn Reviews> = match socket() {
            Some(socket) => Arc::new(socket),
            None => open().await.map_err(|failure| failure.text().to_owned())?,
        };
        Ok(Arc::clone(kept.insert(opened)))
    }

    async fn pages(&self, reviews: &Arc<dyn Reviews>, review: &ReviewId) -> Result<PageAddress, String> {
        if let Some(socket) = socket() {
            return socket.pages(review).await;
        }
        let mut own = self.own_pages.lock().await;
        if let Ok(Some(url)) = server_url() {
            *own = None;
            let home = gateway::home().ok();
            let settings = home.as_deref().and_then(|home| Settings::load(Some(home), None).ok());
            let public = settings.and_then(|settings| ReviewSettings::read(&settings).public_url);
            let base_url = public.map_or(url, |public| public.trim_end_matches('/').to_owned());
            return Ok(PageAddress { base_url, has_dashboard: true, hint: None });
        }
        let pages = match own.as_ref() {
            Some(pages) => pages,
            None => {
                let served = ReviewPages::serve(Arc::clone(reviews), review.clone()).await;
                own.insert(served.map_err(|error| format!("no port can be had: {error}"))?)
            }
        };
        let is_remote = std::env::var_os("SSH_CONNECTION").is_some();
        let port = pages.port();
        let hint = is_remote.then(|| {
            format!("from your own machine: ssh -L {port}:127.0.0.1:{port} HOST, and then the link")
        });
        Ok(PageAddress { base_url: pages.base_url(), has_dashboard: false, hint })
    }

    fn wake_file(&self, review: &ReviewId) -> Option<Utf8PathBuf> {
        let location = gateway::location().ok().filter(|_| socket().is_none())?;
        location.wake_file(review)
    }
}

/// Cancels the reviews of earlier runs of a workspace, whose next run starts afresh: nothing waits for them any more.
pub(crate) fn cancel_left_over(home: &Utf8Path, workspace: &Utf8Path) -> Result<(), Failure> {
    let own = |kept: &cliq_project::internals::KeptReview| kept.project == workspace && kept.server.is_none();
    let kept: Vec<_> = cliq_project::internals::kept_reviews(home).into_iter().filter(own).collect();
    if kept.is_empty() {
        return Ok(());
    }
    gateway::block_on(async {
        let reviews = open().await?;
        for kept in kept {
            // A review that cannot be cancelled now expires.
            if let Ok(Some(review)) = reviews.get(&kept.id).await
                && cancel(reviews.as_ref(), &review).await.is_ok()
            {
                kept.remove(home);
            }
        }
        Ok(())
    })
}

async fn cancel(reviews: &dyn Reviews, review: &Review) -> Result<(), cliq_review::ReviewsError> {
    let event = cliq_review::Event::Cancel { reason: "its run was put aside".to_owned() };
    reviews.apply(&review.id, event).await.map(drop)
}
