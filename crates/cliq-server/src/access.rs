//! Access control (docs/server.md): tokens, browser sessions, `Origin`, `Host`, rate limits.

mod audit;
mod gatekeeper;
mod guard;
mod host;
mod oidc;
mod session;

pub(crate) use gatekeeper::Gatekeeper;
pub(crate) use guard::{guard, header_text, is_own_origin, protect, without_secret};
pub(crate) use host::AllowedHosts;
pub(crate) use oidc::Provider;
pub use oidc::{GroupScopes, OidcClient, OptionsError, ProviderOptions};
pub(crate) use session::session_router;

/// Name of the cookie of a browser session.
pub(crate) const COOKIE: &str = "cliq_session";
