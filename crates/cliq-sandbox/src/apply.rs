//! Putting a policy into force: a wrapper process restricts itself and becomes the command.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod unsupported;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use camino::Utf8Path;
use cliq_protocol::{Network, Profile};

#[cfg(target_os = "linux")]
use self::linux as system;
#[cfg(target_os = "macos")]
use self::macos as system;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
use self::unsupported as system;
use crate::SandboxError;
use crate::policy::{Mechanism, Policy};

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

/// Restricts this process and becomes the command: on Linux by Landlock and seccomp. Returns only if that fails.
///
/// With bubblewrap, this process is inside its namespaces already, and with Seatbelt in its profile, without which the command is not
/// started ([`Wrapper::command`](crate::Wrapper::command)).
#[must_use]
pub fn enter(policy: &Policy, command: &Confined<'_>) -> SandboxError {
    if matches!(policy.network, Network::Hosts(_)) && policy.egress.is_none() {
        return SandboxError::Hosts;
    }
    match system::restrict(policy, command) {
        Ok(()) => {
            let error = of(policy, command).exec();
            SandboxError::Start { program: command.program.to_owned(), reason: error.to_string() }
        }
        Err(error) => error,
    }
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
            Mechanism::Landlock | Mechanism::Seatbelt => temporary,
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
