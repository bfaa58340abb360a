//! Putting a policy into force: a wrapper process restricts itself and becomes the command.

use std::os::unix::process::CommandExt;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{Network, Profile};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::SandboxError;
use crate::policy::{Mechanism, Policy};
use crate::{bubblewrap, landlock, seccomp, support};

/// Command that runs in a sandbox.
#[derive(Debug, Clone)]
pub struct Confined<'a> {
    /// Program, looked for in `PATH`.
    pub program: &'a str,
    /// Arguments of the program.
    pub arguments: &'a [String],
    /// Working directory.
    pub working: &'a Utf8Path,
    /// This program, which bubblewrap starts inside.
    pub wrapper: &'a Utf8Path,
    /// Arguments by which this program calls [`enter`] with the policy in JSON that follows, `--` and the command.
    pub inner: &'a [&'a str],
}

/// Becomes the command under a policy. Returns only if that fails.
///
/// With bubblewrap, this starts `bwrap`, which starts the wrapper again: that one calls [`enter`].
#[must_use]
pub fn exec(policy: &Policy, command: &Confined<'_>) -> SandboxError {
    if let Network::Hosts(_) = policy.network {
        return SandboxError::Hosts;
    }
    if let Some(temporary) = &policy.temporary
        && let Err(error) = std::fs::create_dir_all(temporary)
    {
        return SandboxError::Start { program: temporary.to_string(), reason: error.to_string() };
    }
    match policy.mechanism {
        Mechanism::Landlock => enter(policy, command.program, command.arguments),
        Mechanism::Bubblewrap => {
            let path = std::env::var("PATH").ok();
            let Some(bwrap) = support::find(path.as_deref()) else {
                return SandboxError::Mechanism {
                    mechanism: "bubblewrap",
                    reason: "`bwrap` is not installed".to_owned(),
                };
            };
            let encoded = serde_json::to_string(policy).unwrap_or_default();
            close_fds::set_fds_cloexec(3, &[]);
            let error = Command::new(&bwrap)
                .args(bubblewrap::arguments(policy, command.working, command.wrapper))
                .arg("--")
                .arg(command.wrapper)
                .args(command.inner)
                .args([encoded.as_str(), "--", command.program])
                .args(command.arguments)
                .exec();
            SandboxError::Start { program: bwrap.to_string(), reason: error.to_string() }
        }
    }
}

/// Restricts this process by Landlock and seccomp and becomes the command. Returns only if that fails.
#[must_use]
pub fn enter(policy: &Policy, program: &str, arguments: &[String]) -> SandboxError {
    match restrict(policy) {
        Ok(()) => {
            let error = command(policy, program, arguments).exec();
            SandboxError::Start { program: program.to_owned(), reason: error.to_string() }
        }
        Err(error) => error,
    }
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
    // A program of root gets them back when it is executed, unless they are gone from here for good.
    for capability in CapabilitySet::all().iter() {
        // A kernel does not know all of them, and only a privileged process has to give them up.
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    rustix::thread::set_capabilities(None, none).map_err(failed)
}

fn command(policy: &Policy, program: &str, arguments: &[String]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    if policy.profile == Profile::Off {
        return command;
    }
    command.env_clear();
    let is_kept = |name: &str| {
        name.starts_with("CLIQ_") && is_of_protocol(name) || policy.env.iter().any(|kept| kept == name)
    };
    command.envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_kept)));
    if let Some(temporary) = &policy.temporary {
        let temporary = match policy.mechanism {
            Mechanism::Bubblewrap => Utf8Path::new("/tmp"),
            Mechanism::Landlock => temporary,
        };
        command.env("TMPDIR", temporary);
    }
    command
}

/// Whether a variable is one of SPEC section 5.
fn is_of_protocol(name: &str) -> bool {
    matches!(
        name,
        "CLIQ_PHASE"
            | "CLIQ_DIR"
            | "CLIQ_WORKSPACE"
            | "CLIQ_SIGNAL_FILE"
            | "CLIQ_RUN_ID"
            | "CLIQ_RUN_PATH"
            | "CLIQ_MAX_FILE_BYTES"
    )
}

/// Path of the running program.
///
/// # Errors
/// Returns an error if the system does not tell.
pub fn this_program() -> Result<Utf8PathBuf, SandboxError> {
    let failed = |reason: String| SandboxError::Start { program: "/proc/self/exe".to_owned(), reason };
    let path = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    Utf8PathBuf::try_from(path).map_err(|error| failed(error.to_string()))
}
