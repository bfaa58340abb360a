//! The reviews of this machine for a run in a container, over a socket: agents there see no database of this machine, and cannot answer
//! for people.
//!
//! One connection, one line of JSON each way.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use cliq_model::StoreError;
use cliq_orchestrator::internals::spawn_blocking;
use cliq_review::{Content, Event, Refusal, Review, ReviewFilter, ReviewId, Reviews, ReviewsError};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use super::agent::{PageAddress, ReviewBackend};

/// The variable that names the socket.
pub const REVIEW_SOCKET: &str = "CLIQ_REVIEW_SOCKET";

/// The most bytes of a request or a reply.
const LIMIT: u64 = 128 << 20;
/// Deadline for a reply.
const REPLY: Duration = Duration::from_secs(60);
/// Deadline for a listener. A follower listens shortly after its container has started, and the follower of a killed one later still.
const LISTENER: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_millis(50);

#[derive(Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
enum Request {
    Create { review: Box<Review>, content: Content },
    Get { id: ReviewId },
    Content { id: ReviewId },
    List { filter: ReviewFilter },
    Apply { id: ReviewId, event: Event },
    Pages { id: ReviewId },
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
enum Reply {
    Review { review: Option<Box<Review>> },
    Content { content: Option<Content> },
    Reviews { reviews: Vec<Review> },
    Pages { base_url: String, has_dashboard: bool, hint: Option<String> },
    NotFound { id: ReviewId },
    Refused { why: String, review: Box<Review> },
    Failed { why: String },
}

/// The reviews of this machine, as a run in a container reaches them: only its own.
#[derive(Debug)]
pub struct ReviewSocket {
    path: Utf8PathBuf,
    listener: UnixListener,
}

impl ReviewSocket {
    /// Listens at a path. What was there goes.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn listen(path: &Utf8Path) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = through_its_directory(path, |short| UnixListener::bind(short))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { path: path.to_owned(), listener })
    }

    /// Answers the questions of a run, and of the teams within it, until the future is dropped. Reviews of other workspaces are not there
    /// for it.
    pub async fn serve(&self, workspace: &Utf8Path, backend: Arc<dyn ReviewBackend>) {
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (workspace, backend) = (workspace.to_owned(), Arc::clone(&backend));
            tokio::spawn(async move {
                let (read, mut write) = stream.into_split();
                let mut line = Vec::new();
                let read = tokio::io::BufReader::new(read.take(LIMIT)).read_until(b'\n', &mut line).await;
                let reply = match read.map(|_| serde_json::from_slice::<Request>(&line)) {
                    Ok(Ok(request)) => answer(request, &workspace, &backend).await,
                    _ => Reply::Failed { why: "it is not a question about reviews".to_owned() },
                };
                let mut bytes = serde_json::to_vec(&reply).unwrap_or_default();
                bytes.push(b'\n');
                // One that does not wait for its answer asks again.
                let _ = write.write_all(&bytes).await;
            });
        }
    }
}

impl Drop for ReviewSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn answer(request: Request, workspace: &Utf8Path, backend: &Arc<dyn ReviewBackend>) -> Reply {
    match try_answer(request, workspace, backend).await {
        Ok(reply) => reply,
        Err(ReviewsError::NotFound(id)) => Reply::NotFound { id },
        Err(ReviewsError::Refused { refusal, review }) => Reply::Refused { why: refusal.to_string(), review },
        Err(error) => Reply::Failed { why: error.to_string() },
    }
}

async fn try_answer(
    request: Request,
    workspace: &Utf8Path,
    backend: &Arc<dyn ReviewBackend>,
) -> Result<Reply, ReviewsError> {
    let reviews = backend.reviews().await.map_err(StoreError::new)?;
    let own = async |id: &ReviewId| -> Result<Review, ReviewsError> {
        let found = reviews.get(id).await?.filter(|review| is_of(review, workspace));
        found.ok_or_else(|| ReviewsError::NotFound(id.clone()))
    };
    Ok(match request {
        Request::Create { review, content } => {
            if !is_of(&review, workspace) {
                return Err(StoreError::new("the review is one of another workspace").into());
            }
            Reply::Review { review: Some(Box::new(reviews.create(&review, &content).await?)) }
        }
        Request::Get { id } => {
            let found = reviews.get(&id).await?.filter(|review| is_of(review, workspace));
            Reply::Review { review: found.map(Box::new) }
        }
        Request::Content { id } => {
            own(&id).await?;
            Reply::Content { content: reviews.content(&id).await? }
        }
        Request::List { mut filter } => {
            filter.project = Some(workspace.to_string());
            Reply::Reviews { reviews: reviews.list(&filter).await? }
        }
        Request::Apply {
            event: Event::Answer(_) | Event::Comment(_) | Event::WithdrawComment { .. },
            ..
        } => {
            return Err(StoreError::new("people answer reviews, not the run").into());
        }
        Request::Apply { id, event } => {
            own(&id).await?;
            Reply::Review { review: Some(Box::new(reviews.apply(&id, event).await?)) }
        }
        Request::Pages { id } => {
            own(&id).await?;
            let page = backend.pages(&reviews, &id).await.map_err(StoreError::new)?;
            Reply::Pages { base_url: page.base_url, has_dashboard: page.has_dashboard, hint: page.hint }
        }
    })
}

