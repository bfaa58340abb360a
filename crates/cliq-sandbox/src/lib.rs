//! Sandbox for agents, commands and tools (SPEC section 22), without a container and without privileges.
//!
//! A [`Sandbox`](cliq_protocol::Sandbox) of a team or of the settings becomes [`Limits`]; limits of several are combined and never become
//! looser. [`Policy`] adds the files of one process. A wrapper process puts the policy into force with [`exec`]: by bubblewrap if it works,
//! and by Landlock and seccomp in any case.

mod filesystem;
mod limits;
mod policy;
pub mod secrets;
mod support;
mod wrapper;

#[cfg(target_os = "linux")]
mod apply;
#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod seccomp;

#[cfg(target_os = "linux")]
pub use apply::{Confined, enter, exec, this_program};
pub use limits::{Base, Limits, normalize};
pub use policy::{Access, Mechanism, Policy, secret_paths};
pub use support::{LANDLOCK_VERSION, Preference, Support};
pub use wrapper::{POLICY_VARIABLE, PROGRAM_VARIABLE, SANDBOX_VARIABLE, Wrapper};

/// Reason why a command does not run in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// A mechanism does not work.
    #[error("cannot enter the sandbox: {mechanism}: {reason}")]
    Mechanism {
        /// Name of the mechanism.
        mechanism: &'static str,
        /// Error of the system.
        reason: String,
    },
    /// The network is limited to some hosts.
    #[error("lists of hosts in `sandbox.network` are not supported yet; use `all` or `none`")]
    Hosts,
    /// The command cannot be started.
    #[error("cannot start {program}: {reason}")]
    Start {
        /// The program.
        program: String,
        /// Error of the system.
        reason: String,
    },
}
