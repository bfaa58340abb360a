//! Access tokens: random, shown once, kept as SHA-256, compared in constant time (docs/server.md).

use std::fmt;

use cliq_protocol::Timestamp;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use utoipa::ToSchema;

use crate::sign_in::Person;

/// Prefix of each token, by which secret scanners find it.
const PREFIX: &str = "cliq_";

/// Scope of a token. Each scope includes the scopes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// See everything but tokens.
    Read,
    /// Start, cancel and resume runs; change plans; emit signals.
    Run,
    /// Write, try, install and publish teams.
    Edit,
    /// Register projects; make and revoke tokens.
    Admin,
}

impl Scope {
    /// The word for it, as in JSON and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Edit => "edit",
            Self::Admin => "admin",
        }
    }

    /// The scope that a word names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Read, Self::Run, Self::Edit, Self::Admin].into_iter().find(|scope| scope.as_str() == text)
    }
}

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A caller sends it with each request.
    Api,
    /// A browser's session: it comes as a cookie.
    Session,
    /// The link that signs a browser in, once.
    SignIn,
}

impl TokenKind {
    /// The word for it in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Session => "session",
            Self::SignIn => "sign_in",
        }
    }

    /// The kind that a word names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Api, Self::Session, Self::SignIn].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A token as it is sent. Never logged: `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    id: String,
    text: String,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.id)
    }
}

impl Secret {
    /// Reads a token. The form is checked, no more.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let right = id.len() == 12 && secret.len() == 64 && is_hex(id) && is_hex(secret);
        right.then(|| Self { id: id.to_owned(), text: text.to_owned() })
    }

    /// The public part of it, by which it is found, listed and revoked.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The whole token. For its owner only.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    fn hash(&self) -> String {
        hex::encode(digest(&SHA256, self.text.as_bytes()).as_ref())
    }
}

/// A token that is to be stored.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// The public part.
    pub id: String,
    /// The SHA-256 of the whole token, in hexadecimal.
    pub hash: String,
    /// Kind of the token.
    pub kind: TokenKind,
    /// Label of the token.
    pub label: String,
    /// Scope of the token.
    pub scope: Scope,
    /// When it was made, UTC.
    pub created_at: Timestamp,
    /// When it expires, UTC.
    pub expires_at: Option<Timestamp>,
    /// The id of the token that a session was opened with: it ends with that token.
    pub parent: Option<String>,
    /// Person of a session that was opened by a provider.
    pub person: Option<Person>,
}

impl NewToken {
    /// Makes a random token. Gives it with what is stored of it. `None` if the system has no random numbers.
    #[must_use]
    pub fn generate(
        kind: TokenKind,
        label: &str,
        scope: Scope,
        created_at: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> Option<(Secret, Self)> {
        let mut bytes = [0_u8; 38];
        SystemRandom::new().fill(&mut bytes).ok()?;
        let (id, secret) = (hex::encode(&bytes[..6]), hex::encode(&bytes[6..]));
        let secret = Secret { text: format!("{PREFIX}{id}_{secret}"), id: id.clone() };
        let token = Self {
            hash: secret.hash(),
            id,
            kind,
            label: label.to_owned(),
            scope,
            created_at,
            expires_at,
            parent: None,
            person: None,
        };
        Some((secret, token))
    }
}

/// A stored token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Token {
    /// The public part: `cliq_ID_…`.
    pub id: String,
    /// Label of the token.
    pub label: String,
    /// Scope of the token.
    pub scope: Scope,
    /// When it was made, UTC.
    #[schema(value_type = String)]
    pub created_at: Timestamp,
    /// When it expires, UTC; `null` for never.
    #[schema(value_type = Option<String>)]
    pub expires_at: Option<Timestamp>,
    /// Kind of the token.
    #[serde(skip)]
    pub kind: TokenKind,
    /// The SHA-256 of the whole token, in hexadecimal.
    #[serde(skip)]
    pub hash: String,
    /// Person of a session that was opened by a provider.
    #[serde(skip)]
    pub person: Option<Person>,
}

impl Token {
    /// Whether the secret is this token, and it is valid at `now` (UTC). The comparison takes the same time for every secret.
    #[must_use]
    pub fn accepts(&self, secret: &Secret, now: Timestamp) -> bool {
        let same = bool::from(self.hash.as_bytes().ct_eq(secret.hash().as_bytes()));
        same && self.expires_at.is_none_or(|expires| now < expires)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_accepted_and_only_until_it_expires() {
        let [made, before, end] = [1_000, 2_000, 3_000].map(Timestamp::from_unix_millis);
        let (secret, new) =
            NewToken::generate(TokenKind::Api, "ci", Scope::Run, made, Some(end)).expect("random numbers");
        let token = Token {
            id: new.id,
            label: new.label,
            scope: new.scope,
            created_at: new.created_at,
            expires_at: new.expires_at,
            kind: new.kind,
            hash: new.hash,
            person: None,
        };
        assert!(token.accepts(&secret, before));
        assert!(!token.accepts(&secret, end));
        let mut other = secret.reveal().to_owned();
        let last = if other.pop() == Some('0') { '1' } else { '0' };
        other.push(last);
        assert!(!token.accepts(&Secret::parse(&other).expect("the form is right"), before));
        assert!(!format!("{secret:?} {token:?}").contains(secret.reveal()));
        assert_eq!(Secret::parse(secret.reveal()), Some(secret));
        for wrong in ["", "cliq_", "cliq_a_b", "x", "cliq_000000000000_zz"] {
            assert_eq!(Secret::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn scopes_include_those_before_them() {
        assert!(Scope::Read < Scope::Run && Scope::Run < Scope::Edit && Scope::Edit < Scope::Admin);
    }
}
