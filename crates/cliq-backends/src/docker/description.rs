//! The description of a container, made without IO.

use std::collections::HashMap;

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountType};
use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::SharedPath;
use cliq_protocol::RunId;

use super::DockerOptions;

/// The label that has the id of the run.
pub(crate) const RUN: &str = "dev.cliq.run";
/// The label that has the cliq home: what another home's cliq started is not touched.
pub(crate) const HOME: &str = "dev.cliq.home";
const WORKSPACE: &str = "dev.cliq.workspace";

/// A run that works in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    /// The run.
    pub run_id: RunId,
    /// Workspace of the run.
    pub workspace: Utf8PathBuf,
    /// The cliq home. In the container it is a directory of its own in memory.
    pub home: Utf8PathBuf,
    /// Directories beside the workspace.
    pub mounts: Vec<SharedPath>,
    /// The arguments of the cliq in the container.
    pub arguments: Vec<String>,
    /// The user and the group who work.
    pub user: (u32, u32),
    /// Whether the engine is a rootless Podman of that user, which must be told to keep their numbers.
    pub keeps_user: bool,
}

/// The name of a run's container.
#[must_use]
pub(super) fn container_name(run_id: &RunId) -> String {
    format!("cliq-{run_id}")
}

/// The description of the container of a run, with its limits and hardening (docs/docker.md).
#[must_use]
pub(super) fn description(job: &Job, options: &DockerOptions) -> ContainerCreateBody {
    let (uid, gid) = job.user;
    let tmpfs = [
        // Builds and tests run programs that they make there.
        ("/tmp".to_owned(), "rw,exec,nosuid,nodev,mode=1777".to_owned()),
        // For whoever works there: only Docker could be told whose it is.
        (job.home.to_string(), "rw,nosuid,nodev,mode=1777".to_owned()),
    ];
    let bind = |path: &Utf8Path, writable: bool| Mount {
        typ: Some(MountType::BIND),
        source: Some(path.to_string()),
        target: Some(path.to_string()),
        read_only: Some(!writable),
        ..Mount::default()
    };
    let workspace = std::iter::once(bind(&job.workspace, true));
    let mounts = workspace.chain(job.mounts.iter().map(|mount| bind(&mount.path, mount.writable))).collect();
    let memory = i64::try_from(options.memory).unwrap_or(i64::MAX);
    let host_config = HostConfig {
        memory: Some(memory),
        // The same: no swap beside it.
        memory_swap: Some(memory),
        nano_cpus: Some((options.cpus * 1e9) as i64),
        pids_limit: Some(i64::try_from(options.pids_limit).unwrap_or(i64::MAX)),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        readonly_rootfs: Some(options.read_only_rootfs),
        network_mode: Some(options.network_mode.clone()),
        extra_hosts: Some(options.extra_hosts.clone()),
        tmpfs: Some(tmpfs.into()),
        mounts: Some(mounts),
        // Ends with what it started, and passes signals on.
        init: Some(true),
        // Its output must be readable; the engine's default may be a driver that cannot be read.
        log_config: Some(HostConfigLogConfig { typ: Some("json-file".to_owned()), config: None }),
        userns_mode: job.keeps_user.then(|| "keep-id".to_owned()),
        ..HostConfig::default()
    };
    let labels = HashMap::from([
        (RUN.to_owned(), job.run_id.to_string()),
        (HOME.to_owned(), job.home.to_string()),
        (WORKSPACE.to_owned(), job.workspace.to_string()),
    ]);
    ContainerCreateBody {
        image: Some(options.image.clone()),
        entrypoint: Some(vec!["cliq".to_owned()]),
        cmd: Some(job.arguments.clone()),
        user: Some(format!("{uid}:{gid}")),
        working_dir: Some(job.workspace.to_string()),
        env: Some(vec![format!("CLIQ_HOME={}", job.home), "HOME=/tmp/home".to_owned()]),
        labels: Some(labels),
        open_stdin: Some(true),
        stdin_once: Some(true),
        attach_stdin: Some(true),
        tty: Some(false),
        host_config: Some(host_config),
        ..ContainerCreateBody::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> DockerOptions {
        DockerOptions {
            image: "cliq-runner:latest".to_owned(),
            memory: 4 << 30,
            cpus: 1.5,
            pids_limit: 100,
            network_mode: "none".to_owned(),
            read_only_rootfs: true,
            max_containers: 4,
            extra_hosts: vec!["db:10.0.0.1".to_owned()],
            env: [("KEY".to_owned(), "hush".to_owned())].into(),
            host: None,
        }
    }

    #[test]
    fn a_description_has_limits_and_no_secret() {
        let job = Job {
            run_id: RunId::parse("0190").expect("an id"),
            workspace: "/home/ada/shop".into(),
            home: "/home/ada/.cliqrc".into(),
            mounts: vec![SharedPath { path: "/home/ada/.cliqrc/teams".into(), writable: false }],
            arguments: vec!["contained".to_owned(), "--".to_owned(), "run".to_owned()],
            user: (1000, 1001),
            keeps_user: false,
        };
        let mut text = serde_json::to_value(description(&job, &options())).expect("JSON");
        assert!(!text.to_string().contains("hush"));
        // These maps of the library have no order.
        for map in ["/Labels", "/HostConfig/Tmpfs"] {
            text.pointer_mut(map).expect("a map").sort_all_objects();
        }
        insta::assert_json_snapshot!(text);
    }
}
