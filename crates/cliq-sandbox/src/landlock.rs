//! Landlock: files, TCP, signals and abstract sockets.

use cliq_protocol::Network;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, Scope,
};

use rustix::fs::FileType;

use crate::SandboxError;
use crate::filesystem::{Right, Rule, rules};
use crate::policy::{Mechanism, Policy};

/// Newest version of Landlock whose rules are used.
const NEWEST: ABI = ABI::V6;

/// Restricts this process and all that it starts. Cannot be undone.
pub(crate) fn restrict(policy: &Policy) -> Result<(), SandboxError> {
    let failed = |error: &dyn std::fmt::Display| SandboxError::Mechanism {
        mechanism: "Landlock",
        reason: error.to_string(),
    };
    // Namespaces do the rest where bubblewrap is in force.
    let level = match policy.mechanism {
        Mechanism::Landlock | Mechanism::Seatbelt => CompatLevel::HardRequirement,
        Mechanism::Bubblewrap => CompatLevel::BestEffort,
    };
    let mut ruleset = Ruleset::default()
        .set_compatibility(level)
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
        .map_err(|error| failed(&error))?;
    let own_network = policy.mechanism == Mechanism::Bubblewrap && policy.egress.is_some();
    if policy.network != Network::All && !own_network {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST)).map_err(|error| failed(&error))?;
    }
    let mut ruleset = ruleset.create().map_err(|error| failed(&error))?;
    for Rule { path, right, is_dir } in rules(policy) {
        // A path that does not exist, or went away, needs no rule.
        let Ok(file) = PathFd::new(&path) else { continue };
        let mut access = access(right);
        let looks_like_dir =
            || rustix::fs::fstat(&file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir());
        if !is_dir.unwrap_or_else(looks_like_dir) {
            access &= AccessFs::from_file(NEWEST);
        }
        if access.is_empty() {
            continue;
        }
        ruleset = ruleset.add_rule(PathBeneath::new(file, access)).map_err(|error| failed(&error))?;
    }
    if let (Some(egress), false) = (&policy.egress, own_network) {
        let rule = NetPort::new(egress.port, AccessNet::ConnectTcp);
        ruleset = ruleset.add_rule(rule).map_err(|error| failed(&error))?;
    }
    ruleset.restrict_self().map(drop).map_err(|error| failed(&error))
}

fn access(right: Right) -> BitFlags<AccessFs> {
    let read = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
    match right {
        Right::List => AccessFs::ReadDir.into(),
        Right::Read => read,
        // Devices could be made in no other place.
        Right::Write => {
            AccessFs::from_all(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
        }
        Right::Device => read | AccessFs::WriteFile | AccessFs::IoctlDev,
    }
}

/// Version of Landlock in the kernel; 0 if there is none.
#[must_use]
pub(crate) fn version() -> i32 {
    // The kernel's version is not public in the crate: rules of a version are refused by older kernels.
    let supports = |abi: ABI| {
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(abi))
            .and_then(|ruleset| match abi {
                ABI::V1 | ABI::V2 | ABI::V3 => Ok(ruleset),
                abi => ruleset.handle_access(AccessNet::from_all(abi)),
            })
            .and_then(|ruleset| match abi {
                ABI::V6 => ruleset.scope(Scope::from_all(abi)),
                _ => Ok(ruleset),
            })
            .and_then(Ruleset::create)
            .is_ok()
    };
    let known = [(ABI::V6, 6), (ABI::V5, 5), (ABI::V4, 4), (ABI::V3, 3), (ABI::V2, 2), (ABI::V1, 1)];
    known.into_iter().find(|(abi, _)| supports(*abi)).map_or(0, |(_, version)| version)
}
