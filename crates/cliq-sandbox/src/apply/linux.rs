//! Restrictions of Linux.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use cliq_protocol::Profile;
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use super::Confined;
use crate::SandboxError;
use crate::policy::{Mechanism, Policy};
use crate::{landlock, seccomp};

/// Starts a process that passes connections on to the egress proxy, out of the network namespace. It has the listening socket as its
/// standard input, so that it can be reached at once.
fn start_forwarder(policy: &Policy, command: &Confined<'_>) -> Result<(), SandboxError> {
    let (Mechanism::Bubblewrap, Some(egress)) = (policy.mechanism, &policy.egress) else { return Ok(()) };
    let started = TcpListener::bind(("127.0.0.1", egress.port)).and_then(|listener| {
        Command::new(command.wrapper)
            .args(["forward", egress.socket.as_str()])
            .env_clear()
            .stdin(OwnedFd::from(listener))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    });
    started
        .map(drop)
        .map_err(|error| SandboxError::Mechanism { mechanism: "egress", reason: error.to_string() })
}

/// Restricts this process by Landlock and seccomp, and takes its capabilities.
pub(super) fn restrict(policy: &Policy, command: &Confined<'_>) -> Result<(), SandboxError> {
    if policy.mechanism == Mechanism::Seatbelt {
        let reason = "needs macOS".to_owned();
        return Err(SandboxError::Mechanism { mechanism: "seatbelt", reason });
    }
    start_forwarder(policy, command)?;
    if policy.profile == Profile::Off {
        return Ok(());
    }
    let failed = |reason: rustix::io::Errno| SandboxError::Mechanism {
        mechanism: "capabilities",
        reason: reason.to_string(),
    };
    // Descriptors that the parent process left open are not for the command.
    close_fds::set_fds_cloexec(3, &[]);
    rustix::thread::set_no_new_privs(true).map_err(failed)?;
    landlock::restrict(policy)?;
    seccomp::restrict(policy)?;
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    // A program of root gets them back when it is executed, unless root is a user like any other from here on. Only a privileged
    // process may say so, and only a privileged one has to.
    let no_root = CapabilitiesSecureBits::NO_ROOT | CapabilitiesSecureBits::NO_ROOT_LOCKED;
    let _ = rustix::thread::set_capabilities_secure_bits(no_root);
    rustix::thread::set_capabilities(None, none).map_err(failed)
}
