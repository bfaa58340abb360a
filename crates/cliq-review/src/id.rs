//! Ids of reviews, and the tokens in the links of reviewers.

use std::fmt;
use std::str::FromStr;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use subtle::ConstantTimeEq;

/// The SHA-256 of bytes, in hexadecimal.
#[must_use]
pub fn hash(bytes: &[u8]) -> String {
    hex::encode(digest(&SHA256, bytes).as_ref())
}

/// 128 random bits, in hexadecimal. `None` if the system has no random numbers.
fn random() -> Option<String> {
    let mut bytes = [0_u8; 16];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(hex::encode(bytes))
}

fn is_hex(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The id of a review: 128 random bits, 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ReviewId(String);

/// A text is not an id of a review.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an id of a review has 32 hexadecimal digits")]
pub struct NoReviewId;

impl ReviewId {
    /// A new id. `None` if the system has no random numbers.
    #[must_use]
    pub fn random() -> Option<Self> {
        random().map(Self)
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ReviewId {
    type Err = NoReviewId;
    fn from_str(text: &str) -> Result<Self, NoReviewId> {
        if is_hex(text) { Ok(Self(text.to_owned())) } else { Err(NoReviewId) }
    }
}

impl fmt::Display for ReviewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for ReviewId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The secret in a reviewer's link: the right to decide one review in that reviewer's name. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct LinkToken(String);

impl fmt::Debug for LinkToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkToken(…)")
    }
}

impl LinkToken {
    /// A new token. `None` if the system has no random numbers.
    #[must_use]
    pub fn random() -> Option<Self> {
        random().map(Self)
    }

    /// Reads a token. The form is checked, no more.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        is_hex(text).then(|| Self(text.to_owned()))
    }

    /// The secret. For its reviewer only.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the hash that is stored.
    #[must_use]
    pub fn hash(&self) -> String {
        hash(self.0.as_bytes())
    }

    /// Whether this is the token that was stored as `stored`. Takes the same time for each wrong one.
    #[must_use]
    pub fn matches(&self, stored: &str) -> bool {
        self.hash().as_bytes().ct_eq(stored.as_bytes()).into()
    }
}
