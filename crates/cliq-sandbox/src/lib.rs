//! Sandbox for agents, commands and tools (docs/sandbox.md), without a container and without privileges.
//!
//! A [`Sandbox`](cliq_protocol::Sandbox) of a team or of the settings becomes [`Limits`]; limits of several are combined and never become
//! looser. [`Policy`] adds the files of one process. A [`Wrapper`] puts the policy into force: on Linux by bubblewrap if it works, and by
//! Landlock and seccomp in any case ([`enter`]); on macOS by a profile of Seatbelt.

#[cfg(feature = "egress")]
pub mod egress;
mod limits;
mod policy;
mod seatbelt;
pub mod secrets;
mod support;
mod wrapper;

mod apply;
mod bubblewrap;
#[cfg(target_os = "linux")]
mod filesystem;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod seccomp;

pub use apply::{Confined, enter};
pub use limits::{Base, Limits, normalize};
pub use policy::{Access, Egress, Mechanism, Policy, secret_paths};
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
    /// The network is limited to some hosts, and there is no way to an egress proxy.
    #[error("there is no egress proxy for the hosts of `sandbox.network`")]
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
