//! Teams as packages: resolving the teams of a project, their files and origins, the lock, publishing (docs/packages.md).

pub(crate) mod files;
mod git;
pub(crate) mod installed;
pub(crate) mod permissions;
#[cfg(feature = "packages")]
mod publish;
#[cfg(feature = "packages")]
mod remote;
pub(crate) mod resolve;
mod update;
mod version;

pub use permissions::TeamPermissions;
#[cfg(feature = "packages")]
pub use publish::Publication;
pub use update::{TeamUpdate, UpdatePlan};
pub use version::with_version;
