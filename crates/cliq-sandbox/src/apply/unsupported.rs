//! Refusal of systems without a mechanism.

use cliq_protocol::Profile;

use super::Confined;
use crate::SandboxError;
use crate::policy::Policy;

/// Refuses each profile but `off`.
pub(super) fn restrict(policy: &Policy, _: &Confined<'_>) -> Result<(), SandboxError> {
    if policy.profile == Profile::Off {
        return Ok(());
    }
    Err(SandboxError::Mechanism { mechanism: "sandbox", reason: "needs Linux or macOS".to_owned() })
}
