//! Sandboxes of a host: which paths are secret, and what the system can enforce (docs/sandbox.md).

use std::collections::HashMap;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::CliqDir;
use cliq_protocol::{PhaseKind, PhaseName, Sandbox};
use cliq_sandbox::{
    Access, Base, Limits, Mechanism, Policy, Preference, SANDBOX_VARIABLE, Support, secret_paths,
};
use cliq_settings::Settings;
use cliq_workflow::{Phase, ValidatedWorkflow};

use crate::sandbox_git::{GitGuard, GitPaths};
use crate::{Host, ProjectError};

impl Host {
    /// Directories by which the paths of a sandbox around a workspace are resolved.
    #[doc(hidden)]
    #[must_use]
    pub fn sandbox_base(&self, workspace: &Utf8Path) -> Base {
        let home = self.environment.get("HOME").map(Utf8PathBuf::from).filter(|home| home.is_absolute());
        let mut real_dirs: HashMap<Utf8PathBuf, Utf8PathBuf> = HashMap::new();
        let real = |path: Utf8PathBuf| {
            let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return path };
            let found = real_dirs.entry(dir.to_owned());
            found.or_insert_with(|| dir.canonicalize_utf8().unwrap_or_else(|_| dir.to_owned())).join(name)
        };
        let of_user = secret_paths(home.as_deref(), self.home.as_deref());
        let mut secrets: Vec<Utf8PathBuf> = of_user.into_iter().map(real).collect();
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

    /// Returns the sandboxes around all processes: those of settings, the one around this process, and another one.
    ///
    /// # Errors
    /// Returns an error if the variable with the sandbox around this process is not valid.
    pub(crate) fn sandboxes_around(
        &self,
        settings: &Settings,
        requested: Option<&Sandbox>,
    ) -> Result<Vec<Sandbox>, ProjectError> {
        let outer = self.environment.get(SANDBOX_VARIABLE).map(serde_json::from_str::<Sandbox>);
        let outer = outer
            .transpose()
            .map_err(|error| ProjectError::Sandbox(format!("{SANDBOX_VARIABLE}: {error}")))?;
        Ok(settings.sandboxes().into_iter().chain(outer).chain(requested.cloned()).collect())
    }

    /// Returns the sandboxes of phases that have one, by team and settings.
    ///
    /// # Errors
    /// Returns an error if the variable with the sandbox around this process is not valid.
    #[doc(hidden)]
    pub fn sandboxes(
        &self,
        workflow: &ValidatedWorkflow,
        settings: &Settings,
        workspace: &Utf8Path,
    ) -> Result<Vec<(PhaseName, Sandbox)>, ProjectError> {
        let base = self.sandbox_base(workspace);
        let around = combined(&self.sandboxes_around(settings, None)?, &base);
        let of_phase = |phase: &Phase| {
            let agent = phase.agent.as_ref().and_then(|agent| workflow.agents.get(agent));
            let asked = [Some(&phase.sandbox), agent.map(|agent| &agent.sandbox)];
            let limits = asked
                .into_iter()
                .flatten()
                .fold(around.clone(), |limits, sandbox| limits.within(&Limits::new(sandbox, &base), &base));
            (phase.name.clone(), limits.to_sandbox())
        };
        let is_cliq = |kind: PhaseKind| matches!(kind, PhaseKind::Pull | PhaseKind::Push);
        let phases = workflow.phases().map(|(_, phase)| phase).filter(|phase| !is_cliq(phase.kind));
        Ok(phases.map(of_phase).filter(|(_, sandbox)| sandbox.is_on()).collect())
    }

    /// Detects the mechanisms for sandboxes. Starts `bwrap` once.
    #[doc(hidden)]
    #[must_use]
    pub fn sandbox_support(&self) -> Support {
        Support::detect(self.environment.get("PATH"))
    }

    /// Returns the policy of a process in a sandbox around a workspace, with what protects its git directory while it lives.
    ///
    /// # Errors
    /// Returns what this system lacks.
    #[doc(hidden)]
    pub fn sandbox_policy(
        &self,
        sandbox: &Sandbox,
        workspace: &Utf8Path,
        access: &Access,
        preference: Preference,
    ) -> Result<(Policy, WorkspaceGuard), String> {
        let base = self.sandbox_base(workspace);
        let mechanism = self.sandbox_support().choose(preference)?;
        let git = GitPaths::of(workspace, None);
        let mut access = access.clone();
        access.write.extend(git.write);
        access.protected.extend(git.protected);
        access.protected.push(workspace.join(CliqDir::NAME));
        let is_guarded = mechanism == Mechanism::Bubblewrap;
        let guard = is_guarded.then(|| GitGuard::new(&workspace.join(".git"))).flatten();
        let policy = Policy::new(&Limits::new(sandbox, &base), &base, &access, mechanism);
        Ok((policy, WorkspaceGuard { _git: guard }))
    }
}

/// Protection of the git directory of a workspace, while it lives.
#[doc(hidden)]
#[derive(Debug)]
pub struct WorkspaceGuard {
    _git: Option<GitGuard>,
}

/// Combines sandboxes.
pub(crate) fn combined(sandboxes: &[Sandbox], base: &Base) -> Limits {
    let unlimited = Limits::new(&Sandbox::default(), base);
    sandboxes.iter().fold(unlimited, |limits, sandbox| limits.within(&Limits::new(sandbox, base), base))
}
