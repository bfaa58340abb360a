//! Options of containers from the settings.

use std::collections::BTreeMap;

use cliq_settings::{DockerSettings, Environment, Settings};

/// The settings `docker.*` (docs/docker.md).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DockerOptions {
    /// The image.
    pub image: String,
    /// The most memory, in bytes. There is no swap beside it.
    pub memory: u64,
    /// The most processors.
    pub cpus: f64,
    /// The most processes and threads.
    pub pids_limit: usize,
    /// The network.
    pub network_mode: String,
    /// Whether only the workspace and temporary directories can be written.
    pub read_only_rootfs: bool,
    /// The most containers at a time.
    pub max_containers: usize,
    /// More hosts, as `NAME:ADDRESS`.
    pub extra_hosts: Vec<String>,
    /// Variables, which may be secret.
    pub env: BTreeMap<String, String>,
    /// Address of the engine, if it is set.
    pub host: Option<String>,
}

impl DockerOptions {
    /// The options in settings.
    #[must_use]
    pub(super) fn of(settings: &Settings) -> Self {
        // All fields are named, so a new setting does not compile until it has a use here.
        let DockerSettings {
            enabled: _,
            host,
            image,
            memory,
            cpus,
            pids_limit,
            network_mode,
            read_only_rootfs,
            max_containers,
            extra_hosts,
            env,
        } = DockerSettings::read(settings);
        Self {
            image,
            memory,
            cpus,
            pids_limit,
            network_mode,
            read_only_rootfs,
            max_containers,
            extra_hosts,
            env: env.into_iter().map(|(name, value)| (name, value.reveal().to_owned())).collect(),
            host,
        }
    }
}

/// The address of the engine: what is set, else `DOCKER_HOST`, else the first of the usual sockets of Docker and Podman that is there.
#[must_use]
pub(super) fn engine_address(options: &DockerOptions, environment: &Environment) -> String {
    let set = options.host.clone().or_else(|| environment.get("DOCKER_HOST").map(str::to_owned));
    set.unwrap_or_else(|| {
        let own = environment.get("XDG_RUNTIME_DIR").map(|dir| format!("{dir}/podman/podman.sock"));
        let docker = "/var/run/docker.sock".to_owned();
        let mut usual = [Some(docker.clone()), own, Some("/run/podman/podman.sock".to_owned())];
        let there =
            usual.iter_mut().filter_map(Option::take).find(|path| std::path::Path::new(path).exists());
        format!("unix://{}", there.unwrap_or(docker))
    })
}
