//! Sandboxes of a host: which paths are secret, and what the system can enforce (SPEC section 22).

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::Sandbox;
use cliq_sandbox::{Access, Base, Limits, Policy, Preference, Support, secret_paths};

use crate::Host;

impl Host {
    /// Directories by which the paths of a sandbox around a workspace are resolved.
    #[must_use]
    pub fn sandbox_base(&self, workspace: &Utf8Path) -> Base {
        let home = self.environment.get("HOME").map(Utf8PathBuf::from).filter(|home| home.is_absolute());
        let mut secrets = secret_paths(home.as_deref(), self.home.as_deref());
        // Links lead to secrets too.
        let targets: Vec<Utf8PathBuf> = secrets
            .iter()
            .filter(|path| path.is_symlink())
            .filter_map(|path| path.canonicalize_utf8().ok())
            .collect();
        secrets.extend(targets);
        // Runs of a server work inside the cliq home.
        Base { workspace: workspace.to_owned(), home, secrets }
    }

    /// Detects the mechanisms for sandboxes. Starts `bwrap` once.
    #[must_use]
    pub fn sandbox_support(&self) -> Support {
        Support::detect(self.environment.get("PATH"))
    }

    /// Returns the policy of a process in a sandbox around a workspace.
    ///
    /// # Errors
    /// Returns what this system lacks.
    pub fn sandbox_policy(
        &self,
        sandbox: &Sandbox,
        workspace: &Utf8Path,
        access: &Access,
        preference: Preference,
    ) -> Result<Policy, String> {
        let base = self.sandbox_base(workspace);
        let mechanism = self.sandbox_support().choose(preference)?;
        Ok(Policy::new(&Limits::new(sandbox, &base), &base, access, mechanism))
    }
}
