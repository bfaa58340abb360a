//! Sign-in of people by OpenID Connect (docs/sign-in.md): discovery, code flow with PKCE, identity of the person, sign-out.
//!
//! [`Provider`] speaks to the provider. Attempts that are under way are values: their store makes each count once. Functions that send
//! requests block.

mod groups;
mod http;
mod options;
mod provider;
mod routes;

pub use groups::GroupScopes;
pub use options::{OidcClient, OptionsError, ProviderOptions};
pub(crate) use provider::Provider;
use provider::{SignInError, digest_of, is_same_digest};
pub(super) use routes::{begin, complete};
