//! Origin of an installed team, and the teams that its team phases had when it was installed.

use camino::Utf8Path;
use cliq_packages::Lock;

/// Name of the file in the folder of an installed team: a lock of that team.
pub(crate) const FILE: &str = ".cliq-package.json";

/// The lock of an installed team. `None` for a team that was installed by an earlier version, or whose file is damaged: it then counts as a
/// folder.
pub(crate) fn lock_of(dir: &Utf8Path) -> Option<Lock> {
    Lock::read(&dir.join(FILE)).ok().flatten()
}
