//! Who may do what (SPEC section 15): tokens, sessions of browsers, `Origin`, `Host`, rates.

mod caller;
mod gatekeeper;
mod guard;
mod host;

pub(crate) use caller::{Admin, Caller, Reader, Runner, Via};
pub(crate) use gatekeeper::{Gatekeeper, SESSION};
pub(crate) use guard::{guard, header_text, is_own_origin, protect};
pub(crate) use host::AllowedHosts;

/// The path of the link that signs a browser in: `?code=` has a token that works once.
pub const SIGN_IN_PATH: &str = "/signin";

/// The cookie of a browser's session.
pub(crate) const COOKIE: &str = "cliq_session";
