//! Options of a supervisor.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_http::Guard;
use cliq_model::{Recovery, Run, RunOrigin};
use cliq_project::{Host, Profile};
use cliq_protocol::RunId;
use cliq_settings::{
    KubernetesSettings, RecoveryChoice, ReplicaSettings, ServerSettings, Settings, TriggerSettings,
};

use crate::delegation::{DelegationLog, DelegationOptions};
use crate::observer::ProcessObserver;

/// Options of a supervisor (settings `server.*`).
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::time::Duration;
///
/// use cliq_project::{Environment, Host, Settings};
/// use cliq_supervisor::SupervisorOptions;
///
/// let host = Host::new(Environment::of_process(), "/usr/local/bin/cliq".into()).with_home("/var/lib/cliq");
/// let options = SupervisorOptions::new(host, "/var/lib/cliq".into(), &Settings::default())
///     .with_max_runs(NonZeroUsize::new(2).ok_or("zero")?)
///     .with_retention(Duration::from_secs(24 * 3600));
/// assert_eq!(options.workspace_root, "/var/lib/cliq/workspaces");
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SupervisorOptions {
    /// Host of the runs: environment, cliq home, and the `cliq` program that executes a run.
    pub host: Host,
    /// Maximum number of runs at the same time.
    pub max_runs: usize,
    /// Recovery of a run whose orchestrator died.
    pub recovery: Recovery,
    /// Time for which runs are kept after their end.
    pub retention: Duration,
    /// Directory of the workspaces that are created for runs.
    pub workspace_root: Utf8PathBuf,
    /// Sandbox around runs whose text comes from outside: delegated runs, and those of deliveries.
    pub untrusted_sandbox: Profile,
    /// Directory of orchestrator logs, if the workspaces are not shared.
    pub log_dir: Utf8PathBuf,
    /// Name of this supervisor among several on one database. Stable across restarts of the same home.
    pub replica: String,
    /// Lease duration. Other replicas take over the runs of a replica that has not renewed its lease.
    pub lease: Duration,
    /// Whether all replicas see the same workspaces at the same paths.
    pub shared_workspaces: bool,
    /// Whether runs work as Jobs of a cluster (`kubernetes.enabled`).
    pub runs_in_cluster: bool,
    /// Whether the output of the agents of delegated runs is stored.
    pub stores_output: bool,
    /// Hosts from which triggers may clone repositories (`triggers.repo_hosts`). Empty allows every public host.
    pub trigger_repo_hosts: Vec<String>,
    /// Options of delegated runs, or `None` if none are accepted.
    pub delegation: Option<DelegationOptions>,
    /// Source of events for those who delegate runs, or `None` if there are no such runs.
    pub delegation_log: Option<Arc<dyn DelegationLog>>,
    /// Observer of the processes of runs, if there is one.
    pub observer: Option<Arc<dyn ProcessObserver>>,
}

impl SupervisorOptions {
    /// Returns the options that the settings define for a host. State is kept below `home`.
    #[must_use]
    pub fn new(host: Host, home: &Utf8Path, settings: &Settings) -> Self {
        let server = ServerSettings::read(settings);
        let ReplicaSettings { shared_workspaces, lease } = ReplicaSettings::read(settings);
        Self {
            host,
            max_runs: server.max_runs,
            recovery: match server.recovery {
                RecoveryChoice::Resume => Recovery::Resume,
                RecoveryChoice::Fail => Recovery::Fail,
            },
            retention: server.retention,
            workspace_root: cliq_project::internals::workspace_root(home, settings),
            untrusted_sandbox: server.sandbox,
            log_dir: home.join("server").join("runs"),
            replica: cliq_fs::new_run_id().to_string(),
            lease,
            shared_workspaces,
            runs_in_cluster: KubernetesSettings::read(settings).enabled,
            stores_output: server.workflow_streaming,
            trigger_repo_hosts: TriggerSettings::read(settings).repo_hosts,
            delegation: None,
            delegation_log: None,
            observer: None,
        }
    }

    /// Sets the maximum number of runs at the same time.
    #[must_use]
    pub fn with_max_runs(mut self, runs: NonZeroUsize) -> Self {
        self.max_runs = runs.get();
        self
    }

    /// Sets the recovery of a run whose orchestrator died.
    #[must_use]
    pub fn with_recovery(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self
    }

    /// Sets the time for which runs are kept after their end.
    #[must_use]
    pub fn with_retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }

    /// Sets the directory of the workspaces that are created for runs.
    #[must_use]
    pub fn with_workspace_root(mut self, root: Utf8PathBuf) -> Self {
        self.workspace_root = root;
        self
    }

    /// Sets the name of this supervisor among several on one database. It has to be the same after a restart.
    #[must_use]
    pub fn with_replica(mut self, name: impl Into<String>) -> Self {
        self.replica = name.into();
        self
    }

    /// Accepts delegated runs. `log` makes the events for those who delegate them.
    #[must_use]
    pub fn with_delegation(mut self, options: DelegationOptions, log: Arc<dyn DelegationLog>) -> Self {
        self.delegation = Some(options);
        self.delegation_log = Some(log);
        self
    }

    /// Returns the sandbox around a run: text of delegated runs comes from outside, and a trigger names its own.
    pub(crate) fn sandbox_of(&self, run: &Run) -> Option<Profile> {
        match run.origin {
            RunOrigin::Delegated => Some(self.untrusted_sandbox),
            RunOrigin::Trigger => {
                let named = run.request.trigger.as_ref().and_then(|trigger| trigger.sandbox.as_deref());
                named.and_then(Profile::parse).filter(|profile| *profile != Profile::Off)
            }
            _ => None,
        }
    }

    /// Returns the hosts from which runs of an origin may clone repositories. Empty allows every public host.
    pub(crate) fn repo_hosts(&self, origin: RunOrigin) -> &[String] {
        match (origin, &self.delegation) {
            (RunOrigin::Delegated, Some(delegation)) => &delegation.repo_hosts,
            (RunOrigin::Trigger, _) => &self.trigger_repo_hosts,
            _ => &[],
        }
    }

    /// Returns the address guard for the repositories of a run.
    pub(crate) fn repository_guard(&self, run: &Run) -> Guard {
        Guard { allow_private: false, allowed_hosts: self.repo_hosts(run.origin).to_vec() }
    }

    /// Returns the directories of the workspaces that are created for runs. Delegated runs may have one of their own.
    pub(crate) fn workspace_roots(&self) -> BTreeSet<&Utf8Path> {
        let delegated = self.delegation.as_ref().map(|options| options.workspace_root.as_path());
        std::iter::once(self.workspace_root.as_path()).chain(delegated).collect()
    }

    /// Returns the directory of orchestrator logs. Replicas with shared workspaces share the logs too.
    pub(crate) fn logs(&self) -> Utf8PathBuf {
        if self.shared_workspaces { self.workspace_root.join(".logs") } else { self.log_dir.clone() }
    }

    /// Returns the log of a run's orchestrator. The file is locked for as long as the orchestrator is alive.
    pub(crate) fn log_file(&self, id: &RunId) -> Utf8PathBuf {
        self.logs().join(format!("{id}.log"))
    }
}
