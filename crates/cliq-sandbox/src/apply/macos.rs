//! Check of macOS: `sandbox-exec` has restricted this process before it became cliq.

use std::fs;
use std::io::ErrorKind;

use cliq_protocol::Profile;

use super::Confined;
use crate::SandboxError;
use crate::policy::Policy;
use crate::seatbelt;

/// Checks that a profile is in force. Each refuses the program that applies profiles, which everything else may read.
pub(super) fn restrict(policy: &Policy, _: &Confined<'_>) -> Result<(), SandboxError> {
    if policy.profile == Profile::Off {
        return Ok(());
    }
    let reason = match fs::symlink_metadata(seatbelt::PROGRAM) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            // Descriptors that the parent process left open are not for the command.
            close_fds::set_fds_cloexec(3, &[]);
            return Ok(());
        }
        Err(error) => format!("{}: {error}", seatbelt::PROGRAM),
        Ok(_) => "no profile is in force".to_owned(),
    };
    Err(SandboxError::Mechanism { mechanism: "seatbelt", reason })
}