fn is_of(review: &Review, workspace: &Utf8Path) -> bool {
    review.project == workspace
}

/// The reviews of the machine that a container runs on.
#[derive(Debug, Clone)]
pub struct SocketReviews {
    path: Utf8PathBuf,
    patience: Duration,
}

impl SocketReviews {
    /// The reviews behind a socket.
    #[must_use]
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self { path: path.into(), patience: LISTENER }
    }

    /// Returns the address of the pages of a review.
    ///
    /// # Errors
    /// There are none, or nobody answers.
    pub async fn pages(&self, id: &ReviewId) -> Result<PageAddress, String> {
        match self.ask(Request::Pages { id: id.clone() }).await.map_err(|error| error.to_string())? {
            Reply::Pages { base_url, has_dashboard, hint } => {
                Ok(PageAddress { base_url, has_dashboard, hint })
            }
            _ => Err("the machine of this container gives no address of pages".to_owned()),
        }
    }

    async fn ask(&self, request: Request) -> Result<Reply, ReviewsError> {
        let (path, patience) = (self.path.clone(), self.patience);
        // A socket of the system blocks: on a thread of its own.
        let asked = spawn_blocking(move || ask(&path, &request, patience)).await;
        let reply = asked.map_err(|error| StoreError::new(error.to_string()))?;
        let reply = reply.map_err(|error| {
            StoreError::new(format!("what started this container does not answer about reviews: {error}"))
        })?;
        match reply {
            Reply::NotFound { id } => Err(ReviewsError::NotFound(id)),
            Reply::Refused { why, review } => {
                Err(ReviewsError::Refused { refusal: Refusal::Server(why), review })
            }
            Reply::Failed { why } => Err(StoreError::new(why).into()),
            reply => Ok(reply),
        }
    }

    async fn review(&self, request: Request) -> Result<Option<Review>, ReviewsError> {
        match self.ask(request).await? {
            Reply::Review { review } => Ok(review.map(|review| *review)),
            _ => Err(misunderstood()),
        }
    }
}

fn ask(path: &Utf8Path, request: &Request, patience: Duration) -> io::Result<Reply> {
    let mut stream = connect(path, patience)?;
    stream.set_read_timeout(Some(REPLY))?;
    stream.set_write_timeout(Some(REPLY))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut reply = Vec::new();
    BufReader::new(stream.take(LIMIT)).read_until(b'\n', &mut reply)?;
    Ok(serde_json::from_slice(&reply)?)
}

/// Connects, and waits for a listener.
fn connect(path: &Utf8Path, patience: Duration) -> io::Result<UnixStream> {
    let deadline = Instant::now() + patience;
    loop {
        match through_its_directory(path, |short| UnixStream::connect(short)) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(RETRY);
            }
            connected => return connected,
        }
    }
}

fn misunderstood() -> ReviewsError {
    StoreError::new("what started this container speaks another version's language about reviews").into()
}

/// Uses a socket by a short name: Linux takes no more than 107 bytes, and homes may be deep.
#[cfg(target_os = "linux")]
fn through_its_directory<T>(path: &Utf8Path, open: impl FnOnce(&str) -> io::Result<T>) -> io::Result<T> {
    use std::os::fd::AsRawFd;
    let dir = std::fs::File::open(path.parent().unwrap_or(Utf8Path::new(".")))?;
    open(&format!("/proc/self/fd/{}/{}", dir.as_raw_fd(), path.file_name().unwrap_or_default()))
}

/// Uses a socket by a short name: macOS takes no more than 103 bytes. A link to its directory is short.
#[cfg(not(target_os = "linux"))]
fn through_its_directory<T>(path: &Utf8Path, open: impl FnOnce(&str) -> io::Result<T>) -> io::Result<T> {
    let dir = path.parent().unwrap_or(Utf8Path::new(".")).canonicalize_utf8()?;
    let short = tempfile::Builder::new().prefix("cliq").tempdir_in("/tmp")?;
    std::os::unix::fs::symlink(dir, short.path().join("d"))?;
    let name = short.path().join("d").join(path.file_name().unwrap_or_default());
    open(name.to_str().unwrap_or_default())
}

#[async_trait]
impl Reviews for SocketReviews {
    async fn create(&self, review: &Review, content: &Content) -> Result<Review, ReviewsError> {
        let request = Request::Create { review: Box::new(review.clone()), content: content.clone() };
        self.review(request).await?.ok_or_else(misunderstood)
    }

