//! Sign-in of people by OpenID Connect (docs/sign-in.md): discovery, code flow with PKCE, identity of the person, sign-out.
//!
//! [`Provider`] speaks to the provider. Attempts that are under way are values: their store makes each count once. Functions that send
//! requests block.

mod groups;
mod http;
mod options;
mod provider;

pub use groups::GroupScopes;
pub use options::{OptionsError, ProviderOptions};
pub use provider::{Beginning, Provider, SignInError, SignedIn, digest_of, is_same_digest};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
