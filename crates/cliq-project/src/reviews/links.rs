//! The secrets of a review: who has which link, and where the review is kept. In the cliq home, for its owner only: neither the journal
//! nor the project has them.

use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{read_if_exists, write_atomic};
use cliq_review::{Link, LinkToken, ReviewId, hash};
use serde::{Deserialize, Serialize};

/// The most bytes of such a file.
const LIMIT: u64 = 1 << 20;

/// Data in the cliq home about a pending review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeptReview {
    /// The review.
    pub id: ReviewId,
    /// Unique key of the review ([`cliq_review::Review::key`]).
    pub key: String,
    /// The workspace of its run.
    pub project: Utf8PathBuf,
    /// The server that has it; `None` if the store of this machine does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The address of its pages, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Instruction that makes the pages reachable from another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Reviewers, each with the secret of the link.
    tokens: Vec<(String, String)>,
}

impl KeptReview {
    /// A new one, with new secrets. `None` if the system has no random numbers.
    pub(super) fn new<'a>(
        key: String,
        project: Utf8PathBuf,
        server: Option<String>,
        names: impl Iterator<Item = &'a str>,
    ) -> Option<Self> {
        let token = |name: &str| Some((name.to_owned(), LinkToken::random()?.reveal().to_owned()));
        let tokens = names.map(token).collect::<Option<Vec<_>>>()?;
        Some(Self { id: ReviewId::random()?, key, project, server, base_url: None, hint: None, tokens })
    }

    /// Returns the hashes of the links for the stored review.
    pub(super) fn hashes(&self) -> Vec<Link> {
        let link = |(reviewer, token): &(String, String)| Link {
            reviewer: reviewer.clone(),
            sha256: hash(token.as_bytes()),
        };
        self.tokens.iter().map(link).collect()
    }

    /// The link of a reviewer: the right to decide in that name. `None` while there are no pages.
    #[must_use]
    pub fn link(&self, reviewer: &str) -> Option<String> {
        let base = self.base_url.as_deref()?;
        let (_, token) = self.tokens.iter().find(|(name, _)| name == reviewer)?;
        Some(format!("{base}/review/{}/{token}", self.id))
    }

    /// The names of the reviewers.
    pub fn reviewers(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn load(home: &Utf8Path, key: &str) -> Option<Self> {
        let kept: Self = read(&file(home, key))?;
        (kept.key == key).then_some(kept)
    }

    pub(super) fn save(&self, home: &Utf8Path) -> Result<(), String> {
        let dir = directory(home);
        let failed = |error: &dyn std::fmt::Display| format!("cannot write in {dir}: {error}");
        std::fs::create_dir_all(&dir).map_err(|error| failed(&error))?;
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700))
            .map_err(|error| failed(&error))?;
        let text = serde_json::to_vec(self).map_err(|error| failed(&error))?;
        write_atomic(&file(home, &self.key), &text).map_err(|error| failed(&error))
    }

    /// Forgets it.
    pub fn remove(&self, home: &Utf8Path) {
        let _ = std::fs::remove_file(file(home, &self.key));
        // Left by an agent that was killed.
        let _ = std::fs::remove_file(directory(home).join(format!("{}.wake", self.id)));
    }
}

/// Returns the data in the cliq home about a review.
#[must_use]
pub fn kept_review(home: &Utf8Path, id: &str) -> Option<KeptReview> {
    kept_reviews(home).into_iter().find(|kept| kept.id.as_str() == id)
}

/// Returns the data in the cliq home about reviews that are pending, or were pending when their run died.
#[must_use]
pub fn kept_reviews(home: &Utf8Path) -> Vec<KeptReview> {
    let entries = directory(home).read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.path().extension() == Some("json"));
    files.filter_map(|entry| read(entry.path())).collect()
}

fn read(file: &Utf8Path) -> Option<KeptReview> {
    let bytes = read_if_exists(file, LIMIT).ok().flatten()?;
    serde_json::from_slice(&bytes).ok()
}

fn directory(home: &Utf8Path) -> Utf8PathBuf {
    home.join("reviews")
}

fn file(home: &Utf8Path, key: &str) -> Utf8PathBuf {
    directory(home).join(format!("{}.json", hash(key.as_bytes())))
}
