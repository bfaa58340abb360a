//! Sign-in of people by OpenID Connect: attempts that are under way, and the person of a session (docs/sign-in.md).

use cliq_protocol::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A person who signed in by a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Person {
    /// Address of the provider.
    pub issuer: String,
    /// Identifier of the person at the provider.
    pub subject: String,
    /// Mail address, if the provider has verified it.
    #[serde(default)]
    pub mail: Option<String>,
    /// Name for display.
    pub name: String,
    /// Identity token of the session, which the provider requires at sign-out.
    #[serde(default)]
    #[schema(read_only)]
    pub id_token: Option<String>,
}

/// Attempt to sign in: the person is at the provider.
#[derive(Clone, PartialEq, Eq)]
pub struct SignInAttempt {
    /// SHA-256 of the `state` parameter, in hexadecimal.
    pub state: String,
    /// SHA-256 of the secret in the browser's cookie, in hexadecimal.
    pub browser: String,
    /// Value that the identity token must contain.
    pub nonce: String,
    /// Verifier of PKCE.
    pub verifier: String,
    /// Time after which the attempt is void, UTC.
    pub expires_at: Timestamp,
}

/// Secrets are not shown.
impl std::fmt::Debug for SignInAttempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignInAttempt").field("state", &self.state).finish_non_exhaustive()
    }
}
