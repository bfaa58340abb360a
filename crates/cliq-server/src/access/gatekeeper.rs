//! Checks tokens and limits rates.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use cliq_model::{NewToken, Person, RunStore, Scope, Secret, StoreError, TokenKind};
use cliq_protocol::Timestamp;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use ring::digest::{SHA256, digest};
use subtle::ConstantTimeEq;

use super::host::AllowedHosts;
use cliq_supervisor::internals::clock;
use cliq_web::{Caller, Via};

/// Duration of a browser session.
pub(crate) const SESSION: Duration = Duration::from_secs(7 * 86_400);
/// Validity of a sign-in link.
const SIGN_IN: Duration = Duration::from_secs(15 * 60);
/// Attempts with a wrong token from one address: so many per second, after a burst of ten times as many.
const FAILURES: u32 = 3;

/// A token that is not in the store: that of `server.json`, and that of `CLIQ_ADMIN_TOKEN`.
#[derive(Debug)]
struct FixedToken {
    hash: Vec<u8>,
    label: &'static str,
}

/// Checks tokens and limits rates.
#[derive(Debug)]
pub(crate) struct Gatekeeper {
    store: Arc<dyn RunStore>,
    fixed: Vec<FixedToken>,
    pub(crate) hosts: AllowedHosts,
    requests: DefaultKeyedRateLimiter<IpAddr>,
    failures: DefaultKeyedRateLimiter<IpAddr>,
}

fn quota(per_second: u32, burst: u32) -> Quota {
    let at_least_one = |n: u32| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
    Quota::per_second(at_least_one(per_second)).allow_burst(at_least_one(burst))
}

fn hash(text: &str) -> Vec<u8> {
    digest(&SHA256, text.as_bytes()).as_ref().to_vec()
}

impl Gatekeeper {
    pub(crate) fn new(
        store: Arc<dyn RunStore>,
        session_token: &str,
        admin_token: Option<&str>,
        hosts: AllowedHosts,
        rate_limit: u32,
    ) -> Self {
        let mut fixed = vec![FixedToken { hash: hash(session_token), label: "this machine" }];
        fixed.extend(admin_token.map(|token| FixedToken { hash: hash(token), label: "CLIQ_ADMIN_TOKEN" }));
        Self {
            store,
            fixed,
            hosts,
            requests: RateLimiter::keyed(quota(rate_limit, rate_limit.saturating_mul(2))),
            failures: RateLimiter::keyed(quota(FAILURES, FAILURES * 10)),
        }
    }

    /// Whether an address may make another request now.
    pub(crate) fn admits(&self, address: IpAddr) -> bool {
        self.requests.check_key(&address).is_ok()
    }

    /// Counts a wrong token. Gives whether the address may go on.
    pub(crate) fn count_failure(&self, address: IpAddr) -> bool {
        self.failures.check_key(&address).is_ok()
    }

    /// Forgets addresses that have been quiet.
    pub(crate) fn tidy(&self) {
        self.requests.retain_recent();
        self.failures.retain_recent();
    }

    /// The caller with this token. `None` if it is not valid.
    pub(crate) async fn check(&self, token: &str, via: Via) -> Result<Option<Caller>, StoreError> {
        if via == Via::Token {
            let given = hash(token);
            let same = |fixed: &&FixedToken| bool::from(fixed.hash.ct_eq(&given));
            if let Some(fixed) = self.fixed.iter().find(same) {
                let label = fixed.label.to_owned();
                return Ok(Some(Caller {
                    token: String::new(),
                    label,
                    scope: Scope::Admin,
                    via,
                    person: None,
                }));
            }
        }
        let Some(secret) = Secret::parse(token) else { return Ok(None) };
        let kind = match via {
            Via::Token => TokenKind::Api,
            Via::Cookie => TokenKind::Session,
        };
        let found = self.store.token(secret.id()).await?;
        let valid = found.filter(|token| token.kind == kind && token.accepts(&secret, clock::now()));
        Ok(valid.map(|token| Caller {
            token: token.id,
            label: token.label,
            scope: token.scope,
            via,
            person: token.person,
        }))
    }

    /// Opens a session for a browser. It ends with `parent`, the token that it is opened with. Gives its cookie's value.
    pub(crate) async fn open_session(
        &self,
        label: &str,
        scope: Scope,
        parent: Option<&str>,
    ) -> Result<Option<Secret>, StoreError> {
        let found = match parent {
            Some(id) => self.store.token(id).await?,
            None => None,
        };
        let own = clock::after(SESSION);
        let end = found.and_then(|token| token.expires_at).map_or(own, |end| end.min(own));
        self.make(TokenKind::Session, label, scope, end, parent, None).await
    }

    /// Opens a session for a person who signed in by a provider. Gives its cookie's value.
    pub(crate) async fn open_session_of(
        &self,
        person: Person,
        scope: Scope,
        duration: Duration,
    ) -> Result<Option<Secret>, StoreError> {
        let label = person.name.clone();
        self.make(TokenKind::Session, &label, scope, clock::after(duration), None, Some(person)).await
    }

    /// Makes a token that signs a browser in, once.
    pub(crate) async fn make_sign_in(&self, label: &str, scope: Scope) -> Result<Option<Secret>, StoreError> {
        self.make(TokenKind::SignIn, label, scope, clock::after(SIGN_IN), None, None).await
    }

    async fn make(
        &self,
        kind: TokenKind,
        label: &str,
        scope: Scope,
        end: Timestamp,
        parent: Option<&str>,
        person: Option<Person>,
    ) -> Result<Option<Secret>, StoreError> {
        let made = NewToken::generate(kind, label, scope, clock::now(), Some(end));
        let Some((secret, mut token)) = made else { return Ok(None) };
        token.parent = parent.map(str::to_owned);
        token.person = person;
        self.store.add_token(&token).await?;
        Ok(Some(secret))
    }

    /// Uses a token that signs in. Of those who use it at the same moment one succeeds.
    pub(crate) async fn use_sign_in(&self, code: &str) -> Result<Option<(String, Scope)>, StoreError> {
        let Some(secret) = Secret::parse(code) else { return Ok(None) };
        let found = self.store.token(secret.id()).await?;
        let valid =
            found.filter(|token| token.kind == TokenKind::SignIn && token.accepts(&secret, clock::now()));
        let Some(token) = valid else { return Ok(None) };
        let first = self.store.revoke_token(&token.id).await?;
        Ok(first.then_some((token.label, token.scope)))
    }
}
