//! Putting a policy into force: a wrapper process restricts itself and becomes the command.

use std::ffi::OsString;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use camino::Utf8Path;
use cliq_protocol::{Network, Profile};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use crate::SandboxError;
use crate::policy::{Mechanism, Policy};
use crate::{landlock, seccomp};

/// Command that runs in a sandbox.
#[derive(Debug, Clone)]
pub struct Confined<'a> {
    /// Program, looked for in `PATH`.
    pub program: &'a str,
    /// Arguments of the program.
    pub arguments: &'a [String],
    /// Program of cliq, which is the forwarder of an own network namespace too.
    pub wrapper: &'a Utf8Path,
    /// Environment of this process.
    pub variables: &'a [(OsString, OsString)],
}

/// Restricts this process by Landlock and seccomp and becomes the command. Returns only if that fails.
///
/// With bubblewrap, this process is inside its namespaces already ([`Wrapper::command`](crate::Wrapper::command)).
#[must_use]
pub fn enter(policy: &Policy, command: &Confined<'_>) -> SandboxError {
    if matches!(policy.network, Network::Hosts(_)) && policy.egress.is_none() {
        return SandboxError::Hosts;
    }
    let entered = start_forwarder(policy, command).and_then(|()| restrict(policy));
    match entered {
        Ok(()) => {
            let error = of(policy, command).exec();
            SandboxError::Start { program: command.program.to_owned(), reason: error.to_string() }
        }
        Err(error) => error,
    }
}

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

fn restrict(policy: &Policy) -> Result<(), SandboxError> {
    if policy.profile == Profile::Off {
        return Ok(());
    }
    let failed = |reason: rustix::io::Errno| SandboxError::Mechanism {
        mechanism: "capabilities",
        reason: reason.to_string(),
    };
    // Descriptors that whoever started cliq left open are no business of the command.
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

fn of(policy: &Policy, confined: &Confined<'_>) -> Command {
    let mut command = Command::new(confined.program);
    command.args(confined.arguments);
    if policy.profile == Profile::Off {
        return command;
    }
    command.env_clear();
    let is_kept = |name: &str| {
        name.starts_with("CLIQ_") && is_of_protocol(name) || policy.env.iter().any(|kept| kept == name)
    };
    let kept = confined.variables.iter().filter(|(name, _)| name.to_str().is_some_and(is_kept));
    command.envs(kept.map(|(name, value)| (name, value)));
    if let Some(egress) = &policy.egress {
        let address = format!("http://127.0.0.1:{}", egress.port);
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            command.env(name, &address);
        }
        // Node's own client reads these only if it is told to.
        command.env("NODE_USE_ENV_PROXY", "1");
    }
    if let Some(temporary) = &policy.temporary {
        let temporary = match policy.mechanism {
            Mechanism::Bubblewrap => Utf8Path::new("/tmp"),
            Mechanism::Landlock => temporary,
        };
        command.env("TMPDIR", temporary);
    }
    command
}

/// Whether a variable belongs to the protocol of agents (docs/protocol.md).
fn is_of_protocol(name: &str) -> bool {
    matches!(
        name,
        "CLIQ_PHASE"
            | "CLIQ_DIR"
            | "CLIQ_WORKSPACE"
            | "CLIQ_SIGNAL_FILE"
            | "CLIQ_RUN_ID"
            | "CLIQ_RUN_PATH"
            | "CLIQ_ORCHESTRATOR"
            | "CLIQ_MAX_FILE_BYTES"
    )
}
