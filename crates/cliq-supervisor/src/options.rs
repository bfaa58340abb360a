//! Options of a supervisor.

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

use crate::task_log::TaskLog;

/// Options of runs that are tasks of A2A callers (docs/a2a.md).
#[derive(Debug, Clone)]
pub struct TaskOptions {
    /// Name of this cliq in results and updates.
    pub instance_id: String,
    /// Directory of the workspaces of tasks.
    pub workspace_root: Utf8PathBuf,
    /// Hosts from which repositories may be cloned. Empty allows every public host.
    pub repo_hosts: Vec<String>,
}

/// Options of a supervisor (settings `server.*`).
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
    /// Sandbox around runs that callers of A2A start.
    pub task_sandbox: Profile,
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
    /// Whether the output of agents is stored for A2A callers.
    pub workflow_streaming: bool,
    /// Hosts from which triggers may clone repositories (`triggers.repo_hosts`). Empty allows every public host.
    pub trigger_repo_hosts: Vec<String>,
    /// Options of tasks, or `None` if the A2A agent is disabled.
    pub tasks: Option<TaskOptions>,
    /// Source of events for the callers of tasks, or `None` if there are no tasks.
    pub task_log: Option<Arc<dyn TaskLog>>,
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
            workspace_root: cliq_project::workspace_root(home, settings),
            task_sandbox: server.sandbox,
            log_dir: home.join("server").join("runs"),
            replica: cliq_fs::new_run_id().to_string(),
            lease,
            shared_workspaces,
            runs_in_cluster: KubernetesSettings::read(settings).enabled,
            workflow_streaming: server.workflow_streaming,
            trigger_repo_hosts: TriggerSettings::read(settings).repo_hosts,
            tasks: None,
            task_log: None,
        }
    }

    /// Returns the sandbox around a run: text of tasks comes from outside, and a trigger names its own.
    pub(crate) fn sandbox_of(&self, run: &Run) -> Option<Profile> {
        match run.origin {
            RunOrigin::A2a => Some(self.task_sandbox),
            RunOrigin::Trigger => {
                let named = run.request.trigger.as_ref().and_then(|trigger| trigger.sandbox.as_deref());
                named.and_then(Profile::parse).filter(|profile| *profile != Profile::Off)
            }
            _ => None,
        }
    }

    /// Returns the name of this cliq if the run is a task.
    pub(crate) fn task_instance(&self, run: &Run) -> Option<&str> {
        let name = self.tasks.as_ref().map_or("cliq", |tasks| &tasks.instance_id);
        (run.origin == RunOrigin::A2a).then_some(name)
    }

    /// Returns the hosts from which runs of an origin may clone repositories. Empty allows every public host.
    pub(crate) fn repo_hosts(&self, origin: RunOrigin) -> &[String] {
        match (origin, &self.tasks) {
            (RunOrigin::A2a, Some(tasks)) => &tasks.repo_hosts,
            (RunOrigin::Trigger, _) => &self.trigger_repo_hosts,
            _ => &[],
        }
    }

    /// Returns the address guard for the repositories of a run.
    pub(crate) fn repository_guard(&self, run: &Run) -> Guard {
        Guard { allow_private: false, allowed_hosts: self.repo_hosts(run.origin).to_vec() }
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