    async fn get(&self, id: &ReviewId) -> Result<Option<Review>, ReviewsError> {
        self.review(Request::Get { id: id.clone() }).await
    }

    async fn content(&self, id: &ReviewId) -> Result<Option<Content>, ReviewsError> {
        match self.ask(Request::Content { id: id.clone() }).await? {
            Reply::Content { content } => Ok(content),
            _ => Err(misunderstood()),
        }
    }

    async fn list(&self, filter: &ReviewFilter) -> Result<Vec<Review>, ReviewsError> {
        match self.ask(Request::List { filter: filter.clone() }).await? {
            Reply::Reviews { reviews } => Ok(reviews),
            _ => Err(misunderstood()),
        }
    }

    async fn apply(&self, id: &ReviewId, event: Event) -> Result<Review, ReviewsError> {
        self.review(Request::Apply { id: id.clone(), event }).await?.ok_or_else(misunderstood)
    }
}

#[cfg(test)]
mod with_reviews;

#[cfg(test)]
mod tests {
    use cliq_review::{Answer, Choice, Via};

    use super::*;

    /// A machine without reviews.
    #[derive(Debug)]
    struct Empty;

    #[async_trait]
    impl Reviews for Empty {
        async fn create(&self, review: &Review, _: &Content) -> Result<Review, ReviewsError> {
            Ok(review.clone())
        }
        async fn get(&self, _: &ReviewId) -> Result<Option<Review>, ReviewsError> {
            Ok(None)
        }
        async fn content(&self, _: &ReviewId) -> Result<Option<Content>, ReviewsError> {
            Ok(Some(Content::default()))
        }
        async fn list(&self, filter: &ReviewFilter) -> Result<Vec<Review>, ReviewsError> {
            Err(StoreError::new(format!("listed {:?}", filter.project)).into())
        }
        async fn apply(&self, _: &ReviewId, _: Event) -> Result<Review, ReviewsError> {
            Err(StoreError::new("applied").into())
        }
    }

    struct Machine;

    #[async_trait]
    impl ReviewBackend for Machine {
        async fn reviews(&self) -> Result<Arc<dyn Reviews>, String> {
            Ok(Arc::new(Empty))
        }
        async fn pages(&self, _: &Arc<dyn Reviews>, _: &ReviewId) -> Result<PageAddress, String> {
            Err("no pages".to_owned())
        }
    }

    #[tokio::test]
    async fn a_container_cannot_answer_and_sees_its_own_only() {
        let dir = tempfile::tempdir().expect("a directory");
        // Deeper than the name of a socket may be long.
        let deep = Utf8Path::from_path(dir.path()).expect("UTF-8").join("x".repeat(120));
        std::fs::create_dir_all(&deep).expect("made");
        let path = deep.join("reviews.sock");
        let socket = ReviewSocket::listen(&path).expect("listening");
        let reviews = SocketReviews::new(path.clone());
        let id = ReviewId::random().expect("random numbers");
        let answer = Event::Answer(Answer {
            reviewer: "ada".to_owned(),
            actor: "an agent".to_owned(),
            via: Via::CommandLine,
            choice: Choice::Approve,
            reason: None,
            inputs: serde_json::Map::new(),
        });
        let asked = async {
            let refused = reviews.apply(&id, answer).await.expect_err("an answer").to_string();
            assert!(refused.contains("people answer reviews"), "{refused}");
            let cancel = Event::Cancel { reason: "x".to_owned() };
            // It is not of this workspace: the store is not even asked.
            assert!(matches!(reviews.apply(&id, cancel).await, Err(ReviewsError::NotFound(_))));
            assert!(matches!(reviews.content(&id).await, Err(ReviewsError::NotFound(_))));
            assert!(reviews.get(&id).await.expect("asked").is_none());
            let other = ReviewFilter { project: Some("/other".to_owned()), ..ReviewFilter::default() };
            let listed = reviews.list(&other).await.expect_err("told").to_string();
            assert!(listed.contains("/home/ada/shop"), "{listed}");
        };
        tokio::select! {
            () = asked => {}
            () = socket.serve(Utf8Path::new("/home/ada/shop"), Arc::new(Machine)) => panic!("it ended"),
        }
        drop(socket);
        assert!(!path.exists());
        let impatient = SocketReviews { path: path.clone(), patience: Duration::ZERO };
        assert!(impatient.get(&id).await.is_err(), "there is no listener");
        // The next follower listens after the question was asked.
        let late = async {
            tokio::time::sleep(RETRY * 2).await;
            let socket = ReviewSocket::listen(&path).expect("listening");
            socket.serve(Utf8Path::new("/home/ada/shop"), Arc::new(Machine)).await;
        };
        tokio::select! {
            found = reviews.get(&id) => assert!(found.expect("answered").is_none()),
            () = late => panic!("it ended"),
        }
    }
}
