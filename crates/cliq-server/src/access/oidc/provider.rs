//! The provider: discovery, the two steps of the code flow, sign-out.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cliq_http::Client;
use cliq_model::{Person, Scope};
use openidconnect::core::{
    CoreClient, CoreGenderClaim, CoreIdToken, CoreJwsSigningAlgorithm, CoreResponseType,
};
use openidconnect::{
    AccessTokenHash, AdditionalClaims, AuthenticationFlow, AuthorizationCode, ClientId, ClientSecret,
    CsrfToken, IssuerUrl, LogoutRequest, Nonce, OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier,
    PostLogoutRedirectUrl, ProviderMetadataWithLogout, RedirectUrl, Scope as OidcScope, TokenResponse,
    UserInfoClaims,
};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use subtle::ConstantTimeEq;

use super::http::{client, send};
use super::options::ProviderOptions;

/// Time for which the description of the provider is kept.
const KEPT: Duration = Duration::from_secs(3600);
/// Time after a failure in which the provider is not asked again: who waited meanwhile gets the same error at once.
const FAILED: Duration = Duration::from_millis(500);
/// Signatures of identity tokens that are accepted: those with public keys.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// Reason why a sign-in failed. Contains no token and no code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignInError {
    /// The provider does not respond, or its description is wrong.
    #[error("the provider {issuer} cannot be used: {reason}")]
    Unreachable {
        /// Address of the provider.
        issuer: String,
        /// Reason.
        reason: String,
    },
    /// The provider refused the code, or sent a token that is not valid.
    #[error("the provider did not confirm the sign-in: {0}")]
    Refused(String),
    /// No group of the person gives a scope.
    #[error("the account {0} is in no group that may sign in here")]
    NoScope(String),
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    Random,
}

/// First step of a sign-in.
pub(crate) struct Beginning {
    /// Address of the provider to which the browser is sent.
    pub(crate) url: String,
    /// Value of the `state` parameter.
    pub(crate) state: String,
    /// Secret for the browser's cookie.
    pub(crate) browser: String,
    /// Value that the identity token must contain.
    pub(crate) nonce: String,
    /// Verifier of PKCE.
    pub(crate) verifier: String,
}

/// A person who signed in.
#[derive(Debug, Clone)]
pub(crate) struct SignedIn {
    /// Person.
    pub(crate) person: Person,
    /// Scope of the session.
    pub(crate) scope: Scope,
}

/// A provider.
pub(crate) struct Provider {
    options: ProviderOptions,
    client: Client,
    metadata: Mutex<Description>,
}

/// Description of the provider, as it was last read.
#[derive(Default)]
struct Description {
    found: Option<(Instant, ProviderMetadataWithLogout)>,
    failed: Option<(Instant, String)>,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Claims besides the standard ones.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Extra(Map<String, Value>);

impl AdditionalClaims for Extra {}

/// SHA-256 of a text, in hexadecimal.
#[must_use]
pub(crate) fn digest_of(text: &str) -> String {
    hex::encode(digest(&SHA256, text.as_bytes()).as_ref())
}

/// Whether a text has a digest of [`digest_of`]. The comparison takes the same time for every text.
#[must_use]
pub(crate) fn is_same_digest(text: &str, digest: &str) -> bool {
    bool::from(digest_of(text).as_bytes().ct_eq(digest.as_bytes()))
}

impl Provider {
    /// Creates a provider. Nothing is sent.
    #[must_use]
    pub(crate) fn new(options: ProviderOptions) -> Self {
        Self { options, client: client(), metadata: Mutex::default() }
    }

    /// Options of the provider.
    #[must_use]
    pub(crate) fn options(&self) -> &ProviderOptions {
        &self.options
    }

    fn unreachable(&self, reason: &impl std::error::Error) -> SignInError {
        SignInError::Unreachable { issuer: self.options.issuer.clone(), reason: chain(reason) }
    }

    /// Returns the description of the provider. Sends requests if it is older than an hour, and if a key may have been replaced.
    fn metadata(&self, is_fresh: bool) -> Result<ProviderMetadataWithLogout, SignInError> {
        let mut kept = self.metadata.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, metadata)) = kept.found.as_ref().filter(|_| !is_fresh)
            && at.elapsed() < KEPT
        {
            return Ok(metadata.clone());
        }
        if let Some((at, reason)) = &kept.failed
            && at.elapsed() < FAILED
        {
            let (issuer, reason) = (self.options.issuer.clone(), reason.clone());
            return Err(SignInError::Unreachable { issuer, reason });
        }
        let issuer = IssuerUrl::new(self.options.issuer.clone()).map_err(|error| self.unreachable(&error))?;
        let client = |request| send(&self.client, request);
        let found = ProviderMetadataWithLogout::discover(&issuer, &client);
        match found {
            Ok(found) => {
                kept.found = Some((Instant::now(), found.clone()));
                Ok(found)
            }
            Err(error) => {
                kept.failed = Some((Instant::now(), chain(&error)));
                Err(self.unreachable(&error))
            }
        }
    }

    /// Begins a sign-in.
    ///
    /// # Errors
    /// Returns an error if the provider does not respond.
    pub(crate) fn begin(&self) -> Result<Beginning, SignInError> {
        let metadata = self.metadata(false)?;
        let client = CoreClient::from_provider_metadata(
            metadata,
            ClientId::new(self.options.client_id.clone()),
            self.options.client_secret.clone().map(ClientSecret::new),
        )
        .set_redirect_uri(self.redirect()?);
        let mut bytes = [0_u8; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| SignInError::Random)?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let mut request = client.authorize_url(
            AuthenticationFlow::<CoreResponseType>::AuthorizationCode,
            CsrfToken::new_random,
            Nonce::new_random,
        );
        for scope in &self.options.scopes {
            request = request.add_scope(OidcScope::new(scope.clone()));
        }
        let (url, state, nonce) = request.set_pkce_challenge(challenge).url();
        Ok(Beginning {
            url: url.to_string(),
            state: state.secret().clone(),
            browser: hex::encode(bytes),
            nonce: nonce.secret().clone(),
            verifier: verifier.secret().clone(),
        })
    }

    fn redirect(&self) -> Result<RedirectUrl, SignInError> {
        RedirectUrl::new(self.options.redirect_url()).map_err(|error| self.unreachable(&error))
    }

    /// Completes a sign-in with the code that the browser brought.
    ///
    /// # Errors
    /// Returns an error if the provider does not confirm the code, its token is not valid, or the person is in no group that may sign in.
    pub(crate) fn complete(&self, code: &str, nonce: &str, verifier: &str) -> Result<SignedIn, SignInError> {
        let refused = |error: &dyn std::error::Error| SignInError::Refused(chain(error));
        let metadata = self.metadata(false)?;
        let has_user_info = metadata.userinfo_endpoint().is_some();
        let client = CoreClient::from_provider_metadata(
            metadata,
            ClientId::new(self.options.client_id.clone()),
            self.options.client_secret.clone().map(ClientSecret::new),
        )
        .set_redirect_uri(self.redirect()?);
        let http = |request| send(&self.client, request);
        let tokens = client
            .exchange_code(AuthorizationCode::new(code.to_owned()))
            .map_err(|error| refused(&error))?
            .set_pkce_verifier(PkceCodeVerifier::new(verifier.to_owned()))
            .request(&http)
            .map_err(|error| refused(&error))?;
        let id_token = tokens.id_token();
        let id_token =
            id_token.ok_or_else(|| SignInError::Refused("it sent no identity token".to_owned()))?;
        let checked = Nonce::new(nonce.to_owned());
        let claims = match id_token.claims(&client.id_token_verifier().set_allowed_algs(ALGORITHMS), &checked)
        {
            Ok(claims) => claims,
            Err(error) => {
                // Its keys may have been replaced: the next attempt reads them again.
                let _ = self.metadata(true);
                return Err(refused(&error));
            }
        };
        if let Some(expected) = claims.access_token_hash() {
            let verifier = client.id_token_verifier();
            let algorithm = id_token.signing_alg().map_err(|error| refused(&error))?;
            let key = id_token.signing_key(&verifier).map_err(|error| refused(&error))?;
            let hash = AccessTokenHash::from_token(tokens.access_token(), algorithm, key);
            if hash.map_err(|error| refused(&error))? != *expected {
                return Err(SignInError::Refused(
                    "the access token is not that of the identity token".to_owned(),
                ));
            }
        }
        let subject = claims.subject().clone();
        let mut all = payload_of(id_token);
        if has_user_info {
            // Many providers put mail address and groups there only.
            let request = client.user_info(tokens.access_token().to_owned(), Some(subject.clone()));
            let found: UserInfoClaims<Extra, CoreGenderClaim> =
                request.map_err(|error| refused(&error))?.request(&http).map_err(|error| refused(&error))?;
            let found = serde_json::to_value(found).unwrap_or_default();
            all.extend(found.as_object().cloned().unwrap_or_default());
        }
        self.person_of(subject.as_str(), &all, id_token)
    }

    fn person_of(
        &self,
        subject: &str,
        claims: &Map<String, Value>,
        id_token: &CoreIdToken,
    ) -> Result<SignedIn, SignInError> {
        let text = |key: &str| claims.get(key).and_then(Value::as_str).map(clean).filter(|t| !t.is_empty());
        let is_verified =
            claims.get("email_verified").is_some_and(|value| *value == true || *value == "true");
        let mail =
            text("email").filter(|mail| is_verified && mail.contains('@')).map(|mail| mail.to_lowercase());
        let name = text("name").or_else(|| text("preferred_username")).or_else(|| mail.clone());
        let name = name.unwrap_or_else(|| clean(subject));
        let groups = match claims.get(&self.options.groups_claim) {
            Some(Value::Array(groups)) => {
                groups.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Some(Value::String(group)) => vec![group.clone()],
            _ => Vec::new(),
        };
        let scope = self.options.groups.scope_of(&groups);
        let scope =
            scope.ok_or_else(|| SignInError::NoScope(mail.clone().unwrap_or_else(|| name.clone())))?;
        let person = Person {
            issuer: self.options.issuer.clone(),
            subject: subject.to_owned(),
            mail,
            name,
            id_token: Some(id_token.to_string()),
        };
        Ok(SignedIn { person, scope })
    }

    /// Returns the address at which a person signs out of the provider, or `None` if the provider has none or does not respond.
    #[must_use]
    pub(crate) fn sign_out_url(&self, person: &Person) -> Option<String> {
        let metadata = self.metadata(false).ok()?;
        let endpoint = metadata.additional_metadata().end_session_endpoint.clone()?;
        let id_token: CoreIdToken = person.id_token.as_deref()?.parse().ok()?;
        let back = PostLogoutRedirectUrl::new(format!("{}/signin", self.options.public_url)).ok()?;
        let request = LogoutRequest::from(endpoint)
            .set_id_token_hint(&id_token)
            .set_client_id(ClientId::new(self.options.client_id.clone()))
            .set_post_logout_redirect_uri(back);
        Some(request.http_get_url().to_string())
    }
}

/// Claims of an identity token whose signature was checked.
fn payload_of(id_token: &CoreIdToken) -> Map<String, Value> {
    use base64::Engine as _;
    let text = id_token.to_string();
    let part = text.split('.').nth(1).unwrap_or_default();
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(part).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// A text for display: one line, without control characters.
fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect::<String>().trim().to_owned()
}

/// The messages of an error and its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
